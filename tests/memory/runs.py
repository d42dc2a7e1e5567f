"""Finished runs for tests, and a memory of them."""

from pathlib import Path

from jobtui.memory.database import Memory
from jobtui.memory.writer import MemoryWriter
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.memory import Finished

DAY = 20_758
"""The first of November 2026."""


def a_run(number: int, text: str = "", **fields: str) -> Finished:
    values: dict[str, str] = {"user": f"user{number % 7}", "host": f"v{number % 3}", "app": "srw"} | fields
    return Finished(
        id=f"job-{number}", system="sirepo", kind="sirepo\tsrw", verdict="x", is_failed=bool(text), text=text,
        ended_at=Nanos((DAY * 86_400 + number) * SECOND), waited_s=1.0, ran_s=2.0, **values,
    )  # fmt: skip


def written(path: Path, *runs: Finished, most: int = 1 << 30) -> Memory:
    writer = MemoryWriter(path, most)
    with writer.together():
        for one in runs:
            writer.add(one)
        writer.flush()
    writer.close()
    return Memory(path)
