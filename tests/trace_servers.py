"""Servers of traces on loopback that answer with the captured traces, as strict as the real ones.

What a Jaeger wants, and how it says no, is from its documentation. Answers of a real Tempo were captured.
"""

import base64
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple, Protocol
from urllib.parse import SplitResult, parse_qsl, urlsplit

import httpx

from tests.loopback import response
from tests.tracing import CAPTURES, EXPECTED

Document = dict[str, Any]
JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
NAMES = ("jobsub-ok", "jobsub-fail-copy", "job-fail", "job-good", "cluster-4")
"""The captured traces that every server has."""
ID = {name: EXPECTED[name]["traceID"] for name in NAMES}


class Answer(NamedTuple):
    """What a server answers."""

    status: int
    body: bytes
    kind: str | None = JSON
    headers: Mapping[str, str] = {}


def as_json(document: object, status: int = 200, kind: str = JSON) -> Answer:
    return Answer(status, json.dumps(document).encode(), kind)


class Spans:
    def __init__(self) -> None:
        self.hidden: set[str] = set()
        self._otlp = {ID[name]: json.loads((CAPTURES / f"{name}.otlp.json").read_text()) for name in NAMES}
        self._jaeger = {
            ID[name]: json.loads((CAPTURES / f"{name}.jaeger.json").read_text())["data"][0] for name in NAMES
        }

    @property
    def ids(self) -> list[str]:
        """Every trace that has a span, the newest first as a storage may have it, or not: by id."""
        return sorted(one for one in self._otlp if list(self.spans(one)))

    def groups(self, trace_id: str, known: Collection[str] = ()) -> list[Document]:
        """The groups of a trace with their spans, but for those that are hidden or known."""
        found, left_out = [], self.hidden.union(known)
        for group in self._otlp[trace_id]["resourceSpans"]:
            scopes = [
                {**scope, "spans": [one for one in scope["spans"] if one["spanId"] not in left_out]}
                for scope in group["scopeSpans"]
            ]
            if any(scope["spans"] for scope in scopes):
                found.append({**group, "scopeSpans": scopes})
        return found

    def jaeger(self, trace_id: str) -> Document:
        trace = self._jaeger[trace_id]
        return {**trace, "spans": [one for one in trace["spans"] if one["spanID"] not in self.hidden]}

    def spans(self, trace_id: str) -> Iterator[tuple[Document, Document]]:
        for group in self.groups(trace_id):
            resource = attributes(group.get("resource", {}))
            for scope in group["scopeSpans"]:
                for span in scope["spans"]:
                    yield span, resource

    def services(self) -> list[str]:
        return sorted({sent_by["service.name"] for one in self.ids for _, sent_by in self.spans(one)})

    def where(self, wanted: Callable[[Document, Document], bool]) -> list[str]:
        return [one for one in self.ids if any(wanted(*pair) for pair in self.spans(one))]


def attributes(holder: Document) -> dict[str, str]:
    return {one["key"]: str(next(iter(one["value"].values()))) for one in holder.get("attributes", [])}


class Answers(Protocol):
    def answer(self, path: str, said: Mapping[str, str]) -> Answer: ...


class Site:
    """What is before a server: the path it is served at, a login, and answers that are none."""

    def __init__(self, server: Answers, base: str = "") -> None:
        self.server = server
        self.base = base
        self.login: str | None = None
        self.instead: Answer | None = None
        self.requests: list[tuple[str, Mapping[str, str]]] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        target = request.url.raw_path.decode()
        self.requests.append((target, request.headers))
        given = self._answer(urlsplit(target), request.headers)
        kind = {"Content-Type": given.kind} if given.kind else {}
        return response(given.status, given.body, {**kind, **given.headers})

    def _answer(self, parts: SplitResult, headers: Mapping[str, str]) -> Answer:
        if self.instead is not None:
            return self.instead
        if self.login is not None and headers.get("Authorization") != self.login:
            return Answer(401, b"Unauthorized\n", TEXT)
        if not parts.path.startswith(self.base + "/"):
            return Answer(404, b"<html><body>404 Not Found</body></html>", "text/html")
        return self.server.answer(parts.path.removeprefix(self.base), dict(parse_qsl(parts.query)))


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
        return _refused_v1(404, "trace not found")

    def _search_v1(self, said: Mapping[str, str]) -> Answer:
        if "service" not in said:
            return _refused_v1(400, "parameter 'service' is required")
        since, until = (int(said[name]) * 1000 for name in ("start", "end"))
        pairs = json.loads(said.get("tags", "{}"))
        found = self._find(said["service"], said.get("operation", ""), pairs, since, until)
        return _v1_answer([self.spans.jaeger(one) for one in found[: int(said["limit"])]])


def _malformed_v3(message: str) -> Answer:
    return as_json({"error": {"httpCode": 400, "message": message}}, 400)


def _v1_answer(data: object) -> Answer:
    return as_json({"data": data, "total": 0, "limit": 0, "offset": 0, "errors": None})


def _refused_v1(code: int, message: str) -> Answer:
    told = {"data": None, "total": 0, "limit": 0, "offset": 0, "errors": [{"code": code, "msg": message}]}
    return as_json(told, code, TEXT)


KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
STATUSES = ("UNSET", "OK", "ERROR")
WEEK_S = 168 * 3600


class Tempo:
    """Answers as Tempo does. An old one has no version 2 of the trace call."""

    def __init__(self, spans: Spans, *, is_old: bool = False) -> None:
        self.spans = spans
        self.is_old = is_old

    def answer(self, path: str, said: Mapping[str, str]) -> Answer:
        if path.startswith("/api/v2/traces/") and not self.is_old:
            return self._trace(path.rpartition("/")[2], is_v2=True)
        if path.startswith("/api/traces/"):
            return self._trace(path.rpartition("/")[2], is_v2=False)
        if path == "/api/search":
            return self._search(said)
        return Answer(404, b"404 page not found\n", TEXT)

    def _trace(self, trace_id: str, *, is_v2: bool) -> Answer:
        if not re.fullmatch(r"[0-9a-fA-F]+", trace_id):
            return Answer(400, (CAPTURES / "tempo" / "trace-badid.txt").read_bytes(), TEXT)
        groups = self.spans.groups(trace_id) if trace_id in self.spans.ids else []
        if is_v2:
            told = {"trace": {"resourceSpans": as_tempo(groups)} if groups else {}, "metrics": {}}
            return as_json(told)
        return as_json({"batches": as_tempo(groups)}) if groups else Answer(404, b"", None)

    def _search(self, said: Mapping[str, str]) -> Answer:
        wanted = _traceql(said.get("q", "{}"))
        if wanted is None:
            return Answer(400, (CAPTURES / "tempo" / "search-badquery.txt").read_bytes(), TEXT)
        if "start" in said and int(said["end"]) - int(said["start"]) > WEEK_S:
            return Answer(400, b"range specified by start and end exceeds 168h0m0s", TEXT)
        since, until = (int(said[name]) * 10**9 for name in ("start", "end"))
        found = self.spans.where(
            lambda span, sent_by: since <= int(span["startTimeUnixNano"]) <= until and wanted(span, sent_by)
        )
        asked = re.findall(r"(?:resource|span)\.([\w./-]+) ", said.get("q", ""))
        traces = [self._summary(one, asked) for one in found[: int(said.get("limit", "20"))]]
        return as_json({"traces": traces, "metrics": {"inspectedBytes": "1"}})

    def _summary(self, trace_id: str, asked: list[str]) -> Document:
        spans = list(self.spans.spans(trace_id))
        root, sent_by = next(pair for pair in spans if not pair[0].get("parentSpanId"))
        begin = min(int(span["startTimeUnixNano"]) for span, _ in spans)
        end = max(int(span["endTimeUnixNano"]) for span, _ in spans)
        held = [{**sent_by, **attributes(span)} for span, sent_by in spans]
        matched = [
            {"attributes": [{"key": key, "value": {"stringValue": one[key]}} for key in asked if key in one]}
            for one in held
            if any(key in one for key in asked)
        ]
        return {
            "spanSets": [{"spans": matched[:3], "matched": len(matched)}],
            "serviceStats": self._stats(spans),
            "traceID": trace_id.lstrip("0"),
            "rootServiceName": sent_by["service.name"],
            "rootTraceName": root["name"],
            "startTimeUnixNano": str(begin),
            "durationMs": (end - begin) // 10**6,
        }

    def _stats(self, spans: list[tuple[Document, Document]]) -> Document:
        """Counts by service; that of errors is left out where there is none."""
        stats: dict[str, dict[str, int]] = {}
        for span, sent_by in spans:
            one = stats.setdefault(sent_by["service.name"], {"spanCount": 0})
            one["spanCount"] += 1
            if span.get("status", {}).get("code") == 2:
                one["errorCount"] = one.get("errorCount", 0) + 1
        return stats


def as_tempo(value: Any) -> Any:
    if isinstance(value, list):
        return [as_tempo(one) for one in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for key, inner in value.items():
        if key in ("traceId", "spanId", "parentSpanId"):
            found[key] = base64.b64encode(bytes.fromhex(inner)).decode()
        elif key == "kind":
            found[key] = f"SPAN_KIND_{KINDS[inner]}"
        elif key == "code":
            found[key] = f"STATUS_CODE_{STATUSES[inner]}"
        else:
            found[key] = as_tempo(inner)
    return found


_TERM = re.compile(
    r'(resource|span)\.([\w./-]+) (?:= ("(?:[^"\\]|\\.)*"|-?\d+)|!= nil)|(name) = ("(?:[^"\\]|\\.)*")'
)


def _traceql(text: str) -> Callable[[Document, Document], bool] | None:
    """What a selection of TraceQL wants of a span, as far as is known here; None for one that is none."""
    inner = re.fullmatch(r"\{(.*)\}", text.strip(), re.DOTALL)
    if inner is None:
        return None
    terms: list[tuple[str, str, str]] = []

    def noted(found: re.Match[str]) -> str:
        value = found[3] or found[5] or "nil"
        is_text = value.startswith('"')
        terms.append((found[1] or found[4], found[2] or "", json.loads(value) if is_text else f"#{value}"))
        return f" T[{len(terms) - 1}] "

    logic = _TERM.sub(noted, inner[1]).replace("&&", " and ").replace("||", " or ").strip() or "True"
    if re.sub(r"T\[\d+\]|and|or|True|[() ]", "", logic):
        return None

    def wanted(span: Document, sent_by: Document) -> bool:
        def holds(scope: str, key: str, value: str) -> bool:
            held = {"resource": sent_by, "span": attributes(span)}.get(scope, {}).get(key)
            if value == "#nil":
                return held is not None
            return span["name"] == value if scope == "name" else held == value

        return bool(eval(logic, {"T": [holds(*term) for term in terms]}))

    return wanted
