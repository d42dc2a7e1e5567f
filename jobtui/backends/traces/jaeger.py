"""A Jaeger as a source. It is asked for traces when somebody wants to see some; a poll only looks for it.

Version 3 of its interface is tried first, and version 1 where there is none.
"""

import asyncio
from collections.abc import Iterator, Sequence

import msgspec

from jobtui.backends.base import Batch, SourceMissing
from jobtui.backends.traces.asking import Refused, TraceServer
from jobtui.backends.traces.jaeger_api import V1, V3, JaegerApi, Question
from jobtui.backends.traces.span_window import Usual, window_of
from jobtui.model.clock import Clock, SystemClock
from jobtui.model.trace_desk import TraceList, TraceSearch, TraceSummary, newest
from jobtui.model.trace_ids import TraceId
from jobtui.model.traces import Telemetry

LEAST = 5
"""So many traces are asked for with each question at least."""
MOST_QUESTIONS = 40
"""A search that names no service, or several attributes, is as many questions at most."""


class Jaeger:
    """One server."""

    kind = "jaeger"

    def __init__(self, server: TraceServer, usual: Usual | None = None, clock: Clock | None = None) -> None:
        self.name = server.name
        self._server = server
        self._usual = usual or Usual()
        self._clock = clock or SystemClock()
        self._api: JaegerApi | None = None
        self._needs_service = False

    async def poll(self, cursor: str | None) -> Batch:
        """Whether it is there, and what it has. Raises SourceError."""
        try:
            services = await self.services()
        except SourceMissing:
            self._api = None  # it may be another version by now
            raise
        version = self._api.version if self._api else ""
        return Batch(cursor=version, note=f"Jaeger {version}, {len(services)} services; asked when needed")

    async def changed(self, timeout_s: float) -> None:
        """Return after `timeout_s`: nothing tells of changes."""
        await asyncio.sleep(timeout_s)

    async def services(self) -> tuple[str, ...]:
        """The services of which it has spans. Raises SourceError."""
        if self._api is not None:
            return await self._api.services()
        new, old = V3(self._server), V1(self._server)
        try:
            services = await new.services()
        except SourceMissing as missing:
            try:
                services = await old.services()
            except SourceMissing:
                raise missing from None
            self._api, self._needs_service = old, True
        else:
            self._api = new
        return services

    async def operations(self, service: str) -> tuple[str, ...]:
        """The names of spans of a service. Raises SourceError."""
        return await (await self._known_api()).operations(service)

    async def trace(self, trace_id: TraceId) -> Telemetry | None:
        """All that it has of a trace by now, None when it has none. Raises SourceError."""
        return await (await self._known_api()).trace(trace_id)

    async def search(self, search: TraceSearch) -> TraceList:
        """The traces that are wanted, the newest first. Raises SourceError."""
        api = await self._known_api()
        if search.service or not self._needs_service:
            try:
                return await self._search(api, search, (search.service,))
            except Refused:
                if search.service:
                    raise
        found = await self._search(api, search, await api.services())
        self._needs_service = True  # some of its storages want one; the next time it is named at once
        return found

    async def _search(self, api: JaegerApi, search: TraceSearch, services: Sequence[str]) -> TraceList:
        window = window_of(search, self._usual, self._clock)
        asked = list(_questions(search, services))
        each = max(LEAST, -(-2 * search.most // max(1, len(asked))))
        answers = await asyncio.gather(
            *(api.search(question, window, min(each, search.most)) for question in asked[:MOST_QUESTIONS])
        )
        found: dict[TraceId, TraceSummary] = {}
        for one in (one for answer in answers for one in answer):
            found.setdefault(one.trace_id, msgspec.structs.replace(one, source=self.name))
        left_out = f"{self.name}: {MOST_QUESTIONS} of {len(asked)} questions were asked; name a service"
        notes = (left_out,) if len(asked) > MOST_QUESTIONS else ()
        return TraceList(newest(found.values(), search.most), notes)

    async def _known_api(self) -> JaegerApi:
        if self._api is None:
            await self.services()
        assert self._api is not None
        return self._api

    async def aclose(self) -> None:
        """Let go of all connections. May be called twice."""
        await self._server.aclose()


def _questions(search: TraceSearch, services: Sequence[str]) -> Iterator[Question]:
    """The questions of a search: Jaeger has no "or"."""
    for service in services:
        for name in search.names if search.value else ("",):
            yield Question(service, search.operation, name, search.value)
