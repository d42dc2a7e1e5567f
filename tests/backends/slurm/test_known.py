"""What is known of a cluster's jobs, whatever its commands answer one after the other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.backends.slurm import known as slurm_known
from jobtui.backends.slurm.commands import Answer
from jobtui.backends.slurm.known import Known, News
from jobtui.formats.slurm_tables import SACCT, SQUEUE
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.jobs import Job
from tests.conftest import NOW
from tests.slurm_stand_in import ACCOUNTED, QUEUED

SEPARATOR = "~5e9a7a70~"
IDS = st.sampled_from(["1", "2", "4_1", "4_[2-3%1]", "4_2", "7+1", "no id", ""])
STATES = st.sampled_from(
    ["PENDING", "RUNNING", "COMPLETING", "COMPLETED", "FAILED", "CANCELLED by 7", "REQUEUED", "ODD", ""]
)
TIMES = st.sampled_from(["2026-11-20T20:00:00", "2026-11-20T20:30:00", "N/A", "Unknown", "?"])


def answer(fields: tuple[str, ...], rows: list[dict[str, str]]) -> Answer:
    printed = "".join("".join(row[field] + SEPARATOR for field in fields) + "\n" for row in rows)
    return Answer(printed.encode(), SEPARATOR)


def queued(job_id: str, state: str, at: str) -> dict[str, str]:
    return {**QUEUED, "%i": job_id, "%T": state, "%V": at}


def accounted(job_id: str, state: str, at: str) -> dict[str, str]:
    return {**ACCOUNTED, "JobID": job_id, "State": state, "Submit": at}


ANSWERS = st.lists(
    st.tuples(st.booleans(), st.lists(st.tuples(IDS, STATES, TIMES), max_size=5), st.integers(0, 400)),
    max_size=8,
)


@given(answers=ANSWERS, has_accounting=st.booleans())
def test_what_was_told_bit_by_bit_is_what_is_known(
    answers: list[tuple[bool, list[tuple[str, str, str]], int]], has_accounting: bool
) -> None:
    known, told, now, bad = Known("local", "slurm"), dict[str, Job](), NOW, 0
    known.has_accounting = has_accounting
    for of_queue, rows, later_s in answers:
        now = Nanos(now + later_s * SECOND)
        if of_queue:
            news = known.take_queue(answer(tuple(SQUEUE), [queued(*row) for row in rows]), now)
        else:
            news = known.take_accounts(answer(tuple(SACCT), [accounted(*row) for row in rows]), now)
        bad += news.skip_count - news.recovered
        assert bad >= 0
        told.update((job.id, job) for job in news.jobs)
        for job_id in news.gone:
            del told[job_id]
    assert {job.id: job for job in known.forget().jobs} == told


def take(known: Known, *rows: dict[str, str]) -> News:
    return known.take_accounts(answer(tuple(SACCT), list(rows)), NOW)


def test_the_same_answer_again_is_no_news() -> None:
    known = Known("local", "slurm")
    rows = answer(tuple(SQUEUE), [queued(str(number), "RUNNING", "N/A") for number in range(50)])
    assert len(known.take_queue(rows, NOW).jobs) == 50
    again = known.take_queue(rows, NOW)
    assert (again.jobs, again.gone, again.count) == ([], [], 50)


def test_a_number_that_came_back_is_the_newer_job() -> None:
    known = Known("local", "slurm")
    take(known, accounted("1", "COMPLETED", "2026-11-20T20:00:00"))
    rows = answer(tuple(SQUEUE), [queued("1", "FAILED", "2026-11-20T20:30:00")])
    (job,) = known.take_queue(rows, NOW).jobs
    assert job.native_status == "FAILED"


def test_ended_jobs_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_known, "MOST_ENDED", 20)
    ends = [f"2026-11-{day:02d}T20:00:00" for day in range(1, 29)]
    rows = [accounted(str(number), "COMPLETED", "N/A") | {"End": end} for number, end in enumerate(ends, 1)]
    known = Known("local", "slurm")
    assert {job.id for job in take(known, *rows).jobs} == {f"slurm/{number}" for number in range(9, 29)}
    assert known.has_let_go


@pytest.mark.parametrize("state", ["RUNNING", "COMPLETED"])
def test_jobs_that_left_the_queue_have_a_bound_where_there_is_no_accounting(
    monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setattr(slurm_known, "MOST_ENDED", 20)
    known, told = Known("local", "slurm"), set[str]()
    known.has_accounting = False
    assert not known.has_let_go
    for number in range(1, 61):
        row = queued(str(number), state, "2026-11-20T20:00:00")
        news = known.take_queue(answer(tuple(SQUEUE), [row]), Nanos(NOW + number * SECOND))
        told |= {job.id for job in news.jobs}
        told -= set(news.gone)
    assert told == {f"slurm/{number}" for number in range(40, 61)}
    assert known.has_let_go
