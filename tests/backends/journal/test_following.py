"""Following over connections that break: everything once and in order, memory bounded, breaks told."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import suppress
from itertools import count
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.backends.journal import client
from jobtui.backends.journal.client import HELD_ENTRIES, ExportReader, LaneFollowing, retry_delay
from jobtui.model.clock import Nanos
from jobtui.model.health import SourceDenied, SourceError, SourceUnreachable
from jobtui.model.journal import AtCursor, Begin, Cursor, FollowStart, JournalEntry, Slice
from tests.waiting import LONG_S, wait_until

GONE = SourceUnreachable("log: gone")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "RETRY_S", 0.001)
    monkeypatch.setattr(client, "RETRY_MOST_S", 0.002)


def an_entry(number: int, message: str = "") -> JournalEntry:
    return JournalEntry(cursor=Cursor(str(number)), at=Nanos(number), message=message, size=len(message))


def a_slice(*numbers: int, at_edge: bool = False, lost: bool = False) -> Slice:
    cursor = Cursor(str(numbers[-1])) if numbers else None
    return Slice(tuple(map(an_entry, numbers)), cursor, at_edge, lost)


def taken(*numbers: int, at_edge: bool = False, lost: bool = False) -> Slice:
    return a_slice(*numbers, at_edge=at_edge, lost=lost)._replace(cursor=None)


Event = Slice | Exception | asyncio.Event


class Script:
    """A journal whose connections give what is written here, each its part; after that nothing comes.

    An event is waited for, an error breaks the connection. `asked` has where each began.
    """

    def __init__(self, *connections: Iterable[Event]) -> None:
        self.asked: list[FollowStart] = []
        self._connections = iter(connections)

    async def listen(self, start: FollowStart) -> AsyncGenerator[Slice, None]:
        self.asked.append(start)
        for event in next(self._connections, ()):
            await asyncio.sleep(0)
            if isinstance(event, Exception):
                raise event
            if isinstance(event, asyncio.Event):
                await event.wait()
            else:
                yield event
        await asyncio.Event().wait()

    def follow(self, start: FollowStart) -> LaneFollowing:
        listen = self.listen
        reader = SimpleNamespace(name="log", is_one_host=True, listen=lambda at, *_: listen(at))
        return LaneFollowing(cast(ExportReader, reader), start, ())


class Log(Script):
    """A journal in memory. `breaks` says after how many entries each connection breaks."""

    def __init__(self, entries: int, breaks: list[int]) -> None:
        super().__init__()
        self._entries = entries
        self._breaks = breaks

    async def listen(self, start: FollowStart) -> AsyncGenerator[Slice, None]:
        self.asked.append(start)
        left = self._breaks.pop(0) if self._breaks else None
        yield a_slice()
        for number in range(int(start.cursor) + 1 if isinstance(start, AtCursor) else 0, self._entries):
            await asyncio.sleep(0)
            if left == 0:
                raise GONE
            yield a_slice(number)
            left = None if left is None else left - 1
        if left is not None:
            raise GONE
        yield a_slice(at_edge=True)
        await asyncio.Event().wait()


def held(follow: LaneFollowing) -> int:
    return len(follow._lanes[0].held)


async def numbers_of(follow: LaneFollowing, most: int = 100) -> list[int]:
    """Those of all entries up to the edge, whatever breaks on the way."""
    found: list[int] = []
    while True:
        try:
            some = await follow.take(most)
        except SourceError:
            await follow.changed(1.0)
            continue
        found += [int(entry.cursor) for entry in some.entries]
        if some.at_edge:
            return found
        await follow.changed(1.0)


@given(st.integers(0, 30), st.lists(st.integers(0, 8), max_size=6), st.integers(1, 10))
def test_nothing_is_lost_and_nothing_comes_twice(entries: int, breaks: list[int], most: int) -> None:
    async def run() -> None:
        follow = Log(entries, [*breaks]).follow(Begin())
        found = await asyncio.wait_for(numbers_of(follow, most), LONG_S)
        await follow.aclose()
        assert found == list(range(entries))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "RETRY_S", 0.0001)
        patch.setattr(client, "RETRY_MOST_S", 0.0002)
        asyncio.run(run())


async def test_a_break_and_its_end_are_reported() -> None:
    fail, back = asyncio.Event(), asyncio.Event()
    follow = Script([a_slice(1, at_edge=True), fail, GONE], [back, a_slice(2, at_edge=True)]).follow(Begin())
    assert (await follow.take(5)).entries == (an_entry(1),)
    fail.set()
    await asyncio.wait_for(follow.changed(LONG_S), LONG_S / 2)
    for _ in range(3):
        with pytest.raises(SourceUnreachable, match="gone"):
            await follow.take(5)
    waiting = asyncio.ensure_future(follow.changed(LONG_S))
    await asyncio.sleep(0)
    assert not waiting.done()
    back.set()
    await asyncio.wait_for(waiting, LONG_S / 2)
    assert await follow.take(5) == taken(2, at_edge=True)
    await follow.aclose()


async def test_a_loss_is_reported_where_it_is() -> None:
    follow = Script([a_slice(1, 2), a_slice(lost=True), a_slice(9, at_edge=True)]).follow(Begin())
    await follow.take(0)
    await wait_until(lambda: follow._lanes[0].at_edge)
    assert await follow.take(10) == taken(1, 2)
    assert await follow.take(10) == taken(9, at_edge=True, lost=True)
    await follow.aclose()


@pytest.mark.parametrize(("size", "most"), [(0, HELD_ENTRIES + 1), (100_000, 10)])
async def test_a_follower_waits_for_takers(size: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if size:
        monkeypatch.setattr(client, "HELD_BYTES", 1_000_000)

    def endless() -> Iterator[Slice]:
        for number in count():
            yield Slice((an_entry(number, "x" * size),), Cursor(str(number)), at_edge=False)

    follow = Script(endless()).follow(Begin())
    await follow.changed(5)
    for _ in range(2):
        await wait_until(lambda: held(follow) == most)
        for _ in range(50):
            await asyncio.sleep(0)
        assert held(follow) == most
        await follow.take(most)
    await follow.aclose()


async def test_closing_during_a_retry_pause_wakes_the_waiting_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "RETRY_S", 1_000.0)
    monkeypatch.setattr(client, "RETRY_MOST_S", 1_000.0)
    follow = Script([GONE]).follow(Begin())
    with suppress(SourceUnreachable):
        while True:
            await follow.take(1)
            await follow.changed(1.0)
    waiting = asyncio.create_task(follow.changed(1_000.0))
    await asyncio.sleep(0)
    assert not waiting.done()
    for _ in range(2):
        await follow.aclose()
    await asyncio.wait_for(waiting, LONG_S)
    for call in (follow.changed, follow.take):
        with pytest.raises(SourceError, match="is closed"):
            await call(1)


async def test_a_fault_of_ours_is_not_hidden() -> None:
    follow = Script([a_slice(), ZeroDivisionError()]).follow(Begin())
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(numbers_of(follow), LONG_S)


@pytest.mark.parametrize(
    ("error", "delays"), [(SourceUnreachable(""), [1, 2, 4, 30]), (SourceDenied(""), [60, 120, 240, 600])]
)
def test_delays_grow_to_a_limit_that_depends_on_the_error(
    error: SourceError, delays: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "RETRY_S", 1.0)
    monkeypatch.setattr(client, "RETRY_MOST_S", 30.0)
    assert [retry_delay(error, failures) for failures in (0, 1, 2, 50)] == delays
