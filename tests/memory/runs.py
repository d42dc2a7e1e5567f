"""Finished runs for tests, and a memory of them."""

from bisect import bisect
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from random import Random

from jobtui.memory.database import Memory
from jobtui.memory.writer import MemoryWriter
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.memory import EndedRun
from tests.rows import database_rows

DAY = 20_758
"""The first of November 2026."""


def a_run(number: int, text: str = "", **fields: str) -> EndedRun:
    values: dict[str, str] = {"user": f"user{number % 7}", "host": f"v{number % 3}", "app": "srw"} | fields
    return EndedRun(
        id=f"job-{number}", system="sirepo", kind="sirepo\tsrw", verdict="x", is_failed=bool(text), text=text,
        ended_at=Nanos((DAY * 86_400 + number) * SECOND), waited_s=1.0, ran_s=2.0, **values,
    )  # fmt: skip


def written(path: Path, *runs: EndedRun, most: int = 1 << 30) -> Memory:
    writer = MemoryWriter(path, most)
    with writer.together():
        for one in runs:
            writer.add(one)
        writer.flush()
    writer.close()
    return Memory(path)


YEAR_END = 1_731_536_000
"""Seconds since the epoch."""
USERS, HOSTS, NODES_OF_HOST, CAUSES = 2_000, 100, 10, 500


def runs_of_a_year(first: int, count: int, of: int) -> Iterator[EndedRun]:
    """So many runs from the `first` on, of all those of a year; one in ten failed."""
    rng = Random(first)
    often = [*accumulate(1 / (cause + 1) for cause in range(CAUSES))]
    for number in range(first, first + count):
        user, host = int(rng.random() ** 2 * USERS), rng.randrange(HOSTS)
        app, model = f"app{int(rng.random() ** 2 * 15)}", f"model{rng.randrange(60)}"
        cause = bisect(often, rng.random() * often[-1]) if rng.random() < 0.1 else None
        word = "" if cause is None else f"{chr(97 + cause % 26)}{chr(97 + cause // 26)}"
        ended = YEAR_END - 365 * 86_400 * (of - number) // of
        yield EndedRun(
            id=f"user{user}-{rng.getrandbits(48):012x}-{model}", system="sirepo", verdict="completed",
            kind=f"sirepo\t{app}\t{model}\tdocker\tparallel", ended_at=Nanos(ended * SECOND),
            user=f"user{user}", app=app, model=model, driver="docker", host=f"v{host}",
            node=f"nid{host * NODES_OF_HOST + rng.randrange(NODES_OF_HOST):05}",
            version=f"1.{min(29, number * 30 // of)}", is_failed=bool(word),
            text=f"RuntimeError: cause {word} of the beamline went wrong at step {number}" if word else "",
            waited_s=rng.expovariate(1 / 60), ran_s=rng.lognormvariate(5, 1),
        )  # fmt: skip


def rows(path: Path) -> int:
    ((count,),) = database_rows(path, "SELECT count(*) FROM run")
    return int(count)


def home_file() -> Path:
    return Memory().path


def remembered() -> int:
    """How many runs the memory at home has."""
    return rows(home_file()) if home_file().exists() else 0
