"""Try readers of outside bytes, and damaged worlds: `python -m tests.fuzz [--minutes N] [TARGET ...]`.

What makes one raise becomes a small file of the corpus, which `test_corpus.py` reads. 1 if any was found.
"""

import argparse
import hashlib
import os
import random
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.analysis.explain.worlds import damaged, of_any_system
from tests.fuzz.damage import grows_badly, inputs
from tests.fuzz.targets import TARGETS, Target
from tests.fuzz.whole import WORLDS, fuzz_world

VERDICTS = {"damaged": damaged, "disturbed": of_any_system}
CORPUS = Path(__file__).with_name("corpus")
MINUTES = 5.0
AT_ONCE = 100


class Found(Exception):
    """A reader raised what it should not. `data` is what it was given."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.data = data


def read(target: Target, data: bytes) -> None:
    with suppress(*target.raises):
        target.read(data)


def attack(target: Target, seconds: float) -> tuple[int, Found | None]:
    """How many inputs were tried in so much time, and the smallest on which the target fails."""
    until, count, last = time.monotonic() + seconds, 0, b""

    def body(data: bytes) -> None:
        nonlocal count, last
        count, last = count + 1, data
        read(target, data)

    while time.monotonic() < until:
        try:
            _examples(target)(seed(random.getrandbits(64))(given(inputs(target))(body)))()
        except Exception as error:  # noqa: BLE001  whatever it is, it is what is looked for
            found = Found(last)
            found.__cause__ = error
            return count, found
    return count, None


def keep(name: str, data: bytes) -> Path:
    path = CORPUS / name / hashlib.sha256(data).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _examples(target: Target) -> settings:
    return settings(
        max_examples=AT_ONCE,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )


def fuzz(name: str, target: Target, seconds: float) -> bool:
    """Try a target for some seconds, and report; whether it passed."""
    count, found = attack(target, seconds)
    slow = [*grows_badly(target)]
    print(f"{name}: {count:,} inputs{'' if found or slow else ', nothing found'}", flush=True)
    if found is not None:
        traceback.print_exception(found.__cause__, limit=-6, file=sys.stdout)
        print(f"  {found.data!r}\n  kept as {keep(name, found.data)}", flush=True)
    for piece, why in slow:
        print(f"  grows badly: {piece[:80]!r} repeated: {why}", flush=True)
    return found is None and not slow


def judge(name: str, seconds: float, number: int) -> bool:
    """Try worlds from a number on for some seconds; whether no verdict was wrong."""
    until, worlds, wrong = time.monotonic() + seconds, 0, 0
    while time.monotonic() < until:
        for one in VERDICTS[name](number + worlds):
            if one.is_sure_and_wrong:
                wrong += 1
                print(f"{name}: {one}", flush=True)
        worlds += 1
    print(f"{name}: {worlds:,} worlds{f', {wrong} wrong' if wrong else ', nothing found'}", flush=True)
    return not wrong


def stands(name: str, seconds: float, number: int) -> bool:
    if name in TARGETS:
        return fuzz(name, TARGETS[name], seconds)
    return (judge if name in VERDICTS else fuzz_world)(name, seconds, number)


def main() -> int:
    args = argparse.ArgumentParser(
        prog="scripts/fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    args.add_argument("--minutes", type=float, default=MINUTES)
    args.add_argument("--seed", type=int, default=random.getrandbits(32), help="the first seed of worlds")
    args.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join((*TARGETS, *WORLDS, *VERDICTS)))
    options = args.parse_args()
    names = options.targets or [*TARGETS, *WORLDS, *VERDICTS]
    seconds = options.minutes * 60 / len(names)
    if unknown := set(names) - TARGETS.keys() - WORLDS.keys() - VERDICTS.keys():
        args.error(f"unknown: {', '.join(unknown)}")
    with tempfile.TemporaryDirectory() as home:
        os.environ["HOME"] = home  # where worlds keep their logins
        stood = [stands(name, seconds, options.seed) for name in names]
    return int(not all(stood))


if __name__ == "__main__":
    sys.exit(main())
