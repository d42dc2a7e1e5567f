"""LaneFollowing over connections that break: everything once and in order, memory bounded, breaks told."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from itertools import count
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.backends.journal import following
from jobtui.backends.journal.following import HELD_ENTRIES, Followed, LaneFollowing, retry_delay
from jobtui.model.clock import Nanos
from jobtui.model.journal import Beside, Cursor, Head, JournalEntry, Slice, Start, Tail
from jobtui.model.source_errors import SourceDenied, SourceError, SourceUnreachable
from tests.waiting import LONG_S, wait_until


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "RETRY_S", 0.001)
    monkeypatch.setattr(following, "RETRY_MOST_S", 0.002)


def following_of(listen: Callable[[Start], AsyncGenerator[Slice, None]], start: Start) -> LaneFollowing:
    reader = SimpleNamespace(name="log", is_one_host=True, listen=lambda at, *_: listen(at))
    return LaneFollowing(cast(Followed, reader), start, ())


def held(follow: LaneFollowing) -> int:
    return len(follow._lanes[0].held)


def an_entry(number: int, message: str = "") -> JournalEntry:
    return JournalEntry(cursor=Cursor(str(number)), at=Nanos(number), message=message, size=len(message))


class Log:
    """A journal in memory. `breaks` says after how many entries each connection breaks."""

    def __init__(self, entries: int, breaks: list[int]) -> None:
        self.entries = [an_entry(number) for number in range(entries)]
        self.breaks = breaks
        self.asked: list[Start] = []

    async def listen(self, start: Start) -> AsyncGenerator[Slice, None]:
        self.asked.append(start)
        left = self.breaks.pop(0) if self.breaks else None
        at = int(start.cursor) + 1 if isinstance(start, Beside) else 0
        yield Slice((), None, False)
        while at < len(self.entries):
            await asyncio.sleep(0)
            if left == 0:
                raise SourceUnreachable("log: broke off")
            yield Slice((self.entries[at],), self.entries[at].cursor, False)
            at, left = at + 1, None if left is None else left - 1
        if left is not None:
            raise SourceUnreachable("log: broke off")
        yield Slice((), None, True)
        await asyncio.Event().wait()


async def all_of(follow: LaneFollowing, most: int = 100) -> tuple[list[str], int]:
    """The cursors up to the edge, and how often a break was told."""
    found, breaks = [], 0
    while True:
        try:
            some = await follow.take(most)
        except SourceError:
            breaks += 1
            await follow.changed(1.0)
            continue
        found += [str(entry.cursor) for entry in some.entries]
        if some.at_edge:
            return found, breaks
        await follow.changed(1.0)


@given(st.integers(0, 30), st.lists(st.integers(0, 8), max_size=6), st.integers(1, 10))
def test_nothing_is_lost_and_nothing_comes_twice(entries: int, breaks: list[int], most: int) -> None:
    async def run() -> None:
        log = Log(entries, [*breaks])
        follow = following_of(log.listen, Head())
        found, _ = await asyncio.wait_for(all_of(follow, most), LONG_S)
        await follow.aclose()
        assert found == [str(number) for number in range(entries)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(following, "RETRY_S", 0.0001)
        patch.setattr(following, "RETRY_MOST_S", 0.0002)
        asyncio.run(run())


async def test_a_break_is_told_and_its_end_too() -> None:
    fail = asyncio.Event()
    back = asyncio.Event()

    async def listen(start: Start) -> AsyncGenerator[Slice, None]:
        if isinstance(start, Beside):
            await back.wait()
            yield Slice((an_entry(2),), Cursor("2"), True)
            await asyncio.Event().wait()
        yield Slice((an_entry(1),), Cursor("1"), True)
        await fail.wait()
        raise SourceUnreachable("log: gone")

    follow = following_of(listen, Head())
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
    assert await follow.take(5) == Slice((an_entry(2),), Cursor("2"), True)
    await follow.aclose()


async def test_what_came_before_a_break_is_given_first() -> None:
    log = Log(4, [4, 0, 0, 0, 0])
    follow = following_of(log.listen, Head())
    await follow.take(1)
    await wait_until(lambda: len(log.asked) > 1)
    assert [entry.cursor for entry in (await follow.take(2)).entries] == ["1", "2"]
    found, _ = await all_of(follow)
    assert found == ["3"]
    await follow.aclose()


async def test_what_is_lost_is_told_where_it_is() -> None:
    async def listen(start: Start) -> AsyncGenerator[Slice, None]:
        yield Slice((an_entry(1), an_entry(2)), Cursor("2"), False)
        yield Slice((), None, False, lost=True)
        yield Slice((an_entry(9),), Cursor("9"), True)
        await asyncio.Event().wait()

    follow = following_of(listen, Head())
    await follow.take(0)
    await wait_until(lambda: follow._lanes[0].at_edge)
    assert await follow.take(10) == Slice((an_entry(1), an_entry(2)), Cursor("2"), False)
    assert await follow.take(10) == Slice((an_entry(9),), Cursor("9"), True, lost=True)
    await follow.aclose()


async def test_it_stops_listening_while_nobody_takes() -> None:
    given = count()

    async def listen(start: Start) -> AsyncGenerator[Slice, None]:
        for number in given:
            await asyncio.sleep(0)
            yield Slice((an_entry(number),), Cursor(str(number)), False)

    follow = following_of(listen, Head())
    await follow.changed(5)
    seen = -1

    def stands_still() -> bool:
        nonlocal seen
        before, seen = seen, held(follow)
        return before == seen > 0

    await wait_until(stands_still, step_s=0.1)
    assert HELD_ENTRIES <= held(follow) <= HELD_ENTRIES + 1
    numbers = [int(entry.cursor) for _ in range(6) for entry in (await follow.take(1000)).entries]
    assert numbers == list(range(len(numbers)))
    await wait_until(lambda: held(follow) >= HELD_ENTRIES)
    await follow.aclose()


async def test_big_messages_count_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "HELD_BYTES", 1_000_000)

    async def listen(start: Start) -> AsyncGenerator[Slice, None]:
        for number in count():
            await asyncio.sleep(0)
            yield Slice((an_entry(number, "x" * 100_000),), Cursor(str(number)), False)

    follow = following_of(listen, Head())
    await follow.changed(5)
    await wait_until(lambda: held(follow) >= 10)
    for _ in range(50):
        await asyncio.sleep(0)
    assert held(follow) == 10
    await follow.aclose()


async def test_the_tail_of_an_empty_journal_is_its_beginning() -> None:
    asked: list[Start] = []

    async def listen(start: Start) -> AsyncGenerator[Slice, None]:
        asked.append(start)
        yield Slice((), None, True)
        if len(asked) == 1:
            raise SourceUnreachable("log: gone")
        await asyncio.Event().wait()

    follow = following_of(listen, Tail())
    await follow.changed(1)
    await wait_until(lambda: len(asked) == 2)
    assert asked == [Tail(), Head()]
    await follow.aclose()


async def test_where_a_tail_was_is_kept_over_a_break() -> None:
    asked: list[Start] = []

    async def listen(start: Start) -> AsyncGenerator[Slice, None]:
        asked.append(start)
        yield Slice((), Cursor("7") if isinstance(start, Tail) else None, True)
        raise SourceUnreachable("log: gone")

    follow = following_of(listen, Tail())
    await follow.changed(1)
    await wait_until(lambda: len(asked) >= 3)
    assert asked[:3] == [Tail(), Beside(Cursor("7")), Beside(Cursor("7"))]
    await follow.aclose()


async def broken(monkeypatch: pytest.MonkeyPatch) -> LaneFollowing:
    """One whose connection broke, and that will not try again for long."""
    monkeypatch.setattr(following, "RETRY_S", 1_000.0)
    monkeypatch.setattr(following, "RETRY_MOST_S", 1_000.0)
    follow = following_of(Log(0, [0]).listen, Head())
    with pytest.raises(SourceUnreachable):
        await all_breaks(follow)
    return follow


async def all_breaks(follow: LaneFollowing) -> None:
    """Take until the break is told."""
    while True:
        await follow.take(1)
        await follow.changed(1.0)


async def test_closing_while_it_waits_to_try_again_wakes_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    follow = await broken(monkeypatch)
    waiting = asyncio.create_task(follow.changed(1_000.0))
    await asyncio.sleep(0)
    assert not waiting.done()
    await follow.aclose()
    await asyncio.wait_for(waiting, LONG_S)
    with pytest.raises(SourceError, match="closed"):
        await follow.changed(1_000.0)


async def test_who_waits_while_it_is_to_try_again_is_woken_when_it_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not before: whoever waits is not to ask in vain all the time."""
    monkeypatch.setattr(following, "RETRY_S", 0.05)
    monkeypatch.setattr(following, "RETRY_MOST_S", 0.05)
    log = Log(1, [0])
    follow = following_of(log.listen, Head())
    with pytest.raises(SourceUnreachable):
        await all_breaks(follow)
    assert len(log.asked) == 1
    await asyncio.wait_for(follow.changed(LONG_S), LONG_S / 2)
    assert len(log.asked) == 2
    await wait_until(lambda: held(follow) == 1)
    assert [entry.cursor for entry in (await follow.take(5)).entries] == ["0"]
    await follow.aclose()


async def test_closing_twice_is_fine_and_then_it_is_closed() -> None:
    follow = following_of(Log(3, []).listen, Head())
    await follow.take(1)
    await follow.aclose()
    await follow.aclose()
    with pytest.raises(SourceError, match="is closed"):
        await follow.take(1)
    with pytest.raises(SourceError, match="is closed"):
        await follow.changed(0)


async def test_a_fault_of_ours_is_not_hidden() -> None:
    async def listen(start: Start) -> AsyncGenerator[Slice, None]:
        yield Slice((), None, False)
        raise ZeroDivisionError

    follow = following_of(listen, Head())

    async def take_on() -> None:
        while True:
            await follow.take(1)

    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(take_on(), LONG_S)


@pytest.mark.parametrize(
    ("error", "delays"),
    [(SourceUnreachable(""), [1, 2, 4, 30]), (SourceDenied(""), [60, 120, 240, 600])],
)
def test_who_was_refused_comes_again_later(
    error: SourceError, delays: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "RETRY_S", 1.0)
    monkeypatch.setattr(following, "RETRY_MOST_S", 30.0)
    assert [retry_delay(error, failures) for failures in (0, 1, 2, 50)] == delays
