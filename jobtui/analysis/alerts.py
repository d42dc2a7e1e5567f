"""What happened to jobs since the last look: new failures, and changes worth a sentence."""

from collections.abc import Callable, Iterable, Mapping
from time import perf_counter

from jobtui.analysis.flags import needs_person
from jobtui.model.bounded import Bounded
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import ClockOf, contained, here
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus

BUDGET_S = 0.004
REPORTS_KEPT = 10_000


class AlertFinder:
    """Finds jobs that begin to need a person, among those that changed since `began` and those that live.

    It checks a few at each call. If only failures are wanted, it checks changed jobs only.
    """

    def __init__(self, began: Nanos, *, only_failures: bool = False) -> None:
        self._began = began - began % SECOND  # as records note whole seconds
        self._only_failures = only_failures
        self._changed: dict[JobId, None] = {}
        self._live: dict[JobId, bool] = {}
        self._reported = Bounded[tuple[JobId, Nanos], None](REPORTS_KEPT)

    def note(self, changed: Iterable[JobId]) -> None:
        for job_id in changed:  # what changed last is checked first
            self._changed.pop(job_id, None)
            self._changed[job_id] = None

    def look(
        self, jobs: Mapping[JobId, Job], now: Nanos, budget_s: float = BUDGET_S, now_at: ClockOf = here
    ) -> list[JobId]:
        """The jobs that are newly in trouble. `now_at` gives the time by the clock of a source."""
        end = perf_counter() + budget_s
        found = []
        while self._changed and perf_counter() < end:
            job_id, _ = self._changed.popitem()
            with contained("judging a job"):
                if (job := jobs.get(job_id)) is not None and self._is_new(job, now_at(job.source, now)):
                    found.append(job_id)
        for _ in range(len(self._live)):
            if perf_counter() >= end:
                break
            job_id = next(iter(self._live))
            job = jobs.get(job_id)
            if job is None or not job.status.is_live:
                del self._live[job_id]
                continue
            with contained("judging a job"):
                if self._is_stuck_now(job, now_at(job.source, now)):
                    found.append(job_id)
        return list(dict.fromkeys(found))

    def _is_new(self, job: Job, now: Nanos) -> bool:
        if job.is_quasi:
            return False
        if job.status.is_live:
            return not self._only_failures and self._is_stuck_now(job, now)
        self._live.pop(job.id, None)
        ended = job.ended_at or job.written_at
        if job.status is not JobStatus.FAILED or ended is None or ended < self._began:
            return False
        if (job.id, ended) in self._reported:
            return False
        self._reported[job.id, ended] = None
        return True

    def _is_stuck_now(self, job: Job, now: Nanos) -> bool:
        since = job.queued_at or job.started_at
        before = self._live.pop(job.id, since is None or since < self._began)
        self._live[job.id] = stuck = needs_person(job, now)  # after all others, which are checked first
        return stuck and not before


class JobAlerts:
    """Finds jobs with a change worth a sentence: another status or run, or whether a person is needed.

    It keeps a few bytes for each known job.
    """

    def __init__(self) -> None:
        self._known: dict[JobId, tuple[JobStatus, bool, int]] = {}

    def of(self, jobs: Iterable[Job], now_of: Callable[[Job], Nanos]) -> list[Job]:
        """The jobs that changed so since the last call, in their order. `now_of` gives the time of each."""
        return [job for job in jobs if not job.is_quasi and self._is_new(job, now_of(job))]

    def forget(self, gone: Iterable[JobId]) -> None:
        for job_id in gone:
            self._known.pop(job_id, None)

    def _is_new(self, job: Job, now: Nanos) -> bool:
        stand = job.status, needs_person(job, now), job.runs
        before = self._known.get(job.id)
        self._known[job.id] = stand
        return before != stand
