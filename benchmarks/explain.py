"""Measures explaining a job on a large supervisor's log: from cold, and when everything is read.

    python -m benchmarks.explain [--quick] [--json]

The log is a captured one over and over, each time some minutes earlier and with other ids of jobs, ops and
agents, and at its end as it was captured. From cold is `jobtui explain` in a process of its own; the first
verdict of a dashboard is that after the end of the log was read. Files are in the page cache.
"""

import asyncio
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import ascii_letters
from typing import NamedTuple

from benchmarks.rows import Row, at_most, main
from jobtui.analysis.explain.verdict import explain
from jobtui.backends.logfile import LogFile
from jobtui.backends.sirepo.source import SirepoDb
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.ids import JobId
from jobtui.session import Session
from jobtui.session.evidence import Gatherer

CAPTURE = Path(__file__).parents[1] / "tests" / "fixtures" / "sirepo" / "local"
JOB = JobId("DJouDZ9T-8ll2VWdK-heightWeightReport")
AT, NOW = "2026-11-20T21:00:00Z", Nanos(1_795_208_400 * SECOND)
SIZE, QUICK_SIZE = 1 << 30, 64 << 20
COLD_S, WARM_MS = 3.0, 300.0
ID_LENGTH = 8
_MINUTE = re.compile(rb"^[A-Z][a-z]{2} \d\d \d\d:\d\d(?=:)", re.MULTILINE)
_SECONDS = re.compile(rb"\b1795\d{6}\b")


class Copy(NamedTuple):
    """The log as it was captured, some minutes earlier and with other ids: the words that were changed."""

    minutes: int
    words: dict[bytes, bytes]

    def of(self, text: bytes) -> bytes:
        for old, new in self.words.items():
            if len(old) == ID_LENGTH:
                text = text.replace(old, new)
        return _SECONDS.sub(lambda found: b"%d" % (int(found[0]) - 60 * self.minutes), text)


def write_log(path: Path, size: int) -> Copy:
    """A supervisor's log of about this size, of which the end is as captured; the copy in its middle."""
    captured = (CAPTURE / "supervisor.log").read_bytes()
    ids = {part for pair in re.findall(rb"\b(\w{8})-(\w{8})-", captured) for part in pair}
    # four characters of an op or agent, which begin its full id: as different as real ones
    ids |= {part for part in re.findall(rb"(?:\b[oa]=|_Op\(\w+, )(\w{4})\b", captured) if part != b"None"}
    minutes = sorted(set(_MINUTE.findall(captured)))
    pieces = re.split(
        rb"\b(" + b"|".join(sorted(ids)) + rb")|^(" + b"|".join(minutes) + rb")", captured, flags=re.M
    )
    copies = size // len(captured)
    draw = random.Random(1)
    middle = Copy(0, {})
    with path.open("wb") as log:
        for back in range(copies - 1, 0, -1):
            earlier = back * len(minutes)
            words = {part: "".join(draw.choices(ascii_letters, k=len(part))).encode() for part in ids}
            words |= {minute: _before(minute, earlier) for minute in minutes}
            log.write(b"".join(words.get(piece, piece) for piece in pieces if piece))
            if back == copies // 2:
                middle = Copy(earlier, words)
        log.write(captured)
    return middle


def _before(minute: bytes, minutes: int) -> bytes:
    at = datetime.strptime(f"2026 {minute.decode()}", "%Y %b %d %H:%M").replace(tzinfo=UTC)
    return (at - timedelta(minutes=minutes)).strftime("%b %d %H:%M").encode()


def write_records(place: Path, middle: Copy) -> JobId:
    folder = place / "supervisor-job"
    shutil.copytree(CAPTURE / "supervisor-job", folder)
    job_id = JobId(middle.of(JOB.encode()).decode())
    (folder / f"{job_id}.json").write_bytes(middle.of((folder / f"{JOB}.json").read_bytes()))
    return job_id


async def _in_dashboard(log: Path, records: Path) -> tuple[float, float]:
    """Seconds to the first verdict with a log read from its end on, and for one more, in milliseconds."""
    async with Session([SirepoDb(records), LogFile(log)], FixedClock(NOW)) as session:
        began = time.perf_counter()
        await session.catch_up()
        explain(await Gatherer.of(session).gather(JOB))
        first = time.perf_counter()
        explain(await Gatherer.of(session).gather(JOB))
        return first - began, (time.perf_counter() - first) * 1_000


def _one_shot(log: Path, records: Path, job_id: JobId) -> float:
    """Seconds of `jobtui explain`. Raises CalledProcessError when it does not give the verdict."""
    words = ("explain", job_id, "--at", AT, "--srdb", str(records), "--log", f"supervisor={log}")
    began = time.perf_counter()
    ran = subprocess.run(
        [sys.executable, "-m", "jobtui", *words], capture_output=True, text=True, check=False
    )
    if "prepare_failed" not in ran.stdout:
        raise subprocess.CalledProcessError(ran.returncode, words, ran.stdout, ran.stderr)
    return time.perf_counter() - began


def rows(quick: bool) -> Iterator[Row]:
    size = QUICK_SIZE if quick else SIZE
    name = f"{size >> 20} MB log"
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        log = place / "supervisor.log"
        middle = write_records(place, write_log(log, size))
        yield at_most(f"explain in a process of its own, {name}", _one_shot(log, place, JOB), "s", COLD_S)
        yield at_most(
            f"the same for a job {size >> 21} MB before its end", _one_shot(log, place, middle), "s", COLD_S
        )
        first_s, again_ms = asyncio.run(_in_dashboard(log, place))
    yield at_most(f"first verdict of a dashboard, {name}", first_s, "s", COLD_S)
    yield at_most("a verdict when everything is read", again_ms, "ms", WARM_MS)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", rows))
