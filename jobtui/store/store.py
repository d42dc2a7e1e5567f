"""All that is known now: jobs by id, ops by job, the health of every source.

Plain data behind methods, no locks: only the event loop touches it. It keeps no view state (filter, sort and
selection belong to screens). Correlation is handed in, so that the store knows what it needs and not how it
is done.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from jobtui.backends.base import Batch
from jobtui.model.changes import Allocation, Site, StateChange
from jobtui.model.clock import Clock
from jobtui.model.health import Skip, SourceHealth, SourceState
from jobtui.model.heard import Heard
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Agent, Op, Step, Unlinked
from jobtui.model.trace_ids import TraceId
from jobtui.store.change_log import ChangeLog
from jobtui.store.still import StillCorrelation
from jobtui.store.trace_book import TraceBook

if TYPE_CHECKING:
    from jobtui.model.condor_facts import CondorFact
    from jobtui.store.condor_book import CondorBook, News

TRACE_KINDS = frozenset({"trace_file", "jaeger", "tempo", "otlp"})
CONDOR_KIND = "condor_log"
"""Kinds of the sources that give spans."""
SKIPS_KEPT = 20
"""How many of a source's skipped inputs are kept by name; all are counted."""


class Correlation(Protocol):
    """What ties log records to jobs. `analysis.correlate.Correlator` is one."""

    def feed(self, records: Iterable[LogRecord]) -> set[JobId]:
        """Take in records, return the jobs that are now known better."""
        ...

    def ops_of(self, job_id: JobId) -> tuple[Op, ...]:
        """The ops of a job, oldest first."""
        ...

    def unlinked_of(self, job_id: JobId) -> tuple[Unlinked, ...]:
        """Lines that name a job and could not be placed."""
        ...

    def ops(self, after: int = 0) -> Iterable[Op]:
        """Every op that is kept and has a larger key, also those without a job, oldest first."""
        ...

    def agents(self) -> tuple[Agent, ...]:
        """Every agent that is known."""
        ...

    def agent_of(self, job_id: JobId) -> Agent | None:
        """The agent that holds or last held the job's run op."""
        ...

    @property
    def heard(self) -> Heard:
        """Whose lines were read."""
        ...

    def open_ops(self) -> tuple[Op, ...]:
        """Every op that has not ended, oldest first."""
        ...

    def runs_like(self, model: str, driver: str | None) -> tuple[Op, ...]:
        """The latest runs of a model on a driver that have ended, newest first."""
        ...

    def restarted_ops(self, job_id: JobId) -> Mapping[int, Step]:
        """Those ops of a job that are older than a restart of their supervisor, by key: the restart."""
        ...

    @property
    def dropped_ops(self) -> int:
        """How many old ops were let go to stay within bounds."""
        ...


class Changes(NamedTuple):
    """What is not as it was.

    Which jobs are new, changed or better known, which are gone, whether a source's state changed, and which
    traces are known better or were let go.
    """

    jobs: frozenset[JobId]
    gone: frozenset[JobId] = frozenset()
    sources: bool = False
    traces: frozenset[TraceId] = frozenset()

    def __or__(self, other: "Changes") -> "Changes":
        """Both together."""
        return Changes(
            (self.jobs - other.gone) | other.jobs,
            (self.gone - other.jobs) | other.gone,
            self.sources or other.sources,
            self.traces | other.traces,
        )


NO_CHANGES = Changes(frozenset())

Listener = Callable[[Changes], None]


class Store:
    """Jobs, ops and source health, kept up to date by `apply`."""

    def __init__(self, correlation: Correlation, clock: Clock) -> None:
        self._correlation = correlation
        self._clock = clock
        self._jobs: dict[JobId, Job] = {}
        self._health: dict[str, SourceHealth] = {}
        self._listeners: list[Listener] = []
        self._allocations: dict[tuple[str, int], Allocation] = {}
        self._sites: dict[tuple[str, int], Site] = {}
        self._condor: CondorBook | None = None
        self.changes = ChangeLog()
        self.traces = TraceBook()

    @property
    def jobs(self) -> Mapping[JobId, Job]:
        """Every job by id."""
        return self._jobs

    @property
    def correlation(self) -> Correlation:
        """Ops and agents, by the log records fed so far."""
        return self._correlation

    def job(self, job_id: JobId) -> Job | None:
        """The job with this id."""
        return self._jobs.get(job_id)

    def allocations(self) -> tuple[Allocation, ...]:
        """The allocations of every source."""
        return tuple(self._allocations.values())

    def sites(self) -> tuple[Site, ...]:
        """The sites of every source."""
        return tuple(self._sites.values())

    def sources(self) -> tuple[SourceHealth, ...]:
        """The health of every source, in the order they were added."""
        notices: dict[str, str | None] = dict.fromkeys(TRACE_KINDS, self.traces.notice)
        notices[CONDOR_KIND] = self._condor.notice if self._condor is not None else None
        return tuple(_noticed(one, notices.get(one.kind)) for one in self._health.values())

    def snapshot(self) -> "Store":
        """All that is known now, to be looked at while this one goes on. Changes and traces are shared."""
        copy = Store(StillCorrelation(self._correlation), self._clock)
        copy._jobs = dict(self._jobs)
        copy._health = dict(self._health)
        copy._allocations = dict(self._allocations)
        copy._sites = dict(self._sites)
        copy.changes = self.changes
        copy.traces = self.traces
        copy._condor = self._condor
        return copy

    def facts_of(self, job_id: JobId) -> "tuple[CondorFact, ...]":
        """What files say of a job of HTCondor, in order of time."""
        return self._condor.facts_of(job_id) if self._condor is not None else ()

    def changes_of(self, job_id: JobId) -> tuple[StateChange, ...]:
        """How the state of a job changed, oldest first."""
        known = self._condor.changes_of(job_id) if self._condor is not None else None
        return self.changes.of_job(job_id) if known is None else known

    def jobs_told_in(self, source: str) -> tuple[str, ...]:
        """The jobs of HTCondor of which a file tells."""
        return self._condor.jobs_told_in(source) if self._condor is not None else ()

    def traces_named_in(self, source: str) -> Mapping[str, tuple[str, ...]]:
        """The traces that a file of jobs of HTCondor names, each with the jobs it is named for."""
        return self._condor.traces_named_in(source) if self._condor is not None else {}

    def detail(self, job_id: JobId) -> JobDetail | None:
        """All about a job that is put together here out of several sources; None for any other."""
        return self._condor.detail(job_id) if self._condor is not None else None

    def add_source(self, name: str, kind: str) -> None:
        """Announce a source, so that it is shown before its first poll ends."""
        self._health.setdefault(name, SourceHealth(name=name, kind=kind, asked_at=self._clock.now()))

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after every change; returns what ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def apply(self, source: str, batch: Batch) -> Changes:
        """Take in one batch of a source. Applying it twice changes nothing more."""
        changed = {job.id for job in batch.jobs if self._jobs.get(job.id) != job}
        self._jobs.update((job.id, job) for job in batch.jobs if job.id in changed)
        gone = frozenset(job_id for job_id in batch.gone if self._drop(job_id, source))
        changed |= self._correlation.feed(batch.records)
        changed |= self.changes.add(batch.changes)
        if batch.condor:
            put_together, replaced = self._renew(self._condor_book().add(batch.condor))
            changed, gone = changed | put_together, gone | replaced
        self._allocations.update(((one.source, one.id), one) for one in batch.allocations)
        self._sites.update(((one.source, one.id), one) for one in batch.sites)
        now = self._clock.now() if batch.spans or batch.span_logs else None
        traces = self.traces.add(batch.spans, batch.span_logs, source, now)
        is_other = self._succeeded(source, batch)
        return self._tell(Changes(frozenset(changed - gone), gone, is_other, traces))

    def take_in(self, facts: "Iterable[CondorFact]") -> Iterator[Changes]:
        """Take in what files say of jobs of HTCondor, in steps that hold up nobody."""
        for news in self._condor_book().steps(facts):
            yield self._tell(Changes(*self._renew(news)))

    def fail(self, source: str, error: str) -> Changes:
        """Note that a source could not be read. What it gave before is kept."""
        before = self._health[source]
        self._health[source] = msgspec.structs.replace(before, state=SourceState.DOWN, error=error)
        return self._tell(Changes(frozenset(), sources=self._health[source] != before))

    def become(self, other: "Store") -> Changes:
        """Know what another store knows, and nothing else."""
        before = frozenset(self._jobs)
        self._jobs, self._health, self._correlation = other._jobs, other._health, other._correlation
        self._allocations, self._sites = other._allocations, other._sites
        self.changes, self.traces, self._condor = other.changes, other.traces, other._condor
        return self._tell(Changes(frozenset(self._jobs), before - self._jobs.keys(), sources=True))

    def take_over(self, other: "Store") -> Changes:
        """Replace what logs have told, and the health of their sources, by what another store has of them."""
        known = {op.jid for op in (*self._correlation.ops(), *other.correlation.ops()) if op.jid is not None}
        self._correlation = other.correlation
        self._health.update((source.name, source) for source in other.sources())
        return self._tell(Changes(frozenset(known), sources=True))

    def _condor_book(self) -> "CondorBook":
        if self._condor is None:
            from jobtui.store.condor_book import CondorBook  # most have no such jobs

            self._condor = CondorBook()
        return self._condor

    def _renew(self, news: "News") -> tuple[frozenset[JobId], frozenset[JobId]]:
        """Let news of jobs of HTCondor hold; the jobs that are others now, and those that are no more."""
        changed = {job.id for job in news.jobs if self._jobs.get(job.id) != job}
        self._jobs.update((job.id, job) for job in news.jobs)
        gone = frozenset(job_id for job_id in news.gone if self._jobs.pop(job_id, None) is not None)
        return frozenset(changed | self.changes.add(news.changes)) - gone, gone

    def _drop(self, job_id: JobId, source: str) -> bool:
        job = self._jobs.get(job_id)
        if job is None or job.source != source:
            return False
        del self._jobs[job_id]
        return True

    def _succeeded(self, source: str, batch: Batch) -> bool:
        before = self._health[source]
        skipped = max(0, before.skipped + batch.skip_count - batch.recovered)
        self._health[source] = after = msgspec.structs.replace(
            before,
            state=SourceState.PARTIAL if skipped else SourceState.OK,
            read_at=self._clock.now(),
            records=before.records + batch.count,
            skipped=skipped,
            last_skips=_newest(before.last_skips, batch.skipped),
            error=None,
            note=batch.note if batch.note is not None else before.note,
            begins_at=batch.begins_at if batch.begins_at is not None else before.begins_at,
            is_behind=batch.more,
        )
        return (before.state, before.skipped, before.note) != (after.state, after.skipped, after.note)

    def _tell(self, changes: Changes) -> Changes:
        if changes != NO_CHANGES:
            for listener in tuple(self._listeners):
                listener(changes)
        return changes


def _noticed(health: SourceHealth, notice: str | None) -> SourceHealth:
    """The health of a source with what became here of what it gave."""
    if notice is None:
        return health
    return msgspec.structs.replace(health, note=f"{health.note}; {notice}" if health.note else notice)


def _newest(old: tuple[Skip, ...], new: tuple[Skip, ...]) -> tuple[Skip, ...]:
    return (old + new)[-SKIPS_KEPT:] if new else old
