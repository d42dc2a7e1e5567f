"""Records of jobs in an index, written there by shippers of Slurm and HTCondor, as jobs and facts."""

import asyncio
from collections.abc import Callable, Iterable
from itertools import chain
from zlib import crc32

import msgspec

from jobtui.backends import engine
from jobtui.backends.base import WINDOW_S, Batch, PolledSource, Source, skipping
from jobtui.backends.elastic.source import ElasticEngine, Preset, engine_of, fields_of, presets, text_at
from jobtui.backends.slurm.records import job_of
from jobtui.formats.condor_events import EventReader, Form, form_of
from jobtui.formats.slurm import accounted_job
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.health import Skip, rows_of
from jobtui.model.ids import JobId, named
from jobtui.model.jobs import SLURM, Job, JobDetail
from jobtui.model.journal import At, Matches
from jobtui.model.logs import CondorFact
from jobtui.model.numbers import whole, whole_of
from jobtui.model.specs import ReadWindow, SourceSpec

ANSWER_S = 1.0
"""How long a poll waits for the name of the cluster configured with an index; it may come later."""
UNKNOWN = "?"
"""No cluster has this name; it is used while the cluster configured with an index does not answer."""
EVENT_END = "\n..."
OF_PARTS = {"_": ("ArrayJobID", "ArrayTaskID"), "+": ("HetJobID", "HetJobOffset")}
"""The fields that name a task of an array, as `22_1`, and a part of a heterogeneous job, as `22+1`."""


class DocumentReader:
    """Makes jobs of rows, in their order, as a preset says.

    `label` distinguishes the index, `clusters` are those in it, `home` is the one that is also asked itself.
    Any other of several has numbers of its own.
    """

    def __init__(
        self, source: str, preset: Preset, label: str = "", clusters: Iterable[str] = (), home: str = ""
    ) -> None:
        self._source = source
        self._preset = preset
        self._label = label
        self._clusters = frozenset(clusters)
        self._home = home.lower()
        self._events: dict[str, EventReader] = {}

    def _system_of(self, cluster: str) -> str:
        is_home = cluster.lower() == self._home if self._home else not self._clusters - {cluster}
        own = "" if is_home else cluster
        return named(SLURM, ".".join(filter(None, (self._label, own))))

    @property
    def systems(self) -> frozenset[str]:
        return frozenset(map(self._system_of, self._clusters))

    def asked_for(self, job_id: JobId) -> Matches:
        """The matches for the record of a Slurm job; none for any other id."""
        system, _, number = job_id.partition("/")
        sign = next((one for one in OF_PARTS if one in number), "")
        group = tuple(zip(OF_PARTS.get(sign, ("JobID",)), number.split(sign or None), strict=False))
        clusters = [one for one in self._clusters or {""} if self._system_of(one) == system]
        return tuple((*group, ("Cluster", one)) if one else group for one in clusters)

    def read(self, rows: list[engine.EngineRow]) -> Batch:
        skips = list[Skip]()

        def skip(row: engine.EngineRow, why: str) -> None:
            skips.append(Skip(f"{self._source}, document {row.id}", why))

        if self._preset.reads == SLURM:
            jobs = {job.id: job for job in rows_of(rows, self._job, skip, ValueError)}
            return skipping(Batch(jobs=tuple(jobs.values()), count=len(rows)), skips)
        facts = chain.from_iterable(rows_of(rows, self._facts, skip, ValueError))
        return skipping(Batch(condor=tuple(facts), count=len(rows)), skips)

    def _job(self, row: engine.EngineRow) -> Job:
        fields = fields_of(row.body, self._preset)
        for sign, (whole_job, part) in OF_PARTS.items():
            if part in fields:
                fields["JobID"] = f"{fields.get(whole_job)}{sign}{fields[part]}"
        job = accounted_job(fields)
        if job is None:
            raise ValueError("is not a record of a Slurm job")
        limit = whole_of(row.body.get("time_limit"))
        whole = msgspec.structs.replace(
            job,
            limit_s=None if limit is None else float(limit),
            stdout=text_at(row.body, ("std_out",)),
            stderr=text_at(row.body, ("std_err",)),
        )
        return job_of(whole, self._source, self._system_of(job.cluster))

    def _facts(self, row: engine.EngineRow) -> list[CondorFact]:
        if self._preset.reads == "ads":
            data, log, form = msgspec.json.encode(row.body), self._source, Form.JSON_ADS
            number = crc32(row.id.encode())
        else:
            fields = fields_of(row.body, self._preset)
            text = fields.get("text", "").removesuffix("\n").removesuffix(EVENT_END)
            data = f"{text}\n...\n".encode("utf-8", "replace")
            log = f"{self._source} {fields.get('host', '')}:{fields.get('path', '')}"
            number = whole(fields.get("offset"), crc32(row.id.encode()))
            found = form_of(data)
            form = Form.CLASSIC if found is None or found is Form.OUTPUT else found
        reader = self._events.setdefault(log, EventReader(log))
        read = reader.read(form, data, number, 0, Nanos(row.at + SECOND), to_end=True)
        if read.skips:
            raise ValueError(read.skips[0].why)
        return read.facts


def open_source(spec: SourceSpec, window: ReadWindow) -> "ElasticJobs":
    """The records of jobs in an index, of the last day without a time."""
    index, preset = engine_of(spec, engine.Doubts()), presets()[spec.options]
    return ElasticJobs(index, preset, window.since, spec.setting, spec.label)


class ElasticJobs(PolledSource):
    """The records of jobs in an index, from `since` on. `label` distinguishes it from other indexes."""

    def __init__(
        self, index: ElasticEngine, preset: Preset, since: Nanos | None, kind: str, label: str = ""
    ) -> None:
        super().__init__(index.name, index)
        self._engine = index
        self.kind = kind
        self._preset = preset
        self._since = since
        self._following: engine.EngineFollowing | None = None
        self._label = label
        self.others: Callable[[], Iterable[Source]] = tuple
        self._reader: DocumentReader | None = None
        self._doubt, self._doubted = "", set[JobId]()
        self._asked: asyncio.Future[str] | None = None
        self._cluster: str | None = None
        """The name of the cluster configured with it, once that answered; before, `_asked` waits for it."""

    async def _begun(self) -> DocumentReader:
        """A reader that knows which clusters have jobs of this time in the index."""
        if self._since is None:
            self._since = Nanos(max(0, self.clock.now() - WINDOW_S * SECOND))
        self._engine.since = self._since
        clusters = await self._engine.values("Cluster")
        home = await self._home() if clusters else ""
        return DocumentReader(self.name, self._preset, self._label, clusters, home)

    async def _home(self) -> str:
        """What the cluster beside this index calls itself, "" where none is asked or it does not say.

        UNKNOWN while it does not answer, which is not waited for: its jobs then have ids as of any cluster.
        """
        from jobtui.backends.slurm.source import Slurm  # few have both

        near = (one for one in self.others() if isinstance(one, Slurm))
        beside = next((one for one in near if one.system == named(SLURM, self._label)), None)
        self._doubt = ""
        if beside is None or self._cluster is not None:
            return self._cluster or ""
        wait_s = 0.0 if self._asked is not None else ANSWER_S
        asked = self._asked = self._asked or asyncio.ensure_future(beside.cluster_name())
        await asyncio.wait((asked,), timeout=wait_s)
        why: object = "it has not answered yet"
        if asked.done():
            self._asked, why = None, asked.exception()
        if why is None:
            self._cluster = asked.result()
            return self._cluster
        self._doubt = f"which of its clusters is {beside.name} is not known yet: {why}"
        return UNKNOWN

    async def read(self, *, begins: bool) -> Batch:
        if self._doubt and await self._home() != UNKNOWN:
            self._reader = None
        if self._reader is None or self._following is None or begins:
            self._reader = await self._begun()
            self._following = engine.EngineFollowing(self._engine, At(self._since or Nanos(0)))
        rows, at_edge = await self._following.rows(engine.PAGE_ROWS)
        begin = Nanos((self._since or 0) // SECOND * SECOND)
        began = f"read from {to_rfc3339(begin)} on; anything earlier was not read" if begin else ""
        note = "; ".join(filter(None, (began, self._doubt, self._engine.doubts.words))) or None
        found, systems = self._reader.read(rows), self._reader.systems
        gone = tuple(one for one in self._doubted if one.partition("/")[0] not in systems)
        self._doubted = {*self._doubted, *(job.id for job in found.jobs)} if self._doubt else set()
        since, more = self._since or None, not at_edge
        return msgspec.structs.replace(found, gone=gone, more=more, note=note, begins_at=since)

    async def detail(self, job_id: JobId) -> JobDetail | None:
        """The whole record of a Slurm job, found by its number, whenever it ended."""
        if self._preset.reads != SLURM:
            return None
        reader = self._reader or await self._begun()
        wanted = engine.RowQuery(None, None, reader.asked_for(job_id), 1, back=True)
        rows = (await self._engine.rows(wanted)).rows if wanted.matches else []
        if not rows:
            return None
        jobs, document = reader.read(rows).jobs, rows[0].body
        outputs = tuple(filter(None, (text_at(document, (name,)) for name in ("std_out", "std_err"))))
        directory = text_at(document, ("work_dir",)) or None
        return JobDetail(job=jobs[0], native=document, directory=directory, outputs=outputs) if jobs else None

    async def aclose(self) -> None:
        if self._asked is not None:
            self._asked.cancel()
        await super().aclose()
