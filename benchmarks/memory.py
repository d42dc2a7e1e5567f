"""The memory of ten million runs of a year: writing, its size, and every answer.

The file is written once, which takes half an hour, and kept in the cache of the user. Of answers it is
measured what they compute: the file is in memory then, and what other programs take is left out.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, thread_time

from msgspec.structs import replace

from benchmarks.rows import Row, at_least, at_most, main
from jobtui.memory.database import FILE_NAME, Memory
from jobtui.memory.writer import MemoryWriter
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.jobs import JobStatus
from jobtui.model.tables import home_of
from tests.builders import a_job
from tests.memory.runs import YEAR_END, runs_of_a_year

RUNS, QUICK_RUNS, MORE = 10_000_000, 100_000, 20_000
BATCH = 1_000
FAILURE = "RuntimeError: cause aa of the beamline went wrong at step 4"
ANSWER_MS, RUNS_S, MB_A_MILLION = 100.0, 2_000.0, 500.0


def write(path: Path, first: int, count: int, of: int) -> float:
    """Write some of the runs of a year; how many in a second."""
    writer, spent = MemoryWriter(path, 1 << 40), 0.0
    for begin in range(first, first + count, BATCH):
        runs = [*runs_of_a_year(begin, BATCH, of)]
        begun = perf_counter()
        with writer.together():
            for run in runs:
                writer.add(run)
            writer.flush()
        spent += perf_counter() - begun
    writer.close()
    return count / spent


def rows(quick: bool) -> Iterator[Row]:
    count = QUICK_RUNS if quick else RUNS
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) if quick else Path(home_of("CACHE"), "jobtui-benchmarks")
        place.mkdir(parents=True, exist_ok=True)
        path = place / FILE_NAME
        if not path.exists():
            write(path, 0, count, count)
        what, memory = f"memory of {count:,} runs", Memory(path)
        size = path.stat().st_size / 1e6 / count * 1e6
        yield at_most(f"{what}: file of a million runs", size, "MB", MB_A_MILLION)
        now, today = Nanos(YEAR_END * SECOND), YEAR_END // 86_400
        month, week = range(today - 28, today), range(today - 7, today)
        job = a_job(status=JobStatus.PENDING, app="app3", model="model4", driver="docker", mode="parallel")
        job = replace(job, queued_at=now, started_at=None)
        asked: dict[str, Callable[[], object]] = {
            "explain": lambda: memory.of_job(job, FAILURE, now),
            "seen": lambda: memory.overview(now),
            "seen TEXT": lambda: memory.signatures(now, "cause ab"),
            "changed 14d 7d": lambda: memory.compared(range(today - 14, today - 7), week),
            "changed 56d 28d": lambda: memory.compared(range(today - 56, today - 28), month),
            "changed host:v3 host:v4": lambda: memory.compared(("host", "v3"), ("host", "v4")),
        }
        for name, ask in asked.items():
            ask()
            times = []
            for _ in range(5):
                begun = thread_time()
                ask()
                times.append(thread_time() - begun)
            yield at_most(f"{what}: {name}", min(times) * 1e3, "ms", ANSWER_MS)
        yield at_least(f"{what}: {BATCH:,} more at a time", write(path, count, MORE, count), "runs/s", RUNS_S)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", rows))
