"""Measures the log screen on a large file: first paint, pages, memory, idling, and searching all of it.

    python -m benchmarks.log_view [--quick] [--json]

First paints are made in turn with those of a minimal app. The search is compared with ripgrep, or with grep
where that is not installed, in the same process; the file is in the page cache.
"""

import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.pty_meter import first_paint, idle, key_row
from benchmarks.rows import Row, at_most, at_most_times, main
from benchmarks.startup import run_ms
from benchmarks.terminal import Program, Terminal
from jobtui.logs.pages import LogPages
from jobtui.model.pages import query_of

ROOT = Path(__file__).parents[1]
LINES, QUICK_LINES = 1_000_000, 100_000
RUNS, QUICK_RUNS = 9, 3
PRESSES, QUICK_PRESSES = 100, 30
IDLE_S, QUICK_IDLE_S = 10.0, 3.0
PAGE_LIMIT_MS = 30.0
RSS_LIMIT_MB = 150.0
SEARCH_RATIO = 3.0
IDLE_BYTES_PER_S, IDLE_PERCENT = 250.0, 0.5
NEEDLE = "h9Kq2mXv-tR4wLp7Z"
LAST = "the-very-last-line"


def measure(quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "supervisor.log"
        write_log(path, QUICK_LINES if quick else LINES)
        what = f"log view, {path.stat().st_size >> 20} MB, {QUICK_LINES if quick else LINES:,} lines"
        yield first_paint(f"{what}: first paint, at the tail", _program(path), QUICK_RUNS if quick else RUNS)
        presses, idle_s = (QUICK_PRESSES, QUICK_IDLE_S) if quick else (PRESSES, IDLE_S)
        yield from _session(path, what, presses, idle_s)
        yield from _search(path, what, QUICK_RUNS if quick else RUNS)


def write_log(path: Path, count: int) -> None:
    """A supervisor's log of about 100 bytes a line, with an error now and then and one rare text."""
    chance = random.Random(1)
    with path.open("w") as file:
        for nth in range(count - 1):
            at = time.strftime("%b %d %H:%M:%S", time.gmtime(1_795_200_000 + nth // 50))
            words = f"cache entry {chance.randrange(10**6)} of table cleaned, {chance.randrange(1_000)} kept"
            if nth % 5_000 == 0:
                words = "new status=error _ComputeJob(vn9mSrw1-3mJbMh8p-animation u=vn9mSrw1 error [])"
            if nth == count // 10:
                words += f" {NEEDLE}"
            file.write(f"{at} 30699     0 sirepo/job_x.py:118:handler {words}\n")
        file.write(f"{at} 30699     0 sirepo/job_x.py:118:handler {LAST}\n")


def _program(path: Path) -> Program:
    start = "import gc; gc.disable(); from benchmarks.log_live import main; main()"
    argv = [sys.executable, "-c", start, str(path)]
    return Program(argv=argv, ready=LAST, environ={"PYTHONPATH": str(ROOT)})


def _session(path: Path, what: str, presses: int, idle_s: float) -> Iterator[Row]:
    """Pages while the file is being looked through and after that, both ways; what is used when it idles."""
    with Terminal(_program(path)) as terminal:
        terminal.wait_for(LAST)
        yield key_row(terminal, f"{what}: page up at once", "pageup", presses // 2, PAGE_LIMIT_MS)
        terminal.rest()
        for key in ("pageup", "pagedown", "up"):
            yield key_row(terminal, f"{what}: {key}", key, presses, PAGE_LIMIT_MS)
        terminal.press("home")
        terminal.rest()
        bytes_per_s, cpu_percent = idle(terminal, idle_s)
        yield at_most(f"{what}: idle, on the wire", bytes_per_s, "bytes/s", IDLE_BYTES_PER_S)
        yield at_most(f"{what}: idle, CPU", cpu_percent, "% of a core", IDLE_PERCENT)
        yield at_most(f"{what}: RSS", terminal.rss_mb(), "MB", RSS_LIMIT_MB)


def _search(path: Path, what: str, runs: int) -> Iterator[Row]:
    program = "rg" if shutil.which("rg") else "grep"
    for typed in (NEEDLE, NEEDLE.lower()):
        is_lower = typed == typed.lower()
        grep = [program, "-c", "-F", *(["-i"] if is_lower else []), typed, str(path)]
        rounds = [(_found_ms(path, typed), run_ms(grep, {})) for _ in range(runs)]
        name = "the same, ignoring case" if is_lower else "a rare text"
        searched = f"{what}: searched for {name}, beside {program} -c"
        ours, theirs = zip(*rounds, strict=True)
        yield at_most_times(searched, ours, theirs, SEARCH_RATIO)


def _found_ms(path: Path, typed: str) -> float:
    async def search() -> float:
        log = LogPages(path)
        extent = await log.look()
        query = query_of(typed)
        if query is None:
            raise ValueError(typed)
        started = time.perf_counter()
        found = log.search(query, extent.end)
        await found.run()
        passed_ms = (time.perf_counter() - started) * 1e3
        found.cancel()
        await log.aclose()
        if len(found.hits) != 1:
            raise RuntimeError(f"found {len(found.hits)} lines where there is one")
        return passed_ms

    return asyncio.run(search())


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", measure))
