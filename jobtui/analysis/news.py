"""What has become of jobs since one last looked: the few things that are worth a sentence."""

from collections.abc import Iterable
from typing import NamedTuple

from jobtui.analysis.flags import needs_person
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus


class _Stand(NamedTuple):
    status: JobStatus
    needs_person: bool
    runs: int


class News:
    """Tells which jobs came to stand otherwise: another status or run, in need of a person or no longer.

    It keeps a few bytes of each job that is known.
    """

    def __init__(self) -> None:
        self._known: dict[JobId, _Stand] = {}

    def of(self, jobs: Iterable[Job], now: Nanos) -> list[Job]:
        """Those of these jobs that stand otherwise than at the last look, in the order given."""
        return [job for job in jobs if not job.is_quasi and self._is_new(job, now)]

    def forget(self, gone: Iterable[JobId]) -> None:
        """Let go of jobs that are no longer there."""
        for job_id in gone:
            self._known.pop(job_id, None)

    def _is_new(self, job: Job, now: Nanos) -> bool:
        stand = _Stand(job.status, needs_person(job, now), job.runs)
        before = self._known.get(job.id)
        self._known[job.id] = stand
        return before != stand
