"""Explain many jobs, a turn at a time: what went wrong in a window, for a view of incidents."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from jobtui.analysis.explain.balsam import BalsamFacts
from jobtui.analysis.explain.case import Case
from jobtui.analysis.explain.gather import Knows, coverage_of, gather
from jobtui.analysis.explain.native import EXPLAINERS, Beside
from jobtui.analysis.explain.verdict import explain
from jobtui.analysis.flags import needs_person
from jobtui.analysis.flapping import Flaps
from jobtui.analysis.incidents import Grouping, Incidents, Sample, happened_at
from jobtui.analysis.turns import Turns
from jobtui.model.changes import Allocation, Site, StateChange
from jobtui.model.clock import Nanos, to_rfc3339
from jobtui.model.condor_facts import CondorFact
from jobtui.model.health import SourceHealth
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.ops import Agent, Op
from jobtui.model.verdicts import RELIABLE, Code, Verdict

GONE_WRONG = frozenset({JobStatus.FAILED, JobStatus.CANCELED})
OF_RESTARTS = frozenset({Code.SUPERVISOR_RESTARTED, Code.STALE_RECORD})
"""What becomes of a run that a restart of its supervisor has ended: asked for again, or not."""

CHOSEN_AT_ONCE = 4_096
"""Jobs of which it is decided in one turn whether they are looked at."""
TAKEN_AT_ONCE = 16
"""Jobs that are explained and grouped in one turn: some milliseconds."""


class Known(Protocol):
    """All that is known now. `store.Store` is it."""

    @property
    def correlation(self) -> Knows:
        """What log lines tell."""
        ...

    @property
    def jobs(self) -> Mapping[JobId, Job]:
        """Every job."""
        ...

    def sources(self) -> tuple[SourceHealth, ...]:
        """How the sources do."""
        ...

    def changes_of(self, job_id: JobId) -> tuple[StateChange, ...]:
        """How the state of a job changed."""
        ...

    def allocations(self) -> tuple[Allocation, ...]:
        """Every allocation of Balsam."""
        ...

    def sites(self) -> tuple[Site, ...]:
        """Every site of Balsam."""
        ...

    def facts_of(self, job_id: JobId) -> tuple[CondorFact, ...]:
        """What files say of a job of HTCondor."""
        ...


def is_within(job: Job, since: Nanos, until: Nanos) -> bool:
    """Whether something happened to a job in a stretch of time, or it is live; quasi jobs are left out."""
    if job.is_quasi:
        return False
    return job.status.is_live or ((at := happened_at(job)) is not None and since <= at <= until)


def survey_turns(known: Known, since: Nanos, until: Nanos, now: Nanos) -> Turns[Incidents]:
    """What went wrong between two times, in turns of some milliseconds."""
    everything = tuple(known.jobs.values())
    chosen: list[Job] = []
    for begin in range(0, len(everything), CHOSEN_AT_ONCE):
        chosen += [job for job in everything[begin : begin + CHOSEN_AT_ONCE] if is_within(job, since, until)]
        yield
    grouping = Grouping()
    surveyed = samples(known.correlation, chosen, known.sources(), now, partial(beside_of, known))
    for number, sample in enumerate(surveyed):
        grouping.add(sample)
        if number % TAKEN_AT_ONCE == 0:
            yield
    return grouping.found()


def beside_of(known: Known, job: Job) -> Beside:
    """What is known beside a job, without its whole record."""
    balsam = BalsamFacts(known.changes_of(job.id), known.allocations(), known.sites())
    return Beside(balsam, None, known.facts_of(job.id))


def samples(
    knows: Knows,
    chosen: Sequence[Job],
    sources: Iterable[SourceHealth],
    now: Nanos,
    beside: Callable[[Job], Beside],
) -> Iterator[Sample]:
    """Each of the chosen jobs explained, by its logs or by what is known beside it.

    What is well by its record and logs costs next to nothing. Whoever must not block for long takes a few
    at a time.
    """
    survey = _Survey(knows, tuple(sources), now, beside)
    return map(survey.sample, chosen)


class _Survey:
    """Explains one job after another out of what is known at one moment."""

    def __init__(
        self, knows: Knows, sources: tuple[SourceHealth, ...], now: Nanos, beside: Callable[[Job], Beside]
    ) -> None:
        self._knows = knows
        self._sources = sources
        self._now = now
        self._beside = beside
        self._coverage = coverage_of(knows.heard, sources)
        everyone = knows.agents()
        self._agents: Mapping[str, Agent] = {agent.agent: agent for agent in everyone}
        self._flaps = Flaps(everyone)

    def sample(self, job: Job) -> Sample:
        """A job explained."""
        is_suspect = job.status in GONE_WRONG or needs_person(job, self._now)
        if (explainer := EXPLAINERS.get(job.system)) is not None:
            if not is_suspect:
                return Sample(job, _fine(job))
            verdict = explainer(job, self._beside(job), self._sources, self._now)
            return Sample(job, verdict, driver=job.app or None, host=job.host)
        # A live record is no heartbeat: its logs may know better
        ops = self._knows.ops_of(job.id) if is_suspect or job.status.is_live else ()
        if not is_suspect and not ops:
            return Sample(job, _fine(job))
        found = self._explained(job, ops)
        is_told = is_suspect or found.verdict.confidence >= RELIABLE
        return found if is_told else found._replace(verdict=_fine(job))

    def _explained(self, job: Job, ops: tuple[Op, ...]) -> Sample:
        """A job of Sirepo."""
        last = next((op for op in reversed(ops) if op.name == "run"), None)
        prefix = (last.agent or last.assigned_agent) if last is not None else None
        agent = self._agents.get(prefix) if prefix is not None else None
        case = gather(
            job.id, self._now, self._coverage, job=job, runs=None, ops=ops,
            agents=() if agent is None else (agent,),
            restarted_ops=self._knows.restarted_ops(job.id), flaps=self._flaps,
        )  # fmt: skip
        verdict = explain(case)
        return Sample(
            job,
            verdict,
            case.run,
            driver=case.run.driver if case.run is not None else None,
            host=agent.host if agent is not None else None,
            flapping=case.flapping.what if case.flapping is not None else None,
            restart=_restart(case) if verdict.code in OF_RESTARTS else None,
        )


def _restart(case: Case) -> str | None:
    """Which restart has ended the latest run, in words that no other one has."""
    step = case.restart
    if step is None:
        return None
    name = step.source.rpartition("/")[2]
    where = f"{name}:{step.line}" if step.line else name
    return f"{to_rfc3339(step.at)} ({where})" if step.at is not None else where


def _fine(job: Job) -> Verdict:
    """The verdict on a job that nothing is wrong with by its record."""
    code = Code.COMPLETED if job.status is JobStatus.COMPLETED else Code.RUNNING
    return Verdict(job_id=job.id, code=code, sentence="", confidence=1.0)
