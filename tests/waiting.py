"""Waiting for a condition, the only way a test of this project waits for anything."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from textual.css.query import NoMatches

STEP_S = 0.01
LONG_S = 60.0
"""A wait ends when its condition holds; this is for what never comes, also on a machine that is busy."""

NOT_YET = (LookupError, NoMatches)
"""What a condition may raise while the line, row or widget that it looks at is not there."""


class Pausable(Protocol):
    """What can let the program under test go on: Textual's `Pilot`."""

    async def pause(self, delay: float | None = None) -> None: ...


async def wait_until(
    condition: Callable[[], object],
    pilot: Pausable | None = None,
    *,
    timeout_s: float = LONG_S,
    step_s: float = STEP_S,
) -> None:
    """Return once `condition()` is true; AssertionError after `timeout_s`."""
    is_met = _within(condition, timeout_s)
    while not is_met():
        if pilot is not None:
            await pilot.pause(0)
        await asyncio.sleep(step_s)


def wait_for(condition: Callable[[], object], *, timeout_s: float = LONG_S, step_s: float = STEP_S) -> None:
    is_met = _within(condition, timeout_s)
    while not is_met():
        time.sleep(step_s)


def _within(condition: Callable[[], object], timeout_s: float) -> Callable[[], bool]:
    """Says whether it is so; AssertionError once it should have been, with what it raised last."""
    deadline = time.monotonic() + timeout_s

    def is_met() -> bool:
        missing: Exception | None = None
        try:
            if condition():
                return True
        except NOT_YET as error:
            missing = error
        if time.monotonic() >= deadline:
            raise AssertionError(f"not so within {timeout_s} s: {_named(condition)}") from missing
        return False

    return is_met


def _named(condition: Callable[[], object]) -> str:
    code = getattr(condition, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(condition)


async def stop(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or has ended and was not collected yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
