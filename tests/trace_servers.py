"""Servers of traces on loopback that answer with the captured traces: what is common to Jaeger and Tempo."""

import json
from collections.abc import Callable, Iterator, Mapping
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

    def groups(self, trace_id: str) -> list[Document]:
        found = []
        for group in self._otlp[trace_id]["resourceSpans"]:
            scopes = [
                {**scope, "spans": [one for one in scope["spans"] if one["spanId"] not in self.hidden]}
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
