import msgspec
from hypothesis import given
from hypothesis import strategies as st

from jobtui.analysis.tally import Tally
from jobtui.model.jobs import Job, JobStatus
from tests.builders import a_job, ago
from tests.conftest import NOW


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
