"""All that is known now: jobs by id, ops by job, state changes, the health of every source.

Plain data behind methods, no locks: only the event loop touches it. It keeps no view state (filter, sort and
selection belong to screens). It gets a correlation, and uses only its interface.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Set
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from jobtui.backends.base import Batch
from jobtui.backends.registry import CONDOR_LOG, Gives, kinds_that_give
from jobtui.model.bounded import Bounded
from jobtui.model.changes import Allocation, Site, StateChange
from jobtui.model.clock import Clock, FixedClock, Nanos, seconds_between
from jobtui.model.health import MOST_NEWS, SourceHealth, SourceState, contained
from jobtui.model.ids import JobId, TraceId
from jobtui.model.jobs import MOST_REASONS, Job, JobDetail, JobStatus, ReasonSeen, together
from jobtui.store.traces import TraceStore

if TYPE_CHECKING:
    from jobtui.model.logs import CondorFact
    from jobtui.model.ops import Correlation
    from jobtui.model.slurm import Cluster
    from jobtui.store.condor import CondorChanges, CondorStore

CHANGES_KEPT = 1_000_000
"""Changes held at most, about 200 bytes each."""
LET_GO = 10
"""The part that is dropped when there are too many: finding the oldest of all takes a tenth of a second."""

_order = attrgetter("at", "id", "source")
_told = attrgetter("state", "skipped", "note", "failing")


class ChangeLog:
    """The states of jobs over time, as far as known, job by job. Only the event loop touches it."""

    def __init__(self, most: int = CHANGES_KEPT) -> None:
        self._most = most
        self._count = 0
        self._oldest = Nanos(0)
        self._by_job: dict[JobId, tuple[StateChange, ...]] = {}

    def __len__(self) -> int:
        return self._count

    def add(self, changes: Iterable[StateChange]) -> set[JobId]:
        """Add changes in any order. Returns the jobs of those that were not known yet."""
        fresh = {change.job_id for change in changes if self._take(change)}
        if self._count > self._most:
            self._drop_oldest()
        return fresh

    def replace(self, by_job: Mapping[JobId, Iterable[StateChange]]) -> set[JobId]:
        """Replace all changes of some jobs. Returns the jobs that had others before."""
        changed: set[JobId] = set()
        for job_id, changes in by_job.items():
            own = tuple(change for change in sorted(changes, key=_order) if change.at >= self._oldest)
            if own != self.of_job(job_id):
                changed.add(job_id)
                self.forget((job_id,))
                self.add(own)
        return changed

    def forget(self, jobs: Iterable[JobId]) -> None:
        """Drop all changes of jobs that were deleted: no record says how these ended."""
        for job_id in jobs:
            self._count -= len(self._by_job.pop(job_id, ()))

    def of_job(self, job_id: JobId) -> tuple[StateChange, ...]:
        return self._by_job.get(job_id, ())

    def histories(self) -> list[tuple[StateChange, ...]]:
        """The changes of each job as they are now, oldest first."""
        return list(self._by_job.values())

    def _take(self, change: StateChange) -> bool:
        """Add a change to those of its job. False for one that is known, or too old.

        Ids alone do not identify a change: a system that was set up again counts from the beginning.
        """
        if change.at < self._oldest:
            return False
        own, order = self._by_job.get(change.job_id, ()), _order(change)
        index = len(own)
        if own and _order(own[-1]) >= order:
            index = bisect_left(own, order, key=_order)
            if _order(own[index]) == order:
                return False
        # Tuples, as the garbage collector soon stops tracking them: there are hundreds of thousands
        self._by_job[change.job_id] = (*own[:index], change, *own[index:])
        self._count += 1
        return True

    def _drop_oldest(self) -> None:
        times = sorted(change.at for own in self._by_job.values() for change in own)
        self._oldest = Nanos(times[len(times) - self._most + self._most // LET_GO - 1] + 1)
        old = [job_id for job_id, own in self._by_job.items() if own[0].at < self._oldest]
        for job_id in old:
            own = self._by_job[job_id]
            self.forget((job_id,))
            if kept := tuple(change for change in own if change.at >= self._oldest):
                self._by_job[job_id] = kept
                self._count += len(kept)


ORIGINS_KEPT = 10_000
CONDOR_AT_ONCE = 1_000
"""Facts that are processed at once to make jobs of HTCondor, which takes 30 ms."""
SKIPS_KEPT = 20


class Changes(NamedTuple):
    """What has changed.

    The jobs that are new, changed or better known, the jobs that are gone, whether a source's state changed,
    and the traces of which more is known or that were dropped.
    """

    jobs: frozenset[JobId]
    gone: frozenset[JobId] = frozenset()
    sources: bool = False
    traces: frozenset[TraceId] = frozenset()

    def __or__(self, other: "Changes") -> "Changes":
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

    def __init__(self, correlation: "Correlation", clock: Clock) -> None:
        self.correlation = correlation
        """Ops and agents, by the log records fed so far."""
        self._clock = clock
        self.jobs: dict[JobId, Job] = {}
        self._health: dict[str, SourceHealth] = {}
        self.profiles: Mapping[str, str] = {}
        self._listeners: list[Listener] = []
        self._allocations: dict[tuple[str, int], Allocation] = {}
        self._sites: dict[tuple[str, int], Site] = {}
        self._clusters: dict[str, Cluster] = {}
        self._reasons: dict[JobId, tuple[ReasonSeen, ...]] = {}
        self._condor: CondorStore | None = None
        self.changes = ChangeLog()
        self.traces = TraceStore()
        self.origins: dict[str, str] = Bounded(ORIGINS_KEPT)
        """Which source gave a stream of another name, as journals do."""

    def job(self, job_id: JobId) -> Job | None:
        return self.jobs.get(job_id)

    def with_agent(self, job: Job) -> Job:
        """The job as it is known now, with host and driver from the logs if its record has none."""
        job = self.jobs.get(job.id, job)
        agent = self.correlation.agent_of(job.id)
        if agent is None:
            return job
        return replace(job, host=job.host or agent.host, driver=job.driver or agent.driver)

    def allocations(self) -> tuple[Allocation, ...]:
        return tuple(self._allocations.values())

    def sites(self) -> tuple[Site, ...]:
        return tuple(self._sites.values())

    def clusters(self) -> "tuple[Cluster, ...]":
        """The nodes of each cluster, as they were when they were last asked for."""
        return tuple(self._clusters.values())

    def reasons_of(self, job_id: JobId) -> tuple[ReasonSeen, ...]:
        """What a pending job was seen to wait for, oldest first, the newest of them."""
        return self._reasons.get(job_id, ())

    def sources(self) -> tuple[SourceHealth, ...]:
        """The health of every source, in the order they were added."""
        notices: dict[str, str | None] = dict.fromkeys(kinds_that_give(Gives.SPANS), self.traces.notice)
        notices[CONDOR_LOG.kind] = self._condor.notice if self._condor is not None else None
        logs = self.correlation.repeated
        notes = ((one, notices.get(one.kind, logs.get(one.name))) for one in self._health.values())
        return tuple(
            replace(one, note=f"{one.note}; {notice}" if one.note else notice) if notice else one
            for one, notice in notes
        )

    def snapshot(self) -> "Store":
        """All that is known now, to be read while this one changes. Changes and traces are shared."""
        copy = Store(self.correlation, self._clock)
        known = self._known.items()
        vars(copy).update({name: dict(part) if isinstance(part, dict) else part for name, part in known})
        copy.correlation = self.correlation.snapshot()
        return copy

    @property
    def _known(self) -> dict[str, object]:
        """All that it knows, by attribute, without its clock and its listeners."""
        return {name: part for name, part in vars(self).items() if name not in ("_clock", "_listeners")}

    def facts_of(self, job_id: JobId) -> "tuple[CondorFact, ...]":
        """What files say about a job of HTCondor, in order of time."""
        return self._condor.facts_of(job_id) if self._condor is not None else ()

    def changes_of(self, job_id: JobId) -> tuple[StateChange, ...]:
        detail = self.detail(job_id)
        return self.changes.of_job(job_id) if detail is None else detail.changes

    def detail(self, job_id: JobId) -> JobDetail | None:
        """All about a job that the store makes from several sources; None for any other."""
        return self._condor.detail(job_id) if self._condor is not None else None

    @property
    def condor(self) -> "CondorStore":
        if self._condor is None:
            from jobtui.store.condor import CondorStore  # most have no such jobs

            self._condor = CondorStore(self.profile_of)
        return self._condor

    def name_profiles(self, profiles: Mapping[str, str]) -> None:
        self.profiles = profiles
        for name, health in self._health.items():
            self._health[name] = replace(health, profile=profiles.get(name, ""))

    def profile_of(self, source: str) -> str:
        return self.profiles.get(self.origins.get(source, source), "")

    def add_source(self, name: str, kind: str) -> None:
        """Announce a source, so that it is shown before its first poll ends."""
        fresh = SourceHealth(name=name, kind=kind, asked_at=self._clock.now(), profile=self.profile_of(name))
        self._health.setdefault(name, fresh)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after every change. Returns the function that ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def apply(self, source: str, batch: Batch) -> Changes:
        streams = {record.source for record in batch.records}
        streams.update(other.source for job in batch.jobs for other in job.others or ())
        streams.update(fact.source for fact in batch.condor)
        for stream in streams - {source} - self.origins.keys():
            self.origins[stream] = source
        new, dated = dict[JobId, Job](), list[Nanos | None]()
        for job in batch.jobs:
            known = new.get(job.id) or self.jobs.get(job.id)
            if known is not None and (known.others or known.source != job.source):
                job = self._with_others(job, known)
            if known != job:
                new[job.id] = job
                at = job.written_at or job.updated_at
                dated += [at] if known is None or at != (known.written_at or known.updated_at) else []
        self.jobs.update(new)
        changed = {*new, *(job_id for job_id in batch.gone if self._drop(job_id, source))}
        gone = frozenset(job_id for job_id in batch.gone if job_id not in self.jobs) & changed
        if batch.records:
            self.correlation = self.correlation.begun()
            changed |= self.correlation.feed(batch.records)
        went = self.changes.add(batch.changes)
        newest_at = self._newest_at(batch, dated, went)
        changed |= went
        if batch.condor:
            put_together, replaced = self._renew(self.condor.add(batch.condor, CONDOR_AT_ONCE))
            changed, gone = changed | put_together, gone | replaced
        self.changes.forget(batch.deleted)
        if batch.is_whole_frame:
            self._allocations = {key: one for key, one in self._allocations.items() if key[0] != source}
            self._sites = {key: one for key, one in self._sites.items() if key[0] != source}
        self._allocations.update(((one.source, one.id), one) for one in batch.allocations)
        self._sites.update(((one.source, one.id), one) for one in batch.sites)
        self._clusters.update((one.source, one) for one in batch.clusters)
        self._note_reasons(batch.reasons, changed)
        now = self._clock.now() if batch.spans or batch.span_logs else None
        traces = self.traces.add(batch.spans, batch.span_logs, source, now)
        is_other = self._succeeded(source, batch, newest_at)
        return self._announce(Changes(frozenset(changed - gone if gone else changed), gone, is_other, traces))

    def _note_reasons(self, reasons: Iterable[ReasonSeen], changed: Iterable[JobId]) -> None:
        for seen in reasons:
            known = self._reasons.get(seen.job_id, ())
            if not known or (known[-1].at < seen.at and known[-1].reason != seen.reason):
                self._reasons[seen.job_id] = (*known, seen)[-MOST_REASONS:]
        for job_id in changed if self._reasons else ():
            job = self.jobs.get(job_id)
            if job is None or job.status is not JobStatus.PENDING:
                self._reasons.pop(job_id, None)

    def fail(self, source: str, error: str) -> Changes:
        """Note that a source could not be read. What it gave before is kept."""
        before = self._health[source]
        self._health[source] = replace(before, state=SourceState.DOWN, error=error)
        return self._announce(Changes(frozenset(), sources=self._health[source] != before))

    def become(self, other: "Store") -> Changes:
        """Take all that another store knows, and drop everything else."""
        before = frozenset(self.jobs)
        vars(self).update(other._known)
        return self._announce(Changes(frozenset(self.jobs), before - self.jobs.keys(), sources=True))

    def take_over(self, other: "Store") -> Changes:
        """Add what another store has from logs to what is here; nothing counts twice."""
        newer = other.correlation.begun()
        newer.take_in(self.correlation.begun())
        self.correlation = newer
        known = {op.jid for op in self.correlation.ops() if op.jid is not None}
        for source in other.sources():
            before = self._health[source.name]
            if source.state is not SourceState.DOWN:
                more = before if before.skipped > source.skipped else source
                self._health[source.name] = replace(
                    source, state=more.state, skipped=more.skipped, last_skips=more.last_skips
                )
        return self._announce(Changes(frozenset(known), sources=True))

    @property
    def is_behind(self) -> bool:
        """Whether jobs of HTCondor are left that `put_together` has to make of the facts."""
        return self._condor is not None and bool(self._condor.due)

    def put_together(self) -> None:
        self._announce(Changes(*self._renew(self.condor.put_together(CONDOR_AT_ONCE))))

    def _renew(self, news: "CondorChanges") -> tuple[frozenset[JobId], frozenset[JobId]]:
        """Apply changes to jobs of HTCondor. Returns the jobs that changed, and those that are gone."""
        changed = {job.id for job in news.jobs if self.jobs.get(job.id) != job}
        self.jobs.update((job.id, job) for job in news.jobs)
        gone = frozenset(job_id for job_id in news.gone if self.jobs.pop(job_id, None) is not None)
        return frozenset(changed | self.changes.replace(news.changes)) - gone, gone

    def _with_others(self, job: Job, known: Job) -> Job:
        """A job as one source gives it now, joined with what other sources gave for the same id."""
        others = [one for one in (known, *known.others) if self._origin(one) != job.source]
        if not others:
            return job
        order = {name: number for number, name in enumerate(self._health)}
        return together(sorted((job, *others), key=lambda one: order.get(one.source, len(order))))

    def _origin(self, job: Job) -> str:
        return self.origins.get(job.source, job.source)

    def _drop(self, job_id: JobId, source: str) -> bool:
        """Forget what a source gave about a job. True if there was anything."""
        job = self.jobs.get(job_id)
        records = () if job is None else (job, *job.others)
        left = [one for one in records if self._origin(one) != source]
        if left:
            self.jobs[job_id] = together(left)
        elif records:
            del self.jobs[job_id]
        return len(left) < len(records)

    def _succeeded(self, source: str, batch: Batch, newest_at: Nanos | None) -> bool:
        before = self._health[source]
        now = self._clock.now()
        skipped = max(0, before.skipped + batch.skip_count - batch.recovered)
        late = before.news_late
        failing = before.failing if batch.failing is None else batch.failing
        was_away = before.state is SourceState.DOWN or before.is_quiet(now)
        if newest_at is not None and batch.cursor and before.was_at_end and not was_away:
            # Records of the first read, or after the source was down, may be old and say nothing about lag
            late = (*late, seconds_between(newest_at, before.shifted(now)))[-MOST_NEWS:]
        self._health[source] = after = replace(
            before,
            state=SourceState.PARTIAL if skipped or failing else SourceState.OK,
            read_at=batch.read_at or now,
            records=before.records + batch.count,
            skipped=skipped,
            last_skips=(*before.last_skips, *batch.skipped)[-SKIPS_KEPT:],
            error="\n".join(part.words for part in failing) or None,
            failing=failing,
            note=batch.note if batch.note is not None else before.note,
            begins_at=batch.begins_at if batch.begins_at is not None else before.begins_at,
            is_behind=batch.more,
            left=batch.left,
            ahead_s=batch.ahead_s or before.ahead_s,
            was_at_end=before.was_at_end or (bool(batch.cursor) and not batch.more),
            newest_at=max(filter(None, (before.newest_at, newest_at)), default=None),
            news_late=late,
        )
        if batch.count and before.was_at_end:
            self._health[source] = after = after.with_news(now)
        return _told(before) != _told(after)

    def _newest_at(self, batch: Batch, dated: Iterable[Nanos | None], went: Set[JobId]) -> Nanos | None:
        """The newest time in a batch: of jobs whose times changed, and of changes of their states."""
        times = [*dated, *(record.at for record in batch.records)]
        times += [fact.at for fact in batch.condor if not fact.is_local]
        times += [span.ended_at or span.started_at for span in batch.spans]
        times += [log.at for log in batch.span_logs]
        times += [change.at for change in batch.changes if change.job_id in went]
        times += [site.seen_at for site in batch.sites if self._sites.get((site.source, site.id)) != site]
        return max((at for at in times if at is not None), default=None)

    @property
    def is_now_set(self) -> bool:
        """Whether the present time is one that a user gave."""
        return isinstance(self._clock, FixedClock)

    def now_at(self, source: str, now: Nanos) -> Nanos:
        """The time by the clock of a source at its last successful read."""
        health = self._health.get(self.origins.get(source, source))
        return now if health is None else health.now_at(now)

    def _announce(self, changes: Changes) -> Changes:
        if changes != NO_CHANGES:
            for listener in tuple(self._listeners):
                with contained("notifying of changes"):
                    listener(changes)
        return changes
