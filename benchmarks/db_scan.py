"""Measures the supervisor db backend on a directory of generated records.

    python -m benchmarks.db_scan [--files N] [--rounds N] [--json] [--quick]

All is measured in one process, in turn, several times over; the medians are given. The budget of the first
scan of all jobs is beside the ordinary program that reads the same files in the same order without decoding:
`stat` each, sort, newest first, `open`, `read`, and keep nothing. The order is part of the task: who waits
for a scan waits for what was written last, and no file's age is known without asking for it. A reading in
another order leaves out a third of the work, and would show the newest jobs at any time.

Two more readings are given beside it, without a budget: one in the order of the directory, which needs no
`stat`, and the leanest one that Python can do in that order.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.db_directory import write_db
from benchmarks.rows import Row, at_most, at_most_times, report
from jobtui.backends.sirepo_db import BATCH_FILES, DIRECTORY, SirepoDb
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job

FILES, QUICK_FILES = 100_000, 10_000
ROUNDS = 5
TICKS = 50
SCAN_LIMIT = 1.3
TICK_LIMIT_MS = 1.0
MEMORY_LIMIT_MB = 75.0
"""For 100,000 jobs; less for fewer."""


def read_newest_first(directory: Path) -> None:
    """Read every file, the newest first, as one would write it without a thought of speed."""
    entries = [(entry.stat().st_mtime_ns, entry.path) for entry in os.scandir(directory)]
    for _, path in sorted(entries, reverse=True):
        with open(path, "rb") as file:
            file.read()


def read_unordered(directory: Path) -> None:
    """Read every file in the order of the directory."""
    for entry in os.scandir(directory):
        with open(entry.path, "rb") as file:
            file.read()


def read_lean(directory: Path) -> None:
    """Read every file with as few steps as Python allows."""
    open_, read, close = os.open, os.read, os.close
    folder = open_(directory, os.O_RDONLY)
    for name in os.listdir(folder):
        file = open_(name, os.O_RDONLY, dir_fd=folder)
        read(file, 8192)
        close(file)
    close(folder)


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


async def ticks(root: Path) -> tuple[list[float], list[float], float]:
    """Milliseconds of polls that look at every file, of polls that the kernel spares that, and of a change.

    Nothing changes during the polls.
    """
    source = SirepoDb(root)
    batch = await source.poll(None)
    while batch.more:
        batch = await source.poll(batch.cursor)

    async def poll_ms() -> float:
        start = time.perf_counter()
        again = await source.poll(batch.cursor)
        assert not again.count, "something changed while nothing should"
        return (time.perf_counter() - start) * 1e3

    sweeps = [await poll_ms() for _ in range(5)]
    await source.changed(1.0)
    sweeps.append(await poll_ms())
    quiet = [await poll_ms() for _ in range(TICKS)]
    seen_ms = await change_ms(source, root, batch.cursor)
    await source.aclose()
    return sweeps, quiet, seen_ms


async def change_ms(source: SirepoDb, root: Path, cursor: str) -> float:
    """Milliseconds from replacing one file to having its job again."""
    jid = (await source.job_ids())[0]
    path = root / DIRECTORY / f"{jid}.json"
    beside = path.with_suffix(".json.pkio-tmp-0")
    beside.write_bytes(path.read_bytes())
    start = time.perf_counter()
    beside.rename(path)
    while True:
        await source.changed(2.0)
        if (batch := await source.poll(cursor)).jobs:
            assert [job.id for job in batch.jobs] == [jid]
            return (time.perf_counter() - start) * 1e3


def rss_mb() -> float:
    """Resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


REFERENCES: Mapping[str, Callable[[Path], object]] = {
    "newest first": read_newest_first,
    "in directory order": read_unordered,
    "leanest": read_lean,
}


def scan_rows(root: Path, what: str, rounds: int) -> Iterable[Row]:
    """The cold scan beside readings of the same files."""
    times: dict[str, list[float]] = {name: [] for name in (*REFERENCES, "first", "whole")}
    for _ in range(rounds):
        for name, read in REFERENCES.items():
            times[name].append(timed_ms(partial(read, root / DIRECTORY)))
        first_ms, whole_ms, _ = scanned(root)
        times["first"].append(first_ms)
        times["whole"].append(whole_ms)
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name in REFERENCES:
        ratio = statistics.median(a / b for a, b in zip(times["whole"], times[name], strict=True))
        row = at_most_times(
            f"{what}: cold scan, beside reading them {name}",
            medians["whole"],
            "ms",
            reference=medians[name],
            limit=SCAN_LIMIT,
            ratio=ratio,
        )
        yield row if name == "newest first" else replace(row, budget=None, holds=None)
    yield Row(what=f"{what}: the newest {BATCH_FILES:,} jobs", measured=medians["first"], unit="ms")


def scanned(root: Path) -> tuple[float, float, int]:
    """One cold scan: milliseconds to the first batch and to the last, and how many jobs."""
    # Not returned through asyncio.run, which makes a text of whatever the main coroutine returns.
    results: list[tuple[float, float, dict[JobId, Job]]] = []

    async def run() -> None:
        results.append(await scan(root))

    asyncio.run(run())
    first_ms, whole_ms, jobs = results.pop()
    return first_ms, whole_ms, len(jobs)


def memory_row(root: Path, what: str, files: int) -> Row:
    """What all jobs take, with the dict that a store keeps of them."""
    kept: list[dict[JobId, Job]] = []

    async def run() -> None:
        kept.append((await scan(root))[2])

    before_mb = rss_mb()
    asyncio.run(run())
    grown_mb = rss_mb() - before_mb
    assert len(kept[0]) == files, f"{len(kept[0])} jobs of {files} files"
    return at_most(f"{what}: memory of all jobs", grown_mb, "MB", max(10.0, MEMORY_LIMIT_MB * files / FILES))


def measure(root: Path, files: int, rounds: int) -> Iterable[Row]:
    """Every figure, on the records below `root`."""
    what = f"supervisor db, {files:,} files"
    memory = memory_row(root, what, files)  # first, while this process is still small
    yield from scan_rows(root, what, rounds)
    sweeps, quiet, seen_ms = asyncio.run(ticks(root))
    quiet_ms = statistics.median(quiet)
    yield at_most(f"{what}: tick, nothing changed, told by the kernel", quiet_ms, "ms", TICK_LIMIT_MS)
    yield Row(what=f"{what}: tick, every file looked at", measured=statistics.median(sweeps), unit="ms")
    yield Row(what=f"{what}: file replaced to job seen", measured=seen_ms, unit="ms")
    yield memory


def main() -> int:
    """Write the records, measure, print; 1 when a budget does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, help=f"how many records ({FILES})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"repeats ({ROUNDS})")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--quick", action="store_true", help=f"only {QUICK_FILES} records")
    options = parser.parse_args()
    files = options.files or (QUICK_FILES if options.quick else FILES)
    with tempfile.TemporaryDirectory(prefix="jobtui-db-") as folder:
        write_db(Path(folder), files)
        return report(measure(Path(folder), files, options.rounds), options.json)


if __name__ == "__main__":
    sys.exit(main())
