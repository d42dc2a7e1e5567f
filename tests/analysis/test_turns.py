"""Long computations in short turns give what they would give at once."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.counts import Tally
from jobtui.analysis.reports import cooperative
from jobtui.analysis.reports.cooperative import AT_ONCE, at_once, sorted_turns
from jobtui.model.jobs import Job, JobStatus
from tests.builders import a_job, ago
from tests.conftest import NOW


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.one_of(st.integers(-(2**70), 2**70), st.just(7)), min_size=0, max_size=300), st.integers(1, 8)
)
def test_what_is_sorted_in_turns_is_sorted(values: list[int], at_once_count: int) -> None:
    before = cooperative.AT_ONCE
    cooperative.AT_ONCE = at_once_count
    try:
        assert at_once(sorted_turns(values)) == sorted(values)
    finally:
        cooperative.AT_ONCE = before


def test_many_floats_close_together_are_sorted_too() -> None:
    values = [1e18 + at % 977 for at in range(30_000)] + [0.0]
    assert at_once(sorted_turns(values)) == sorted(values)


def test_much_is_sorted_in_many_turns() -> None:
    values = [(at * 7_919) % 100_003 for at in range(20 * AT_ONCE)]
    assert sum(1 for _ in sorted_turns(values)) > 20


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([*JobStatus, None])), max_size=40))
def test_counts_are_those_of_counting_anew(events: list[tuple[int, JobStatus | None]]) -> None:
    tally = Tally(lambda: NOW)
    jobs: dict[int, Job] = {}
    for number, status in events:
        before = jobs.pop(number, None)
        after = (
            None if status is None else a_job(number, status=status, ended_at=ago(10), is_quasi=number == 5)
        )
        if after is not None:
            jobs[number] = after
        tally.move(before, after)
    counted = [job.status for job in jobs.values() if not job.is_quasi]
    counts = tally.counts(NOW)
    assert counts.by_status == {status: counted.count(status) for status in JobStatus}
    assert counts.failed_lately == counted.count(JobStatus.FAILED)


def test_only_the_last_hour_counts_as_lately() -> None:
    tally = Tally(lambda: NOW)
    job = a_job(1, status=JobStatus.FAILED, ended_at=ago(3_590))
    tally.move(None, job)
    assert tally.counts(NOW).failed_lately == 1
    assert tally.counts(ago(-20)).failed_lately == 0
    tally.move(job, msgspec.structs.replace(job, ended_at=None, updated_at=None))
    assert tally.counts(NOW).failed_lately == 0
