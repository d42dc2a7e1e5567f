"""From a job to its trace: what it was handed, what spans say, and candidates that stay candidates."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence

import msgspec
import pytest

from jobtui.analysis.traces.candidates import candidates, submission_search
from jobtui.analysis.traces.ways import ways_by_attribute, ways_from_job
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.jobs import Job
from jobtui.model.trace_desk import (
    JOB_ATTRIBUTES,
    TraceAnswer,
    TraceList,
    TraceSearch,
    is_wanted,
    summary_of,
)
from jobtui.model.trace_ids import TraceId
from jobtui.model.traces import Trace
from tests.condor import book_of, event, facts_of, submitted
from tests.tracing import EXPECTED, captured

NAMES = ("jobsub-ok", "jobsub-fail-copy", "jobsub-fail-condor", "jobsub-fail-klist", "job-fail", "job-good")
TRACES = tuple(captured(name) for name in NAMES)
START_NS = EXPECTED["jobsub-ok"]["start_unix_nano"]


class Desk:
    """Answers out of some traces; `asked` are the searches."""

    def __init__(self, traces: Sequence[Trace], notes: tuple[str, ...] = ()) -> None:
        self._traces = {trace.trace_id: trace for trace in traces}
        self._notes = notes
        self.asked: list[TraceSearch] = []

    async def fetch(self, trace_id: TraceId) -> TraceAnswer:
        return TraceAnswer(trace=self._traces.get(trace_id))

    def follow(
        self, trace_id: TraceId, expects_more: Callable[[], bool] = bool
    ) -> AsyncIterator[TraceAnswer]:
        raise NotImplementedError

    async def search(self, search: TraceSearch) -> TraceList:
        self.asked.append(search)
        found = tuple(summary_of(trace) for trace in self._traces.values() if is_wanted(trace, search))
        return TraceList(found, self._notes)

    def searching(self, search: TraceSearch) -> AsyncGenerator[TraceList]:
        raise NotImplementedError

    async def services(self) -> tuple[str, ...]:
        return ()

    async def operations(self, service: str) -> tuple[str, ...]:
        return ()


def a_condor_job(after_s: float = 2.0, **more: object) -> Job:
    """A job that came into the queue so long after a captured submission began."""
    _, news = book_of(facts_of(submitted().encode()))
    queued = Nanos(START_NS + round(after_s * SECOND))
    return msgspec.structs.replace(news.jobs[0], queued_at=queued, **more)


async def test_the_trace_that_a_job_was_handed_needs_no_search() -> None:
    desk = Desk(TRACES)
    ways = await ways_from_job(desk, a_condor_job(trace="ab" * 16), JOB_ATTRIBUTES)
    assert [way.trace_id for way in ways.found] == ["ab" * 16]
    assert desk.asked == []


@pytest.mark.parametrize("job_id", ["81419552.0@jobsub02.fnal.gov"])
async def test_an_attribute_of_its_spans_names_it(job_id: str) -> None:
    ways = await ways_by_attribute(Desk(TRACES), job_id, JOB_ATTRIBUTES)
    assert [way.trace_id for way in ways.found] == [EXPECTED["job-fail"]["traceID"]]
    assert (await ways_by_attribute(Desk(TRACES), job_id, ("my.job",))).found == ()


async def test_without_either_there_are_candidates_and_nothing_is_found() -> None:
    ways = await ways_from_job(Desk(TRACES, ("server x says 503",)), a_condor_job(), JOB_ATTRIBUTES)
    assert ways.found == ()
    assert ways.candidates[0].trace_id == EXPECTED["jobsub-ok"]["traceID"]
    assert all(one.score < 1.0 and one.why for one in ways.candidates)
    assert "server x says 503" in ways.notes


async def test_a_job_of_which_no_time_is_known_has_no_candidates() -> None:
    desk = Desk(TRACES)
    job = msgspec.structs.replace(a_condor_job(), queued_at=None)
    assert (await ways_from_job(desk, job, JOB_ATTRIBUTES)).candidates == ()
    assert submission_search(job) is None


def why(job: Job, name: str) -> str:
    (found,) = candidates([captured(name)], job, JOB_ATTRIBUTES)
    return "; ".join(found.why)


def test_the_nearest_in_time_comes_first_and_says_so() -> None:
    found = candidates(TRACES[:2], a_condor_job(1.5), JOB_ATTRIBUTES)
    assert [one.trace_id for one in found] == [EXPECTED[name]["traceID"] for name in NAMES[:2]]
    assert "before the job was in the queue" in found[0].why[0]
    assert "after the job was in the queue" in found[1].why[0]


@pytest.mark.parametrize(
    ("name", "job", "words"),
    [
        ("jobsub-ok", a_condor_job(name="test_trace.sh"), "its command names test_trace.sh"),
        ("jobsub-ok", a_condor_job(name="other.sh"), "its command does not name other.sh"),
        ("jobsub-ok", a_condor_job(app="fermilab"), "its command names group fermilab"),
        ("jobsub-ok", a_condor_job(), "it went to jobsub02.fnal.gov"),
        ("jobsub-fail-condor", a_condor_job(8.0), "its submission was refused"),
        ("jobsub-fail-klist", a_condor_job(11.0), "nothing in it was handed to a schedd"),
    ],
)
def test_what_speaks_for_a_candidate_and_against_is_said(name: str, job: Job, words: str) -> None:
    assert words in why(job, name)


def test_a_submission_of_another_job_is_unlikely() -> None:
    queued = Nanos(EXPECTED["job-fail"]["start_unix_nano"] + 2 * SECOND)
    job = msgspec.structs.replace(a_condor_job(), queued_at=queued)
    assert "name another job, 81419552.0@jobsub02.fnal.gov" in why(job, "job-fail")
    (other,) = candidates([captured("job-fail")], job, JOB_ATTRIBUTES)
    (mine,) = candidates([captured("job-fail")], job, ())
    assert other.score < mine.score


@pytest.mark.parametrize("after_s", [-10.0, 100.0, 10_000.0])
def test_what_was_submitted_at_another_time_is_none(after_s: float) -> None:
    assert candidates([captured("jobsub-ok")], a_condor_job(after_s), JOB_ATTRIBUTES) == ()


def test_an_event_is_not_needed_for_any_of_it() -> None:
    _, news = book_of(facts_of(event(1, "2026-11-20 10:00:00", "Job executing on host: <x>").encode()))
    assert candidates(TRACES, news.jobs[0], JOB_ATTRIBUTES) == ()
