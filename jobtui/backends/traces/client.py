"""Asks a trace server, which answers in JSON, even if it has none or the question is wrong."""

import asyncio
from typing import NamedTuple

from jobtui.backends.base import PolledSource
from jobtui.formats.json_values import Document, decoded
from jobtui.model.clock import SECOND, Clock, Nanos
from jobtui.model.health import SourceError
from jobtui.model.specs import NO_ACCESS, Access, ReadWindow
from jobtui.model.tables import tables_of
from jobtui.model.traces import TraceSearch
from jobtui.transport import http
from jobtui.transport.http import HttpClient, HttpLimits, Params, ServerKind

LOOKBACK_S = 6 * 24 * 3600
"""How far back is searched when no time is given. Tempo refuses more than a week."""
AHEAD_S = 3600
"""How far the clocks of senders may be ahead."""


def window_of(search: TraceSearch, usual: ReadWindow, clock: Clock) -> tuple[Nanos, Nanos]:
    until = search.until if search.until is not None else usual.until
    if until is None:
        until = Nanos(clock.now() + AHEAD_S * SECOND)
    since = search.since if search.since is not None else usual.since
    if since is None:
        since = Nanos(until - LOOKBACK_S * SECOND)
    return Nanos(max(0, since)), until


NAMES_BYTES, SEARCH_BYTES, TRACE_BYTES = 8 << 20, 64 << 20, 128 << 20
"""The largest answers that are taken: names of services and spans, a search, a trace (some 100,000 spans)."""
LIMITS = HttpLimits(body_bytes=TRACE_BYTES)


class Refused(SourceError):
    """The server answers, but refuses this question."""


class ServerAnswer(NamedTuple):
    http: http.Response
    document: Document | None

    @property
    def status(self) -> int:
        return self.http.status


class TraceServer(HttpClient):
    """One server. `product` is its name."""

    def __init__(self, url: str, product: str, access: Access = NO_ACCESS) -> None:
        kind = ServerKind(**tables_of("jobtui.backends.traces", "servers")[product.lower()])
        super().__init__(url, kind, access=access, limits=LIMITS)

    async def question(self, path: str, params: Params = (), most_bytes: int = NAMES_BYTES) -> ServerAnswer:
        """The answer to a question, also if there is nothing (404) or the question is wrong (400).

        Raises SourceError for all others, and for one of more than `most_bytes`.
        """
        answer = await self.ask(path, params, fine=(200, 400, 404, 500, 501), most_bytes=most_bytes)
        try:  # Jaeger labels its JSON as text, so the label means nothing
            found = await asyncio.to_thread(decoded, answer.body)
        except ValueError:
            found = None
        return ServerAnswer(answer, found if isinstance(found, dict) else None)

    def document(self, answer: ServerAnswer) -> Document:
        """The document of an answer, which must have one. Raises SourceError."""
        if answer.status == 200 and answer.document is not None:
            return answer.document
        raise self.no_document(answer)

    def no_document(self, answer: ServerAnswer) -> SourceError:
        if answer.status in (400, 500) and not answer.http.is_page:
            reason = self.in_words(answer.http.body)
            return Refused(f"{self.name}: refused the request ({answer.status}): {reason}")
        return self.refusal(answer.http)


class AskedServer(PolledSource):
    """A server as a source: asked when somebody wants to see a trace, a poll only looks for it.

    `usual` are the times that are searched when a search names none.
    """

    def __init__(self, server: TraceServer, usual: ReadWindow | None = None) -> None:
        super().__init__(server.name, server)
        self._server = server
        self._usual = usual or ReadWindow()
