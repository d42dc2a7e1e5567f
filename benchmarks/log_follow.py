"""Measures the log file backend: how soon a written line is a record, and what reading a big file costs.

    python -m benchmarks.log_follow [--quick] [--json]

The lines appended are read as the session's poller reads them: `changed`, then `poll`. The big file holds
lines that matter to nobody; what reading it is compared with runs in the same process (blocks read, nothing
done) or beside it (`wc -l`, `grep -c`). All on a file that is in the page cache. How many lines a second are
parsed is the matter of `log_lines`; here it is what following adds to that.
"""

import asyncio
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.rows import Row, at_most, main
from jobtui.backends.log_start import FromStart, FromTime, Start, TailBytes
from jobtui.backends.logfile import LogFile
from jobtui.formats.parser import Parsed
from jobtui.model.clock import Nanos
from jobtui.store.poller import PERIOD_S

APPENDS, QUICK_APPENDS = 300, 40
SIZE, QUICK_SIZE = 500 << 20, 50 << 20
IDLE_S, QUICK_IDLE_S = 10.0, 2.0
SETTLE_S = 2.0
"""How long the file is left alone before what it costs is measured."""
ROUNDS = 3
FOLLOW_LIMIT_MS = 350.0
"""Of the 0.6 s from written to painted; the screen's timer may take 0.25 s."""
IDLE_LIMIT_PERCENT = 0.5
NEEDLE = "h9Kq2mXv-tR4wLp7Z"

_RECORD = "Nov 20 20:34:31 30699     0 sirepo/job_supervisor.py:254:receive ServerReq(api_runStatus, %s)\n"
_DULL = (
    "Nov 20 20:34:30 30699     0 sirepo/some/module.py:118:handler cache {} of table cleaned, {} kept\n",
    "Nov 20 20:34:30 30699     0 tornado/web.py:2348:log_request INFO:tornado.access:200 GET /s/{} {}ms\n",
    "sirepo/pkcli/service.py:77:tick queue={} idle={} nothing to be done\n",
)


def measure(quick: bool) -> Iterator[Row]:
    """Every figure, on files in a temporary directory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "supervisor.log"
        yield from _follow(path, QUICK_APPENDS if quick else APPENDS, QUICK_IDLE_S if quick else IDLE_S)
        lines = write_dull(path, QUICK_SIZE if quick else SIZE)
        yield from _read(path, lines)
        yield from _places(path)


def write_dull(path: Path, size: int) -> int:
    """Write about `size` bytes of lines that are no records; gives their number."""
    chance = random.Random(1)
    lines = [
        chance.choice(_DULL).format(chance.randrange(10_000), chance.randrange(1_000)) for _ in range(10_000)
    ]
    block = "".join(lines).encode()
    copies = max(1, size // len(block))
    with path.open("wb") as file:
        for _ in range(copies):
            file.write(block)
        file.write(f"sirepo/x.py:1:f the only line with {NEEDLE}\n".encode())
    return copies * len(lines) + 1


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


class CountingParser:
    """Does nothing but count lines: what is left is the cost of reading."""

    def __init__(self, source: str, role: str) -> None:
        pass

    def parse(self, block: bytes, offset: int, line: int, newest: Nanos) -> Parsed:
        """No records."""
        return Parsed([], block.count(b"\n"), [], 0)

    def time_of(self, line: bytes, newest: Nanos) -> Nanos | None:
        """No time."""
        return None


def _read(path: Path, lines: int) -> Iterator[Row]:
    size = path.stat().st_size
    wc = _best(lambda: _run("wc", "-l", str(path)))
    blocks = _best(lambda: _read_blocks(path))
    counting = _best(
        lambda: asyncio.run(_drain(LogFile(path, start=FromStart(), parser_factory=CountingParser)))
    )
    parsed = _best(lambda: asyncio.run(_drain(LogFile(path, start=FromStart()))))
    text = f"{size >> 20} MB of lines that matter to nobody"
    yield _beside(f"{text}: read and cut into lines, beside reading blocks", counting, blocks)
    yield _beside(f"{text}: the same, beside wc -l", counting, wc)
    yield _beside(f"{text}: read and parsed, beside reading blocks", parsed, blocks)
    yield _beside(f"{text}: the same, beside wc -l", parsed, wc)
    yield Row(what=f"{text}: read and parsed", measured=lines / parsed, unit="lines/s")


def _places(path: Path) -> Iterator[Row]:
    size = path.stat().st_size
    text = f"{size >> 20} MB"
    starts: tuple[tuple[str, Start], ...] = (
        ("at the tail", TailBytes()),
        ("at a time", FromTime(Nanos(1))),
    )
    for what, start in starts:
        seconds = _best(partial(_first_batch, path, start))
        yield Row(what=f"{text}: first batch, beginning {what}", measured=1_000 * seconds, unit="ms")
    search = _best(lambda: asyncio.run(_search(path)))
    program = "rg" if shutil.which("rg") else "grep"
    found = _best(lambda: _run(program, "-c", "-F", NEEDLE, str(path)))
    yield _beside(f"{text}: searched back for one text, beside {program} -c -F", search, found)


def _beside(what: str, seconds: float, reference: float) -> Row:
    ms, reference_ms = 1_000 * seconds, 1_000 * reference
    return Row(what=what, measured=ms, unit="ms", reference=reference_ms, ratio=seconds / reference)


def _best(action: Callable[[], object]) -> float:
    """Seconds of the quickest of a few rounds: other work on the machine only ever adds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def _run(*command: str) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def _read_blocks(path: Path) -> None:
    fd, offset = os.open(path, os.O_RDONLY), 0
    while data := os.pread(fd, 256 << 10, offset):
        offset += len(data)
    os.close(fd)


async def _drain(log: LogFile) -> None:
    batch = await log.poll(None)
    while batch.more:
        batch = await log.poll(batch.cursor)
    await log.aclose()


def _first_batch(path: Path, start: Start) -> None:
    async def read() -> None:
        log = LogFile(path, start=start)
        await log.poll(None)
        await log.aclose()

    asyncio.run(read())


async def _search(path: Path) -> None:
    if len([raw async for raw in LogFile(path).search_back([NEEDLE.encode()])]) != 1:
        raise RuntimeError("the search did not find the one line there is")


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", measure))
