from jobtui.analysis.run_windows import Window, ops_in, unlinked_in, window_of
from jobtui.model.jobs import JobStatus, Run
from jobtui.model.ops import Unlinked
from tests.builders import a_step, ago, an_op, job_id


def a_run(number: int, queued_s: float | None, started_s: float | None = None) -> Run:
    return Run(
        number=number,
        status=JobStatus.COMPLETED,
        native_status="completed",
        queued_at=None if queued_s is None else ago(queued_s),
        started_at=None if started_s is None else ago(started_s),
    )


RUNS = (a_run(1, 900), a_run(2, 600), a_run(3, None, 300))


def test_a_run_lasts_until_the_next_is_queued() -> None:
    assert window_of(RUNS, 2) == Window(ago(602), ago(302))
    assert window_of(RUNS, 3) == Window(ago(302), None)


def test_what_was_before_the_first_run_is_with_it() -> None:
    assert window_of(RUNS, 1) == Window(None, ago(602))
    assert window_of((), 1) == Window()


def test_ops_and_lines_are_parted_by_time_and_what_has_none_is_everywhere() -> None:
    old = an_op(created_at=ago(700))
    new = an_op(created_at=None, steps=[a_step(at=None), a_step(at=ago(601))])
    timeless = an_op(created_at=None)
    assert ops_in(window_of(RUNS, 1), (old, new, timeless)) == (old, timeless)
    assert ops_in(window_of(RUNS, 2), (old, new, timeless)) == (new, timeless)
    line = Unlinked(job_id(), a_step(at=ago(601)), "why")
    assert unlinked_in(window_of(RUNS, 2), [line]) == (line,)
    assert unlinked_in(window_of(RUNS, 3), [line]) == ()
