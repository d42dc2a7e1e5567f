"""A verdict with the chain of waits behind it, out of all that is known now."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from jobtui.analysis.contradictions import Contradiction, contradictions
from jobtui.analysis.explain.balsam import BalsamFacts
from jobtui.analysis.explain.condor import SYSTEMS as CONDOR
from jobtui.analysis.explain.condor import exit_contradictions
from jobtui.analysis.explain.gather import Knows, case_from
from jobtui.analysis.explain.native import EXPLAINERS, Beside
from jobtui.analysis.explain.verdict import explain
from jobtui.analysis.flags import LIMITS_S, limit_s
from jobtui.analysis.run_lengths import usual_length
from jobtui.analysis.slurm_join import slurm_of
from jobtui.analysis.waits import Chain, Scene, wait_chain, waited_slot
from jobtui.model.clock import Nanos
from jobtui.model.condor_facts import CondorFact
from jobtui.model.condor_life import CondorLife
from jobtui.model.health import SourceHealth
from jobtui.model.ids import JobId, split_jid
from jobtui.model.jobs import Job, JobDetail, Run
from jobtui.model.ops import Op
from jobtui.model.verdicts import Usual, Verdict

ANALYSIS_LIMIT_S = 144.0
"""How long an analysis or a download may take, as the supervisor is delivered."""


class KnowsOpen(Knows, Protocol):
    """Correlation that also tells what is open."""

    def open_ops(self) -> tuple[Op, ...]:
        """Every op that has not ended, oldest first."""
        ...


class Study(NamedTuple):
    """What explaining a job gives: the verdict, whom it waits for, and where its sources disagree."""

    verdict: Verdict
    chain: Chain
    contradictions: tuple[Contradiction, ...] = ()


def study(
    knows: KnowsOpen,
    jobs: Mapping[JobId, Job],
    sources: Iterable[SourceHealth],
    job_id: JobId,
    now: Nanos,
    runs: Sequence[Run] | None,
    behind: Mapping[tuple[str, int], str] | None = None,
    balsam: BalsamFacts | None = None,
    detail: JobDetail | None = None,
    slurm_id: str | None = None,
    told: Sequence[CondorFact] = (),
) -> Study:
    """Explain a job. `runs` is its history where it was read; for `behind` see `gather`.

    `balsam` is what is known beside a job of Balsam, `detail` the record of a job where it was read,
    `slurm_id` the number that a job of Sirepo has in Slurm, where that was noted, `told` what files say of
    a job of HTCondor.
    """
    job = jobs.get(job_id)
    if job is not None and (explainer := EXPLAINERS.get(job.system)) is not None:
        beside = Beside(balsam or BalsamFacts(), detail, told)
        disagree = exit_contradictions(CondorLife(told), told) if job.system in CONDOR else ()
        return Study(explainer(job, beside, tuple(sources), now), Chain(()), disagree)
    case = case_from(knows, sources, job_id, now, job, runs, behind)
    if (slurm := slurm_of(job, jobs.values(), slurm_id)) is not None:
        case = msgspec.structs.replace(case, slurm=slurm)
    waits = case.run is not None and waited_slot(case.run) is not None
    chain = wait_chain(case.run, _scene(knows, jobs, now)) if waits and case.run is not None else Chain(())
    return Study(explain(case), chain, contradictions(case))


def _scene(knows: KnowsOpen, jobs: Mapping[JobId, Job], now: Nanos) -> Scene:
    open_ops = knows.open_ops()
    runs = {op.jid: op for op in open_ops if op.name == "run"}
    cancels = {
        runs[op.jid].key: op
        for op in open_ops
        if op.name == "cancel" and op.jid in runs and op.key > runs[op.jid].key
    }

    def usual_of(op: Op) -> Usual | None:
        parts = split_jid(op.jid) if op.jid is not None else None
        if parts is None or op.name != "run":
            return None
        return usual_length(knows.runs_like(parts.model, op.driver))

    def limit_of(op: Op) -> float | None:
        if op.name != "run":
            return ANALYSIS_LIMIT_S
        job = jobs.get(op.jid) if op.jid is not None else None
        return limit_s(job) if job is not None else LIMITS_S.get(op.kind or "")

    agents = {agent.agent: agent for agent in knows.agents()}
    return Scene(open_ops, agents, now, usual_of, limit_of, cancels)
