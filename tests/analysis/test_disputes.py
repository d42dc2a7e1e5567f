"""Jobs about which sources disagree are found some time after they changed, within a budget."""

from jobtui.analysis.disputes import REST, Disputes
from jobtui.analysis.filter import FilterContext, parse
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from tests.builders import a_job, a_step, an_op, job_id
from tests.conftest import NOW
from tests.fakes import FakeCorrelation

LATER = Nanos(NOW + REST)


def at_odds(*numbers: int) -> tuple[FakeCorrelation, dict[JobId, Job]]:
    """Jobs whose records say running, and whose logs say that they ended half a minute ago."""
    jobs = {job_id(number): a_job(number, written_at=NOW) for number in numbers}
    steps = [a_step("op created"), a_step("sent", 1), a_step("status completed", 30)]
    return FakeCorrelation(an_op(jid=one, steps=steps) for one in jobs), jobs


def test_a_job_is_looked_at_when_it_has_rested() -> None:
    knows, jobs = at_odds(1)
    disputes = Disputes()
    disputes.note(jobs, NOW)
    assert disputes.look(knows, jobs, (), NOW) == set()
    assert disputes.look(knows, jobs, (), LATER) == {job_id(1)}
    assert job_id(1) in disputes
    disputes.note(jobs, LATER)
    agreeing = {job_id(1): a_job(1, status=JobStatus.COMPLETED, written_at=NOW)}
    assert disputes.look(knows, agreeing, (), Nanos(LATER + REST)) == {job_id(1)}
    assert job_id(1) not in disputes


def test_a_change_begins_the_rest_anew() -> None:
    knows, jobs = at_odds(1, 2)
    disputes = Disputes()
    disputes.note(jobs, NOW)
    disputes.note([job_id(1)], Nanos(NOW + 5 * SECOND))
    assert disputes.look(knows, jobs, (), LATER) == {job_id(2)}


def test_what_is_over_the_budget_comes_next_time() -> None:
    knows, jobs = at_odds(*range(50))
    disputes = Disputes()
    disputes.note(jobs, NOW)
    assert disputes.look(knows, jobs, (), LATER, budget_s=0.0) == set()
    assert disputes.look(knows, jobs, (), LATER, budget_s=10.0) == set(jobs)


def test_the_filter_finds_them() -> None:
    job = a_job(1)
    context = FilterContext(is_disputed=lambda one: one.id == job.id)
    for words in ("flag:contradiction", "is:any"):
        assert parse(words).matches(job, NOW, context)
        assert not parse(words).matches(a_job(2), NOW, context)
