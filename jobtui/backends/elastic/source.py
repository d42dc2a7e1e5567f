"""An index of Elasticsearch or OpenSearch as a source: its logs as a journal, or its records of jobs."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from jobtui.backends import engine
from jobtui.backends.base import Batch, PolledSource, Source, skipping
from jobtui.backends.elastic import records
from jobtui.backends.elastic.client import ElasticClient, SearchAnswer, TextFieldError
from jobtui.backends.journal.source import Journal, wanted_of
from jobtui.formats.json_values import as_dict, as_list
from jobtui.model.clock import SECOND, Clock, Nanos, SystemClock, to_rfc3339
from jobtui.model.health import SourceError, SourceUnreachable, rows_of
from jobtui.model.ids import JobId, named
from jobtui.model.jobs import JobDetail
from jobtui.model.journal import At
from jobtui.model.slurm import SYSTEM
from jobtui.model.specs import ReadWindow, SourceSpec
from jobtui.transport.unpacking import TooLarge

WINDOW_S = 24 * 3600
"""How far back records of jobs are read when nothing else is said."""
LEAST_ROWS = 8


class ElasticEngine:
    """One index, read as a preset says. `since` bounds the search for values."""

    clock: Clock = SystemClock()

    def __init__(
        self, client: ElasticClient, preset: records.Preset, doubts: engine.Doubts, since: Nanos | None = None
    ) -> None:
        self.name = client.name
        self.doubts = doubts
        self._client = client
        self._preset = preset
        self.since = since
        self._keywords: set[str] = set()

    async def rows(self, asked: engine.RowQuery) -> engine.Rows:
        asked, found = await self._searched(asked)
        if found.missing:
            self.doubts.add(found.missing)
        rows = list(rows_of(found.hits, records.row_of, lambda _, why: self.doubts.add(why), ValueError))
        is_all = len(found.hits) < asked.most
        walk = asked.walk
        if walk is not None and found.missing:
            walk.point, walk.after = "", None  # what is missing is asked for again
        elif walk is not None and not is_all:
            order = as_list(found.hits[-1].get("sort"))
            point = found.point or walk.point or await self._client.open_point()
            walk.after = order if walk.point and len(order) > 1 else None  # else it may be one of several
            walk.point = point
        return engine.Rows(rows, is_all, bool(found.missing))

    async def _searched(self, asked: engine.RowQuery) -> tuple[engine.RowQuery, SearchAnswer]:
        """The answer, to a smaller question where it would be too large, and that question."""
        try:
            return asked, await self._client.search(records.search_of(asked, self._preset))
        except SourceError as error:
            if isinstance(error.__cause__, TooLarge) and asked.most > LEAST_ROWS:
                asked = asked._replace(most=max(LEAST_ROWS, asked.most // 8))
            elif asked.walk is None or not asked.walk.point or isinstance(error, SourceUnreachable):
                raise
            else:
                asked.walk.point, asked.walk.after = "", None  # it has lapsed
        return await self._searched(asked)

    async def values(self, field: str) -> tuple[str, ...]:
        if field not in self._preset.fields:
            return ()
        search = partial(records.values_search, field, self._preset, self.since)
        try:
            found = await self._client.search(search(keyword=field in self._keywords))
        except TextFieldError:
            self._keywords.add(field)
            found = await self._client.search(search(keyword=True))
        if found.missing:
            self.doubts.add(found.missing)
        buckets = (one for group in found.groups.values() for one in as_list(as_dict(group).get("buckets")))
        keys = (as_dict(one).get("key") for one in buckets)
        values = tuple(dict.fromkeys(key for key in keys if isinstance(key, str)))
        is_known = bool(values) or not found.total
        if names := self.doubts.note_values(field, is_known=is_known, names=self._preset.fields):
            self.doubts.add(f"no document has {names}; is {self._preset.name} the right preset?")
        return values

    def fields(self, row: engine.EngineRow) -> Mapping[str, str]:
        return records.fields_of(row.body, self._preset)

    async def aclose(self) -> None:
        await self._client.aclose()


def open_source(spec: SourceSpec, window: ReadWindow) -> "Journal | ElasticJobs":
    """The records of jobs in an index, or its logs as a journal, from two hours ago without a time."""
    kind, preset, doubts = spec.setting, records.presets()[spec.options], engine.Doubts()

    def make_engine(since: Nanos | None) -> ElasticEngine:
        client = ElasticClient(spec.target, spec.access, variable=spec.setting.upper())
        return ElasticEngine(client, preset, doubts, since)

    if preset.gives == "jobs":
        return ElasticJobs(make_engine(None), preset, window.since, kind, spec.label)
    since, wanted = Nanos(0) if window.whole else window.since, wanted_of(spec)
    make_reader = partial(engine.EngineJournal, partial(make_engine, since or None), window.most)
    return Journal(spec.target, make_reader, wanted=wanted, since=since, kind=kind, site=spec.profile)


class ElasticJobs(PolledSource):
    """The records of jobs in an index, from `since` on. `label` tells it from other clusters' indexes."""

    def __init__(
        self, index: ElasticEngine, preset: records.Preset, since: Nanos | None, kind: str, label: str = ""
    ) -> None:
        super().__init__(index.name, index)
        self._engine = index
        self.kind = kind
        self._preset = preset
        self._since = since
        self._following: engine.EngineFollowing | None = None
        self._label = label
        self.others: Callable[[], Iterable[Source]] = tuple
        self._reader: records.DocumentReader | None = None

    async def _begun(self) -> records.DocumentReader:
        """A reader that knows which clusters have jobs of this time in the index."""
        if self._since is None:
            self._since = Nanos(max(0, self.clock.now() - WINDOW_S * SECOND))
        self._engine.since = self._since
        clusters = await self._engine.values("Cluster")
        home = await self._home() if clusters else ""
        return records.DocumentReader(self.name, self._preset, self._label, clusters, home)

    async def _home(self) -> str:
        """What the cluster beside this index calls itself, "" where none is asked or it does not say.

        Raises SourceError while it does not answer: its jobs would get names that are not theirs.
        """
        from jobtui.backends.slurm.source import Slurm  # few have both

        for one in self.others():
            if isinstance(one, Slurm) and one.system == named(SYSTEM, self._label):
                try:
                    return await one.cluster_name()
                except SourceError as error:
                    why = f"which of its clusters is {one.name} is not known yet: {error}"
                    raise SourceError(f"{self.name}: {why}") from error
        return ""

    async def read(self, *, begins: bool) -> Batch:
        if self._reader is None or self._following is None or begins:
            self._reader = await self._begun()
            self._following = engine.EngineFollowing(self._engine, At(self._since or Nanos(0)))
        rows, at_edge = await self._following.rows(engine.PAGE_ROWS)
        found = self._reader.read(rows)
        begin = Nanos((self._since or 0) // SECOND * SECOND)
        began = f"read from {to_rfc3339(begin)} on; what is before was not read" if begin else ""
        batch = Batch(
            jobs=tuple({job.id: job for job in found.jobs}.values()),
            condor=tuple(found.facts),
            count=len(rows),
            more=not at_edge,
            note="; ".join(filter(None, (began, self._engine.doubts.words))) or None,
            begins_at=self._since or None,
        )
        return skipping(batch, found.skips)

    async def detail(self, job_id: JobId) -> JobDetail | None:
        """The whole record of a Slurm job, looked for by its number, whenever it ended."""
        if self._preset.reads != SYSTEM:
            return None
        reader = self._reader or await self._begun()
        wanted = engine.RowQuery(None, None, reader.asked_for(job_id), 1, back=True)
        rows = (await self._engine.rows(wanted)).rows if wanted.matches else []
        if not rows:
            return None
        jobs, document = reader.read(rows).jobs, rows[0].body
        outputs = tuple(filter(None, (records.text_at(document, (name,)) for name in ("std_out", "std_err"))))
        directory = records.text_at(document, ("work_dir",)) or None
        return JobDetail(job=jobs[0], native=document, directory=directory, outputs=outputs) if jobs else None
