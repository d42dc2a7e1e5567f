"""Long computations on the event loop, a few milliseconds at a time, so that keys and paint come between."""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from jobtui.analysis.reports.cooperative import Result, Turns

TURN_S = 0.006
"""How long others wait at most, but for one turn of the computation."""


async def in_turns(turns: Turns[Result]) -> Result:
    """The result, computed while everything else goes on.

    Cycles of garbage are not looked for meanwhile: to look through lists of millions takes too long.
    """
    with without_collecting():
        while True:
            until = monotonic() + TURN_S
            try:
                while monotonic() < until:
                    next(turns)
            except StopIteration as done:
                result: Result = done.value
                return result
            await asyncio.sleep(0)


@contextmanager
def without_collecting() -> Iterator[None]:
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
