"""A strict stand-in for Elasticsearch over HTTP: what it does not know it refuses, as the real one does.

It knows `_doc`, and `_search` with the clauses `bool.filter`, `bool.should`, `term` and `prefix` on
`.keyword`, `exists` and `range`, and
`sort`, `size` and `search_after`. Sorting by a field without a mapping fails unless `unmapped_type` is given.
"""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.loopback import QuietHandler, on_loopback

INDEX = "sarchive"
LOGIN = ("reader", "pass-of-the-reader")


class Refusal(Exception):
    def __init__(self, status: int, kind: str) -> None:
        self.status = status
        self.kind = kind


class StrictElastic:
    """Documents by id. `busy` is how often it is too busy first; `sent` are the requests it got."""

    def __init__(self, documents: Mapping[str, Mapping[str, Any]], *, wants_login: bool = False) -> None:
        self.documents = dict(documents)
        self.wants_login = wants_login
        self.busy = 0
        self.sent: list[str] = []

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Any]:
        self.sent.append(f"{method} {path}")
        try:
            return 200, self._answer(method, path, headers, body)
        except Refusal as refusal:
            if refusal.kind == "missing document":
                return 404, {"_index": INDEX, "found": False}
            return refusal.status, {"error": {"type": refusal.kind, "reason": refusal.kind}}

    def _answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Any:
        if self.busy:
            self.busy -= 1
            raise Refusal(429, "circuit_breaking_exception")
        expected = "Basic " + b64encode(":".join(LOGIN).encode()).decode()
        if self.wants_login and headers.get("authorization") not in (expected, "ApiKey key-of-the-reader"):
            raise Refusal(401, "security_exception")
        index, _, rest = path.lstrip("/").partition("/")
        if index != INDEX:
            raise Refusal(404, "index_not_found_exception")
        if method == "GET" and rest.startswith("_doc/"):
            return self._document(rest.removeprefix("_doc/"))
        if method == "POST" and rest == "_search":
            if headers.get("content-type") != "application/json":
                raise Refusal(406, "content_type_exception")
            return self._search(json.loads(body))
        raise Refusal(405, "method_not_allowed")

    def _document(self, identity: str) -> Any:
        if identity not in self.documents:
            raise Refusal(404, "missing document")
        return {"_index": INDEX, "_id": identity, "found": True, "_source": self.documents[identity]}

    def _search(self, query: dict[str, Any]) -> Any:
        unknown = query.keys() - {"query", "sort", "size", "search_after"}
        if unknown:
            raise Refusal(400, "parsing_exception")
        filters = query.get("query", {"bool": {"filter": []}})["bool"]["filter"]
        found = [
            (i, d) for i, d in self.documents.items() if all(self._fits(d, clause) for clause in filters)
        ]
        keys = [self._key(sort) for sort in query.get("sort", [])]
        found.sort(key=lambda pair: [str(_field(pair[1], key)) for key in keys], reverse=True)
        hits = [{"_id": i, "_source": d, "sort": [str(_field(d, key)) for key in keys]} for i, d in found]
        if after := query.get("search_after"):
            hits = [hit for hit in hits if hit["sort"] < after]
        return {"hits": {"total": {"value": len(hits)}, "hits": hits[: query.get("size", 10)]}}

    def _key(self, sort: Mapping[str, Any]) -> str:
        ((name, order),) = sort.items()
        known = any(_field(document, name) is not None for document in self.documents.values())
        if not known and not (isinstance(order, dict) and "unmapped_type" in order):
            raise Refusal(400, "search_phase_execution_exception")
        return name

    def _fits(self, document: Mapping[str, Any], clause: Mapping[str, Any]) -> bool:
        ((kind, body),) = clause.items()
        if kind == "bool" and body.keys() == {"should", "minimum_should_match"}:
            fitting = sum(self._fits(document, one) for one in body["should"])
            return bool(fitting >= body["minimum_should_match"])
        if kind == "exists":
            return _field(document, body["field"]) is not None
        ((name, value),) = body.items()
        field = _field(document, name)
        if kind == "term":
            # a text without .keyword is kept as words, which no id equals as a whole
            return bool(name.endswith(".keyword") and field == value)
        if kind == "prefix":
            return bool(name.endswith(".keyword") and str(field or "").startswith(value))
        if kind == "range":
            text = str(field or "")
            return bool(text) and value.get("gte", "") <= text <= value.get("lte", "~")
        raise Refusal(400, "parsing_exception")


def _field(document: Mapping[str, Any], name: str) -> Any:
    value: Any = document
    for part in name.removesuffix(".keyword").split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


@contextmanager
def served(elastic: StrictElastic) -> Iterator[str]:
    class Handler(QuietHandler):
        def do_GET(self) -> None:
            self._reply(b"")

        def do_POST(self) -> None:
            self._reply(self.rfile.read(int(self.headers.get("content-length", 0))))

        def _reply(self, body: bytes) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, document = elastic.answer(self.command, self.path, headers, body)
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            if status == 429:
                self.send_header("retry-after", "0")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    with on_loopback(Handler) as address:
        yield f"{address}/{INDEX}"
