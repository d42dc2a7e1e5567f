"""A journal on another host through systemd-journal-gatewayd.

It takes one group of matches only, one field given twice meaning either value. Where several groups are
wanted it is asked for each, and the answers are put together in the journal's order; following then asks for
every entry and keeps the wanted ones, since several connections have no common order.
"""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from jobtui.backends.base import SourceUnreachable
from jobtui.backends.journal import asking, order
from jobtui.backends.journal.connected import follow_apart
from jobtui.backends.journal.contract import Following
from jobtui.backends.journal.gateway_http import Gateway, Params
from jobtui.backends.journal.gateway_questions import Question, common, questions
from jobtui.backends.journal.journalctl import stand_of
from jobtui.formats.journal_export import ExportParser, Raw
from jobtui.formats.journal_fields import entry_of_export, stored_fields
from jobtui.model.journal import (
    At,
    Beside,
    Cursor,
    Fields,
    Head,
    JournalCondition,
    JournalEntry,
    Matches,
    Slice,
    Start,
    Tail,
    own_cursor,
)

if TYPE_CHECKING:
    import httpx

ANSWER_BYTES = 4 << 20
CATCH_UP_ENTRIES = 1_000


class GatewayJournal:
    """The journal at `http(s)://host:port`. `transport` instead of the network, for tests."""

    def __init__(self, spec: str, transport: "httpx.AsyncBaseTransport | None" = None) -> None:
        self._gateway = Gateway(spec, transport)
        self._skipped = 0

    @property
    def name(self) -> str:
        """As it was configured, secrets masked."""
        return self._gateway.name

    async def forward(self, start: Head | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries from `start` on."""
        return await self._forward_slice(start, asking.checked(matches, self.name), most)

    async def _forward_slice(
        self, start: Head | At | Beside, wanted: Matches, most: int, scope: Matches = ()
    ) -> Slice:
        last = await self._last(scope)
        lost = isinstance(start, Beside) and await self._is_gone(start.cursor)
        found: list[JournalEntry] = []
        for question in questions(wanted):
            found += await self._forward(question, start, most + 1)
        found = order.merged(found)[: most + 1]
        entries = tuple(found[:most])
        stand = entries[-1].cursor if entries else stand_of(start, last)
        return Slice(entries, stand, len(found) <= most, lost)

    async def backward(self, start: Tail | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries before `start`, oldest first."""
        wanted = asking.checked(matches, self.name)
        last = None if isinstance(start, Beside) else await self._last()
        lost = isinstance(start, Beside) and await self._is_gone(start.cursor)
        found: list[JournalEntry] = []
        for question in questions(wanted):
            found += await self._backward(question, start, most + 1)
        found = order.merged(found)[-most - 1 :]
        entries = tuple(found[-most:])
        stand = entries[0].cursor if entries else stand_of(start, last)
        return Slice(entries, stand, len(found) <= most, lost)

    async def fields(self, cursor: Cursor) -> Fields | None:
        """Everything one entry holds."""
        near = await self._near(cursor)
        return next((stored_fields(raw) for raw in near if _is_at(raw, cursor)), None)

    async def values(self, field: str) -> tuple[str, ...]:
        """The values that occur in a field."""
        asking.check_field(field, self.name)
        text = await self._gateway.text(f"/fields/{field}", "text/plain", ANSWER_BYTES)
        return tuple(dict.fromkeys(text.splitlines()))

    async def condition(self) -> JournalCondition:
        """Whether it answers, and what of its answers made no sense; it does not tell of its files."""
        await self._gateway.text("/machine", "application/json", ANSWER_BYTES)
        return JournalCondition(
            note=f"{self._skipped} pieces of what came made no sense" if self._skipped else ""
        )

    def follow(self, start: Start, matches: Matches) -> Following:
        """What is written from `start` on."""
        return follow_apart(self, self._one_of_each, self._listen, start, asking.checked(matches, self.name))

    async def aclose(self) -> None:
        """Let go of all connections."""
        await self._gateway.aclose()

    # Slices.

    async def _forward(self, question: Question, start: Start, count: int) -> list[JournalEntry]:
        """The first `count` entries from `start` on."""

        async def page(place: Start) -> list[Raw]:
            if isinstance(place, Beside):
                found = await self._raw(question.params, f"{place.cursor}:0:{count + asking.NEAR_ENTRIES}")
                return _behind(found, place.cursor)[:count]
            return await self._raw(question.params, f"{_seek(place)}:0:{count}")

        return await self._pages(question, start, count, page, forward=True)

    async def _backward(self, question: Question, start: Start, count: int) -> list[JournalEntry]:
        """The last `count` entries before `start`, oldest first.

        gatewayd steps back and then gives entries forwards: where there are fewer, it goes on behind `start`.
        """

        async def page(place: Start) -> list[Raw]:
            if isinstance(place, Tail):
                return await self._raw(question.params, f":{1 - count}:{count}")
            if isinstance(place, At):
                micros = order.from_micros(place.time)
                found = await self._raw(
                    question.params, f"{order.time_cursor(micros - 1)}:{1 - count}:{count}"
                )
                return _before(found, order.time_cursor(micros)) if micros else []
            assert isinstance(place, Beside)
            # It steps back from the last entry of that very microsecond
            skip = count + asking.NEAR_ENTRIES
            found = await self._raw(question.params, f"{place.cursor}:{-skip}:{skip + 1}")
            return _before(found, place.cursor)[-count:]

        return await self._pages(question, start, count, page, forward=False)

    async def _pages(
        self,
        question: Question,
        start: Start,
        count: int,
        page: Callable[[Start], Awaitable[list[Raw]]],
        *,
        forward: bool,
    ) -> list[JournalEntry]:
        """`count` wanted entries: in one page, but where gatewayd gives more than what is wanted."""
        found: list[JournalEntry] = []
        while True:
            raws = await page(start)
            kept = [raw for raw in raws if not question.filtered or asking.fulfils(raw, question.wanted)]
            made = [entry for raw in kept if (entry := entry_of_export(raw)) is not None]
            found = found + made if forward else made + found
            if len(raws) < count or len(found) >= count or not question.filtered:
                return found[:count] if forward else found[-count:]
            start = Beside(_cursor(raws[-1 if forward else 0]))

    async def _last(self, scope: Matches = ()) -> JournalEntry | None:
        """The last entry there is of `scope`, wanted or not."""
        found: list[JournalEntry] = []
        for question in questions(scope):
            raws = await self._raw(question.params, ":-1:2")
            found += [entry for raw in raws[-1:] if (entry := entry_of_export(raw)) is not None]
        return order.merged(found)[-1] if found else None

    async def _one_of_each(self, groups: Sequence[Matches]) -> list[JournalEntry | None]:
        return [await self._last(group) for group in groups]

    async def _near(self, cursor: Cursor) -> list[Raw]:
        """What stands at a place; the entry it means is among that when it is there."""
        return await self._raw((), f"{cursor}:0:{asking.NEAR_ENTRIES}")

    async def _is_gone(self, cursor: Cursor) -> bool:
        return not any(_is_at(raw, cursor) for raw in await self._near(cursor))

    async def _raw(self, params: Params, place: str) -> list[Raw]:
        parser = ExportParser()
        found: list[Raw] = []
        async with contextlib.aclosing(self._gateway.entries(params, place)) as pieces:
            async for piece in pieces:
                found += parser.feed(piece)
        self._skipped += parser.skipped
        if parser.pending:
            raise SourceUnreachable(f"{self.name}: it broke off in the middle of an entry; it is read anew")
        return found

    # Following.

    async def _listen(
        self, start: Start, wanted: Matches, scope: Matches = ()
    ) -> AsyncGenerator[Slice, None]:
        """All that is there, then what is written."""
        place = start
        if isinstance(start, Tail):
            last = await self._last(scope)
            place = Beside(last.cursor) if last is not None else Head()
            yield Slice((), last.cursor if last is not None else None, True)
        else:
            async with contextlib.aclosing(self._catch_up(start, wanted, scope)) as slices:
                async for found in slices:
                    place = place if found.cursor is None else Beside(found.cursor)
                    yield found
        assert not isinstance(place, Tail)
        async with contextlib.aclosing(self._written(place, wanted)) as slices:
            async for found in slices:
                yield found
        raise SourceUnreachable(f"{self.name}: gatewayd ended the connection; it is made anew")

    async def _catch_up(
        self, start: Head | At | Beside, wanted: Matches, scope: Matches
    ) -> AsyncGenerator[Slice, None]:
        while True:
            found = await self._forward_slice(start, wanted, CATCH_UP_ENTRIES, scope)
            yield found
            if found.at_edge:
                return
            assert found.cursor is not None
            start = Beside(found.cursor)

    async def _written(self, place: Head | At | Beside, wanted: Matches) -> AsyncGenerator[Slice, None]:
        asked = questions(wanted)
        params = asked[0].params if len(asked) == 1 else tuple(common(wanted))
        behind = order.Behind(own_cursor(place))
        parser = ExportParser()
        skipped = 0
        follow = (*params, ("follow", ""))
        where = _seek(place) or None
        async with contextlib.aclosing(self._gateway.entries(follow, where, silence_s=None)) as pieces:
            async for piece in pieces:
                some = [raw for raw in parser.feed(piece) if asking.fulfils(raw, wanted)]
                self._skipped += parser.skipped - skipped
                skipped = parser.skipped
                made = [entry for entry in map(entry_of_export, some) if entry is not None]
                if fresh := behind(made):
                    yield Slice(tuple(fresh), fresh[-1].cursor, True)


def _seek(place: Start) -> str:
    """A place as gatewayd takes it; "" for the beginning."""
    if isinstance(place, Beside):
        return place.cursor
    return order.time_cursor(order.from_micros(place.time)) if isinstance(place, At) else ""


def _cursor(raw: Raw) -> Cursor:
    value = raw[b"__CURSOR"]
    return Cursor((value[0] if isinstance(value, list) else value).decode("utf-8", "replace"))


def _is_at(raw: Raw, cursor: Cursor) -> bool:
    return _cursor(raw) == cursor


def _behind(found: list[Raw], cursor: Cursor) -> list[Raw]:
    """The entries from the first one on that is behind a cursor."""
    place = order.position(cursor)
    for number, raw in enumerate(found):
        if order.is_beyond(order.position(_cursor(raw)), place):
            return found[number:]
    return []


def _before(found: list[Raw], cursor: Cursor) -> list[Raw]:
    """The entries in front of the first one that is not before a cursor."""
    place = order.position(cursor)
    for number, raw in enumerate(found):
        if order.compare(order.position(_cursor(raw)), place) >= 0:
            return found[:number]
    return found
