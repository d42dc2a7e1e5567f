"""Verdicts on jobs of systems that tell the state of a job by themselves: Balsam, Slurm, HTCondor."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from jobtui.analysis.explain.balsam import SYSTEM as BALSAM
from jobtui.analysis.explain.balsam import BalsamFacts, explain_balsam
from jobtui.analysis.explain.condor import SYSTEMS as CONDOR
from jobtui.analysis.explain.condor import explain_condor
from jobtui.analysis.explain.slurm import explain_slurm
from jobtui.model.clock import Nanos
from jobtui.model.condor_facts import CondorFact
from jobtui.model.health import SourceHealth
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.slurm import SYSTEM as SLURM
from jobtui.model.verdicts import Verdict


class Beside(NamedTuple):
    """What is known beside a job: what Balsam says, its whole record where that was read, what files say."""

    balsam: BalsamFacts = BalsamFacts()
    detail: JobDetail | None = None
    condor: Sequence[CondorFact] = ()


Explainer = Callable[[Job, Beside, Sequence[SourceHealth], Nanos], Verdict]

EXPLAINERS: Mapping[str, Explainer] = {
    BALSAM: lambda job, beside, sources, now: explain_balsam(job, beside.balsam, sources, now),
    SLURM: lambda job, beside, sources, now: explain_slurm(job, beside.detail, sources, now),
    **dict.fromkeys(
        CONDOR,
        lambda job, beside, sources, now: explain_condor(job, beside.condor, sources, now, beside.detail),
    ),
}
"""By the system of a job; of any other system logs tell what is the matter."""
