"""What a report is made of, gathered from every source that knows how jobs went from state to state."""

import re
from collections.abc import Sequence

import msgspec

from jobtui.analysis.job_changes import changes_of_jobs
from jobtui.analysis.rates import BALSAM, SIREPO, Words
from jobtui.backends.balsam.history import fetch_allocations, fetch_changes, fetch_nodes
from jobtui.backends.balsam.source import Balsam
from jobtui.backends.base import Batch, SourceError
from jobtui.backends.registry import build, gives_jobs
from jobtui.commands.context import Context
from jobtui.commands.reading import Reader
from jobtui.model.changes import Allocation, StateChange
from jobtui.model.health import Skip
from jobtui.model.ids import LABEL, JobId, numbered, system_job_id
from jobtui.model.report_query import ReportQuery
from jobtui.model.servers import answers_to, meant_by, named
from jobtui.model.specs import SourceSpec
from jobtui.store.store import SKIPS_KEPT

THROUGHPUT, UTILIZATION, NODES = "throughput", "utilization", "nodes"
BALSAM_SETTING = "balsam"


class Material:
    """Changes of jobs' states and allocations, of one system."""

    def __init__(self, name: str, words: Words) -> None:
        self.name = name
        self.words = words
        self.changes: list[StateChange] = []
        self.allocations: list[Allocation] = []
        self.nodes: dict[JobId, float] = {}


def query_of(context: Context, what: str, specs: Sequence[SourceSpec]) -> ReportQuery:
    """What the flags ask for. Raises ValueError for what none of the sources can have."""
    to_state = context.flag("to-state")
    query = ReportQuery(
        since=context.since,
        until=context.until,
        jobs=tuple(_list(context.flag("job"))),
        batch_job=context.flag("batch-job"),
        scheduler_id=context.flag("scheduler-id"),
        tags=tuple(map(_tag, _list(context.flag("tag")))),
        from_state=context.flag("from-state"),
        to_state=None if what == NODES else to_state,
        allocation_state=to_state if what == NODES else None,
    )
    _check(query, specs)
    return query


class Ambiguous(ValueError):
    """A number that several servers may have."""


def _check(query: ReportQuery, specs: Sequence[SourceSpec]) -> None:
    """Raises ValueError for what is no id, Ambiguous for one that does not say of which server."""
    for text, what in ((query.batch_job, "allocation's id"), (query.scheduler_id, "scheduler id")):
        if text is not None and _NUMBER.fullmatch(text) is None:
            raise ValueError(f'"{text}" is no {what}: expected a number')
    if all(spec.setting == BALSAM_SETTING for spec in specs if gives_jobs(spec)):
        for job in query.jobs:
            if numbered(_full(job)) is None:
                raise ValueError(f'"{job}" is no job of Balsam: expected a number, or balsam/NUMBER')
    labels = [spec.label for spec in specs if spec.label]
    for text in filter(None, (query.batch_job, query.scheduler_id, *query.jobs)):
        number = text.removeprefix(f"{BALSAM_SETTING}/")
        if labels and number.isdecimal():
            raise Ambiguous(f'"{text}" is ambiguous: {", ".join(f"{number}@{label}" for label in labels)}')


_NUMBER = re.compile(rf"(\d{{1,18}})(?:@({LABEL}))?", re.ASCII)


def _full(job: str) -> str:
    """The id of a job of which a person may have written the number, and the server's label."""
    written = _NUMBER.fullmatch(job)
    return job if written is None else system_job_id(named(BALSAM_SETTING, written[2] or ""), written[1])


def for_server(query: ReportQuery, spec: SourceSpec) -> ReportQuery | None:
    """What one server is asked, in its own numbers; None when the query is about others."""
    for text in filter(None, (query.batch_job, query.scheduler_id)):
        label = text.partition("@")[2]
        if label and label != spec.label and not answers_to(spec.target, label):
            return None
    system, server = named(BALSAM_SETTING, spec.label), {spec.target: spec.label}
    meant = [job for text in query.jobs for job in meant_by(_full(text), server, BALSAM_SETTING)]
    own = tuple(job for job in meant if job.startswith(f"{system}/"))
    if query.jobs and not own:
        return None
    return msgspec.structs.replace(
        query,
        jobs=own,
        batch_job=query.batch_job and query.batch_job.partition("@")[0],
        scheduler_id=query.scheduler_id and query.scheduler_id.partition("@")[0],
    )


def _list(text: str | None) -> list[str]:
    return [part for part in (text or "").split(",") if part]


def _tag(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise ValueError(f'"{text}" is no tag: expected KEY:VALUE')
    return name, value


async def gather(reader: Reader, what: str, query: ReportQuery, *, is_exact: bool) -> list[Material]:
    """One material for each Balsam server, and one for all systems that only have records of jobs."""
    found: list[Material] = []
    for spec in reader.specs:
        if not gives_jobs(spec):
            continue
        source = build(spec)
        reader.session.add(source)
        own = for_server(query, spec)
        if isinstance(source, Balsam) and own is not None:
            material = Material(spec.label or source.name, BALSAM)
            found.append(material)
            await reader.watched(_ask(reader, source, what, own, material, is_exact=is_exact))
    others = {source.kind for source in reader.sources} - {BALSAM_SETTING}
    if others:
        found.append(await _of_records(reader, query, others))
    return found


async def _of_records(reader: Reader, query: ReportQuery, kinds: set[str]) -> Material:
    material = Material("sirepo", SIREPO)
    await reader.watched(reader.session.catch_up(kinds))
    wanted = set(query.jobs)
    jobs = (job for job in reader.session.store.jobs.values() if not wanted or job.id in wanted)
    material.changes += changes_of_jobs(job for job in jobs if not job.is_quasi)
    return material


async def _ask(
    reader: Reader, source: Balsam, what: str, query: ReportQuery, material: Material, *, is_exact: bool
) -> None:
    """Ask a Balsam server for what the report is made of; a fault is one of that source."""
    count, store = 0, reader.session.store
    skips: tuple[Skip, ...] = ()
    try:
        if what == NODES:
            material.allocations += await fetch_allocations(source.client, query)
            count = len(material.allocations)
        else:
            state = (query.to_state or BALSAM.done) if what == THROUGHPUT else None
            material.changes, skips = await fetch_changes(
                source.client, query, exact=is_exact, to_state=state
            )
            count = len(material.changes)
            if reader.context.flag("plot") is not None and what == UTILIZATION and not is_exact:
                material.allocations += await fetch_allocations(source.client, query)
            silent = {
                one.job_id for one in material.changes if one.after in BALSAM.running and one.nodes is None
            }
            material.nodes.update(await fetch_nodes(source.client, silent))
    except SourceError as error:
        store.fail(source.name, str(error))
        return
    store.apply(source.name, Batch(cursor="", count=count, skipped=skips[:SKIPS_KEPT], skip_count=len(skips)))
