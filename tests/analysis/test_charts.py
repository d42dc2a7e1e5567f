"""What charts are made of: changes of one system, records of another, and what is left out."""

from jobtui.analysis.charts import Chart, ChartKind, Known, Material, chart_turns, material_turns
from jobtui.analysis.turns import at_once
from jobtui.model.changes import Allocation, StateChange
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from tests.builders import a_job, ago
from tests.conftest import NOW

BALSAM = JobId("balsam/1")


def change(number: int, seconds: float, before: str, after: str, nodes: float | None = None) -> StateChange:
    return StateChange(number, BALSAM, ago(seconds), before, after, "b", nodes)


RUN = (change(1, 100, "READY", "PREPROCESSED"), change(2, 50, "PREPROCESSED", "RUNNING", 3.0))
GIVEN = Allocation(id=1, source="b", site_id=1, state="running", nodes=4, start_at=ago(80))


def material(*jobs: Job, changes: tuple[StateChange, ...] = (), app: str = "") -> Material:
    known = Known({job.id: job for job in jobs}, [changes] if changes else [], (GIVEN,), NOW)
    return at_once(material_turns(known, (lambda job: job.app == app) if app else None))


def made(kind: ChartKind, found: Material) -> Chart:
    return at_once(chart_turns(kind, found))


def test_nodes_are_shown_over_those_that_are_there() -> None:
    chart = made(ChartKind.UTILIZATION, material(changes=RUN))
    assert chart.outline is not None
    assert chart.waiting is not None
    assert (chart.curves[0].at(NOW), chart.outline.at(NOW), chart.waiting.at(NOW)) == (3.0, 4.0, 0.0)
    assert chart.waiting.at(ago(60)) == 1.0
    assert chart.curves[0].series.unit == "nodes"


def test_records_of_jobs_serve_where_no_changes_are_told() -> None:
    ended = a_job(2, status=JobStatus.COMPLETED, queued_at=ago(90), started_at=ago(80), ended_at=ago(70))
    chart = made(ChartKind.UTILIZATION, material(a_job(1, started_at=ago(60)), ended))
    assert chart.outline is None
    assert chart.curves[0].at(NOW) == 1.0
    assert chart.curves[0].series.unit == "jobs"
    assert made(ChartKind.THROUGHPUT, material(ended)).curves[0].at(NOW) == 1.0


def test_two_systems_together_are_counted_in_jobs() -> None:
    found = material(a_job(1, started_at=ago(60)), changes=RUN)
    assert made(ChartKind.UTILIZATION, found).curves[0].at(NOW) == 2.0


def test_a_filter_lets_only_some_jobs_count() -> None:
    jobs = (a_job(1, app="srw"), a_job(2, app="warp"))
    assert made(ChartKind.STATES, material(*jobs, changes=RUN, app="srw")).jobs == 1


def test_beside_some_jobs_nodes_of_all_would_look_idle() -> None:
    own = a_job(1, system="balsam", app="srw")
    jobs = (Job(id=BALSAM, system="balsam", status=JobStatus.RUNNING, native_status="", source="b"), own)
    assert made(ChartKind.UTILIZATION, material(*jobs, changes=RUN, app="srw")).outline is None
    assert made(ChartKind.UTILIZATION, material(*jobs, changes=RUN)).outline is not None


def test_what_is_left_out_is_said() -> None:
    late = (*RUN, StateChange(3, BALSAM, Nanos(NOW + SECOND), "RUNNING", "RUN_DONE", "b"))
    found = material(a_job(1, runs=2), changes=late)
    assert found.notes == (
        "1 changes that lie in the future are left out",
        "1 jobs ran before: of each only the latest run is known here",
    )
    assert made(ChartKind.STATES, found).notes == found.notes


def test_without_anything_there_is_nothing_to_draw() -> None:
    for kind in ChartKind:
        chart = made(kind, material())
        assert chart.jobs == 0
        assert all(not curve.series.x for curve in chart.curves)
