from jobtui.analysis.compare import last_good
from jobtui.model.jobs import JobStatus, Run
from jobtui.render.runs import ran_s, side_by_side, waited_s
from tests.builders import ago
from tests.conftest import NOW

GOOD, BAD, RUNNING = JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.RUNNING


def a_run(number: int, status: JobStatus, **fields: object) -> Run:
    return Run(number=number, status=status, native_status=status.value, **fields)  # type: ignore[arg-type]


def test_the_last_good_one_is_the_nearest_before_else_the_newest_after() -> None:
    runs = [a_run(1, GOOD), a_run(2, BAD), a_run(3, GOOD), a_run(4, BAD)]
    assert last_good(runs, 4) is runs[2]
    assert last_good(runs, 3) is runs[0]
    assert last_good(runs, 1) is runs[2]
    assert last_good(runs[1:2], 2) is None


def test_how_long_a_run_waited_and_ran() -> None:
    done = a_run(1, GOOD, queued_at=ago(100), started_at=ago(90), ended_at=ago(30))
    assert (waited_s(done, NOW), ran_s(done, NOW)) == (10, 60)
    live = a_run(1, RUNNING, queued_at=ago(100), started_at=ago(90.5))
    assert (waited_s(live, NOW), ran_s(live, NOW)) == (9, 90)
    never = a_run(1, JobStatus.CANCELED, queued_at=ago(100), ended_at=ago(40))
    assert (waited_s(never, NOW), ran_s(never, NOW)) == (60, None)
    lost = a_run(1, JobStatus.MISSING, queued_at=ago(100), started_at=ago(90))
    assert ran_s(lost, NOW) is None


def test_what_is_alike_steps_back() -> None:
    bad = a_run(2, BAD, error="gone", mode="parallel")
    lines = {
        span.text.split()[0]: span for span in side_by_side(bad, a_run(1, GOOD, mode="parallel"), NOW, 120)
    }
    assert lines["error"].style == "error"
    assert lines["mode"].style == "dim"
    assert lines["status"].style == ""
