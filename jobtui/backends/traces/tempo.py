"""A Tempo as a source. It is asked for traces when somebody wants to see some; a poll only looks for it.

Version 2 of its trace call (https://grafana.com/docs/tempo/latest/api_docs/) answers an empty trace if there
is none, version 1 an empty 404; version 1 is asked if there is no version 2. A search is TraceQL, and may
lack late spans that the trace call has.
"""

import asyncio
import re
from collections.abc import Mapping

import msgspec

from jobtui.backends.base import Batch
from jobtui.backends.traces import client as client
from jobtui.formats.json_values import Document, as_dict, as_list, as_nanos, as_text
from jobtui.formats.spans import attributes_of, telemetry_of
from jobtui.model.clock import MILLISECOND, SECOND, Nanos, to_rfc3339
from jobtui.model.health import Skip, rows_of
from jobtui.model.ids import TraceId, trace_id_of_hex
from jobtui.model.numbers import whole, whole_of
from jobtui.model.specs import ReadWindow, SourceSpec
from jobtui.model.traces import Telemetry, TraceList, TraceSearch, TraceSummary, names_job, newest
from jobtui.transport.http import Params

CHECK_S = 60
"""How far back a poll asks for one trace."""
PARTIAL = "PARTIAL"
TOO_LONG = re.compile(r"\bexceeds (\d{1,6})h")
"""The error of a search over more hours than a server is configured to search."""
HOUR_S = 3600
_USUAL = re.compile(r"[A-Za-z0-9._/-]*")
"""The name of an attribute that needs no quotes."""


class Tempo(client.AskedServer):
    kind = "tempo"

    _most_hours: int | None = None
    """How many hours it searches at once; None until it has refused a longer time."""

    async def read(self, *, begins: bool) -> Batch:
        now = self.clock.now()
        await self.search(TraceSearch(since=Nanos(now - CHECK_S * SECOND), until=now, most=1))
        return Batch(note="Tempo; asked when needed")

    async def trace(self, trace_id: TraceId) -> Telemetry | None:
        answer = await self._server.question(f"/api/v2/traces/{trace_id}", most_bytes=client.TRACE_BYTES)
        if answer.status == 404:
            answer = await self._server.question(f"/api/traces/{trace_id}", most_bytes=client.TRACE_BYTES)
            if answer.status == 404 and not answer.http.body.strip():
                return None
            return await asyncio.to_thread(telemetry_of, self._server.document(answer), self.name)
        document = self._server.document(answer)
        if not document.get("trace"):
            return None
        found = await asyncio.to_thread(telemetry_of, document, self.name)
        if document.get("status") != PARTIAL:
            return found
        why = as_text(document.get("message")) or "the server gave only a part of it"
        skipped = (Skip(f"{self.name}: trace {trace_id}", why), *found.skipped)
        return msgspec.structs.replace(found, skipped=skipped, skip_count=found.skip_count + 1)

    async def search(self, search: TraceSearch) -> TraceList:
        params = [("q", traceql(search)), ("limit", str(search.most))]
        document = await self._ask_within(search, "/api/search", params)
        jobs = await self._jobs(search)
        lost: list[str] = []
        listed = rows_of(
            as_list(document.get("traces")),
            lambda one: _summary(as_dict(one), self.name, search.names, jobs),
            lambda _, why: lost.append(f"{self.name}: a trace is not listed: {why}"),
        )
        traces = newest(filter(None, listed), search.most)
        since, _ = self._window(search)
        if since != client.window_of(search, self._usual, self.clock)[0]:
            begin = to_rfc3339(Nanos(since - since % SECOND))
            lost.insert(0, f"{self.name}: it searches {self._most_hours} h at most: from {begin} on")
        return TraceList(traces, tuple(dict.fromkeys(lost)))

    async def _jobs(self, search: TraceSearch) -> Mapping[TraceId, tuple[str, ...]]:
        """The jobs that traces name, for a search without a job: their attributes come with the answer."""
        if search.value or not search.names:
            return {}
        params = [("q", traceql(search, any_job=True)), ("limit", str(search.most))]
        try:
            document = await self._ask_within(search, "/api/search", params)
        except client.Refused:  # an old one does not know whether there is an attribute
            return {}
        traces = map(as_dict, as_list(document.get("traces")))
        ids = ((trace_id_of_hex(as_text(one.get("traceID"))), one) for one in traces)
        return {trace_id: _jobs_in(one, search.names) for trace_id, one in ids if trace_id is not None}

    async def _ask_within(self, search: TraceSearch, path: str, params: Params = ()) -> Document:
        """The answer for the times of a search, or as many of the newest hours as the server searches."""
        while True:
            since, until = self._window(search)
            times = [("start", str(since // SECOND)), ("end", str(-(-until // SECOND)))]
            answer = await self._server.question(path, [*params, *times], client.SEARCH_BYTES)
            said = self._server.in_words(answer.http.body)
            longer = TOO_LONG.search(said) if answer.status == 400 else None
            if self._most_hours is not None or longer is None:
                return self._server.document(answer)
            self._most_hours = whole(longer[1])

    def _window(self, search: TraceSearch) -> tuple[Nanos, Nanos]:
        since, until = client.window_of(search, self._usual, self.clock)
        if self._most_hours is None:
            return since, until
        most = self._most_hours * HOUR_S * SECOND - 2 * SECOND  # both ends are rounded to seconds
        return Nanos(max(since, until - most)), until


def traceql(search: TraceSearch, *, any_job: bool = False) -> str:
    """A search in TraceQL; with `any_job` for spans that name one. Values may also be numbers."""
    parts = []
    if search.service:
        parts.append(f"resource.service.name = {_quoted(search.service)}")
    if search.operation:
        parts.append(f"name = {_quoted(search.operation)}")
    number = whole(search.value) if search.value.isdigit() else None
    texts = [_quoted(search.value), *([str(number)] if number is not None else [])]
    fits = ["!= nil"] if any_job else [f"= {text}" for text in texts] if search.value else []
    attributes = (name if _USUAL.fullmatch(name) else _quoted(name) for name in search.names)
    scoped = [f"{scope}.{name}" for name in attributes for scope in ("resource", "span")]
    if either := " || ".join(f"{attribute} {fit}" for attribute in scoped for fit in fits):
        parts.append(f"({either})")
    return f"{{ {' && '.join(parts)} }}" if parts else "{}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _jobs_in(trace: Document, names: tuple[str, ...]) -> tuple[str, ...]:
    """The jobs in the matching spans that a server gives with a trace."""
    sets = map(as_dict, as_list(trace.get("spanSets")))
    spans = (as_dict(span) for one in sets for span in as_list(one.get("spans")))
    written = (names_job(attributes_of(span.get("attributes")), names) for span in spans)
    return tuple(dict.fromkeys(one for one in written if one is not None))


def _summary(
    trace: Document, source: str, names: tuple[str, ...], jobs: Mapping[TraceId, tuple[str, ...]]
) -> TraceSummary | None:
    trace_id = trace_id_of_hex(as_text(trace.get("traceID")))
    if trace_id is None:
        return None
    started_at = as_nanos(trace.get("startTimeUnixNano")) or None
    lasted = (whole_of(trace.get("durationMs")) or 0) * MILLISECOND
    counts = as_dict(trace.get("serviceStats"))
    return TraceSummary(
        trace_id=trace_id,
        service=as_text(trace.get("rootServiceName")),
        name=as_text(trace.get("rootTraceName")),
        started_at=started_at,
        ended_at=None if started_at is None else Nanos(started_at + lasted),
        spans=_sum(counts, "spanCount"),
        errors=(_sum(counts, "errorCount") or 0) if counts else None,
        services=tuple(counts),
        source=source,
        jobs=jobs.get(trace_id) or _jobs_in(trace, names),
    )


def _sum(counts: dict[str, object], key: str) -> int | None:
    return sum(whole_of(as_dict(one).get(key)) or 0 for one in counts.values()) or None


def open_source(spec: SourceSpec, window: ReadWindow) -> Tempo:
    return Tempo(client.TraceServer(spec.target, "Tempo", spec.access), window)
