"""Scripts that SArchive kept in an index: by the id of the document, which is the job's, or by its fields.

The documents have their fields at the top; indices that were made by the mapping of SArchive may have them
under `jobinfo`. One id is one document, so a reused number has replaced the job before.
"""

from collections.abc import AsyncGenerator, Callable

from jobtui.backends.archive.source import Archive, best, missed
from jobtui.backends.base import Batch
from jobtui.backends.elastic.client import Document, ElasticClient
from jobtui.backends.elastic.source import ElasticEngine, Preset, either_of, equal
from jobtui.backends.engine import Doubts, page_of
from jobtui.formats.sarchive import parse_script
from jobtui.model.clock import Nanos
from jobtui.model.health import SourceUnreachable
from jobtui.model.journal import At, AtCursor, Start, Tail
from jobtui.model.scripts import Answer, ArchivedScript, Outcome, ScriptPeriod, Tried, Walked, Wanted
from jobtui.model.specs import ReadWindow, SourceSpec

PAGE = 100
MOST_HITS = 20
FORMS = {
    "": Preset("sarchive", "scripts", "timestamp", only_with="script"),
    "jobinfo.": Preset("jobinfo", "scripts", "@timestamp", only_with="jobinfo.script"),
}
"""The documents of each form, by the beginning of their field names."""


class ElasticArchive(Archive):
    kind = "elastic"

    def __init__(self, client: ElasticClient) -> None:
        super().__init__(client.name, held=client)
        self._client = client

    async def read(self, *, begins: bool) -> Batch:
        await self._client.search({"size": 0})
        return Batch()

    async def find(self, wanted: Wanted) -> Answer:
        found: list[ArchivedScript] = []
        missing = ""
        for beginning, form in FORMS.items():
            answer = await self._client.search(query_for(wanted, beginning, form.time))
            scripts = (self._script(hit.get("_source"), hit.get("_id")) for hit in answer.hits)
            found += filter(None, scripts)
            if (script := best(found, wanted)) is not None:
                return Answer(script, (Tried(self.name, Outcome.FOUND),))
            missing = missing or answer.missing
        if missing:
            raise SourceUnreachable(f"{self.name}: {missing}")
        return Answer(None, (missed(self.name, found, wanted),))

    async def walk(self, span: ScriptPeriod, progress: Callable[[str], None]) -> AsyncGenerator[Walked, None]:
        since, doubts = span.since or 0, Doubts()
        for form in FORMS.values():
            start: Start | None = Tail() if span.until is None else At(Nanos(span.until + 1))
            index = ElasticEngine(self._client, form, doubts)
            while start is not None:
                rows, cursor, at_edge = await page_of(index, start, (), PAGE, back=True)
                progress(self.name)
                for row in (row for row in reversed(rows) if row.at >= since):
                    identity = row.id.partition("/")[2]
                    script = self._script(row.body, identity)
                    where = f"{self.name}/_doc/{identity}: is not a script of a job"
                    yield Walked(script=script) if script else Walked(unreadable=where)
                is_end = at_edge or cursor is None or rows[0].at < since
                start = None if is_end or cursor is None else AtCursor(cursor)
        if doubts.words:
            yield Walked(unreadable=f"{self.name}: {doubts.words}")

    def _script(self, document: object, identity: object) -> ArchivedScript | None:
        return parse_script(document, f"{self.name}/_doc/{identity}")


def query_for(wanted: Wanted, beginning: str, time: str) -> Document:
    """The search for a job in documents of this form; without its server also for one of Torque."""
    field, number = f"{beginning}id", wanted.number + wanted.server
    numbered = equal(field, [number])
    if not wanted.server:
        numbered += [{"prefix": {name: f"{number}."}} for name in (field, f"{field}.keyword")]
    fits = [either_of(numbered)]
    if wanted.cluster:
        fits.append(either_of(equal(f"{beginning}cluster", [wanted.cluster])))
    query = either_of([{"ids": {"values": [number]}}, {"bool": {"filter": fits}}])
    # An index without the field would refuse the search without its type
    sort = [{time: {"order": "desc", "unmapped_type": "date"}}]
    return {"query": query, "sort": sort, "size": MOST_HITS}


def open_source(spec: SourceSpec, window: ReadWindow) -> ElasticArchive:
    return ElasticArchive(ElasticClient(spec.target, spec.access))
