"""A Jaeger that answers with the captured traces: version 3 and 1 of its interface, as strict as they are.

What they want and how they say no is from its documentation: required parameters, units of times, 404s.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime

from tests.trace_servers import TEXT, Answer, Document, Spans, as_json, attributes


def is_id(text: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{32}", text) is not None


class Jaeger:
    """Answers as Jaeger does. `versions` are those of its interface; `is_old` before 2.19.

    `wants_service` is what some of its storages do.
    """

    def __init__(
        self, spans: Spans, *, versions: tuple[str, ...] = ("v3", "v1"), is_old: bool = False
    ) -> None:
        self.spans = spans
        self.versions = versions
        self.is_old = is_old
        self.wants_service = False
        self.asked: list[str] = []

    def answer(self, path: str, said: Mapping[str, str]) -> Answer:
        self.asked.append(path)
        if path.startswith("/api/v3/") and "v3" in self.versions:
            return self._v3(path.removeprefix("/api/v3/"), said)
        if path.startswith("/api/") and not path.startswith("/api/v3/") and "v1" in self.versions:
            return self._v1(path.removeprefix("/api/"), said)
        return Answer(404, b"404 page not found\n", TEXT)

    def _v3(self, path: str, said: Mapping[str, str]) -> Answer:
        if path == "services":
            return as_json({"services": self.spans.services()})
        if path == "traces" or (path == "trace-summaries" and not self.is_old):
            return self._search_v3(path, said)
        trace_id = path.removeprefix("traces/")
        if is_id(trace_id) and trace_id in self.spans.ids:
            return as_json({"result": {"resourceSpans": self.spans.groups(trace_id)}})
        if is_id(trace_id):
            return as_json({"error": {"httpCode": 404, "message": "trace not found"}}, 404)
        return Answer(404, b"404 page not found\n", TEXT)

    def _search_v3(self, path: str, said: Mapping[str, str]) -> Answer:
        low, high = ("start_time_min", "start_time_max") if self.is_old else ("startTimeMin", "startTimeMax")
        for name in (low, high):
            if f"query.{name}" not in said:
                return _malformed_v3(f"malformed parameter query.{name}: is required")
        service = said.get("query.service_name" if self.is_old else "query.serviceName", "")
        if self.wants_service and not service:
            return _malformed_v3("service name is required")
        operation = said.get("query.operation_name" if self.is_old else "query.operationName", "")
        pairs = json.loads(said.get("query.attributes", "{}"))
        window = [datetime.fromisoformat(said[f"query.{name}"]).timestamp() * 1e9 for name in (low, high)]
        found = self._find(service, operation, pairs, window[0], window[1])
        found = found[: int(said.get("query.num_traces" if self.is_old else "query.searchDepth", "100"))]
        if not found:
            return as_json({"error": {"httpCode": 404, "message": "No traces found"}}, 404)
        if path == "trace-summaries":
            return as_json({"summaries": [self._summary(one) for one in found]})
        merged = [group for one in found for group in self.spans.groups(one)]
        return as_json({"result": {"resourceSpans": merged}})

    def _find(
        self, service: str, operation: str, pairs: Mapping[str, str], since: float, until: float
    ) -> list[str]:
        def wanted(span: Document, sent_by: Document) -> bool:
            held = {**sent_by, **attributes(span)}
            return (
                (not service or sent_by["service.name"] == service)
                and (not operation or span["name"] == operation)
                and all(held.get(key) == value for key, value in pairs.items())
                and since <= int(span["startTimeUnixNano"]) <= until
            )

        return self.spans.where(wanted)

    def _summary(self, trace_id: str) -> Document:
        spans = list(self.spans.spans(trace_id))
        root, sent_by = next(pair for pair in spans if not pair[0].get("parentSpanId"))
        return {
            "traceId": trace_id,
            "rootServiceName": sent_by["service.name"],
            "rootOperationName": root["name"],
            "minStartTimeUnixNano": str(min(int(span["startTimeUnixNano"]) for span, _ in spans)),
            "maxEndTimeUnixNano": str(max(int(span["endTimeUnixNano"]) for span, _ in spans)),
            "spanCount": len(spans),
            "errorSpanCount": sum(span.get("status", {}).get("code") == 2 for span, _ in spans),
            "services": [{"name": name} for name in sorted({one["service.name"] for _, one in spans})],
        }

    def _v1(self, path: str, said: Mapping[str, str]) -> Answer:
        if path == "services":
            return _v1_answer(self.spans.services())
        if path == "traces":
            return self._search_v1(said)
        trace_id = path.removeprefix("traces/")
        if trace_id in self.spans.ids:
            return _v1_answer([self.spans.jaeger(trace_id)])
        none: Document = {"data": None, "total": 0, "limit": 0, "offset": 0}
        return as_json({**none, "errors": [{"code": 404, "msg": "trace not found"}]}, 404, TEXT)

    def _search_v1(self, said: Mapping[str, str]) -> Answer:
        if "service" not in said:
            none: Document = {"data": None, "total": 0, "limit": 0, "offset": 0}
            error = {"code": 400, "msg": "parameter 'service' is required"}
            return as_json({**none, "errors": [error]}, 400, TEXT)
        since, until = (int(said[name]) * 1000 for name in ("start", "end"))
        pairs = json.loads(said.get("tags", "{}"))
        found = self._find(said["service"], said.get("operation", ""), pairs, since, until)
        return _v1_answer([self.spans.jaeger(one) for one in found[: int(said["limit"])]])


def _malformed_v3(message: str) -> Answer:
    return as_json({"error": {"httpCode": 400, "message": message}}, 400)


def _v1_answer(data: object) -> Answer:
    return as_json({"data": data, "total": 0, "limit": 0, "offset": 0, "errors": None})
