"""A Jaeger as a source. It is asked for traces when somebody wants to see some; a poll only looks for it.

Version 3 of its interface is tried first (stable; https://www.jaegertracing.io/docs/2.6/apis/): OTLP in
`result`, 404 with an `error` if there is nothing. Before about 2.19 it only knows names of parameters in
snake case. It has summaries since 2.19. Version 1 is asked if there is no version 3: Jaeger's own JSON in
`data`, microseconds; its searches are gone after 2.20.
"""

import asyncio
import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from jobtui.backends.base import Batch
from jobtui.backends.traces import client
from jobtui.formats.json_values import Document, as_dict, as_list, as_nanos, as_text
from jobtui.formats.spans import telemetry_of
from jobtui.model import traces
from jobtui.model.clock import MICROSECOND, Nanos, to_rfc3339
from jobtui.model.health import FAULTS, SourceError, SourceMissing
from jobtui.model.ids import TraceId, trace_id_of_hex
from jobtui.model.numbers import whole_of
from jobtui.model.specs import ReadWindow, SourceSpec
from jobtui.transport.http import Params

MOST_WHOLE = 20
"""How many traces are asked for at once if they come whole."""


class V3:
    version = "v3"

    def __init__(self, server: client.TraceServer) -> None:
        self._server = server
        self._has_summaries = True
        self._names: Names | None = None

    async def services(self) -> tuple[str, ...]:
        document = self._server.document(await self._server.question("/api/v3/services"))
        return _texts(document.get("services"))

    async def trace(self, trace_id: TraceId) -> traces.Telemetry | None:
        answer = await self._server.question(f"/api/v3/traces/{trace_id}", most_bytes=client.TRACE_BYTES)
        if _is_none_v3(answer):
            return None
        return await asyncio.to_thread(telemetry_of, self._server.document(answer), self._server.name)

    async def search(
        self, asked: traces.TraceSearch, attribute: str, window: tuple[Nanos, Nanos]
    ) -> list[traces.TraceSummary]:
        if self._has_summaries:
            answer = await self._ask_for("/api/v3/trace-summaries", asked, attribute, window)
            if answer.document is not None and "summaries" in answer.document:
                summaries = as_list(answer.document["summaries"])
                return list(filter(None, FAULTS.each("reading a trace's summary", summaries, _summary)))
            if _is_none_v3(answer):
                return []
            if answer.status not in (200, 404, 501):
                raise self._server.no_document(answer)
            self._has_summaries = answer.status == 200
        asked = msgspec.structs.replace(asked, most=min(asked.most, MOST_WHOLE))
        answer = await self._ask_for("/api/v3/traces", asked, attribute, window)
        if _is_none_v3(answer):
            return []
        document = self._server.document(answer)
        return await asyncio.to_thread(summaries_in, document, self._server.name, asked.names)

    async def _ask_for(
        self, path: str, asked: traces.TraceSearch, attribute: str, window: tuple[Nanos, Nanos]
    ) -> client.ServerAnswer:
        """The answer, by the new names, or by the old ones if the new are unknown."""
        for names in (self._names,) if self._names else (NAMES, OLD_NAMES):
            since, until = map(to_rfc3339, window)
            params = _params(asked, attribute, names, since, until)
            answer = await self._server.question(path, params, client.SEARCH_BYTES)
            if answer.status == 200:
                self._names = names
            if answer.status != 400:
                break
        return answer


class Names(NamedTuple):
    """The names of the parameters of a search."""

    service: str
    operation: str
    attributes: str
    since: str
    until: str
    most: str


NAMES = Names(
    "query.serviceName", "query.operationName", "query.attributes", "query.startTimeMin",
    "query.startTimeMax", "query.searchDepth",
)  # fmt: skip
OLD_NAMES = Names(
    "query.service_name", "query.operation_name", "query.attributes", "query.start_time_min",
    "query.start_time_max", "query.num_traces",
)  # fmt: skip
"""The names before 2.19."""
V1_NAMES = Names("service", "operation", "tags", "start", "end", "limit")


def _params(asked: traces.TraceSearch, attribute: str, names: Names, since: str, until: str) -> Params:
    attributes = json.dumps({attribute: asked.value}) if attribute else ""
    said = Names(asked.service, asked.operation, attributes, since, until, str(asked.most))
    return [(name, value) for name, value in zip(names, said, strict=True) if value]


def _is_none_v3(answer: client.ServerAnswer) -> bool:
    """Whether the answer is that there is no such trace; an unknown address is answered differently."""
    return answer.status == 404 and isinstance((answer.document or {}).get("error"), dict)


def _summary(value: object) -> traces.TraceSummary | None:
    trace = as_dict(value)
    trace_id = trace_id_of_hex(as_text(trace.get("traceId")))
    if trace_id is None:
        return None
    return traces.TraceSummary(
        trace_id=trace_id,
        service=as_text(trace.get("rootServiceName")),
        name=as_text(trace.get("rootOperationName")),
        started_at=as_nanos(trace.get("minStartTimeUnixNano")) or None,
        ended_at=as_nanos(trace.get("maxEndTimeUnixNano")) or None,
        spans=whole_of(trace.get("spanCount")),
        errors=whole_of(trace.get("errorSpanCount")) or 0,
        services=_texts(as_dict(one).get("name") for one in as_list(trace.get("services"))),
    )


class V1:
    version = "v1"

    def __init__(self, server: client.TraceServer) -> None:
        self._server = server

    async def services(self) -> tuple[str, ...]:
        return _texts(as_list(self._data(await self._server.question("/api/services"))))

    async def trace(self, trace_id: TraceId) -> traces.Telemetry | None:
        answer = await self._server.question(f"/api/traces/{trace_id}", [("raw", "true")], client.TRACE_BYTES)
        if answer.status == 404 and answer.document is not None and "data" in answer.document:
            return None
        return await asyncio.to_thread(telemetry_of, {"data": self._data(answer)}, self._server.name)

    async def search(
        self, asked: traces.TraceSearch, attribute: str, window: tuple[Nanos, Nanos]
    ) -> list[traces.TraceSummary]:
        since, until = (str(at // MICROSECOND) for at in window)
        asked = msgspec.structs.replace(asked, most=min(asked.most, MOST_WHOLE))
        params = _params(asked, attribute, V1_NAMES, since, until)
        answer = await self._server.question("/api/traces", params, client.SEARCH_BYTES)
        document = {"data": self._data(answer)}
        return await asyncio.to_thread(summaries_in, document, self._server.name, asked.names)

    def _data(self, answer: client.ServerAnswer) -> object:
        """The data of an answer. Raises SourceError, also for errors that the server reports."""
        document = answer.document or {}
        if "data" not in document:
            raise self._server.no_document(answer._replace(document=None))
        if document.get("errors") and not document["data"]:
            raise SourceError(f"{self._server.name}: {self._server.in_words(answer.http.body)}")
        return document["data"]


def summaries_in(document: Document, where: str, names: tuple[str, ...]) -> list[traces.TraceSummary]:
    """The traces of an answer, in which the spans of several are mixed."""
    by_trace: dict[TraceId, list[traces.Span]] = {}
    for span in telemetry_of(document, where).spans:
        by_trace.setdefault(span.trace_id, []).append(span)
    return [
        traces.summary_of(traces.Trace(trace_id=trace_id, spans=tuple(same)), names=names)
        for trace_id, same in by_trace.items()
    ]


def _texts(values: object) -> tuple[str, ...]:
    listed = values if isinstance(values, Iterable) and not isinstance(values, str) else ()
    return tuple(dict.fromkeys(one for one in listed if isinstance(one, str) and one))


LEAST = 5
"""The fewest traces asked for at a time."""
MOST_QUESTIONS = 40
"""A search without a service, or with several attributes, takes at most so many questions."""


class Jaeger(client.AskedServer):
    kind = "jaeger"

    _api: V3 | V1 | None = None
    _needs_service = False

    async def read(self, *, begins: bool) -> Batch:
        try:
            services = await self.services()
        except SourceMissing:
            self._api = None  # it may be another version by now
            raise
        version = self._api.version if self._api else ""
        return Batch(note=f"Jaeger {version}, {len(services)} services; asked when needed")

    async def services(self) -> tuple[str, ...]:
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

    async def trace(self, trace_id: TraceId) -> traces.Telemetry | None:
        return await (await self._known_api()).trace(trace_id)

    async def search(self, search: traces.TraceSearch) -> traces.TraceList:
        api = await self._known_api()
        if search.service or not self._needs_service:
            try:
                return await self._search(api, search, (search.service,))
            except client.Refused:
                if search.service:
                    raise
        found = await self._search(api, search, await api.services())
        self._needs_service = True  # some of its storages need one; next time it is named at once
        return found

    async def _search(
        self, api: V3 | V1, search: traces.TraceSearch, services: Sequence[str]
    ) -> traces.TraceList:
        window = client.window_of(search, self._usual, self.clock)
        names = search.names if search.value else ("",)  # Jaeger has no "or"
        asked = [(service, name) for service in services for name in names]
        each = min(search.most, max(LEAST, -(-2 * search.most // max(1, len(asked)))))
        answers = await asyncio.gather(
            *(
                api.search(msgspec.structs.replace(search, service=service, most=each), name, window)
                for service, name in asked[:MOST_QUESTIONS]
            )
        )
        found: dict[TraceId, traces.TraceSummary] = {}
        for one in (one for answer in answers for one in answer):
            found.setdefault(one.trace_id, msgspec.structs.replace(one, source=self.name))
        left_out = f"{self.name}: {MOST_QUESTIONS} of {len(asked)} questions were asked; name a service"
        notes = (left_out,) if len(asked) > MOST_QUESTIONS else ()
        return traces.TraceList(traces.newest(found.values(), search.most), notes)

    async def _known_api(self) -> V3 | V1:
        if self._api is None:
            await self.services()
        assert self._api is not None
        return self._api


def open_source(spec: SourceSpec, window: ReadWindow) -> Jaeger:
    return Jaeger(client.TraceServer(spec.target, "Jaeger", spec.access), window)
