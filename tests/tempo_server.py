"""A Tempo that answers with the captured traces, as the real one of which answers were captured does."""

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.trace_servers import TEXT, Answer, Document, Spans, as_json, attributes
from tests.tracing import CAPTURES

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
