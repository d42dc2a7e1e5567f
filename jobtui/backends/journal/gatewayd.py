"""A journal on another host through systemd-journal-gatewayd.

It takes one group of matches only, one field given twice meaning either value. Where several groups are
wanted it is asked for each, and the answers are put together in the journal's order; following then asks for
every entry and keeps the wanted ones, since several connections have no common order.
"""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from jobtui.backends.base import SourceUnreachable
from jobtui.backends.journal import asking, order
from jobtui.backends.journal.following import ConnectedFollowing
from jobtui.backends.journal.gateway_http import Gateway, Params
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
)

if TYPE_CHECKING:
    import httpx

ANSWER_BYTES = 4 << 20
CATCH_UP_ENTRIES = 1_000
VALUES_ASKED = 100
"""Values of a field in one question: the server has 32 KiB for a request (libmicrohttpd's default)."""


class Question(NamedTuple):
    """What gatewayd can be asked at once. `filtered` where it gives more than was wanted."""

    params: Params
    wanted: Matches
    filtered: bool


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
        wanted = self._checked(matches)
        last = await self._last()
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
        wanted = self._checked(matches)
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
        found = await self._raw((), f"{cursor}:0:1")
        return stored_fields(found[0]) if found and _is_at(found[0], cursor) else None

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

    def follow(self, start: Start, matches: Matches) -> ConnectedFollowing:
        """What is written from `start` on."""
        wanted = self._checked(matches)
        return ConnectedFollowing(self.name, lambda place: self._listen(place, wanted), start)

    async def aclose(self) -> None:
        """Let go of all connections."""
        await self._gateway.aclose()

    def _checked(self, matches: Matches) -> Matches:
        asking.check(matches, self.name)
        return asking.without_surplus(matches)

    # Slices.

    async def _forward(self, question: Question, start: Start, count: int) -> list[JournalEntry]:
        """The first `count` entries from `start` on."""

        async def page(place: Start) -> list[Raw]:
            if isinstance(place, Beside):
                found = await self._raw(question.params, f"{place.cursor}:0:{count + 1}")
                return found[1:] if found and _is_at(found[0], place.cursor) else found[:count]
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
            found = await self._raw(question.params, f"{place.cursor}:{-count}:{count + 1}")
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

    async def _last(self) -> JournalEntry | None:
        """The last entry there is, wanted or not."""
        found = await self._raw((), ":-1:2")
        return entry_of_export(found[-1]) if found else None

    async def _is_gone(self, cursor: Cursor) -> bool:
        found = await self._raw((), f"{cursor}:0:1")
        return not found or not _is_at(found[0], cursor)

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

    async def _listen(self, start: Start, wanted: Matches) -> AsyncGenerator[Slice, None]:
        """All that is there, then what is written."""
        place = start
        if isinstance(start, Tail):
            last = await self._last()
            place = Beside(last.cursor) if last is not None else Head()
            yield Slice((), last.cursor if last is not None else None, True)
        else:
            async with contextlib.aclosing(self._catch_up(start, wanted)) as slices:
                async for found in slices:
                    place = place if found.cursor is None else Beside(found.cursor)
                    yield found
        assert not isinstance(place, Tail)
        async with contextlib.aclosing(self._written(place, wanted)) as slices:
            async for found in slices:
                yield found
        raise SourceUnreachable(f"{self.name}: gatewayd ended the connection; it is made anew")

    async def _catch_up(self, start: Head | At | Beside, wanted: Matches) -> AsyncGenerator[Slice, None]:
        while True:
            found = await self.forward(start, wanted, CATCH_UP_ENTRIES)
            yield found
            if found.at_edge:
                return
            assert found.cursor is not None
            start = Beside(found.cursor)

    async def _written(self, place: Head | At | Beside, wanted: Matches) -> AsyncGenerator[Slice, None]:
        asked = questions(wanted)
        params = asked[0].params if len(asked) == 1 else ()
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
                own = place.cursor if isinstance(place, Beside) else None
                if fresh := tuple(entry for entry in made if entry.cursor != own):
                    yield Slice(fresh, fresh[-1].cursor, True)


def questions(wanted: Matches) -> tuple[Question, ...]:
    """What gatewayd has to be asked so that the answers together are what is wanted."""
    if not wanted:
        return (Question((), (), False),)
    either: dict[str, list[str]] = {}
    several: list[Question] = []
    for group in wanted:
        if len(group) == 1:
            either.setdefault(group[0][0], []).append(group[0][1])
        else:
            exact = asking.is_exact((group,))
            several.append(Question(tuple(dict(group).items()), (group,), not exact))
    singles = [
        Question(tuple((field, value) for value in values[at : at + VALUES_ASKED]), (), False)
        for field, values in either.items()
        for at in range(0, len(values), VALUES_ASKED)
    ]
    return (*singles, *several)


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


def _before(found: list[Raw], cursor: Cursor) -> list[Raw]:
    """The entries in front of the first one that is not before a cursor."""
    place = order.position(cursor)
    for number, raw in enumerate(found):
        if order.compare(order.position(_cursor(raw)), place) >= 0:
            return found[:number]
    return found
