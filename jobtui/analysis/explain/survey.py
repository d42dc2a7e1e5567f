"""Explain many jobs, a turn at a time: what went wrong in a window, for a view of incidents."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from jobtui.analysis.explain.gather import Knows, coverage_of, gather
from jobtui.analysis.explain.slurm import explain_slurm
from jobtui.analysis.explain.verdict import explain
from jobtui.analysis.flags import needs_person
from jobtui.analysis.flapping import Flaps
from jobtui.analysis.incidents import Grouping, Incidents, Sample, happened_at
from jobtui.analysis.turns import Turns
from jobtui.model.clock import Nanos
from jobtui.model.health import SourceHealth
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.slurm import SYSTEM as SLURM
from jobtui.model.verdicts import Code, Verdict

GONE_WRONG = frozenset({JobStatus.FAILED, JobStatus.CANCELED})


CHOSEN_AT_ONCE = 4_096
"""Jobs of which it is decided in one turn whether they are looked at."""
TAKEN_AT_ONCE = 16
"""Jobs that are explained and grouped in one turn: some milliseconds."""


def is_within(job: Job, since: Nanos, until: Nanos) -> bool:
    """Whether something happened to a job in a stretch of time, or it is live; quasi jobs are left out."""
    if job.is_quasi:
        return False
    return job.status.is_live or ((at := happened_at(job)) is not None and since <= at <= until)


def survey_turns(
    knows: Knows,
    jobs: Mapping[JobId, Job],
    sources: Iterable[SourceHealth],
    since: Nanos,
    until: Nanos,
    now: Nanos,
) -> Turns[Incidents]:
    """What went wrong between two times, in turns of some milliseconds."""
    everything = tuple(jobs.values())
    chosen: list[Job] = []
    for begin in range(0, len(everything), CHOSEN_AT_ONCE):
        chosen += [job for job in everything[begin : begin + CHOSEN_AT_ONCE] if is_within(job, since, until)]
        yield
    grouping = Grouping()
    for number, sample in enumerate(samples(knows, chosen, sources, now)):
        grouping.add(sample)
        if number % TAKEN_AT_ONCE == 0:
            yield
    return grouping.found()


def samples(
    knows: Knows,
    chosen: Sequence[Job],
    sources: Iterable[SourceHealth],
    now: Nanos,
) -> Iterator[Sample]:
    """Each of the chosen jobs explained. What is well by its record costs next to nothing.

    Whoever must not block for long takes a few at a time.
    """
    coverage = coverage_of(knows.heard, sources)
    everyone = knows.agents()
    agents = {agent.agent: agent for agent in everyone}
    flaps = Flaps(everyone)
    for job in chosen:
        if job.status not in GONE_WRONG and not needs_person(job, now):
            yield Sample(job, _fine(job), None)
            continue
        if job.system == SLURM:
            yield Sample(job, explain_slurm(job, None, (), now), None, job.app, job.host)
            continue
        ops = knows.ops_of(job.id)
        last = next((op for op in reversed(ops) if op.name == "run"), None)
        prefix = (last.agent or last.assigned_agent) if last is not None else None
        agent = agents.get(prefix) if prefix is not None else None
        case = gather(
            job.id, now, coverage, job=job, runs=None, ops=ops, agents=() if agent is None else (agent,),
            restarted_ops=knows.restarted_ops(job.id), flaps=flaps,
        )  # fmt: skip
        run = case.run
        host = agent.host if agent is not None else None
        flapping = case.flapping.what if case.flapping is not None else None
        yield Sample(job, explain(case), run, run.driver if run is not None else None, host, flapping)


def _fine(job: Job) -> Verdict:
    """The verdict on a job that nothing is wrong with by its record."""
    code = Code.COMPLETED if job.status is JobStatus.COMPLETED else Code.RUNNING
    return Verdict(job_id=job.id, code=code, sentence="", confidence=1.0)
