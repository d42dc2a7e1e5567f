"""Waiting for a condition, the only way a test of this project waits for anything."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

STEP_S = 0.01
LONG_S = 60.0
"""A wait ends when its condition holds; this is for what never comes, also on a machine that is busy."""


class Pausable(Protocol):
    """What can let the program under test go on: Textual's `Pilot`."""

    async def pause(self, delay: float | None = None) -> None:
        """Let pending messages be handled."""
        ...


async def wait_until(
    condition: Callable[[], object],
    pilot: Pausable | None = None,
    *,
    timeout_s: float = LONG_S,
    step_s: float = STEP_S,
) -> None:
    """Return once `condition()` is true; AssertionError after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not so within {timeout_s} s: {_named(condition)}"
        if pilot is not None:
            await pilot.pause(0)
        await asyncio.sleep(step_s)


def wait_for(condition: Callable[[], object], *, timeout_s: float = LONG_S, step_s: float = STEP_S) -> None:
    """The same for tests without an event loop."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not so within {timeout_s} s: {_named(condition)}"
        time.sleep(step_s)


def _named(condition: Callable[[], object]) -> str:
    code = getattr(condition, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(condition)
