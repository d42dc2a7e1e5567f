"""Long computations in short turns: whoever runs them decides what happens between two turns.

A function whose name ends in `_turns` yields after every few thousand records and returns its result.
"""

import asyncio
import gc
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeVar

Result = TypeVar("Result")
Turns = Generator[None, None, Result]

AT_ONCE = 4_096
"""Records that are dealt with in one turn: some milliseconds."""


def at_once(turns: Turns[Result]) -> Result:
    while True:
        try:
            next(turns)
        except StopIteration as done:
            result: Result = done.value
            return result


def let_go_turns(values: list[Any]) -> Turns[None]:
    """Empty a list. To drop a million numbers at once would hold up a screen."""
    while values:
        del values[-4 * AT_ONCE :]
        yield


Number = TypeVar("Number", int, float)


def sorted_turns(values: Sequence[Number]) -> Turns[list[Number]]:
    """Numbers in ascending order. A million sorted at once would hold up a screen."""
    if len(values) <= 2 * AT_ONCE:
        return sorted(values)
    low = high = values[0]
    for start in range(0, len(values), 4 * AT_ONCE):
        part = values[start : start + 4 * AT_ONCE]
        low, high = min(low, *part), max(high, *part)
        yield
    if low == high:
        return list(values)
    buckets: list[list[Number]] = [[] for _ in range(len(values) // AT_ONCE + 1)]
    last, span = len(buckets) - 1, high - low
    for start in range(0, len(values), AT_ONCE):
        for value in values[start : start + AT_ONCE]:
            # A large float may be rounded up to the bucket after the last one
            buckets[min(last, int((value - low) * last // span))].append(value)
        yield
    ordered: list[Number] = []
    for bucket in buckets:
        ordered += sorted(bucket) if len(bucket) <= 2 * AT_ONCE else (yield from sorted_turns(bucket))
        yield
    return ordered


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
