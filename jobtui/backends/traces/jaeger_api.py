"""The two ways to ask a Jaeger: version 3 of its interface, and version 1, which its own pages use.

Version 3 (stable; https://www.jaegertracing.io/docs/2.6/apis/): OTLP in `result`, 404 with an `error` when
there is nothing. Names of parameters were in snake case before about 2.19, and then only so. Summaries are
there since 2.19. Version 1: Jaeger's own JSON in `data`, microseconds; its searches are gone after 2.20.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol
from urllib.parse import quote

from jobtui.backends.base import SourceError
from jobtui.backends.traces.asking import Answer, Params, TraceServer, said
from jobtui.backends.traces.span_window import SearchWindow
from jobtui.formats.telemetry import Document, as_dict, as_int, as_list, as_nanos, as_text
from jobtui.formats.trace_text import telemetry_of
from jobtui.model.clock import to_rfc3339
from jobtui.model.trace_desk import TraceSummary, summary_of
from jobtui.model.trace_ids import TraceId, trace_id_of_hex
from jobtui.model.traces import Span, Telemetry, Trace

MICROSECOND = 1_000
MOST_WHOLE = 20
"""Traces that are asked for at once where they come whole."""


class Question(NamedTuple):
    """What one search asks for, "" for anything."""

    service: str = ""
    operation: str = ""
    attribute: str = ""
    value: str = ""


class JaegerApi(Protocol):
    """One version of the interface. All raise SourceError."""

    version: str

    async def services(self) -> tuple[str, ...]:
        """The services there are."""
        ...

    async def operations(self, service: str) -> tuple[str, ...]:
        """The names of spans of a service."""
        ...

    async def trace(self, trace_id: TraceId) -> Telemetry | None:
        """A trace, None when there is none."""
        ...

    async def search(self, question: Question, window: SearchWindow, most: int) -> list[TraceSummary]:
        """Traces that fit."""
        ...


class V3:
    """Version 3."""

    version = "v3"

    def __init__(self, server: TraceServer) -> None:
        self._server = server
        self._has_summaries = True
        self._names: Mapping[str, str] | None = None

    async def services(self) -> tuple[str, ...]:
        """The services there are. Raises SourceError."""
        document = self._server.document(await self._server.ask("/api/v3/services"))
        return _texts(document.get("services"))

    async def operations(self, service: str) -> tuple[str, ...]:
        """The names of spans of a service. Raises SourceError."""
        answer = await self._server.ask("/api/v3/operations", [("service", service)])
        listed = as_list(self._server.document(answer).get("operations"))
        return _texts(as_dict(one).get("name") for one in listed)

    async def trace(self, trace_id: TraceId) -> Telemetry | None:
        """A trace, None when there is none. Raises SourceError."""
        answer = await self._server.ask(f"/api/v3/traces/{trace_id}")
        if _is_none_v3(answer):
            return None
        return await asyncio.to_thread(telemetry_of, self._server.document(answer), self._server.name)

    async def search(self, question: Question, window: SearchWindow, most: int) -> list[TraceSummary]:
        """Traces that fit. Raises SourceError."""
        if self._has_summaries:
            answer = await self._ask_for("/api/v3/trace-summaries", question, window, most)
            if answer.document is not None and "summaries" in answer.document:
                return list(filter(None, map(_summary, as_list(answer.document["summaries"]))))
            if _is_none_v3(answer):
                return []
            if answer.status not in (200, 404, 501):
                raise self._server.no_document(answer)
            self._has_summaries = answer.status == 200
        answer = await self._ask_for("/api/v3/traces", question, window, min(most, MOST_WHOLE))
        if _is_none_v3(answer):
            return []
        return await asyncio.to_thread(summaries_in, self._server.document(answer), self._server.name)

    async def _ask_for(self, path: str, question: Question, window: SearchWindow, most: int) -> Answer:
        """The answer, by the new names, or the old ones where the new are unknown."""
        for names in (self._names,) if self._names else (NAMES, OLD_NAMES):
            answer = await self._server.ask(path, _v3_params(question, window, most, names))
            if answer.status == 200:
                self._names = names
            if answer.status != 400:
                break
        return answer


NAMES: Mapping[str, str] = {
    "service": "query.serviceName",
    "operation": "query.operationName",
    "attributes": "query.attributes",
    "since": "query.startTimeMin",
    "until": "query.startTimeMax",
    "most": "query.searchDepth",
}
OLD_NAMES: Mapping[str, str] = {
    "service": "query.service_name",
    "operation": "query.operation_name",
    "attributes": "query.attributes",
    "since": "query.start_time_min",
    "until": "query.start_time_max",
    "most": "query.num_traces",
}
"""As they were before 2.19."""


def _v3_params(question: Question, window: SearchWindow, most: int, names: Mapping[str, str]) -> Params:
    said = {
        "service": question.service,
        "operation": question.operation,
        "attributes": _attributes(question),
        "since": to_rfc3339(window.since),
        "until": to_rfc3339(window.until),
        "most": str(most),
    }
    return [(names[key], value) for key, value in said.items() if value]


def _attributes(question: Question) -> str:
    """The attribute that is asked for as JSON, "" for none."""
    return json.dumps({question.attribute: question.value}) if question.attribute else ""


def _is_none_v3(answer: Answer) -> bool:
    """Whether it is said that there is no such trace; that there is no such address looks otherwise."""
    return answer.status == 404 and isinstance((answer.document or {}).get("error"), dict)


def _summary(value: object) -> TraceSummary | None:
    told = as_dict(value)
    trace_id = trace_id_of_hex(as_text(told.get("traceId")))
    if trace_id is None:
        return None
    return TraceSummary(
        trace_id=trace_id,
        service=as_text(told.get("rootServiceName")),
        name=as_text(told.get("rootOperationName")),
        started_at=as_nanos(told.get("minStartTimeUnixNano")) or None,
        ended_at=as_nanos(told.get("maxEndTimeUnixNano")) or None,
        spans=as_int(told.get("spanCount")),
        errors=as_int(told.get("errorSpanCount")) or 0,
        services=_texts(as_dict(one).get("name") for one in as_list(told.get("services"))),
    )


class V1:
    """Version 1."""

    version = "v1"

    def __init__(self, server: TraceServer) -> None:
        self._server = server

    async def services(self) -> tuple[str, ...]:
        """The services there are. Raises SourceError."""
        return _texts(as_list(self._data(await self._server.ask("/api/services"))))

    async def operations(self, service: str) -> tuple[str, ...]:
        """The names of spans of a service. Raises SourceError."""
        path = f"/api/services/{quote(service, safe='')}/operations"
        return _texts(as_list(self._data(await self._server.ask(path))))

    async def trace(self, trace_id: TraceId) -> Telemetry | None:
        """A trace as it was sent, clocks uncorrected; None when there is none. Raises SourceError."""
        answer = await self._server.ask(f"/api/traces/{trace_id}", [("raw", "true")])
        if answer.status == 404 and answer.document is not None and "data" in answer.document:
            return None
        return await asyncio.to_thread(telemetry_of, {"data": self._data(answer)}, self._server.name)

    async def search(self, question: Question, window: SearchWindow, most: int) -> list[TraceSummary]:
        """Traces that fit. Raises SourceError."""
        said = {
            "service": question.service,
            "operation": question.operation,
            "tags": _attributes(question),
            "start": str(window.since // MICROSECOND),
            "end": str(window.until // MICROSECOND),
            "limit": str(min(most, MOST_WHOLE)),
        }
        answer = await self._server.ask("/api/traces", [(key, value) for key, value in said.items() if value])
        return await asyncio.to_thread(summaries_in, {"data": self._data(answer)}, self._server.name)

    def _data(self, answer: Answer) -> object:
        """What an answer holds. Raises SourceError, also for what the server says went wrong."""
        document = answer.document or {}
        if "data" not in document:
            raise self._server.no_document(answer._replace(document=None))
        if document.get("errors") and not document["data"]:
            raise SourceError(f"{self._server.name}: {said(answer)}")
        return document["data"]


def summaries_in(document: Document, where: str) -> list[TraceSummary]:
    """The traces of an answer, in which the spans of several are mixed."""
    by_trace: dict[TraceId, list[Span]] = {}
    for span in telemetry_of(document, where).spans:
        by_trace.setdefault(span.trace_id, []).append(span)
    return [summary_of(Trace(trace_id=trace_id, spans=tuple(same))) for trace_id, same in by_trace.items()]


def _texts(values: object) -> tuple[str, ...]:
    """The texts among values, each once."""
    listed = values if isinstance(values, Iterable) and not isinstance(values, str) else ()
    return tuple(dict.fromkeys(one for one in listed if isinstance(one, str) and one))
