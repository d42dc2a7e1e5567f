"""A real Sirepo that is kept busy for some minutes, for whoever wants to watch one.

    REAL_SIREPO_VENV=DIR python -m tests.real.keep_busy ROOT [--minutes N] [--seed N]

Makes ROOT, starts Sirepo there, prints the flags that name its sources, runs jobs of every kind in turn,
prints `quiet` when the time is over, and ends it all when its input ends.
"""

import argparse
import os
import shlex
import sys
import time
from pathlib import Path

from tests.real.sirepo_jobs import Jobs
from tests.real.sirepo_system import Driver, Setup, SirepoSystem
from tests.real.watching import source_flags


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", type=Path)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    venv = Path(os.environ["REAL_SIREPO_VENV"])
    with SirepoSystem(venv, options.root.resolve(), Setup(driver=Driver.LOCAL, prefixed=True)) as system:
        say(shlex.join(source_flags(system)))
        until = time.monotonic() + options.minutes * 60
        jobs = Jobs(system, options.seed)
        while time.monotonic() < until:
            for kind in jobs.kinds:
                if time.monotonic() < until:
                    jobs.run([kind])
                    say(f"{kind}: {jobs.asked[-1].state}")
        say("quiet")
        sys.stdin.read()


if __name__ == "__main__":
    main()
