"""Live jobs that wait or run longer than usual here, by the records of completed jobs of the same kind.

A kind is an application, model, mode and driver. Without a history `analysis.flags` has the limits.
"""

from collections.abc import Iterable, Mapping
from math import inf
from time import perf_counter
from typing import Self

from jobtui.analysis.explain.flow import is_beyond, usual_of, usual_words
from jobtui.analysis.times import age
from jobtui.model.bounded import Bounded
from jobtui.model.clock import Nanos
from jobtui.model.health import ClockOf, here
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.verdicts import UsualTime

RUNS_KEPT = 300
"""How many of the newest runs of a kind define what is usual."""
KINDS_KEPT = 2_000
BUDGET_S = 0.004

Kind = tuple[str, str, str, str, str]


class _Lengths:
    """How long runs of one kind waited and ran, in seconds, by job and submission."""

    __slots__ = ("_taken", "_usual")

    def __init__(self) -> None:
        self._taken = Bounded[tuple[JobId, Nanos], tuple[float, float]](RUNS_KEPT)
        self._usual: dict[JobStatus, UsualTime | None] = {}

    def add(self, job: Job) -> None:
        waited, ran = job.waited_s(Nanos(0)), job.elapsed_s(Nanos(0))
        if waited is None or ran is None or job.ended_at is None or job.queued_at is None:
            return
        self._taken[job.id, job.queued_at] = (max(0.0, waited), max(0.0, ran))
        self._usual.clear()

    def usual(self, status: JobStatus) -> UsualTime | None:
        if status not in self._usual:
            index = 0 if status is JobStatus.PENDING else 1
            self._usual[status] = usual_of([taken[index] for taken in self._taken.values()])
        return self._usual[status]


class LateJobs:
    """Learns from changed jobs that ended, and judges live ones, a few at each call."""

    def __init__(self, now_at: ClockOf = here) -> None:
        self._now_at = now_at
        self._changed: dict[JobId, None] = {}
        self._live: dict[JobId, None] = {}
        self._kinds = Bounded[Kind, _Lengths](KINDS_KEPT)
        self._late: set[JobId] = set()

    @classmethod
    def of(cls, jobs: Mapping[JobId, Job], now: Nanos, now_at: ClockOf = here) -> Self:
        """Learn from all jobs at once, only kinds with a live job, and no more than are kept."""
        found = cls(now_at)
        wanted = {_kind(job): RUNS_KEPT for job in jobs.values() if job.status.is_live}
        for job in jobs.values() if wanted else ():
            if job.status is JobStatus.COMPLETED and wanted.get(kind := _kind(job), 0):
                wanted[kind] -= 1
                found.note((job.id,))
        found.look(jobs, now, inf)
        return found

    def note(self, changed: Iterable[JobId]) -> None:
        self._changed.update(dict.fromkeys(changed))

    def look(self, jobs: Mapping[JobId, Job], now: Nanos, budget_s: float = BUDGET_S) -> set[JobId]:
        """Learn and judge. Returns the jobs for which the result changed."""
        end = perf_counter() + budget_s
        while self._changed and perf_counter() < end:
            self._learn(jobs.get(job_id := self._changed.popitem()[0]), job_id)
        turned = set()
        for _ in range(len(self._live)):
            if perf_counter() >= end:
                break
            job_id = next(iter(self._live))
            del self._live[job_id]
            job = jobs.get(job_id)
            if job is not None and job.status.is_live:
                self._live[job_id] = None  # after all others: the next call begins where this one ends
            if (self.late(job, now) is not None) != (job_id in self._late):
                turned.add(job_id)
                self._late ^= {job_id}
        return turned

    def late(self, job: Job | None, now: Nanos) -> str | None:
        """How late a job is, in words; None if it is not, or if too little is known."""
        if job is None or not job.status.is_live or not job.needs_logs:
            return None
        now, waits = self._now_at(job.source, now), job.status is JobStatus.PENDING
        seconds = job.waited_s(now) if waits else job.elapsed_s(now)
        lengths = self._kinds.get(_kind(job))
        usual = lengths.usual(job.status) if lengths is not None else None
        if seconds is None or usual is None or not is_beyond(seconds, usual):
            return None
        return f"late: {'waits' if waits else 'runs'} {age(seconds)}, {usual_words(usual)}"

    def _learn(self, job: Job | None, job_id: JobId) -> None:
        if job is None or job.status.is_live or job_id in self._late:
            self._live[job_id] = None
        if job is None or job.status is not JobStatus.COMPLETED or job.is_quasi:
            return
        kind = _kind(job)
        lengths = self._kinds.get(kind)
        if lengths is None:
            lengths = self._kinds[kind] = _Lengths()
        lengths.add(job)


def _kind(job: Job) -> Kind:
    return (job.system, job.app, job.model, job.mode, job.driver or "")
