"""Explain many jobs, a slice at a time: what went wrong in a window, for a view of incidents."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from jobtui.analysis.explain.gather import Knows, coverage_of, gather
from jobtui.analysis.explain.verdict import explain
from jobtui.analysis.flags import needs_person
from jobtui.analysis.incidents import Sample, happened_at
from jobtui.model.clock import Nanos
from jobtui.model.health import SourceHealth
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.verdicts import Code, Verdict

GONE_WRONG = frozenset({JobStatus.FAILED, JobStatus.CANCELED})


def in_window(jobs: Iterable[Job], since: Nanos, until: Nanos) -> list[Job]:
    """The jobs that something happened to in a stretch of time, or that are live; quasi jobs left out."""
    return [
        job
        for job in jobs
        if not job.is_quasi
        and (job.status.is_live or ((at := happened_at(job)) is not None and since <= at <= until))
    ]


def samples(
    knows: Knows,
    jobs: Mapping[JobId, Job],
    chosen: Sequence[Job],
    sources: Iterable[SourceHealth],
    now: Nanos,
) -> Iterator[Sample]:
    """Each of the chosen jobs explained. What is well by its record costs next to nothing.

    Whoever must not block for long takes a few at a time.
    """
    coverage = coverage_of(knows.heard, sources)
    agents = {agent.agent: agent for agent in knows.agents()}
    for job in chosen:
        if job.status not in GONE_WRONG and not needs_person(job, now):
            yield Sample(job, _fine(job), None)
            continue
        ops = knows.ops_of(job.id)
        case = gather(
            job.id, now, coverage, job=job, runs=None, ops=ops, agents=(),
            restarted_ops=knows.restarted_ops(job.id),
        )  # fmt: skip
        run = case.run
        prefix = (run.agent or run.assigned_agent) if run is not None else None
        agent = agents.get(prefix) if prefix is not None else None
        host = agent.host if agent is not None else None
        yield Sample(job, explain(case), run, run.driver if run is not None else None, host)


def _fine(job: Job) -> Verdict:
    """The verdict on a job that nothing is wrong with by its record."""
    code = Code.COMPLETED if job.status is JobStatus.COMPLETED else Code.RUNNING
    return Verdict(job_id=job.id, code=code, sentence="", confidence=1.0)
