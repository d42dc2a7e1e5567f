"""Traces that grow span by span, and the two servers that are asked for them: a Jaeger and a Tempo.

As strict as these are: a search without its times is refused, and so is one of Tempo over more than a week;
what is not there is said in the words of each. Of a trace the root comes last, as it ends last.
"""

import base64
import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from benchmarks.moody_server import Question, Reply

SPANS = 20
"""Of a whole trace."""
KEPT = 20
"""Traces that a server keeps, the newest."""
STEP_NS = 1_000_000
WEEK_S = 168 * 3600
NO_ROOT = "<root span not yet received>"
TEXT = "text/plain; charset=utf-8"
Said = Mapping[str, str]


class GrowingTrace(NamedTuple):
    """One trace: the spans that were sent of it are the first of its steps, and in the end its root."""

    trace_id: str
    begun_at: int
    spans: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether its root was sent."""
        return self.spans >= SPANS

    @property
    def ended_at(self) -> int:
        """When the last of what was sent ended."""
        return self.begun_at + STEP_NS * (self.spans + 1)

    def otlp(self, of_id: Callable[[str], str], kind: object) -> Iterator[dict[str, Any]]:
        """The spans; `of_id` is how ids are written."""
        root = of_id(f"{SPANS:016x}")
        for number in range(1, self.spans + 1):
            begun_at = self.begun_at + STEP_NS * number
            own = {"spanId": of_id(f"{number:016x}"), "parentSpanId": root, "name": f"step {number}"}
            ended_at = begun_at + STEP_NS
            if number == SPANS:
                own, begun_at = {"spanId": root, "name": "work"}, self.begun_at
            times = {"startTimeUnixNano": str(begun_at), "endTimeUnixNano": str(ended_at)}
            yield {"traceId": of_id(self.trace_id), "kind": kind, **own, **times}


class GrowingTraces:
    """The newest traces of a service, the last of which grows."""

    def __init__(self, service: str, ids_begin: str) -> None:
        self.service = service
        self.kept: tuple[GrowingTrace, ...] = ()
        self._ids_begin = ids_begin
        self._begun = 0

    @property
    def newest(self) -> GrowingTrace:
        """The one that grows."""
        return self.kept[-1]

    def grow(self) -> None:
        """One more span."""
        if not self.kept or self.newest.is_whole:
            self._begun += 1
            trace_id = f"{self._ids_begin}{self._begun:0{32 - len(self._ids_begin)}x}"
            self.kept = (*self.kept[-KEPT + 1 :], GrowingTrace(trace_id, time.time_ns()))
        self.kept = (*self.kept[:-1], self.newest._replace(spans=self.newest.spans + 1))

    def find(self, trace_id: str) -> GrowingTrace | None:
        """The trace with an id."""
        return next((one for one in self.kept if one.trace_id == trace_id.rjust(32, "0")), None)

    def between(self, since: float, until: float, most: int) -> list[GrowingTrace]:
        """Those that begin between two times, in nanoseconds; the newest first."""
        return [one for one in reversed(self.kept) if since <= one.begun_at <= until][:most]

    def resource_spans(self, spans: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """Spans with what sent them."""
        service = {"key": "service.name", "value": {"stringValue": self.service}}
        return {"resource": {"attributes": [service]}, "scopeSpans": [{"spans": list(spans)}]}


class Answers(ABC):
    """What a server answers about traces that grow."""

    def __init__(self, traces: GrowingTraces) -> None:
        self.traces = traces

    def answer(self, question: Question) -> Reply:
        """The answer to a question."""
        parts = urlsplit(question.path)
        return self.told(parts.path, dict(parse_qsl(parts.query)))

    @abstractmethod
    def told(self, path: str, said: Said) -> Reply:
        """The answer to what is asked at a path."""

    @abstractmethod
    def is_list(self, question: str) -> bool:
        """Whether several traces are asked for."""


class JaegerAnswers(Answers):
    """Version 3 of Jaeger's interface."""

    def told(self, path: str, said: Said) -> Reply:
        """The answer to what is asked at a path."""
        if path == "/api/v3/services":
            return _json({"services": [self.traces.service]})
        if path in ("/api/v3/traces", "/api/v3/trace-summaries"):
            return self._found(path, said)
        if not path.startswith("/api/v3/traces/"):
            return Reply(404, b"404 page not found\n", TEXT)
        found = self.traces.find(path.rpartition("/")[2])
        return _no_v3(404, "trace not found") if found is None else self._whole([found])

    def is_list(self, question: str) -> bool:
        """Whether several traces are asked for."""
        return question.startswith(("/api/v3/traces?", "/api/v3/trace-summaries?"))

    def _found(self, path: str, said: Said) -> Reply:
        for name in ("query.startTimeMin", "query.startTimeMax"):
            if name not in said:
                return _no_v3(400, f"malformed parameter {name}: is required")
        since, until = (_nanos(said[f"query.startTime{end}"]) for end in ("Min", "Max"))
        is_other = said.get("query.serviceName", self.traces.service) != self.traces.service
        found = self.traces.between(since, until, int(said.get("query.searchDepth", "100")))
        if not found or is_other or "query.attributes" in said:
            return _no_v3(404, "No traces found")
        if path.endswith("/traces"):
            return self._whole(found)
        return _json({"summaries": [self._summary(one) for one in found]})

    def _whole(self, traces: list[GrowingTrace]) -> Reply:
        groups = [self.traces.resource_spans(one.otlp(str, 1)) for one in traces]
        return _json({"result": {"resourceSpans": groups}})

    def _summary(self, trace: GrowingTrace) -> dict[str, Any]:
        return {
            "traceId": trace.trace_id,
            "rootServiceName": self.traces.service if trace.is_whole else "",
            "rootOperationName": "work" if trace.is_whole else "",
            "minStartTimeUnixNano": str(trace.begun_at),
            "maxEndTimeUnixNano": str(trace.ended_at),
            "spanCount": trace.spans,
            "errorSpanCount": 0,
            "services": [{"name": self.traces.service}],
        }


class TempoAnswers(Answers):
    """Tempo's interface, version 2 of the trace call."""

    def told(self, path: str, said: Said) -> Reply:
        """The answer to what is asked at a path."""
        if path == "/api/search":
            return self._found(said)
        if path == "/api/v2/search/tag/resource.service.name/values":
            return _json({"tagValues": [{"type": "string", "value": self.traces.service}]})
        if not path.startswith("/api/v2/traces/"):
            return Reply(404, b"404 page not found\n", TEXT)
        found = self.traces.find(path.rpartition("/")[2])
        if found is None:
            return _json({"trace": {}, "metrics": {}})
        group = self.traces.resource_spans(found.otlp(base64_of, "SPAN_KIND_INTERNAL"))
        return _json({"trace": {"resourceSpans": [group]}, "metrics": {}})

    def is_list(self, question: str) -> bool:
        """Whether several traces are asked for: one is when it is only looked for."""
        return question.startswith("/api/search?") and "limit=1&" not in question

    def _found(self, said: Said) -> Reply:
        if not re.fullmatch(r"\{.*\}", said.get("q", "{}")):
            return Reply(400, b"invalid TraceQL query: parse error", TEXT)
        if "start" not in said or int(said["end"]) - int(said["start"]) > WEEK_S:
            return Reply(400, b"range specified by start and end exceeds 168h0m0s", TEXT)
        since, until = (int(said[name]) * 10**9 for name in ("start", "end"))
        found = self.traces.between(since, until, int(said.get("limit", "20")))
        wanted = said.get("q", "{}") in ("{}", f'{{ resource.service.name = "{self.traces.service}" }}')
        listed = [self._summary(one) for one in found] if wanted else []
        return _json({"traces": listed, "metrics": {"inspectedBytes": "1"}})

    def _summary(self, trace: GrowingTrace) -> dict[str, Any]:
        return {
            "traceID": trace.trace_id.lstrip("0"),
            "rootServiceName": self.traces.service if trace.is_whole else NO_ROOT,
            "rootTraceName": "work" if trace.is_whole else "",
            "startTimeUnixNano": str(trace.begun_at),
            "durationMs": (trace.ended_at - trace.begun_at) // 10**6,
            "serviceStats": {self.traces.service: {"spanCount": trace.spans}},
        }


def _json(document: object, status: int = 200) -> Reply:
    return Reply(status, json.dumps(document).encode())


def _no_v3(status: int, message: str) -> Reply:
    return _json({"error": {"httpCode": status, "message": message}}, status)


def base64_of(hexadecimal: str) -> str:
    """An id as JSON has bytes."""
    return base64.b64encode(bytes.fromhex(hexadecimal)).decode()


def _nanos(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() * 1e9
