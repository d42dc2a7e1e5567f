"""Every job system, one descriptor each. A new system is one file here and one line in SYSTEMS."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

from jobtui.analysis.explain.case import Evidence
from jobtui.backends.registry import BALSAM
from jobtui.model.condor import CONDOR, JOBSUB
from jobtui.model.jobs import SIREPO, SLURM, Job
from jobtui.model.verdicts import Contradiction, Verdict


class JobSystem(NamedTuple):
    """The rules for the jobs of one system; `Job.system` is its name.

    `contradictions` finds those between its own sources. Two records of one job are compared for all systems.
    `needs` says whether the verdict on a job rests on a part of its source, which fails.
    """

    name: str
    explain: Callable[[Evidence], Verdict]
    contradictions: Callable[[Evidence], tuple[Contradiction, ...]] = lambda evidence: ()
    needs: Callable[[Evidence, str], bool] = lambda evidence, part: True


def _rules(module: str, *names: str) -> Iterator[Callable[..., Any]]:
    """Functions of a file here, imported when they are called: most sites have jobs of one system."""
    for name in names:
        yield lambda *about, name=name: getattr(import_module(f"{__name__}.{module}"), name)(*about)


_CONDOR_RULES = tuple(_rules("condor", "explain_condor", "exit_contradictions"))
SYSTEMS = (
    JobSystem(SIREPO, *_rules("sirepo", "explain_sirepo", "log_contradictions")),
    JobSystem(BALSAM.kind, *_rules("balsam", "explain_balsam", "event_contradictions", "needs_part")),
    # A job of which accounting does not say how it ended says so itself
    JobSystem(SLURM, next(_rules("slurm", "explain_slurm")), needs=lambda evidence, part: False),
    JobSystem(CONDOR, *_CONDOR_RULES),
    JobSystem(JOBSUB, *_CONDOR_RULES),
)


def system_of(job: Job | None) -> JobSystem:
    """The system of a job; Sirepo if there is no record or its system is unknown."""
    return next((one for one in SYSTEMS if job is not None and one.name == job.system), SYSTEMS[0])
