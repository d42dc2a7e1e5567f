"""Asks one index of Elasticsearch (7 to 9) or OpenSearch (1 to 3), with what they all have in common.

It only asks `_search`, and opens a point in time if the server has them; no request changes anything. A point
in time is not closed but expires, as closing is another kind of request.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple

from jobtui.backends.engine import document_of
from jobtui.formats.json_values import as_dict, as_list, as_text, opened, whole
from jobtui.model.health import SourceError, SourceMissing, SourceUnreachable
from jobtui.model.numbers import whole_of
from jobtui.model.specs import NO_ACCESS, Access
from jobtui.model.tables import tables_of
from jobtui.transport import http
from jobtui.transport.http import HttpClient, HttpLimits, ServerKind

LIMITS = HttpLimits(connections=2, pauses_s=(0.5, 1.0, 2.0, 4.0))
POINT_KEPT = "1m"
POINTS = ("_pit", "_search/point_in_time")
"""Where a point in time is opened: Elasticsearch since 7.10, OpenSearch since 2.4."""
NOT_OFFERED = (200, 400, 403, 404, 405, 429)
"""Answers after which reading goes on without a point in time; 429 says that there are too many."""
REASON_CHARACTERS = 120

Document = Mapping[str, object]


class TextFieldError(SourceUnreachable):
    """A text field was asked for its values: only its part `.keyword` may have them."""


def _known_refusal(answer: http.Response) -> tuple[type[SourceError], str] | None:
    if answer.status == 404 and b"index_not_found_exception" in answer.body:
        return SourceMissing, "no such index (404); check the last part of the address"
    if answer.status == 400 and b"fielddata" in answer.body:
        return TextFieldError, "a field of the preset is indexed as text only; map it as a keyword"
    return None


class SearchAnswer(NamedTuple):
    """The result of a search. A hit that cannot be read is `{}`; `missing` says what was left out."""

    hits: list[Document]
    missing: str
    total: int
    groups: Document
    point: str


class ElasticClient(HttpClient):
    """Asks the index that an address names. Searches are sent by POST, as these servers document them."""

    def __init__(self, url: str, access: Access = NO_ACCESS, variable: str = "ELASTIC") -> None:
        name = url.rstrip("/")
        root, _, self._index = name.partition("?")[0].rpartition("/")
        kind = ServerKind(**tables_of("jobtui.backends.elastic", "server"), explain=_known_refusal)
        kind = kind._replace(login=kind.login.format(variable=variable))
        super().__init__(root, kind, name=name, access=access, limits=LIMITS)
        self._points: tuple[str, ...] = POINTS

    async def search(self, query: Document) -> SearchAnswer:
        """The result of a search of the index, or of the point in time that it names. Raises SourceError."""
        path = "/_search" if "pit" in query else f"/{self._index}/_search"
        headers = {"Content-Type": "application/json"}
        answer = await self.ask(path, method="POST", content=json.dumps(query).encode(), headers=headers)
        document = await document_of(answer.body)
        found = as_dict(document.get("hits"))
        hits = opened(found.get("hits"))
        if not isinstance(hits, list):
            raise self.refusal(answer)
        groups = as_dict(whole(document.get("aggregations")))
        total = whole_of(as_dict(found.get("total")).get("value")) or 0
        point = as_text(document.get("pit_id"))
        whole_hits: list[Document] = [as_dict(whole(hit)) for hit in hits]
        return SearchAnswer(whole_hits, self._missing(document), total, groups, point)

    async def open_point(self) -> str:
        """A point in time of the index, "" where the server offers none. Raises SourceError."""
        for path in self._points:
            asked = f"/{self._index}/{path}"
            answer = await self.ask(asked, (("keep_alive", POINT_KEPT),), method="POST", fine=NOT_OFFERED)
            document = await document_of(answer.body)
            if answer.status == 200 and (point := as_text(document.get("id") or document.get("pit_id"))):
                self._points = (path,)
                return point
        self._points = ()
        return ""

    def _missing(self, document: Document) -> str:
        """What an answer left out: shards that failed, or the rest of a search that timed out."""
        shards = as_dict(document.get("_shards"))
        failed, total = whole_of(shards.get("failed")) or 0, whole_of(shards.get("total")) or 0
        if failed:
            first = as_dict((as_list(shards.get("failures")) or [{}])[0])
            why = as_text(as_dict(first.get("reason")).get("reason")) or "no reason is given"
            shown = self.in_words(why.encode())[:REASON_CHARACTERS]
            return f"{failed} of {total} shards failed ({shown}): hits are missing"
        if shards.get("total") == 0:
            return "no index matches this name, or the login may read none: nothing was read"
        others = map(as_dict(document.get("_clusters")).get, ("skipped", "partial", "failed"))
        if left := sum(whole_of(one) or 0 for one in others):
            return f"{left} of its clusters did not answer, or answered in part: hits are missing"
        if document.get("timed_out") is True:
            return "the search timed out on the server: hits are missing"
        return ""
