"""The jobs about which sources disagree, found out of what changed, a few milliseconds at a time."""

from collections.abc import Iterable, Mapping
from time import perf_counter

from jobtui.analysis.contradictions import SETTLED_S, contradictions
from jobtui.analysis.explain.gather import Knows, coverage_of, gather
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import SourceHealth
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job

REST = Nanos(round((SETTLED_S + 1) * SECOND))
"""How long after its last change a job is looked at: by then sources that lag have caught up."""
BUDGET_S = 0.004
"""How long looking may take at a time."""


class Disputes:
    """Told which jobs changed, it looks at each once it has rested. Jobs without ops cost little."""

    def __init__(self) -> None:
        self._due: dict[JobId, Nanos] = {}
        self._found: set[JobId] = set()

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._found

    def note(self, changed: Iterable[JobId], now: Nanos) -> None:
        """These have changed; each is looked at later, once."""
        due = Nanos(now + REST)
        for job_id in changed:
            self._due.pop(job_id, None)
            self._due[job_id] = due

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
        while self._due and perf_counter() < end:
            job_id = next(iter(self._due))
            if self._due[job_id] > now:
                break
            del self._due[job_id]
            job, ops = jobs.get(job_id), knows.ops_of(job_id)
            disagree = False
            if job is not None and ops:
                restarted = knows.restarted_ops(job_id)
                case = gather(
                    job_id, now, coverage, job=job, runs=None, ops=ops, agents=(), restarted_ops=restarted
                )
                disagree = bool(contradictions(case))
            if disagree != (job_id in self._found):
                turned.add(job_id)
                (self._found.add if disagree else self._found.discard)(job_id)
        return turned
