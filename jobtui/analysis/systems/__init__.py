"""Every job system, one descriptor each. A new system is one file here and one line in SYSTEMS."""

from collections.abc import Callable
from typing import NamedTuple

from jobtui.analysis.explain.case import Evidence
from jobtui.analysis.systems.balsam import SYSTEM as BALSAM
from jobtui.analysis.systems.balsam import event_contradictions, explain_balsam
from jobtui.analysis.systems.condor import exit_contradictions, explain_condor
from jobtui.analysis.systems.sirepo import explain_sirepo, log_contradictions
from jobtui.analysis.systems.slurm import explain_slurm
from jobtui.model.condor import CONDOR, JOBSUB
from jobtui.model.jobs import SIREPO, Job
from jobtui.model.slurm import SYSTEM as SLURM
from jobtui.model.verdicts import Contradiction, Verdict


class JobSystem(NamedTuple):
    """The rules for the jobs of one system; `Job.system` is its name.

    `contradictions` finds those between its own sources. Two records of one job are compared for all systems.
    """

    name: str
    explain: Callable[[Evidence], Verdict]
    contradictions: Callable[[Evidence], tuple[Contradiction, ...]] = lambda evidence: ()


SYSTEMS = (
    JobSystem(SIREPO, explain_sirepo, log_contradictions),
    JobSystem(BALSAM, explain_balsam, event_contradictions),
    JobSystem(SLURM, explain_slurm),
    JobSystem(CONDOR, explain_condor, exit_contradictions),
    JobSystem(JOBSUB, explain_condor, exit_contradictions),
)


def system_of(job: Job | None) -> JobSystem:
    """The system of a job; Sirepo if there is no record or its system is unknown."""
    return next((one for one in SYSTEMS if job is not None and one.name == job.system), SYSTEMS[0])
