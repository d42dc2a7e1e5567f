"""Every job system, one descriptor each. A new system is one file here and one line in SYSTEMS."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from jobtui.analysis.explain.case import Evidence
from jobtui.backends.registry import BALSAM
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


def _rules(module: str, name: str) -> Callable[[Evidence], Any]:
    """A function of a file here, imported when it is called: most sites have jobs of one system."""
    return lambda evidence: getattr(import_module(f"{__name__}.{module}"), name)(evidence)


_CONDOR_RULES = _rules("condor", "explain_condor"), _rules("condor", "exit_contradictions")
SYSTEMS = (
    JobSystem(SIREPO, _rules("sirepo", "explain_sirepo"), _rules("sirepo", "log_contradictions")),
    JobSystem(BALSAM.kind, _rules("balsam", "explain_balsam"), _rules("balsam", "event_contradictions")),
    JobSystem(SLURM, _rules("slurm", "explain_slurm")),
    JobSystem(CONDOR, *_CONDOR_RULES),
    JobSystem(JOBSUB, *_CONDOR_RULES),
)


def system_of(job: Job | None) -> JobSystem:
    """The system of a job; Sirepo if there is no record or its system is unknown."""
    return next((one for one in SYSTEMS if job is not None and one.name == job.system), SYSTEMS[0])
