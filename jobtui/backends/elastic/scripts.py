"""Scripts that SArchive kept in an index: by the id of the document, which is the job's, or by its fields.

The documents have their fields at the top; indices that were made by the mapping of SArchive may have them
under `jobinfo`. One id is one document, so a reused number has replaced the job before.
"""

from collections.abc import AsyncGenerator, Callable

from jobtui.backends.archive.source import Archive, best, missed
from jobtui.backends.base import Batch
from jobtui.backends.elastic.client import Document, ElasticClient
from jobtui.formats.sarchive import parse_script
from jobtui.model.clock import to_rfc3339
from jobtui.model.scripts import Answer, ArchivedScript, Outcome, ScriptPeriod, Tried, Walked, Wanted
from jobtui.model.specs import ReadWindow, SourceSpec

PAGE = 100
MOST_HITS = 20
FORMS = {"": "timestamp", "jobinfo.": "@timestamp"}
"""The beginning of field names in a document of each form, and the name of its time."""


class ElasticArchive(Archive):
    """One index, as a source of records and of scripts."""

    kind = "elastic"

    def __init__(self, client: ElasticClient) -> None:
        super().__init__(client.name, held=client)
        self._client = client

    async def read(self, *, begins: bool) -> Batch:
        await self._client.search({"size": 0})
        return Batch()

    async def find(self, wanted: Wanted) -> Answer:
        found: list[ArchivedScript] = []
        for form in FORMS.items():
            found += self._scripts((await self._client.search(query_for(wanted, form))).hits)
            if (script := best(found, wanted)) is not None:
                return Answer(script, (Tried(self.name, Outcome.FOUND),))
        return Answer(None, (missed(self.name, found, wanted),))

    async def walk(self, span: ScriptPeriod, progress: Callable[[str], None]) -> AsyncGenerator[Walked, None]:
        for form in FORMS.items():
            after: object = None
            while True:
                hits = (await self._client.search(page_query(form, span, after))).hits
                if hits:
                    progress(self.name)
                for hit in hits:
                    where = f"{self.name}/_doc/{hit.get('_id')}: is not a script of a job"
                    scripts = self._scripts([hit])
                    yield Walked(script=scripts[0]) if scripts else Walked(unreadable=where)
                after = hits[-1].get("sort") if hits else None
                if after is None or len(hits) < PAGE:
                    break

    def _scripts(self, hits: list[Document]) -> list[ArchivedScript]:
        read = (parse_script(hit.get("_source"), f"{self.name}/_doc/{hit.get('_id')}") for hit in hits)
        return [script for script in read if script is not None]


def query_for(wanted: Wanted, form: tuple[str, str]) -> Document:
    """The search for a job in documents of this form; without its server also for one of Torque."""
    field, number = f"{form[0]}id.keyword", wanted.number + wanted.server
    either: list[Document] = [{"term": {field: number}}]
    either += [] if wanted.server else [{"prefix": {field: f"{number}."}}]
    fits: Document = {"should": either, "minimum_should_match": 1}
    if wanted.cluster:
        fits = {**fits, "filter": [{"term": {f"{form[0]}cluster.keyword": wanted.cluster}}]}
    either = [{"ids": {"values": [number]}}, {"bool": fits}]
    query = {"bool": {"should": either, "minimum_should_match": 1}}
    return {"query": query, "sort": _newest_first(form), "size": MOST_HITS}


def page_query(form: tuple[str, str], span: ScriptPeriod, after: object) -> Document:
    bounds = {"gte": span.since, "lte": span.until}
    given = {word: to_rfc3339(at) for word, at in bounds.items() if at is not None}
    filters: list[Document] = [{"exists": {"field": f"{form[0]}script"}}]
    filters += [{"range": {form[1]: given}}] if given else []
    query: dict[str, object] = {"query": {"bool": {"filter": filters}}, "size": PAGE}
    number = {f"{form[0]}id.keyword": {"order": "desc", "unmapped_type": "keyword"}}
    query["sort"] = [*_newest_first(form), number]
    return query if after is None else query | {"search_after": after}


def _newest_first(form: tuple[str, str]) -> list[Document]:
    # An index without the field would refuse the search without its type
    return [{form[1]: {"order": "desc", "unmapped_type": "date"}}]


def open_source(spec: SourceSpec, window: ReadWindow) -> ElasticArchive:
    return ElasticArchive(ElasticClient(spec.target, spec.access))
