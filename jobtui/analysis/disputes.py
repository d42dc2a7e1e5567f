"""The jobs about which sources disagree, found out of what changed, a few milliseconds at a time."""

from collections.abc import Iterable, Mapping
from time import perf_counter

import msgspec

from jobtui.analysis.contradictions import SETTLED_S, contradictions
from jobtui.analysis.explain.case import Coverage
from jobtui.analysis.explain.gather import Knows, coverage_of, gather
from jobtui.analysis.slurm_join import POLLED_S, sirepo_of, slurm_of
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import SourceHealth
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job

REST = Nanos(round((SETTLED_S + 1) * SECOND))
"""How long after its last change a job is looked at: by then sources that lag have caught up."""
LATER = Nanos(round((POLLED_S + 1) * SECOND))
"""How long after that a job that runs through Slurm is looked at again."""
BUDGET_S = 0.004
"""How long looking may take at a time."""


class Disputes:
    """Told which jobs changed, it looks at each once it has rested. Jobs without ops cost little.

    Jobs that run through Slurm are looked at once more, when both had the time to hear of each other.
    """

    def __init__(self) -> None:
        self._due: dict[JobId, Nanos] = {}
        self._later: dict[JobId, Nanos] = {}
        self._slurm: dict[JobId, JobId] = {}
        self._found: set[JobId] = set()

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._found

    def note(self, changed: Iterable[JobId], now: Nanos) -> None:
        """These have changed; each is looked at later, once."""
        for job_id in changed:
            _put_off(self._due, job_id, Nanos(now + REST))

    def look(
        self,
        knows: Knows,
        jobs: Mapping[JobId, Job],
        sources: Iterable[SourceHealth],
        now: Nanos,
        budget_s: float = BUDGET_S,
    ) -> set[JobId]:
        """Look at those that have rested; the jobs of which it is no longer as it was."""
        end = perf_counter() + budget_s
        coverage = coverage_of(knows.heard, sources)
        turned = set()
        for due in (self._due, self._later):
            while due and perf_counter() < end and due[job_id := next(iter(due))] <= now:
                del due[job_id]
                if due is self._due:
                    self._join(jobs.get(job_id), now)
                disagree = self._do_disagree(job_id, knows, jobs, coverage, now)
                if disagree != (job_id in self._found):
                    turned.add(job_id)
                    (self._found.add if disagree else self._found.discard)(job_id)
        return turned

    def _join(self, job: Job | None, now: Nanos) -> None:
        """Look at a job of Sirepo again some time after it, or the Slurm job that it runs as, has changed."""
        if job is None:
            return
        submitter = sirepo_of(job)
        if submitter is not None:
            self._slurm[submitter] = job.id
        if submitter is not None or job.id in self._slurm:
            _put_off(self._later, submitter or job.id, Nanos(now + LATER))

    def _do_disagree(
        self, job_id: JobId, knows: Knows, jobs: Mapping[JobId, Job], coverage: Coverage, now: Nanos
    ) -> bool:
        job, ops = jobs.get(job_id), knows.ops_of(job_id)
        slurm = jobs.get(self._slurm[job_id]) if job_id in self._slurm else None
        if job is None or not (ops or slurm):
            return False
        restarted = knows.restarted_ops(job_id)
        case = gather(job_id, now, coverage, job=job, runs=None, ops=ops, agents=(), restarted_ops=restarted)
        known = slurm_of(job, (slurm,)) if slurm is not None else None
        return bool(contradictions(msgspec.structs.replace(case, slurm=known)))


def _put_off(due: dict[JobId, Nanos], job_id: JobId, until: Nanos) -> None:
    """Have a job looked at then, after those that are due before; a queue has but one length of rest."""
    due.pop(job_id, None)
    due[job_id] = until
