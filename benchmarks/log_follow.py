"""Measures the log file backend: how soon a written line is a record, and what following a quiet file costs.

    python -m benchmarks.log_follow [--quick] [--json]

The lines appended are read as the session's poller reads them: `changed`, then `poll`. How many lines a
second are parsed is the matter of `log_lines`.
"""

import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.rows import Row, at_most, main
from jobtui.backends.logfile import LogFile
from jobtui.backends.registry import PERIOD_S

APPENDS, QUICK_APPENDS = 300, 40
IDLE_S, QUICK_IDLE_S = 10.0, 2.0
SETTLE_S = 2.0
"""How long the file is left alone before what it costs is measured."""
FOLLOW_LIMIT_MS = 350.0
"""Of the 0.6 s from written to painted; the screen's timer may take 0.25 s."""
IDLE_LIMIT_PERCENT = 0.5

_RECORD = "Nov 20 20:34:31 30699     0 sirepo/job_supervisor.py:254:receive ServerReq(api_runStatus, %s)\n"


def measure(quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "supervisor.log"
        yield from _follow(path, QUICK_APPENDS if quick else APPENDS, QUICK_IDLE_S if quick else IDLE_S)


def _follow(path: Path, appends: int, idle_s: float) -> Iterator[Row]:
    path.write_text("sirepo/x.py:1:f the first line\n")
    delays_ms, idle_percent = asyncio.run(_followed(path, appends, idle_s))
    tops = statistics.quantiles(delays_ms, n=20)
    what = f"line written to record given, {appends} lines"
    yield Row(what=f"{what}, p50", measured=statistics.median(delays_ms), unit="ms")
    yield at_most(f"{what}, p95", tops[-1], "ms", FOLLOW_LIMIT_MS)
    yield at_most("CPU to follow one quiet file", idle_percent, "% of a core", IDLE_LIMIT_PERCENT)


async def _followed(path: Path, appends: int, idle_s: float) -> tuple[list[float], float]:
    log = LogFile(path)
    written: dict[str, float] = {}
    delays: list[float] = []
    writing = asyncio.create_task(_write_lines(path, appends, written))
    cursor: str | None = None
    while len(delays) < appends:
        batch = await log.poll(cursor)
        cursor = batch.cursor
        now = time.perf_counter()
        delays += [1_000 * (now - written[record.fields["jid"] or ""]) for record in batch.records]
        if not batch.more:
            await log.changed(PERIOD_S)
    await writing
    cursor = await _idle(log, cursor, SETTLE_S)
    cpu = time.process_time()
    await _idle(log, cursor, idle_s)
    await log.aclose()
    return delays, 100 * (time.process_time() - cpu) / idle_s


async def _idle(log: LogFile, cursor: str | None, seconds: float) -> str | None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        cursor = (await log.poll(cursor)).cursor
        await log.changed(PERIOD_S)
    return cursor


async def _write_lines(path: Path, count: int, written: dict[str, float]) -> None:
    chance = random.Random(2)
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    for nth in range(count):
        await asyncio.sleep(chance.uniform(0.0, 0.2))
        jid = f"vn9mSrw1-{nth:08d}-animation"
        written[jid] = time.perf_counter()
        os.write(fd, (_RECORD % jid).encode())
    os.close(fd)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", measure))
