"""A journal on another host through systemd-journal-gatewayd.

It takes one group of matches only, one field given twice meaning either value. Where several groups are
wanted it is asked for each, and the answers are put together in the journal's order; following then asks for
every entry and keeps the wanted ones, since several connections have no common order.
"""

import contextlib
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from jobtui.backends.journal import client
from jobtui.backends.journal.client import Following
from jobtui.backends.journal.following import follow_apart, listening
from jobtui.formats.journal_export import ExportParser, Raw, entry_of_export, stored_fields
from jobtui.model.commands import Command
from jobtui.model.journal import (
    At,
    Beside,
    Cursor,
    Fields,
    Head,
    JournalCondition,
    JournalEntry,
    Match,
    Matches,
    Slice,
    Start,
    Tail,
    own_cursor,
)
from jobtui.model.secrets import mask_text
from jobtui.model.source_errors import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.transport.http import Answer, HttpClient, Limits, Params, ServerKind, Silence

if TYPE_CHECKING:
    from jobtui.transport.http import Transport

VALUES_ASKED = 100
"""Values of a field in one question: the server has 32 KiB for a request (libmicrohttpd's default)."""


class Question(NamedTuple):
    """What gatewayd can be asked at once. `filtered` where it gives more than was wanted."""

    params: Params
    wanted: Matches
    filtered: bool


def questions(wanted: Matches) -> tuple[Question, ...]:
    """What gatewayd has to be asked so that the answers together are what is wanted."""
    if not wanted:
        return (Question((), (), False),)
    shared = common(wanted)
    either: dict[str, list[str]] = {}
    several: list[Question] = []
    for group in wanted:
        rest = [match for match in group if match not in shared]
        exact = client.is_exact((group,))
        if len(rest) == 1 and exact:
            either.setdefault(rest[0][0], []).append(rest[0][1])
        else:
            several.append(Question(tuple(dict(group).items()), (group,), not exact))
    singles = [
        Question((*shared, *((field, value) for value in values[at : at + VALUES_ASKED])), (), False)
        for field, values in either.items()
        for at in range(0, len(values), VALUES_ASKED)
    ]
    return (*singles, *several)


def common(wanted: Matches) -> list[Match]:
    """What every group of several wants, as of one host; its field occurs in none of them otherwise."""
    if len(wanted) < 2:
        return []
    fields = [field for group in wanted for field, _ in group]
    return [
        match
        for match in dict.fromkeys(wanted[0])
        if all(match in group for group in wanted) and fields.count(match[0]) == len(wanted)
    ]


EXPORT = "application/vnd.fdo.journal"
LIMITS = Limits(connect_s=10.0, silence_s=30.0, connections=100)
"""Following takes a connection for each host, 32 at most, and several journals may be followed."""
IDLE_S = 120.0
"""A connection on which entries are followed is made again after so long a silence: it may be a dead one."""

_STATUS = "on {host}: systemctl status systemd-journal-gatewayd.socket"
_ADDRESS = "expected http://host:port, gatewayd's own port is 19531, without a path"
_ABSENT = re.compile(rb"No such file|error -2\b")
_FORBIDDEN = re.compile(rb"Permission denied|error -13\b")
"""gatewayd 252 gives error numbers for their texts."""


def _explained(answer: Answer) -> tuple[type[SourceError], str] | None:
    if answer.status < 400 or answer.status in (401, 403, 404, 407):
        return None
    if _ABSENT.search(answer.body):
        return SourceMissing, (
            "gatewayd finds none of the files it is to read; on {host}: "
            "systemctl cat systemd-journal-gatewayd"
        )
    if _FORBIDDEN.search(answer.body):
        return SourceDenied, (
            "gatewayd may not read the journal; as root on {host}: "
            "usermod -aG systemd-journal systemd-journal-gateway, then restart it"
        )
    return None


def _kind_at(host: str) -> ServerKind:
    """What is said of gatewayd on a host, with a command where one can be offered for its name."""
    tunnel = Command("ssh", "-N", "-L", "19531:localhost:19531", about=[host])
    typed = tunnel.replace("{", "{{").replace("}", "}}") or "open a tunnel to port 19531 there"
    around = f"go round it: {typed}, then http://localhost:19531"
    return ServerKind(
        "gatewayd",
        login=f"jobtui logs in to no proxy; {around}",
        forbidden=f"by what is before gatewayd; {around}",
        address=_ADDRESS,
        down=_STATUS,
        authority="SSL_CERT_FILE=/path/to/ca.pem",
        explain=_explained,
    )


def _host_of(spec: str) -> str:
    try:
        parts = urlsplit(spec)
        is_http = parts.scheme in ("http", "https") and parts.port != 0
    except ValueError:
        return ""
    return (parts.hostname or "") if is_http and not parts.query and not parts.fragment else ""


ANSWER_BYTES = 4 << 20
MOST_BYTES = 256 << 20
"""No page of entries is larger, whatever comes."""
CATCH_UP_ENTRIES = 1_000


class GatewayJournal:
    """The journal at `http(s)://host:port`. Its name has no secrets. `transport` is for tests."""

    def __init__(
        self, spec: str, transport: "Transport | None" = None, limits: Limits = LIMITS, idle_s: float = IDLE_S
    ) -> None:
        self.name = mask_text(spec)
        self._host = _host_of(spec)
        self._http = HttpClient(
            spec,
            _kind_at(self._host),
            name=self.name,
            headers={"Accept-Encoding": "identity"},
            limits=limits,
            is_direct=True,
            transport=transport,
        )
        self._idle_s = idle_s
        self._skipped = 0

    async def forward(self, start: Head | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries from `start` on."""
        return await self._forward_slice(start, client.checked(matches, self.name), most)

    async def _forward_slice(
        self, start: Head | At | Beside, wanted: Matches, most: int, scope: Matches = ()
    ) -> Slice:
        last = await self._last(scope)
        lost = isinstance(start, Beside) and await self._is_gone(start.cursor)
        found: list[JournalEntry] = []
        for question in questions(wanted):
            found += await self._forward(question, start, most + 1)
        found = client.merged(found)[: most + 1]
        return client.slice_of(found, most, client.reached(start, last), lost)

    async def backward(self, start: Tail | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries before `start`, oldest first."""
        wanted = client.checked(matches, self.name)
        last = None if isinstance(start, Beside) else await self._last()
        lost = isinstance(start, Beside) and await self._is_gone(start.cursor)
        found: list[JournalEntry] = []
        for question in questions(wanted):
            found += await self._backward(question, start, most + 1)
        found = client.merged(found)[-most - 1 :]
        return client.slice_of(found, most, client.reached(start, last), lost, back=True)

    async def fields(self, cursor: Cursor) -> Fields | None:
        near = await self._near(cursor)
        return next((stored_fields(raw) for raw in near if _is_at(raw, cursor)), None)

    async def values(self, field: str) -> tuple[str, ...]:
        client.check_field(field, self.name)
        text = await self._text(f"/fields/{field}", "text/plain", ANSWER_BYTES)
        return tuple(dict.fromkeys(text.splitlines()))

    async def condition(self) -> JournalCondition:
        await self._text("/machine", "application/json", ANSWER_BYTES)
        return JournalCondition(
            note=f"{self._skipped} pieces of what came made no sense" if self._skipped else ""
        )

    def follow(self, start: Start, matches: Matches) -> Following:
        return follow_apart(self, self._one_of_each, self._listen, start, client.checked(matches, self.name))

    async def aclose(self) -> None:
        await self._http.aclose()

    # Slices.

    async def _forward(self, question: Question, start: Start, count: int) -> list[JournalEntry]:
        """The first `count` entries from `start` on."""

        async def page(place: Start) -> list[Raw]:
            if isinstance(place, Beside):
                found = await self._raw(question.params, f"{place.cursor}:0:{count + client.NEAR_ENTRIES}")
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
                micros = client.from_micros(place.time)
                found = await self._raw(
                    question.params, f"{client.time_cursor(micros - 1)}:{1 - count}:{count}"
                )
                return _before(found, client.time_cursor(micros)) if micros else []
            assert isinstance(place, Beside)
            # It steps back from the last entry of that very microsecond
            skip = count + client.NEAR_ENTRIES
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
            kept = [raw for raw in raws if not question.filtered or client.fulfils(raw, question.wanted)]
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
        return client.merged(found)[-1] if found else None

    async def _one_of_each(self, groups: Sequence[Matches]) -> list[JournalEntry | None]:
        return [await self._last(group) for group in groups]

    async def _near(self, cursor: Cursor) -> list[Raw]:
        """What stands at a place; the entry it means is among that when it is there."""
        return await self._raw((), f"{cursor}:0:{client.NEAR_ENTRIES}")

    async def _is_gone(self, cursor: Cursor) -> bool:
        return not any(_is_at(raw, cursor) for raw in await self._near(cursor))

    async def _raw(self, params: Params, place: str) -> list[Raw]:
        parser = ExportParser()
        found: list[Raw] = []
        taken = 0
        async with self._http.deadline(), contextlib.aclosing(self._export(params, place)) as pieces:
            async for piece in pieces:
                found += parser.feed(piece)
                taken += len(piece)
                if taken > MOST_BYTES:
                    raise SourceUnreachable(
                        f"{self.name}: it gives more than was asked for; check what is at this address"
                    )
        self._skipped += parser.skipped
        if parser.pending:
            raise SourceUnreachable(f"{self.name}: it broke off in the middle of an entry; it is read anew")
        return found

    # Following.

    def _listen(self, start: Start, wanted: Matches, scope: Matches) -> AsyncGenerator[Slice, None]:
        return listening(
            start, lambda at: self._catch_up(at, wanted, scope), lambda at: self._written(at, wanted)
        )

    async def _catch_up(self, start: Start, wanted: Matches, scope: Matches) -> AsyncGenerator[Slice, None]:
        if isinstance(start, Tail):
            last = await self._last(scope)
            yield Slice((), None if last is None else last.cursor, True)
            return
        while True:
            found = await self._forward_slice(start, wanted, CATCH_UP_ENTRIES, scope)
            yield found
            if found.at_edge:
                return
            assert found.cursor is not None
            start = Beside(found.cursor)

    async def _written(self, place: Start, wanted: Matches) -> AsyncGenerator[Slice, None]:
        asked = questions(wanted)
        params = asked[0].params if len(asked) == 1 else tuple(common(wanted))
        behind = client.Behind(own_cursor(place))
        parser = ExportParser()
        skipped = 0
        follow = (*params, ("follow", ""))
        where = _seek(place) or None
        try:
            async with contextlib.aclosing(self._export(follow, where, silence_s=self._idle_s)) as pieces:
                async for piece in pieces:
                    some = [raw for raw in parser.feed(piece) if client.fulfils(raw, wanted)]
                    self._skipped += parser.skipped - skipped
                    skipped = parser.skipped
                    made = [entry for entry in map(entry_of_export, some) if entry is not None]
                    if fresh := behind(made):
                        yield Slice(tuple(fresh), fresh[-1].cursor, True)
        except Silence:
            return  # a quiet journal and a dead connection look alike: it is asked, then listened to anew
        raise SourceUnreachable(f"{self.name}: gatewayd ended the connection; it is made anew")

    # Asking.

    async def _text(self, path: str, accept: str, most: int) -> str:
        """An answer that is text, up to `most` bytes of it. Raises SourceError."""
        data = b""
        async with self._http.deadline(), self._asked(path, (), accept) as pieces:
            async for piece in pieces:
                data += piece
                if len(data) >= most:
                    break
        return data[:most].decode("utf-8", "replace")

    async def _export(
        self, params: Params, place: str | None, *, silence_s: float | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Entries in the export format, in pieces; the first is empty. Raises SourceError.

        `place` is a value of the header `Range` in the units of gatewayd.
        """
        position = {"Range": f"entries={place}"} if place is not None else {}
        async with self._asked("/entries", params, EXPORT, position, silence_s) as pieces:
            yield b""
            async for piece in pieces:
                yield piece

    @contextlib.asynccontextmanager
    async def _asked(
        self,
        path: str,
        params: Params,
        accept: str,
        headers: dict[str, str] | None = None,
        silence_s: float | None = None,
    ) -> AsyncGenerator[AsyncGenerator[bytes, None], None]:
        if not self._host:
            raise SourceError(f"{self.name}: is no address of gatewayd; {_ADDRESS}")
        sent = {"Accept": accept, **(headers or {})}
        async with self._http.stream(path, params, sent, silence_s) as (head, pieces):
            if head.kind != accept:
                raise await self._http.refused(head, pieces)
            yield pieces


def _seek(place: Start) -> str:
    if isinstance(place, Beside):
        return place.cursor
    return client.time_cursor(client.from_micros(place.time)) if isinstance(place, At) else ""


def _cursor(raw: Raw) -> Cursor:
    value = raw[b"__CURSOR"]
    return Cursor((value[0] if isinstance(value, list) else value).decode("utf-8", "replace"))


def _is_at(raw: Raw, cursor: Cursor) -> bool:
    return _cursor(raw) == cursor


def _behind(found: list[Raw], cursor: Cursor) -> list[Raw]:
    """The entries from the first one on that is behind a cursor."""
    place = client.position(cursor)
    for number, raw in enumerate(found):
        if client.is_beyond(client.position(_cursor(raw)), place):
            return found[number:]
    return []


def _before(found: list[Raw], cursor: Cursor) -> list[Raw]:
    """The entries in front of the first one that is not before a cursor."""
    place = client.position(cursor)
    for number, raw in enumerate(found):
        if client.compare(client.position(_cursor(raw)), place) >= 0:
            return found[:number]
    return found
