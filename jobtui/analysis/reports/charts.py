"""What each chart shows, computed from what is known of jobs, without a terminal.

A record tells when its present run was submitted, began and ended; its history, if read, has earlier runs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple

from jobtui.analysis.keys import ENDS
from jobtui.analysis.reports import rates
from jobtui.analysis.reports.curves import Curve, Series
from jobtui.model.changes import Allocation, StateChange
from jobtui.model.clock import Nanos, Window
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus


def changes_of_job(job: Job) -> Iterator[StateChange]:
    """The changes that the record of a job tells, in order; their ids grow with time."""
    before, last = "", Nanos(0)
    for at, after in (
        (job.queued_at, JobStatus.PENDING),
        (job.started_at, JobStatus.RUNNING),
        (job.ended_at if job.status in ENDS else None, job.status),
    ):
        if at is not None:
            # A clock that was set back must not change the order
            last = max(last, at)
            yield StateChange(last, job.id, at, before, after.value, job.source)
            before = after.value


LOGGED = "balsam"
"""The system that reports every change; for others, records of jobs are used."""


class ChartKind(StrEnum):
    """The charts in the order in which keys step through them."""

    UTILIZATION = "utilization"
    THROUGHPUT = "throughput"
    RATE = "rate"
    STATES = "states"
    TIMES = "times"


class KnownJobs(NamedTuple):
    """What is known of jobs at a time: their records, their changes, and the nodes they were given.

    `histories` are the changes of each job in the order of time. `is_reading`: a source is being read for the
    first time, so there is more to come.
    """

    jobs: Mapping[JobId, Job]
    histories: Sequence[Sequence[StateChange]]
    allocations: Sequence[Allocation]
    now: Nanos
    is_reading: bool = False


class ChartData(NamedTuple):
    """The changes that count for a chart, job by job, and the words of their systems for states."""

    histories: list[Sequence[StateChange]]
    allocations: Sequence[Allocation]
    words: tuple[rates.Words, ...]
    is_weighted: bool
    begin: Nanos
    now: Nanos
    notes: tuple[str, ...]
    is_reading: bool = False

    def states(self, of: Callable[[rates.Words], Iterable[str]]) -> frozenset[str]:
        return frozenset(word for words in self.words for word in of(words))


class Chart(NamedTuple):
    """One chart. `outline` is the capacity for what the first curve shows.

    `waiting` are the jobs that wait, `failures` how many have failed so far. `begin` is the first time of
    which anything is known, `end` the last.
    """

    kind: ChartKind
    curves: tuple[Curve, ...]
    begin: Nanos
    end: Nanos
    outline: Curve | None = None
    waiting: Curve | None = None
    failures: Curve | None = None
    times: tuple[rates.StateTime, ...] = ()
    jobs: int = 0
    notes: tuple[str, ...] = ()
    is_reading: bool = False


def material_of(known: KnownJobs, keeps: Callable[[Job], bool] | None) -> ChartData:
    """The data of the jobs that `keeps` accepts; without `keeps` also of jobs that have no record."""
    found: list[Sequence[StateChange]] = []
    future, left_out, again, now = 0, 0, 0, known.now
    for own in known.histories:
        job = known.jobs.get(own[0].job_id)
        if keeps is not None and (job is None or not keeps(job)):
            left_out += job is not None
            continue
        past = own if own[-1].at <= now else _until(own, now)
        future += len(own) - len(past)
        found += [past] if past else []
    logged = len(found)
    for job in list(known.jobs.values()):
        is_told = job.system != LOGGED and not job.is_quasi and (keeps is None or keeps(job))
        if is_told and (past := _until(changes_of_job(job), now)):
            found.append(past)
            again += job.runs > 1
    notes = ["jobs are still being read: more will follow"] if known.is_reading else []
    notes += [f"changes in the future, left out: {future:,}"] if future else []
    notes += [f"jobs whose earlier runs are not known here: {again:,}"] if again else []
    has_records = len(found) > logged
    words = (rates.BALSAM,) if logged else ()
    return ChartData(
        histories=found,
        # Nodes are there for all jobs: beside some of them they would look idle
        allocations=() if left_out or known.is_reading else known.allocations,
        words=(*words, rates.SIREPO) if has_records else words,
        is_weighted=bool(logged) and not has_records,
        begin=min((own[0].at for own in found), default=now),
        now=now,
        notes=tuple(notes),
        is_reading=known.is_reading,
    )


def _until(own: Iterable[StateChange], now: Nanos) -> Sequence[StateChange]:
    return [one for one in own if one.at <= now]


def chart_of(kind: ChartKind, material: ChartData) -> Chart:
    histories, now, unborn = material.histories, material.now, material.states(attrgetter("unborn"))
    window = Window(material.begin, now)
    notes, is_reading = material.notes, material.is_reading
    chart = Chart(kind, (), material.begin, now, jobs=len(histories), notes=notes, is_reading=is_reading)
    match kind:
        case ChartKind.UTILIZATION:
            return _utilization(chart, material, window)
        case ChartKind.THROUGHPUT | ChartKind.RATE:
            series = rates.throughput(histories, window, *sorted(material.states(lambda one: (one.done,))))
            return _with_failures(_drawn(chart, series), material, window)
        case ChartKind.STATES:
            return _drawn(chart, *rates.jobs_per_state(histories, window, now, unborn))
    return chart._replace(times=rates.time_in_states(histories, now, unborn))


def _with_failures(chart: Chart, material: ChartData, window: Window) -> Chart:
    failed = rates.throughput(material.histories, window, *sorted(material.states(attrgetter("failed"))))
    return chart._replace(failures=Curve(failed))


def _drawn(chart: Chart, *found: Series) -> Chart:
    notes = (note for series in found for note in series.notes)
    return chart._replace(curves=tuple(map(Curve, found)), notes=tuple(dict.fromkeys((*notes, *chart.notes))))


def _utilization(chart: Chart, material: ChartData, window: Window) -> Chart:
    histories, now = material.histories, material.now
    running, waiting = (material.states(attrgetter(name)) for name in ("running", "waiting"))
    nodes_of: dict[JobId, float] | None = {} if material.is_weighted else None
    chart = _drawn(chart, rates.utilization(histories, window, now, running, nodes_of))
    chart = chart._replace(waiting=Curve(rates.within(histories, window, now, waiting)))
    chart = _with_failures(chart, material, window)
    if not material.is_weighted or not material.allocations:
        return chart
    nodes = rates.available_nodes(material.allocations, window, now)
    return chart._replace(outline=Curve(nodes), notes=tuple(dict.fromkeys((*chart.notes, *nodes.notes))))
