"""Measures explaining a job on a large supervisor's log: from cold, and when everything is read.

    python -m benchmarks.explain [--quick] [--json]

The log is a captured one over and over, a day earlier and with other ids of jobs, ops and agents, and at its
end as it was captured. From cold is `jobtui explain` in a process of its own; the first verdict of a
dashboard is that after the end of the log was read. Files are in the page cache.
"""

import asyncio
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from string import ascii_letters

from benchmarks.rows import Row, at_most, main
from jobtui.analysis.explain.study import study
from jobtui.backends.logfile import LogFile
from jobtui.backends.sirepo_db import SirepoDb
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.ids import JobId
from jobtui.session import Session

CAPTURE = Path(__file__).parents[1] / "tests" / "fixtures" / "sirepo" / "local"
JOB = JobId("DJouDZ9T-8ll2VWdK-heightWeightReport")
AT, NOW = "2026-11-20T21:00:00Z", Nanos(1_795_208_400 * SECOND)
SIZE, QUICK_SIZE = 1 << 30, 64 << 20
COLD_S, WARM_MS = 3.0, 300.0


def write_log(path: Path, size: int) -> None:
    """A supervisor's log of about this size, of which the end is about the job."""
    captured = (CAPTURE / "supervisor.log").read_bytes()
    earlier = captured.replace(b"Nov 20", b"Nov 19")
    parts = {part for pair in re.findall(rb"\b(\w{8})-(\w{8})-", earlier) for part in pair}
    # four characters of an op or agent, which begin its full id: as different as real ones
    parts |= {part for part in re.findall(rb"(?:\b[oa]=|_Op\(\w+, )(\w{4})\b", earlier) if part != b"None"}
    pieces = re.split(rb"\b(" + b"|".join(sorted(parts)) + rb")", earlier)
    draw = random.Random(1)
    with path.open("wb") as log:
        while log.tell() < size - len(captured):
            new = {part: "".join(draw.choices(ascii_letters, k=len(part))).encode() for part in parts}
            pieces[1::2] = [new[part] for part in pieces[1::2]]
            parts = set(new.values())
            log.write(b"".join(pieces))
        log.write(captured)


async def _in_dashboard(log: Path) -> tuple[float, float]:
    """Seconds to the first verdict with a log read from its end on, and for one more, in milliseconds."""
    async with Session([SirepoDb(CAPTURE), LogFile(log, "supervisor")], FixedClock(NOW)) as session:
        store = session.store
        began = time.perf_counter()
        await session.catch_up()
        study(store.correlation, store.jobs, store.sources(), JOB, NOW, None)
        first = time.perf_counter()
        study(store.correlation, store.jobs, store.sources(), JOB, NOW, None)
        return first - began, (time.perf_counter() - first) * 1_000


def _one_shot(log: Path) -> float:
    """Seconds of `jobtui explain`. Raises CalledProcessError when it does not give the verdict."""
    words = ("explain", JOB, "--at", AT, "--srdb", str(CAPTURE), "--log", f"supervisor={log}")
    began = time.perf_counter()
    ran = subprocess.run(
        [sys.executable, "-m", "jobtui", *words], capture_output=True, text=True, check=False
    )
    if "prepare_failed" not in ran.stdout:
        raise subprocess.CalledProcessError(ran.returncode, words, ran.stdout, ran.stderr)
    return time.perf_counter() - began


def rows(quick: bool) -> Iterator[Row]:
    """What is measured."""
    size = QUICK_SIZE if quick else SIZE
    name = f"{size >> 20} MB log"
    with tempfile.TemporaryDirectory() as place:
        log = Path(place) / "supervisor.log"
        write_log(log, size)
        yield at_most(f"explain in a process of its own, {name}", _one_shot(log), "s", COLD_S)
        first_s, again_ms = asyncio.run(_in_dashboard(log))
    yield at_most(f"first verdict of a dashboard, {name}", first_s, "s", COLD_S)
    yield at_most("a verdict when everything is read", again_ms, "ms", WARM_MS)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", rows))
