"""Scripts that SArchive kept in Elasticsearch: by the id of the document, which is the job's, else by search.

The documents have their fields at the top; indices that were made by the mapping of SArchive may have them
under `jobinfo`. One id is one document there, so that a number that came back has replaced the job before.
"""

from collections.abc import AsyncGenerator, Callable
from typing import NamedTuple

from jobtui.backends.archive.source import Archive, best, fits, missed
from jobtui.backends.base import Batch
from jobtui.backends.elastic.client import Document, ElasticClient
from jobtui.formats.sarchive import parse_script
from jobtui.model.clock import to_rfc3339
from jobtui.model.scripts import Answer, ArchivedScript, Outcome, ScriptPeriod, Tried, Walked, Wanted
from jobtui.model.specs import ReadWindow, SourceSpec

PAGE = 100
MOST_HITS = 20


class DocumentForm(NamedTuple):
    """How the fields of a document are called."""

    prefix: str
    time: str


FORMS = (DocumentForm("", "timestamp"), DocumentForm("jobinfo.", "@timestamp"))


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
        number = wanted.number + wanted.server
        document = await self._client.document(number)
        found = self._scripts([{"_id": number, "_source": document}]) if document is not None else []
        if not any(fits(script, wanted) for script in found):
            for form in FORMS:
                found += self._scripts((await self._client.search(query_for(wanted, form))).hits)
        if (script := best(found, wanted)) is not None:
            return Answer(script, (Tried(self.name, Outcome.FOUND),))
        return Answer(None, (missed(self.name, found, wanted),))

    async def walk(self, span: ScriptPeriod, progress: Callable[[str], None]) -> AsyncGenerator[Walked, None]:
        for form in FORMS:
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


def query_for(wanted: Wanted, form: DocumentForm) -> Document:
    """The search for a job in documents of this form; without its server also for one of Torque."""
    number, server = f"{form.prefix}id.keyword", wanted.server
    filters: list[Document] = [{"term": {number: wanted.number + server}}]
    if not server:
        either = [*filters, {"prefix": {number: f"{wanted.number}."}}]
        filters = [{"bool": {"should": either, "minimum_should_match": 1}}]
    if wanted.cluster:
        filters.append({"term": {f"{form.prefix}cluster.keyword": wanted.cluster}})
    return {"query": {"bool": {"filter": filters}}, "sort": _newest_first(form), "size": MOST_HITS}


def page_query(form: DocumentForm, span: ScriptPeriod, after: object) -> Document:
    bounds = {"gte": span.since, "lte": span.until}
    given = {word: to_rfc3339(at) for word, at in bounds.items() if at is not None}
    filters: list[Document] = [{"exists": {"field": f"{form.prefix}script"}}]
    filters += [{"range": {form.time: given}}] if given else []
    query: dict[str, object] = {"query": {"bool": {"filter": filters}}, "size": PAGE}
    number = {f"{form.prefix}id.keyword": {"order": "desc", "unmapped_type": "keyword"}}
    query["sort"] = [*_newest_first(form), number]
    return query if after is None else query | {"search_after": after}


def _newest_first(form: DocumentForm) -> list[Document]:
    # An index without the field would refuse the search without its type
    return [{form.time: {"order": "desc", "unmapped_type": "date"}}]


def open_source(spec: SourceSpec, window: ReadWindow) -> ElasticArchive:
    return ElasticArchive(ElasticClient(spec.target, spec.access))
