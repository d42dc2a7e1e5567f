"""A Tempo as a source. It is asked for traces when somebody wants to see some; a poll only looks for it.

Version 2 of its trace call (https://grafana.com/docs/tempo/latest/api_docs/) answers an empty trace when
there is none, version 1 an empty 404; version 1 is asked where there is no version 2. A search is TraceQL,
and knows of spans that came late less than the trace call does.
"""

import asyncio
from collections.abc import Iterator

from jobtui.backends.base import Batch
from jobtui.backends.traces.asking import Answer, Params, TraceServer
from jobtui.backends.traces.span_window import Usual, window_of
from jobtui.formats.telemetry import as_dict, as_int, as_list, as_nanos, as_text
from jobtui.formats.trace_text import telemetry_of
from jobtui.model.clock import SECOND, Clock, Nanos, SystemClock
from jobtui.model.health import Skip
from jobtui.model.trace_desk import TraceList, TraceSearch, TraceSummary, newest
from jobtui.model.trace_ids import TraceId, trace_id_of_hex
from jobtui.model.traces import Telemetry

CHECK_S = 60
"""A poll asks for one trace of so long ago."""
MILLISECOND = 1_000_000
PARTIAL = "PARTIAL"
DIGITS = 18
"""Numbers of so many digits fit into 64 bits."""


class Tempo:
    """One server."""

    kind = "tempo"

    def __init__(self, server: TraceServer, usual: Usual | None = None, clock: Clock | None = None) -> None:
        self.name = server.name
        self._server = server
        self._usual = usual or Usual()
        self._clock = clock or SystemClock()

    async def poll(self, cursor: str | None) -> Batch:
        """Whether it is there, and answers. Raises SourceError."""
        now = self._clock.now()
        await self.search(TraceSearch(since=Nanos(now - CHECK_S * SECOND), until=now, most=1))
        return Batch(cursor="there", note="Tempo; asked when needed")

    async def changed(self, timeout_s: float) -> None:
        """Return after `timeout_s`: nothing tells of changes."""
        await asyncio.sleep(timeout_s)

    async def trace(self, trace_id: TraceId) -> Telemetry | None:
        """All that it has of a trace by now, None when it has none. Raises SourceError."""
        answer = await self._server.ask(f"/api/v2/traces/{trace_id}")
        if answer.status == 404:
            return await self._trace_v1(trace_id)
        document = self._server.document(answer)
        if not document.get("trace"):
            return None
        found = await asyncio.to_thread(telemetry_of, document, self.name)
        if document.get("status") != PARTIAL:
            return found
        why = as_text(document.get("message")) or "the server gives a part of it"
        skip = Skip(f"{self.name}: trace {trace_id}", why)
        return Telemetry(
            spans=found.spans,
            logs=found.logs,
            skipped=(skip, *found.skipped),
            skip_count=found.skip_count + 1,
        )

    async def _trace_v1(self, trace_id: TraceId) -> Telemetry | None:
        answer = await self._server.ask(f"/api/traces/{trace_id}")
        if answer.status == 404 and not answer.body.strip():
            return None
        return await asyncio.to_thread(telemetry_of, self._server.document(answer), self.name)

    async def search(self, search: TraceSearch) -> TraceList:
        """The traces that are wanted, the newest first. Raises SourceError."""
        params = [("q", traceql(search)), ("limit", str(search.most)), *self._window(search)]
        document = self._server.document(await self._server.ask("/api/search", params))
        told = (_summary(as_dict(one), self.name) for one in as_list(document.get("traces")))
        return TraceList(newest(filter(None, told), search.most))

    async def services(self) -> tuple[str, ...]:
        """The services of which it has spans. Raises SourceError."""
        path = "/api/v2/search/tag/resource.service.name/values"
        return self._values(await self._server.ask(path, self._window(TraceSearch())))

    async def operations(self, service: str) -> tuple[str, ...]:
        """The names of spans of a service. Raises SourceError."""
        params = [("q", traceql(TraceSearch(service=service))), *self._window(TraceSearch())]
        return self._values(await self._server.ask("/api/v2/search/tag/name/values", params))

    def _values(self, answer: Answer) -> tuple[str, ...]:
        listed = as_list(self._server.document(answer).get("tagValues"))
        texts = (as_text(as_dict(one).get("value")) for one in listed)
        return tuple(dict.fromkeys(filter(None, texts)))

    def _window(self, search: TraceSearch) -> Params:
        since, until = window_of(search, self._usual, self._clock)
        return [("start", str(since // SECOND)), ("end", str(-(-until // SECOND)))]

    async def aclose(self) -> None:
        """Let go of all connections. May be called twice."""
        await self._server.aclose()


def traceql(search: TraceSearch) -> str:
    """A search in Tempo's language. A text that is a number may be one there."""
    parts = []
    if search.service:
        parts.append(f"resource.service.name = {_quoted(search.service)}")
    if search.operation:
        parts.append(f"name = {_quoted(search.operation)}")
    if search.value and search.names:
        parts.append(f"({' || '.join(_alternatives(search))})")
    return f"{{ {' && '.join(parts)} }}" if parts else "{}"


def _alternatives(search: TraceSearch) -> Iterator[str]:
    for name in search.names:
        for scope in ("resource", "span"):
            yield f"{scope}.{_attribute(name)} = {_quoted(search.value)}"
            if len(search.value) <= DIGITS and search.value.isascii() and search.value.isdigit():
                yield f"{scope}.{_attribute(name)} = {int(search.value)}"


def _attribute(name: str) -> str:
    """The name of an attribute, in quotes where it is not of the usual characters."""
    usual = name.isascii() and all(sign.isalnum() or sign in "._-/" for sign in name)
    return name if usual else _quoted(name)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _summary(told: dict[str, object], source: str) -> TraceSummary | None:
    trace_id = trace_id_of_hex(as_text(told.get("traceID")))
    if trace_id is None:
        return None
    started_at = as_nanos(told.get("startTimeUnixNano")) or None
    lasted = (as_int(told.get("durationMs")) or 0) * MILLISECOND
    counts = as_dict(told.get("serviceStats"))
    return TraceSummary(
        trace_id=trace_id,
        service=as_text(told.get("rootServiceName")),
        name=as_text(told.get("rootTraceName")),
        started_at=started_at,
        ended_at=None if started_at is None else Nanos(started_at + lasted),
        spans=_sum(counts, "spanCount"),
        errors=(_sum(counts, "errorCount") or 0) if counts else None,
        services=tuple(counts),
        source=source,
    )


def _sum(counts: dict[str, object], key: str) -> int | None:
    return sum(as_int(as_dict(one).get(key)) or 0 for one in counts.values()) or None
