"""What each chart shows, out of what is known of jobs: computed without a terminal.

A record tells when its present run was submitted, began and ended; earlier runs are in its history, where
that was read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from jobtui.analysis.keys import ENDS
from jobtui.analysis.reports import rates
from jobtui.analysis.reports.curves import Curve, Series, Window
from jobtui.model.changes import Allocation, StateChange
from jobtui.model.clock import Nanos
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


BALSAM_AND_SIREPO = rates.Words(
    rates.BALSAM.running | rates.SIREPO.running, rates.BALSAM.done, rates.BALSAM.unborn | rates.SIREPO.unborn,
    rates.BALSAM.waiting | rates.SIREPO.waiting, rates.BALSAM.all_done | rates.SIREPO.all_done,
    rates.BALSAM.failed | rates.SIREPO.failed,
)  # fmt: skip
LOGGED = "balsam"
"""The system that reports every change; for others the records of jobs are used."""


class ChartKind(StrEnum):
    """The charts in the order in which keys step through them."""

    UTILIZATION = "utilization"
    THROUGHPUT = "throughput"
    RATE = "rate"
    STATES = "states"
    TIMES = "times"


class KnownJobs(NamedTuple):
    """What is known of jobs at a time: their records, their changes, and the nodes they were given.

    `histories` are the changes of each job in the order of time. `is_reading`: a source of them is being read
    for the first time, so that there is more to come.
    """

    jobs: Mapping[JobId, Job]
    histories: Sequence[Sequence[StateChange]]
    allocations: Sequence[Allocation]
    now: Nanos
    is_reading: bool = False


class ChartData(NamedTuple):
    """The changes that count for a chart, job by job, and what their systems call states."""

    histories: list[Sequence[StateChange]]
    allocations: Sequence[Allocation]
    words: rates.Words
    is_weighted: bool
    begin: Nanos
    now: Nanos
    notes: tuple[str, ...]
    is_reading: bool = False


class Chart(NamedTuple):
    """One chart. `outline` is what there could be of what the first curve shows.

    `waiting` are the jobs that wait, `failures` how many have failed so far.
    `begin` is the first time that anything is known of, `end` the last.
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
    future, left_out, begin, now = 0, 0, known.now, known.now
    for own in known.histories:
        if keeps is not None:
            job = known.jobs.get(own[0].job_id)
            passes = job is not None and keeps(job)
            left_out += job is not None and not passes
        if keeps is None or passes:
            past = own if own[-1].at <= now else _until(own, now)
            future += len(own) - len(past)
            if past:
                found.append(past)
                begin = min(begin, past[0].at)
    logged = len(found)
    again, first = _add_records(found, known, keeps)
    notes = ["jobs are still being read: more will follow"] if known.is_reading else []
    if future:
        notes.append(f"changes in the future, left out: {future:,}")
    if again:
        notes.append(f"jobs whose earlier runs are not known here: {again:,}")
    has_records = len(found) > logged
    words = BALSAM_AND_SIREPO if logged and has_records else rates.SIREPO if has_records else rates.BALSAM
    begin = min(begin, first)
    # Nodes are there for all jobs: beside some of them they would look idle
    allocations = () if left_out or known.is_reading else known.allocations
    is_weighted = bool(logged) and not has_records
    return ChartData(found, allocations, words, is_weighted, begin, known.now, tuple(notes), known.is_reading)


def _add_records(
    found: list[Sequence[StateChange]], known: KnownJobs, keeps: Callable[[Job], bool] | None
) -> tuple[int, Nanos]:
    """Add what records of jobs say. Returns how many jobs ran more than once, and the earliest time."""
    again, begin = 0, known.now
    for job in list(known.jobs.values()):
        if job.system != LOGGED and not job.is_quasi and (keeps is None or keeps(job)):
            past = _until(tuple(changes_of_job(job)), known.now)
            if past:
                found.append(past)
                again += job.runs > 1
                begin = min(begin, past[0].at)
    return again, begin


def _until(own: Sequence[StateChange], now: Nanos) -> Sequence[StateChange]:
    return [one for one in own if one.at <= now]


def chart_of(kind: ChartKind, material: ChartData) -> Chart:
    histories, words, now = material.histories, material.words, material.now
    window = Window(material.begin, now)
    notes, is_reading = material.notes, material.is_reading
    chart = Chart(kind, (), material.begin, now, jobs=len(histories), notes=notes, is_reading=is_reading)
    match kind:
        case ChartKind.UTILIZATION:
            return _utilization(chart, material, window)
        case ChartKind.THROUGHPUT | ChartKind.RATE:
            series = rates.throughput(histories, window, *sorted(words.all_done))
            return _with_failures(_drawn(chart, series), material, window)
        case ChartKind.STATES:
            return _drawn(chart, *rates.jobs_per_state(histories, window, now, words.unborn))
    return chart._replace(times=rates.time_in_states(histories, now, words.unborn))


def _with_failures(chart: Chart, material: ChartData, window: Window) -> Chart:
    failed = rates.throughput(material.histories, window, *sorted(material.words.failed))
    return chart._replace(failures=Curve(failed))


def _drawn(chart: Chart, *found: Series) -> Chart:
    notes = (note for series in found for note in series.notes)
    return chart._replace(curves=tuple(map(Curve, found)), notes=tuple(dict.fromkeys((*notes, *chart.notes))))


def _utilization(chart: Chart, material: ChartData, window: Window) -> Chart:
    histories, words, now = material.histories, material.words, material.now
    weights = rates.Weights({}) if material.is_weighted else None
    chart = _drawn(chart, rates.utilization(histories, window, now, words.running, weights))
    chart = chart._replace(waiting=Curve(rates.within(histories, window, now, words.waiting)))
    chart = _with_failures(chart, material, window)
    if not material.is_weighted or not material.allocations:
        return chart
    nodes = rates.available_nodes(material.allocations, window, now)
    return chart._replace(outline=Curve(nodes), notes=tuple(dict.fromkeys((*chart.notes, *nodes.notes))))
