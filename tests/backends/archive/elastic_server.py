"""A strict stand-in for Elasticsearch and OpenSearch over HTTP: it refuses what it does not know, as they do.

It knows points in time, and of `_search` what is used, as Elasticsearch 7 to 9 and OpenSearch 1 to 3 do.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx

from tests.loopback import response

INDEX = "sarchive"
LOGIN = ("reader", "pass-of-the-reader")
MAX_RESULT_WINDOW = 10_000
TEXT_FIELD = (
    "Text fields are not optimised for operations that require per-document field data like aggregations "
    "and sorting, so these operations are disabled by default. Please use a keyword field instead. "
    "Alternatively, set fielddata=true on [{}] in order to load field data by uninverting the inverted index."
)
"""The whole sentence: what it says of fielddata comes after what is shown of an answer."""
WORD = re.compile(r"\w+")
"""About what the usual analyzer makes of a text."""
KEYS = {
    "query", "sort", "size", "search_after", "track_total_hits", "timeout", "pit", "aggs", "_source", "from",
}  # fmt: skip


class Refusal(Exception):
    """Status, kind, and the reason where it is not the kind."""


@dataclass
class StrictElastic:
    """Documents by id, or by `INDEX/ID`. `busy` is how often it is too busy first; `sent` are its requests.

    Texts are keywords where `keywords` says so, else words with a part `.keyword`, as without a template.
    `points` is how points in time are opened, if they are. `fault` answers instead, `told` is said too.
    """

    documents: dict[str, Any]
    wants_login: bool = False
    keywords: bool = False
    points: str = "_pit"
    index: str = INDEX
    busy: int = 0
    sent: list[str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    failed_shards: Sequence[Any] = ()
    hidden: frozenset[str] = frozenset()
    timed_out: bool = False
    told: Mapping[str, Any] = field(default_factory=dict)
    fault: Callable[[], httpx.Response] | None = None
    _points: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def base(self) -> str:
        return f"/{self.index}"

    def answer(self, request: httpx.Request) -> httpx.Response:
        if self.fault is not None:
            return self.fault()
        method, path = request.method, request.url.raw_path.decode()
        self.sent.append(f"{method} {path}")
        try:
            status, document = 200, self._answer(method, path, request.headers, request.content)
        except Refusal as refusal:
            status, kind, reason = (*refusal.args, refusal.args[1])[:3]
            cause = {"type": kind, "reason": reason}
            document = {"error": {"root_cause": [cause], **cause}, "status": status}
        data = json.dumps(document).encode()
        said = {"content-type": "application/json"} | ({"retry-after": "0"} if status == 429 else {})
        return response(status, data, said)

    def _answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Any:
        if self.busy:
            self.busy -= 1
            raise Refusal(429, "circuit_breaking_exception")
        expected = "Basic " + b64encode(":".join(LOGIN).encode()).decode()
        if self.wants_login and headers.get("authorization") not in (expected, "ApiKey key-of-the-reader"):
            raise Refusal(401, "security_exception")
        path, _, query = path.partition("?")
        if path == "/_search":
            return self._search(self._body(headers, body), of_point=True)
        index, _, rest = path.lstrip("/").partition("/")
        if index != self.index:
            raise Refusal(404, "index_not_found_exception")
        if method == "POST" and rest == self.points and query == "keep_alive=1m" and not body:
            point = f"point{len(self._points)}"
            self._points[point] = dict(self.documents)
            return {"id": point} if rest == "_pit" else {"pit_id": point, "creation_time": 1}
        if method == "POST" and rest == "_search" and not query:
            return self._search(self._body(headers, body), of_point=False)
        raise Refusal(405, "method_not_allowed")

    def _body(self, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
        if headers.get("content-type") != "application/json":
            raise Refusal(406, "content_type_exception")
        found: dict[str, Any] = json.loads(body)
        self.bodies.append(found)
        return found

    def _search(self, query: dict[str, Any], *, of_point: bool) -> Any:
        if query.keys() - KEYS or ("pit" in query) != of_point:
            raise Refusal(400, "parsing_exception")
        size = query.get("size", 10)
        if size + query.get("from", 0) > MAX_RESULT_WINDOW:
            raise Refusal(400, "illegal_argument_exception", "Result window is too large")
        documents = self.documents
        if of_point:
            assert query["pit"].keys() == {"id", "keep_alive"}
            if query["pit"]["id"] not in self._points:
                raise Refusal(404, "search_context_missing_exception")
            documents = self._points.pop(query["pit"]["id"])
            self._points[renewed := f"{query['pit']['id']}."] = documents
        clause = query.get("query", {"bool": {"filter": []}})
        found = [(i, d) for i, d in documents.items() if i not in self.hidden and self._fits(i, d, clause)]
        hits = self._sorted(query, found, has_tie=of_point and self.points == "_pit")
        failed = self.failed_shards
        shards: dict[str, Any] = {"total": 5, "successful": 5 - len(failed), "failed": len(failed)}
        shards |= {"failures": list(failed)} if failed else {}
        answer = {
            "timed_out": self.timed_out, "_shards": shards,
            "hits": {"total": {"value": len(hits)}, "hits": hits[:size]},
        }  # fmt: skip
        answer |= {"pit_id": renewed, **self.told} if of_point else self.told
        if "aggs" in query:
            answer["aggregations"] = {n: self._group(agg, found) for n, agg in query["aggs"].items()}
        return answer

    def _sorted(self, query: dict[str, Any], found: list[tuple[str, Any]], *, has_tie: bool) -> list[Any]:
        keys = [self._key(sort) for sort in query.get("sort", [])]
        is_back = any("desc" in str(sort) for sort in query.get("sort", []))
        hits: list[dict[str, Any]] = []
        numbers = {i: number for number, i in enumerate(self.documents)}
        for i, d in found:
            order = [*(_sort_value(_field(d, key)) for key in keys), *([numbers[i]] if has_tie else [])]
            index, _, own = i.rpartition("/")
            hits.append({"_index": index or self.index, "_id": own, "_source": d, "sort": order})
        hits.sort(key=lambda hit: hit["sort"], reverse=is_back)
        if after := query.get("search_after"):
            hits = [hit for hit in hits if (hit["sort"] < after if is_back else hit["sort"] > after)]
        return hits

    def _group(self, agg: Mapping[str, Any], found: list[tuple[str, Mapping[str, Any]]]) -> Any:
        ((kind, body),) = agg.items()
        if kind != "terms" or body.keys() - {"field", "size"}:
            raise Refusal(400, "parsing_exception")
        values = [_field(document, body["field"]) for _, document in found]
        texts = [value for value in values if isinstance(value, str)]
        if not self.keywords and texts and not body["field"].endswith(".keyword"):
            raise Refusal(400, "illegal_argument_exception", TEXT_FIELD.format(body["field"]))
        if self.keywords and body["field"].endswith(".keyword"):
            texts = []
        counts = {text: texts.count(text) for text in dict.fromkeys(texts)}
        return {"buckets": [{"key": key, "doc_count": n} for key, n in counts.items()][: body["size"]]}

    def _key(self, sort: Mapping[str, Any]) -> str:
        ((name, order),) = sort.items()
        known = any(_field(document, name) is not None for document in self.documents.values())
        if not known and not (isinstance(order, dict) and "unmapped_type" in order):
            raise Refusal(400, "search_phase_execution_exception")
        return name

    def _fits(self, identity: str, document: Mapping[str, Any], clause: Mapping[str, Any]) -> bool:
        ((kind, body),) = clause.items()
        if kind == "bool":
            if body.keys() - {"filter", "must_not", "should", "minimum_should_match"}:
                raise Refusal(400, "parsing_exception")
            should = [self._fits(identity, document, one) for one in body.get("should", [])]
            return (
                all(self._fits(identity, document, one) for one in body.get("filter", []))
                and not any(self._fits(identity, document, one) for one in body.get("must_not", []))
                and sum(should) >= body.get("minimum_should_match", 0)
            )
        index, _, own = identity.rpartition("/")
        if "_index" in body:
            return bool(body["_index"] == (index or self.index))
        if kind in ("match_none", "ids", "exists"):
            return own in body.get("values", ()) or _field(document, body.get("field", "")) is not None
        ((name, value),) = body.items()
        field = _field(document, name)
        if kind == "match" and value.keys() == {"query", "operator"}:
            has, words = (WORD.findall(str(one).lower()) for one in (field, value["query"]))
            return {"and": all, "or": any}[value["operator"]](word in has for word in words)
        if kind in ("term", "terms"):
            wanted = value if kind == "terms" else [value]
            # a text without .keyword is kept as words, which no id equals as a whole
            is_whole = not isinstance(field, str) or name.endswith(".keyword") != self.keywords
            return bool(is_whole and field is not None and str(field) in map(str, wanted))
        if kind == "prefix":
            return bool(name.endswith(".keyword") and str(field or "").startswith(value))
        if kind == "range":
            if value.keys() - {"gte", "lte", "gt", "lt", "format"}:
                raise Refusal(400, "parsing_exception")
            at = _sort_value(field)
            low, high = _sort_value(value.get("gte", 0)), _sort_value(value.get("lte", "9999-01-01"))
            return field is not None and low <= at <= high
        raise Refusal(400, "parsing_exception")


def _sort_value(value: Any) -> Any:
    if isinstance(value, str):
        try:
            at = datetime.fromisoformat(value[:26].rstrip("Z") + "+00:00").astimezone(UTC)
        except ValueError:
            return value
        return int(at.timestamp() * 1000)
    return value * 1000 if isinstance(value, int) and value < 10**11 else value or 0


def _field(document: Mapping[str, Any], name: str) -> Any:
    name = name.removesuffix(".keyword")
    if name in document:
        return document[name]
    value: Any = document
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
