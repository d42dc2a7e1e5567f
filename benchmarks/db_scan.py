"""Measures the supervisor db backend on a directory of generated records.

    python -m benchmarks.db_scan [--json] [--quick]

All is measured in one process, in turn, several times over; the medians are given. The budget of the first
scan of all jobs is beside the ordinary program that reads the same files in the same order without decoding:
`stat` each, sort, newest first, `open`, `read`, and keep nothing. The order is part of the task: who waits
for a scan waits for what was written last, and no file's age is known without asking for it. A reading in
another order leaves out a third of the work, and would show the newest jobs at any time.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from pathlib import Path
from typing import TypeVar

from benchmarks.db_directory import write_db
from benchmarks.rows import Row, at_most, at_most_times, main
from jobtui.backends.sirepo.files import DIRECTORY
from jobtui.backends.sirepo.source import BATCH_FILES, SirepoDb
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job

Result = TypeVar("Result")
FILES, QUICK_FILES = 100_000, 10_000
ROUNDS = 5
TICKS = 50
SCAN_LIMIT = 1.3
TICK_LIMIT_MS = 1.0
MEMORY_LIMIT_MB = 75.0
"""For 100,000 jobs; less for fewer."""


def read_newest_first(directory: Path) -> None:
    entries = [(entry.stat().st_mtime_ns, entry.path) for entry in os.scandir(directory)]
    for _, path in sorted(entries, reverse=True):
        with open(path, "rb") as file:
            file.read()


def timed_ms(call: Callable[[], object]) -> float:
    """Milliseconds of one call, without those of letting its result go."""
    start = time.perf_counter()
    result = call()
    passed_ms = (time.perf_counter() - start) * 1e3
    del result
    return passed_ms


async def scan(root: Path) -> tuple[float, float, dict[JobId, Job]]:
    """One cold scan: milliseconds to the first batch and to the last, and the jobs."""
    source = SirepoDb(root)
    start = time.perf_counter()
    batches = [await source.poll(None)]
    first_ms = (time.perf_counter() - start) * 1e3
    while batches[-1].more:
        batches.append(await source.poll(batches[-1].cursor))
    whole_ms = (time.perf_counter() - start) * 1e3
    await source.aclose()
    return first_ms, whole_ms, {job.id: job for batch in batches for job in batch.jobs}


async def ticks(root: Path) -> tuple[list[float], list[float]]:
    """Milliseconds of polls that look at every file, and of those that the kernel spares that."""
    source = SirepoDb(root)
    batch = await source.poll(None)
    while batch.more:
        batch = await source.poll(batch.cursor)

    async def poll_ms() -> float:
        nonlocal batch
        start = time.perf_counter()
        batch = await source.poll(batch.cursor)
        assert not batch.count, "something changed while nothing should"
        return (time.perf_counter() - start) * 1e3

    sweeps = [await poll_ms() for _ in range(5)]
    await source.changed(1.0)
    sweeps.append(await poll_ms())
    quiet = [await poll_ms() for _ in range(TICKS)]
    await source.aclose()
    return sweeps, quiet


def rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def scan_rows(root: Path, what: str, rounds: int) -> Iterable[Row]:
    read, first, whole = [], [], []
    for _ in range(rounds):
        read.append(timed_ms(partial(read_newest_first, root / DIRECTORY)))
        first_ms, whole_ms, _ = run_apart(scan(root))
        first.append(first_ms)
        whole.append(whole_ms)
    what_of_all = f"{what}: cold scan, beside reading them newest first"
    yield at_most_times(what_of_all, whole, read, SCAN_LIMIT)
    yield Row(what=f"{what}: the newest {BATCH_FILES:,} jobs", measured=statistics.median(first), unit="ms")


def run_apart(work: Coroutine[None, None, Result]) -> Result:
    """What a coroutine gives, past asyncio.run, which makes a text of whatever the main coroutine returns."""
    results: list[Result] = []

    async def run() -> None:
        results.append(await work)

    asyncio.run(run())
    return results.pop()


def memory_row(root: Path, what: str, files: int) -> Row:
    before_mb = rss_mb()
    jobs = run_apart(scan(root))[2]
    grown_mb = rss_mb() - before_mb
    assert len(jobs) == files, f"{len(jobs)} jobs of {files} files"
    return at_most(f"{what}: memory of all jobs", grown_mb, "MB", max(10.0, MEMORY_LIMIT_MB * files / FILES))


def measure(root: Path, files: int, rounds: int) -> Iterable[Row]:
    """Every figure, on the records below `root`."""
    what = f"supervisor db, {files:,} files"
    memory = memory_row(root, what, files)  # first, while this process is still small
    yield from scan_rows(root, what, rounds)
    sweeps, quiet = asyncio.run(ticks(root))
    quiet_ms = statistics.median(quiet)
    yield at_most(f"{what}: tick, nothing changed, told by the kernel", quiet_ms, "ms", TICK_LIMIT_MS)
    yield Row(what=f"{what}: tick, every file looked at", measured=statistics.median(sweeps), unit="ms")
    yield memory


def rows(quick: bool) -> Iterable[Row]:
    files = QUICK_FILES if quick else FILES
    with tempfile.TemporaryDirectory(prefix="jobtui-db-") as folder:
        write_db(Path(folder), files)
        yield from measure(Path(folder), files, ROUNDS)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", rows))
