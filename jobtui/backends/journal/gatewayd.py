"""A journal on another host through systemd-journal-gatewayd.

It takes only one group of matches, where a field given twice means either value. For several groups it is
asked for each, and the answers are merged in the journal's order; following then asks for every entry and
keeps the wanted ones, since several connections have no common order.
"""

import contextlib
import re
from collections.abc import AsyncGenerator, Sequence
from itertools import takewhile
from urllib.parse import urlsplit

from jobtui.backends.journal import client
from jobtui.formats.journal_export import not_understood
from jobtui.model import journal
from jobtui.model.commands import Command
from jobtui.model.health import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.secrets import mask_text
from jobtui.transport.http import Headers, HttpClient, HttpLimits, Params, Response, ServerKind, Silence

VALUES_ASKED = 100
"""Values of a field in one question: the server has 32 KiB for a request (libmicrohttpd's default)."""


def questions(wanted: journal.Matches) -> tuple[Params, ...]:
    """The questions to gatewayd whose answers together have all wanted entries."""
    shared = common(wanted)
    either: dict[str, list[str]] = {}
    several: list[Params] = []
    for group in wanted:
        rest = [match for match in group if match not in shared]
        if len(rest) == 1:
            either.setdefault(rest[0][0], []).append(rest[0][1])
        else:
            several.append(group)
    singles = [
        (*shared, *((field, value) for value in values[at : at + VALUES_ASKED]))
        for field, values in either.items()
        for at in range(0, len(values), VALUES_ASKED)
    ]
    return (*singles, *several) if wanted else ((),)


def common(wanted: journal.Matches) -> list[journal.Match]:
    """The matches that all of several groups share, such as one host; no group has another of that field."""
    if len(wanted) < 2:
        return []
    fields = [field for group in wanted for field, _ in group]
    return [
        match
        for match in dict.fromkeys(wanted[0])
        if all(match in group for group in wanted) and fields.count(match[0]) == len(wanted)
    ]


EXPORT = "application/vnd.fdo.journal"
LIMITS = HttpLimits(connect_s=10.0, silence_s=30.0, connections=100, body_bytes=256 << 20)
"""Following takes a connection for each host, 32 at most, and several journals may be followed."""
IDLE_S = 120.0
"""After so long a silence a connection that follows is opened again: it may be dead."""

_STATUS = "on {host}: systemctl status systemd-journal-gatewayd.socket"
_ADDRESS = "expected http://host:port, its default port is 19531, without a path"
_ABSENT = re.compile(rb"No such file|error -2\b")
_FORBIDDEN = re.compile(rb"Permission denied|error -13\b")
"""gatewayd 252 gives error numbers instead of texts."""


def _why_refused(answer: Response) -> tuple[type[SourceError], str] | None:
    if answer.status < 400 or answer.status in (401, 403, 404, 407):
        return None
    if _ABSENT.search(answer.body):
        return SourceMissing, (
            "gatewayd finds none of the files it should read; on {host}: "
            "systemctl cat systemd-journal-gatewayd"
        )
    if _FORBIDDEN.search(answer.body):
        return SourceDenied, (
            "gatewayd may not read the journal; as root on {host}: "
            "usermod -aG systemd-journal systemd-journal-gateway, then restart it"
        )
    return None


def _kind_at(host: str) -> ServerKind:
    """The advice about gatewayd on a host, with a command if one can be given for its name."""
    tunnel = Command("ssh", "-N", "-L", "19531:localhost:19531", about=[host])
    typed = tunnel.replace("{", "{{").replace("}", "}}") or "open a tunnel to port 19531 there"
    around = f"bypass it: {typed}, then http://localhost:19531"
    return ServerKind(
        "gatewayd",
        login=f"jobtui does not log in to proxies; {around}",
        forbidden=f"by a server in front of gatewayd; {around}",
        address=_ADDRESS,
        down=_STATUS,
        authority="SSL_CERT_FILE=/path/to/ca.pem",
        explain=_why_refused,
    )


class GatewayJournal(client.ExportReader):
    """The journal at `http(s)://host:port`. Its name has no secrets."""

    def __init__(self, spec: str) -> None:
        self.name = mask_text(spec)
        self._host = ""
        """Empty where the address is none."""
        with contextlib.suppress(ValueError):
            parts = urlsplit(spec)
            if parts.scheme in ("http", "https") and parts.port != 0 and not (parts.query or parts.fragment):
                self._host = parts.hostname or ""
        self._http = HttpClient(
            spec,
            _kind_at(self._host),
            name=self.name,
            headers={"Accept-Encoding": "identity"},
            limits=LIMITS,
            is_direct=True,
        )

    async def values(self, *fields: str) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for field in fields:
            client.check_field(field, self.name)
            text = (await self._get(f"/fields/{field}", "text/plain")).decode("utf-8", "replace")
            found[field] = tuple(dict.fromkeys(text.splitlines()))
        return found

    async def condition(self) -> journal.JournalCondition:
        await self._get("/machine", "application/json")
        return journal.JournalCondition(note=not_understood(self.skipped))

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _ask(self, asks: Sequence[client.Ask]) -> AsyncGenerator[list[journal.JournalEntry], None]:
        for ask in asks:
            if ask.most is not None:
                yield await self._page(ask, ask.most)
                continue
            if ask.follows:
                async with contextlib.aclosing(self._written(ask)) as answer:
                    async for some in answer:
                        yield some
                continue
            while some := await self._page(ask, client.PAGE_ENTRIES):
                yield some
                if len(some) < client.PAGE_ENTRIES:
                    break
                ask = ask._replace(start=journal.AtCursor(some[-1].cursor))

    async def _page(self, ask: client.Ask, count: int) -> list[journal.JournalEntry]:
        """The first `count` entries beyond a start, of several answers together."""
        found: list[journal.JournalEntry] = []
        start = client.position(journal.Cursor(_seek(ask.start)))
        for params in questions(ask.matches):
            body = await self._get("/entries", EXPORT, params, {"Range": f"entries={_range(ask, count)}"})
            some = await self._whole(body)
            if ask.back and not isinstance(ask.start, journal.Tail):
                some = [*takewhile(lambda one: client.compare(client.position(one.cursor), start) < 0, some)]
            found += some
        found = client.merged(found)
        if not count:
            return found
        return client.CursorFilter(journal.own_cursor(ask.start), back=ask.back)(
            found[::-1] if ask.back else found
        )[:count]

    async def _written(self, ask: client.Ask) -> AsyncGenerator[list[journal.JournalEntry], None]:
        asked = questions(ask.matches)
        params = asked[0] if len(asked) == 1 else tuple(common(ask.matches))
        entries = _seek(ask.start)
        sent = {"Accept": EXPORT, **({"Range": f"entries={entries}"} if entries else {})}
        answer = self._http.stream("/entries", (*params, ("follow", "")), sent, IDLE_S)
        try:
            async with answer as (head, pieces):
                if head.kind != EXPORT:
                    raise await self._http.refused(head, pieces)
                async for some in self._entries(pieces, ask.matches):
                    yield some
        except Silence:
            return  # a quiet journal and a dead connection look alike: ask for all again
        raise SourceUnreachable(f"{self.name}: gatewayd ended the connection; connecting again")

    async def _get(self, path: str, accept: str, params: Params = (), extra: Headers | None = None) -> bytes:
        if not self._host:
            raise SourceError(f"{self.name}: is not an address of gatewayd; {_ADDRESS}")
        sent = {"Accept": accept, **(extra or {})}
        answer = await self._http.ask(path, params, headers=sent)
        if answer.kind != accept:
            raise self._http.refusal(answer)
        return answer.body


def _seek(start: journal.Start) -> str:
    if isinstance(start, journal.AtCursor):
        return start.cursor
    return client.time_cursor(client.from_micros(start.time)) if isinstance(start, journal.At) else ""


def _range(ask: client.Ask, count: int) -> str:
    """The header `Range` for a page: a cursor, how many to skip, and how many.

    gatewayd steps back and then gives entries forwards: if there are fewer, it goes on after the start. From
    an entry it steps back from the last one of the same microsecond.
    """
    near = client.NEAR_ENTRIES if isinstance(ask.start, journal.AtCursor) else 0
    if not ask.back:
        return f"{_seek(ask.start)}:0:{count + near}"
    if near:
        return f"{_seek(ask.start)}:{-count - near}:{count + near + 1}"
    count = max(count, 2)  # without a step back it begins at the head
    entries = (
        client.time_cursor(client.from_micros(ask.start.time) - 1)
        if isinstance(ask.start, journal.At)
        else ""
    )
    return f"{entries}:{1 - count}:{count}"
