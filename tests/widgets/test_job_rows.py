from collections.abc import Callable

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from jobtui.model.clock import FixedClock
from jobtui.model.jobs import Job, JobStatus
from jobtui.widgets.job_rows import BULK, JobRows
from tests.builders import a_job, ago, job_id
from tests.conftest import NOW


def shown(rows: JobRows) -> list[str]:
    return list(rows.window(0, 10_000))


def settle(rows: JobRows) -> None:
    while rows.is_sorting:
        rows.work()


def test_first_comes_what_needs_a_person_then_what_is_live_then_what_ended(clock: FixedClock) -> None:
    rows = JobRows(clock.now)
    rows.apply(
        [
            a_job(1, status=JobStatus.COMPLETED, ended_at=ago(10)),
            a_job(2, status=JobStatus.MISSING, started_at=None, queued_at=None, updated_at=None),
            a_job(3, started_at=ago(10)),
            a_job(4, status=JobStatus.PENDING, started_at=None, queued_at=ago(300)),
            a_job(5, status=JobStatus.FAILED, ended_at=ago(5)),
            a_job(6, started_at=ago(2)),
        ]
    )
    assert shown(rows) == [job_id(n) for n in (4, 6, 3, 5, 1, 2)]
    assert rows.needy == {job_id(4)}


def test_a_job_comes_to_need_a_person_by_time_alone(clock: FixedClock) -> None:
    rows = JobRows(clock.now)
    rows.apply(
        [a_job(1, status=JobStatus.PENDING, started_at=None, queued_at=ago(1)), a_job(2, started_at=ago(0))]
    )
    assert shown(rows) == [job_id(2), job_id(1)]
    assert not rows.needy
    clock.advance(60)
    assert rows.sweep()
    assert shown(rows) == [job_id(1), job_id(2)]
    assert rows.needy == {job_id(1)}
    rows.apply([a_job(1, status=JobStatus.COMPLETED, ended_at=ago(-60))])
    assert not rows.needy


def test_a_filter_on_ages_lets_jobs_go_as_time_passes(clock: FixedClock) -> None:
    rows = JobRows(clock.now)
    rows.apply([a_job(n, status=JobStatus.COMPLETED, ended_at=ago(10 * n)) for n in range(5)])
    rows.set_order(
        None, keep=lambda job: (job.elapsed_s(clock.now()) or 0) >= 0 and is_young(job.ended_at), ages=True
    )

    def is_young(at: int | None) -> bool:
        return at is not None and clock.now() - at < 35e9

    settle(rows)
    assert len(rows) == 4
    clock.advance(10)
    rows.sweep()
    assert len(rows) == 3


def test_very_many_changes_are_sorted_anew_in_slices(clock: FixedClock) -> None:
    rows = JobRows(clock.now)
    jobs = [a_job(n, started_at=ago(n), mode="sbatch") for n in range(3 * BULK)]
    rows.apply(jobs)
    assert rows.is_sorting
    assert len(rows) == 0
    settle(rows)
    assert shown(rows)[:3] == [job_id(0), job_id(1), job_id(2)]
    assert len(rows) == len(jobs)


def test_what_changes_while_a_new_order_is_worked_out_is_not_lost(clock: FixedClock) -> None:
    rows = JobRows(clock.now)
    jobs = [a_job(n, name=f"n{n:06d}") for n in range(2 * BULK)]
    rows.apply(jobs)
    settle(rows)
    rows.set_order(lambda job: job.name)
    assert rows.is_sorting
    rows.apply([a_job(5, name="zzz"), a_job(BULK * 9, name="a")], gone=[job_id(7)])
    settle(rows)
    found = shown(rows) + list(rows.window(10_000, 20_000))
    assert found[0] == job_id(BULK * 9)
    assert found[-1] == job_id(5)
    assert job_id(7) not in found
    assert len(found) == len(jobs)


def test_many_changes_while_a_new_order_is_worked_out_begin_it_again(clock: FixedClock) -> None:
    rows = JobRows(clock.now)
    rows.apply([a_job(n) for n in range(BULK + 1)])
    rows.set_order(lambda job: job.name)
    for first in range(0, 2 * BULK, BULK):
        rows.apply([a_job(n, name=f"b{n:06d}") for n in range(first, first + BULK)])
    settle(rows)
    assert len(rows) == 2 * BULK
    assert shown(rows)[0] == job_id(0)


def test_no_value_comes_last_in_either_direction(clock: FixedClock) -> None:
    rows = JobRows(clock.now)
    rows.apply([a_job(1, percent=5.0), a_job(2, percent=None), a_job(3, percent=90.0)])
    rows.set_order(lambda job: job.percent)
    settle(rows)
    assert shown(rows) == [job_id(1), job_id(3), job_id(2)]
    rows.set_order(lambda job: job.percent, reverse=True)
    settle(rows)
    assert shown(rows) == [job_id(3), job_id(1), job_id(2)]


def test_counts_follow_every_change(clock: FixedClock) -> None:
    rows = JobRows(clock.now)
    job = a_job(1)
    rows.apply([job, a_job(2, is_quasi=True), a_job(3, status=JobStatus.FAILED, ended_at=ago(3700))])
    assert rows.tally.counts(clock.now()).by_status[JobStatus.RUNNING] == 1
    assert rows.tally.counts(clock.now()).failed_lately == 0
    rows.apply([msgspec.structs.replace(job, status=JobStatus.FAILED, ended_at=ago(1))])
    counts = rows.tally.counts(clock.now())
    assert (counts.by_status[JobStatus.RUNNING], counts.by_status[JobStatus.FAILED]) == (0, 2)
    assert counts.failed_lately == 1
    rows.apply([], gone=[job_id(1)])
    assert rows.tally.counts(clock.now()).failed_lately == 0
    assert job_id(1) not in shown(rows)


JOBS = st.builds(
    lambda number, status, ended, queued, is_quasi, percent: a_job(
        number,
        status=status,
        ended_at=None if ended is None or status.is_live else ago(ended),
        queued_at=ago(queued),
        started_at=None,
        is_quasi=is_quasi,
        percent=percent,
    ),
    st.integers(1, 6),
    st.sampled_from(JobStatus),
    st.none() | st.integers(1, 4),
    st.integers(1, 400),
    st.booleans(),
    st.sampled_from([1.0, 2.0]),
)
KEEPS = st.sampled_from([None, lambda job: not job.is_quasi, lambda job: job.percent == 1.0])


@given(st.lists(st.lists(JOBS, min_size=1, max_size=4), max_size=12), KEEPS)
def test_change_by_change_the_order_is_that_of_all_at_once(
    changes: list[list[Job]], keep: Callable[[Job], bool] | None
) -> None:
    rows, anew = JobRows(lambda: NOW), JobRows(lambda: NOW)
    rows.set_order(None, keep=keep)
    settle(rows)
    for jobs in changes:
        before = shown(rows)
        moved = rows.apply(jobs)
        assert moved or shown(rows) == before
    anew.apply(rows.jobs.values())
    anew.set_order(None, keep=keep)
    settle(anew)
    assert shown(rows) == shown(anew)
    assert rows.needy == anew.needy
    assert rows.tally.counts(NOW)[:2] == anew.tally.counts(NOW)[:2]
