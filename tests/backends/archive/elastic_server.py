"""A strict stand-in for Elasticsearch and OpenSearch over HTTP: it refuses what it does not know, as they do.

It knows points in time, and of `_search` what is used, as Elasticsearch 7 to 9 and OpenSearch 1 to 3 do.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product
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
WORD = re.compile(r"\w+(?:(?<=[^\W\d])[.:'](?=[^\W\d])\w+|(?<=\d)[.,;'](?=\d)\w+)*")
"""About what the usual analyzer makes of a text: a dot or colon between letters does not end a word."""
WHY_UNFIT = {"keyword": "[numeric_type] option cannot be set on a non-numeric field, got keyword",
         "long": 'failed to create query: For input string: "2026-11-20T10:00:00.000000000Z"'}  # fmt: skip
SORTED_BY = {"order", "unmapped_type", "missing", "numeric_type"}
MILLISECOND = 10**6
KEYS = {"query", "sort", "size", "search_after", "track_total_hits", "timeout", "pit", "aggs"}


class Refusal(Exception):
    """Status, kind, and the reason where it is not the kind."""


@dataclass
class StrictElastic:
    """Documents by id, or by `INDEX/ID`. `busy` is how often it is too busy first; `sent` are its requests.

    Texts are keywords where `keywords` says so, else words with a part `.keyword`, as without a template.
    `mapped` says of an index what its times are where they are not dates, or that its texts are words.
    `casts` is whether it knows `numeric_type`, as since 7.2. `points` is how points in time are opened, if
    they are. `fault` answers instead, `told` is said too.
    """

    documents: dict[str, Any]
    wants_login: bool = False
    keywords: bool = False
    mapped: Mapping[str, str] = field(default_factory=dict)
    casts: bool = True
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
        if (size := query.get("size", 10)) > MAX_RESULT_WINDOW:
            raise Refusal(400, "illegal_argument_exception", "Result window is too large")
        documents = self.documents
        if of_point:
            assert query["pit"].keys() == {"id", "keep_alive"}
            if query["pit"]["id"] not in self._points:
                raise Refusal(404, "search_context_missing_exception")
            documents = self._points.pop(query["pit"]["id"])
            self._points[renewed := f"{query['pit']['id']}."] = documents
        clause = query.get("query", {"bool": {"filter": []}})
        unfit = self._unfit(query, documents)
        seen = {i: d for i, d in documents.items() if i not in self.hidden and self._index_of(i) not in unfit}
        found = [(i, d) for i, d in seen.items() if self._fits(i, d, clause)]
        hits = self._sorted(query, found, has_tie=of_point and self.points == "_pit")
        failed = [*self.failed_shards, *({"shard": 0, "reason": {"reason": why}} for why in unfit.values())]
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

    def _index_of(self, identity: str) -> str:
        return identity.rpartition("/")[0] or self.index

    def _has_words(self, index: str) -> bool:
        return not self.keywords or self.mapped.get(index) == "words"

    def _unfit(self, query: dict[str, Any], documents: Mapping[str, Any]) -> dict[str, str]:
        """The indices that cannot answer, with the reasons. Raises Refusal if none can."""
        indices = {self._index_of(i) for i in documents}
        mapped = {index: WHY_UNFIT.get(self.mapped.get(index, "")) for index in indices if "sort" in query}
        whys = {index: why for index, why in mapped.items() if why}
        names = [one["terms"]["field"] for one in query.get("aggs", {}).values()]
        for name, (i, d) in product(names, documents.items()):
            is_text = isinstance(_field(d, name), str) and self._has_words(self._index_of(i))
            if is_text and not name.endswith(".keyword"):
                whys[self._index_of(i)] = TEXT_FIELD.format(name)
        if whys and whys.keys() == indices:
            raise Refusal(400, "illegal_argument_exception", min(whys.values()))
        return whys

    def _sorted(self, query: dict[str, Any], found: list[tuple[str, Any]], *, has_tie: bool) -> list[Any]:
        sorts = [self._key(sort) for sort in query.get("sort", [])]
        is_back = any("desc" in str(sort) for sort in query.get("sort", []))
        hits: list[dict[str, Any]] = []
        numbers = {i: number for number, i in enumerate(self.documents)}
        for i, d in found:
            order = [self._value(i, _field(d, name), **one) for name, one in sorts]
            index, own = self._index_of(i), i.rpartition("/")[2]
            hits.append(
                {"_index": index, "_id": own, "_source": d, "sort": [*order, numbers[i]][: 1 + has_tie]}
            )
        hits.sort(key=lambda hit: hit["sort"], reverse=is_back)
        if after := query.get("search_after"):
            hits = [hit for hit in hits if (hit["sort"] < after if is_back else hit["sort"] > after)]
        return hits

    def _value(self, identity: str, value: Any, numeric_type: str = "", **_: str) -> Any:
        """A time to sort by in the unit of its index, or as is asked for in nanoseconds."""
        at, unit = _nanos(value) or 0, self._unit(identity)
        if numeric_type and not 0 <= at < 2**63:
            raise Refusal(400, "illegal_argument_exception", "cannot be stored in nanosecond resolution")
        return at // unit * unit if numeric_type else at // unit

    def _unit(self, identity: str) -> int:
        return 1 if self.mapped.get(self._index_of(identity)) == "date_nanos" else MILLISECOND

    def _group(self, agg: Mapping[str, Any], found: list[tuple[str, Mapping[str, Any]]]) -> Any:
        ((kind, body),) = agg.items()
        if kind != "terms" or body.keys() - {"field", "size"}:
            raise Refusal(400, "parsing_exception")
        is_part = body["field"].endswith(".keyword")
        kept = [document for i, document in found if self._has_words(self._index_of(i)) == is_part]
        texts = [value for one in kept if isinstance(value := _field(one, body["field"]), str)]
        counts = {text: texts.count(text) for text in dict.fromkeys(texts)}
        return {"buckets": [{"key": key, "doc_count": n} for key, n in counts.items()][: body["size"]]}

    def _key(self, sort: Mapping[str, Any]) -> tuple[str, Any]:
        ((name, order),) = sort.items()
        if other := order.keys() - (SORTED_BY if self.casts else SORTED_BY - {"numeric_type"}):
            raise Refusal(
                400, "x_content_parse_exception", f"[1:9] [field_sort] unknown field [{min(other)}]"
            )
        known = any(_field(document, name) is not None for document in self.documents.values())
        if not known and "unmapped_type" not in order:
            raise Refusal(400, "search_phase_execution_exception")
        return name, order

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
        return self._fits_field(identity, document, kind, body)

    def _fits_field(self, identity: str, document: Mapping[str, Any], kind: str, body: Any) -> bool:
        index, own = self._index_of(identity), identity.rpartition("/")[2]
        if kind in ("match_none", "ids"):
            return own in body.get("values", ())
        ((name, value),) = body.items()
        name = str(value) if kind == "exists" else name
        field = index if name == "_index" else _field(document, name)
        is_words = isinstance(field, str) and name != "_index" and self._has_words(index)
        is_part = name.endswith(".keyword")
        is_whole = field is not None and is_part == is_words
        words = WORD.findall(str(field).lower())
        if kind == "exists":
            return is_whole or is_words
        if kind == "match" and value.keys() == {"query", "operator"}:
            wanted = WORD.findall(value["query"].lower())
            return {"and": all, "or": any}[value["operator"]](word in words for word in wanted)
        if kind in ("term", "terms"):  # of a text each word counts
            given = {str(one) for one in (value if kind == "terms" else [value])}
            return str(field) in given if is_whole else is_words and not given.isdisjoint(words)
        if kind == "prefix":
            return is_whole and str(field).startswith(value)
        if kind != "range" or value.keys() - {"gte", "lte", "gt", "lt", "format"}:
            raise Refusal(400, "parsing_exception")
        at, unit = _nanos(field), self._unit(identity)
        low, high = (_nanos(value.get(*one)) or 0 for one in (("gte", 0), ("lte", "9999-01-01")))
        return at is not None and low // unit <= at // unit <= high // unit


def _nanos(value: Any) -> int | None:
    """The time of a value, None if it is none: a text, or a number of seconds or milliseconds."""
    if isinstance(value, int):
        return value * (10**9 if value < 10**11 else MILLISECOND)
    with suppress(ValueError, AttributeError):
        date, _, fraction = value.rstrip("Z").partition(".")
        seconds = datetime.fromisoformat(date + "+00:00").timestamp()
        return int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9])
    return None


def _field(document: Mapping[str, Any], name: str) -> Any:
    name = name.removesuffix(".keyword")
    if name in document:
        return document[name]
    value: Any = document
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
