"""What charts are made of: changes of one system, records of another, and what is left out."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.counts import MINUTES, JobTally, RateCounter
from jobtui.analysis.reports.charts import Chart, ChartData, ChartKind, KnownJobs, chart_of, material_of
from jobtui.analysis.reports.curves import BLOCK, Curve, Series, rate, rate_at, steps
from jobtui.model.changes import Allocation, StateChange
from jobtui.model.clock import MINUTE, SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from tests.builders import a_job, ago, some
from tests.conftest import NOW
from tests.offenders import each

BALSAM = JobId("balsam/1")


def change(number: int, seconds: float, before: str, after: str, nodes: float | None = None) -> StateChange:
    return StateChange(number, BALSAM, ago(seconds), before, after, "b", nodes)


RUN = (change(1, 100, "READY", "PREPROCESSED"), change(2, 50, "PREPROCESSED", "RUNNING", 3.0))
GIVEN = Allocation(id=1, source="b", site_id=1, state="running", nodes=4, start_at=ago(80))


def material(*jobs: Job, changes: tuple[StateChange, ...] = (), app: str = "") -> ChartData:
    known = KnownJobs({job.id: job for job in jobs}, [changes] if changes else [], (GIVEN,), NOW)
    return material_of(known, (lambda job: job.app == app) if app else None)


def made(kind: ChartKind, *jobs: Job, changes: tuple[StateChange, ...] = (), app: str = "") -> Chart:
    return chart_of(kind, material(*jobs, changes=changes, app=app))


def test_nodes_are_shown_over_those_that_are_there() -> None:
    chart = made(ChartKind.UTILIZATION, changes=RUN)
    assert chart.waiting is not None
    assert (chart.curves[0].at(NOW), some(chart.outline).at(NOW), chart.waiting.at(NOW)) == (3.0, 4.0, 0.0)
    assert chart.waiting.at(ago(60)) == 1.0
    assert chart.curves[0].series.unit == "nodes"


def test_charts_use_records_where_there_are_no_changes_and_count_two_systems_in_jobs() -> None:
    ended = a_job(2, status=JobStatus.COMPLETED, queued_at=ago(90), started_at=ago(80), ended_at=ago(70))
    began = a_job(1, started_at=ago(60))
    chart = made(ChartKind.UTILIZATION, began, ended)
    assert (chart.outline, chart.curves[0].at(NOW), chart.curves[0].series.unit) == (None, 1.0, "jobs")
    assert made(ChartKind.THROUGHPUT, ended).curves[0].at(NOW) == 1.0
    assert made(ChartKind.UTILIZATION, began, changes=RUN).curves[0].at(NOW) == 2.0


def test_a_filter_lets_only_some_jobs_count_beside_which_nodes_of_all_would_look_idle() -> None:
    assert made(ChartKind.STATES, a_job(1, app="srw"), a_job(2, app="warp"), changes=RUN, app="srw").jobs == 1
    own = a_job(1, system="balsam", app="srw")
    jobs = (Job(id=BALSAM, system="balsam", status=JobStatus.RUNNING, native_status="", source="b"), own)
    assert made(ChartKind.UTILIZATION, *jobs, changes=RUN, app="srw").outline is None
    first_read = KnownJobs({}, [RUN], (GIVEN,), NOW, is_reading=True)
    chart = chart_of(ChartKind.UTILIZATION, material_of(first_read, None))
    assert (chart.outline, chart.is_reading, "still being read" in chart.notes[0]) == (None, True, True)
    assert made(ChartKind.UTILIZATION, *jobs, changes=RUN).outline is not None


def test_a_chart_says_what_it_leaves_out() -> None:
    late = (*RUN, StateChange(3, BALSAM, Nanos(NOW + SECOND), "RUNNING", "RUN_DONE", "b"))
    found = material(a_job(1, runs=2), changes=late)
    assert found.notes == (
        "changes in the future, left out: 1",
        "jobs whose earlier runs are not known here: 1",
    )
    assert chart_of(ChartKind.STATES, found).notes == found.notes


@each(*ChartKind)
def test_a_chart_of_nothing_draws_nothing(kind: ChartKind) -> None:
    assert made(kind).jobs == 0
    assert all(not curve.series.x for curve in made(kind).curves)


HOUR = 3_600 * SECOND


def curve(*points: tuple[int, float]) -> Curve:
    x, y = [Nanos(at * SECOND) for at, _ in points], [value for _, value in points]
    return Curve(Series("s", "jobs", x, y))


values = st.lists(st.integers(-5, 5), min_size=1, max_size=3 * BLOCK)


@settings(max_examples=50, deadline=None)
@given(values, st.integers(-10, 800), st.integers(0, 800))
def test_a_step_has_all_values_of_its_interval(values: list[int], since: int, length: int) -> None:
    made = curve(*((at, float(value)) for at, value in enumerate(values)))
    until = since + length
    step = made.step(Nanos(since * SECOND), Nanos(until * SECOND))
    first = float(values[min(since, len(values) - 1)]) if since >= 0 else 0.0
    all_values = [first, *(float(one) for one in values[max(0, since + 1) : max(0, until)])]
    assert step == (first, min(all_values), max(all_values), all_values[-1])


def test_a_rate_is_of_whole_known_intervals_and_constant_for_a_constant_sum() -> None:
    made = curve(*((at * 60, float(at * 2)) for at in range(61)))
    told = rate(made, Nanos(0), Nanos(HOUR), Nanos(HOUR), 60)
    assert set(told.y[1:]) == {2.0}
    assert all(at % MINUTE == 0 for at in told.x)
    assert rate_at(made, Nanos(HOUR), 10 * MINUTE) == 2.0
    made = curve(*((at, float(at)) for at in range(3_700)))
    end = Nanos(62 * MINUTE + 5 * SECOND)
    told = rate(made, Nanos(0), Nanos(2 * HOUR), end, 12)
    assert told.x[-1] == 50 * MINUTE
    made = curve((0, 1.0))
    assert len(steps(made, Nanos(0), Nanos(100 * SECOND), Nanos(49 * SECOND), 10)) == 5


def came(seconds: float, number: int = 1, ended_s: float | None = None) -> Job:
    return a_job(
        number,
        status=JobStatus.RUNNING if ended_s is None else JobStatus.COMPLETED,
        queued_at=Nanos(NOW - round(seconds * SECOND)),
        ended_at=None if ended_s is None else Nanos(NOW - round(ended_s * SECOND)),
    )


def pulse_of(*jobs: Job) -> RateCounter:
    pulse = RateCounter(lambda: NOW)
    for job in jobs:
        pulse.note(None, job)
    return pulse


def test_arrivals_and_ends_are_counted_by_minute_and_old_ones_dropped() -> None:
    pace = pulse_of(came(30, 1), came(90, 2), came(95, 3, ended_s=20), came(3600, 4, ended_s=65)).pace(NOW)
    assert pace.arrivals.by_minute == (0,) * (MINUTES - 3) + (2, 1, 0)
    assert pace.ends.by_minute == (0,) * (MINUTES - 3) + (1, 1, 0)
    assert (pace.arrivals.per_minute, pace.ends.per_minute) == (1, 1)
    pulse = pulse_of(came(30))
    assert pulse.pace(Nanos(NOW + 3 * MINUTE)).arrivals.by_minute[-5:] == (1, 0, 0, 0, 0)
    assert pulse.pace(Nanos(NOW + MINUTES * MINUTE)).is_still
    assert pulse.pace(NOW).is_still, "it was let go"


@each(
    ([came(30), *(msgspec.structs.replace(came(30), percent=at) for at in (10.0, 20.0))], 1, 0),
    ([came(50), came(50, ended_s=40), came(30), came(30, ended_s=20)], 2, 2),
    ([came(55, ended_s=50), came(55, ended_s=20)], 1, 1),
)
def test_an_arrival_and_an_end_count_once(steps: list[Job], arrivals: int, ends: int) -> None:
    pulse = RateCounter(lambda: NOW)
    for before, after in zip([None, *steps], steps, strict=False):
        pulse.note(before, after)
    pace = pulse.pace(NOW)
    assert (sum(pace.arrivals.by_minute), sum(pace.ends.by_minute)) == (arrivals, ends)


@each(came(86_400.0), came(-86_400.0), msgspec.structs.replace(came(30), is_quasi=True))
def test_the_rates_leave_out_the_past_the_future_and_what_is_no_job(job: Job) -> None:
    pulse = pulse_of(job)
    assert pulse.pace(NOW).is_still
    assert not pulse._arrivals


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([*JobStatus, None])), max_size=40))
def test_kept_counts_equal_a_fresh_count(events: list[tuple[int, JobStatus | None]]) -> None:
    tally = JobTally(lambda: NOW)
    jobs: dict[int, Job] = {}
    for nth, status in events:
        before = jobs.pop(nth, None)
        after = None if status is None else a_job(nth, status=status, ended_at=ago(10), is_quasi=nth == 5)
        if after is not None:
            jobs[nth] = after
        tally.move(before, after)
    counted = [job.status for job in jobs.values() if not job.is_quasi]
    counts = tally.counts(NOW)
    assert counts.by_status == {status: counted.count(status) for status in JobStatus}
    assert counts.failed_lately == counted.count(JobStatus.FAILED)


def test_only_failures_of_the_last_hour_are_recent() -> None:
    tally = JobTally(lambda: NOW)
    job = a_job(1, status=JobStatus.FAILED, ended_at=ago(3_590))
    tally.move(None, job)
    assert tally.counts(NOW).failed_lately == 1
    assert tally.counts(ago(-20)).failed_lately == 0
    tally.move(job, msgspec.structs.replace(job, ended_at=None, updated_at=None))
    assert tally.counts(NOW).failed_lately == 0
