"""Counts of jobs by status, and of arrivals and ends per minute."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import SourceHealth
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus

MINUTES = 10
"""How many minutes are counted, including the present one."""
_STEP = 10 * SECOND
_STEPS_PER_MINUTE = 6
_KEPT = 2 * MINUTES * _STEPS_PER_MINUTE
"""The most steps after the first one. A time further in the future is not counted."""


class Flow(NamedTuple):
    """Jobs in each of the last minutes, the present one last, and in the last 60 seconds."""

    by_minute: tuple[int, ...]
    per_minute: int


class Pace(NamedTuple):
    """Arrivals and ends."""

    arrivals: Flow
    ends: Flow

    @property
    def is_still(self) -> bool:
        return not any(self.arrivals.by_minute) and not any(self.ends.by_minute)


class RateCounter:
    """Counts arrivals and ends of jobs. A job that runs again arrives and ends again."""

    def __init__(self, now: Callable[[], Nanos]) -> None:
        self._now = now
        self._arrivals: Counter[int] = Counter()
        self._ends: Counter[int] = Counter()
        self._first: int | None = None

    def note(self, before: Job | None, after: Job) -> None:
        if after.is_quasi:
            return
        is_same_run = before is not None and before.queued_at == after.queued_at
        if not is_same_run:
            self._add(self._arrivals, after.queued_at, 1)
            self._add(self._ends, after.ended_at, 1)
        elif before is not None and before.ended_at != after.ended_at:
            # The end of a run that was known already is now known more exactly
            self._add(self._ends, before.ended_at, -1)
            self._add(self._ends, after.ended_at, 1)

    def pace(self, now: Nanos) -> Pace:
        self._first = first = _oldest(now)
        for counts in (self._arrivals, self._ends):
            for step in [step for step in counts if step < first]:
                del counts[step]
        return Pace(_flow(self._arrivals, now), _flow(self._ends, now))

    def _add(self, counts: Counter[int], at: Nanos | None, count: int) -> None:
        if at is None:
            return
        if self._first is None:
            self._first = _oldest(self._now())
        if self._first <= (step := at // _STEP) < self._first + _KEPT:
            counts[step] += count


def _oldest(now: Nanos) -> int:
    return (now // _STEP // _STEPS_PER_MINUTE - MINUTES + 1) * _STEPS_PER_MINUTE


def _flow(counts: Counter[int], now: Nanos) -> Flow:
    first, present = _oldest(now), now // _STEP
    by_minute = tuple(
        _between(counts, begin, min(begin + _STEPS_PER_MINUTE, present + 1))
        for begin in range(first, first + MINUTES * _STEPS_PER_MINUTE, _STEPS_PER_MINUTE)
    )
    return Flow(by_minute, _between(counts, present - _STEPS_PER_MINUTE, present))


def _between(counts: Counter[int], begin: int, end: int) -> int:
    return max(0, sum(counts[step] for step in range(begin, end)))


RECENT_S = 3600
_NOTHING = Flow((0,) * MINUTES, 0)
STILL = Pace(_NOTHING, _NOTHING)


class Counts(NamedTuple):
    """Jobs by status, how many failed in the last hour, how many come and end. Quasi jobs do not count."""

    by_status: dict[JobStatus, int]
    failed_lately: int
    pace: Pace = STILL


BASELINE_S = 24 * 3600
"""Before the last hour; how many of the jobs that ended then had failed is usual."""
LEAST_ENDED = 5
"""With fewer jobs no share is compared with another."""
UNUSUAL = 2.0


class ProfileState(NamedTuple):
    """The state of one of several profiles: its sources, what runs, what ended and failed in the last hour.

    `usual_share` is how many of those failed that ended in the day before, None where few did.
    """

    profile: str
    up: int
    sources: int
    running: int
    ended: int
    failed: int
    usual_share: float | None
    longest_wait_s: float | None

    @property
    def is_unusual(self) -> bool:
        if self.ended < LEAST_ENDED or self.usual_share is None:
            return False
        return self.failed >= LEAST_ENDED and self.failed / self.ended > UNUSUAL * self.usual_share


def profile_states(
    profiles: Iterable[str],
    jobs: Iterable[Job],
    sources: Iterable[SourceHealth],
    profile_of: Callable[[str], str],
    now_of: Callable[[Job], Nanos],
) -> list[ProfileState]:
    """The state of each profile, by these sources; empty if there are fewer than two profiles."""
    health: dict[str, list[SourceHealth]] = {profile: [] for profile in profiles}
    for source in sources:
        if source.profile in health:
            health[source.profile].append(source)
    if len(health) < 2:
        return []
    jobs_of: dict[str, list[Job]] = {profile: [] for profile in health}
    for job in jobs:
        if (profile := profile_of(job.source)) in health and not job.is_quasi:
            jobs_of[profile].append(job)
    return [_profile_state(profile, jobs_of[profile], named, now_of) for profile, named in health.items()]


def _profile_state(
    profile: str, jobs: Iterable[Job], sources: Sequence[SourceHealth], now_of: Callable[[Job], Nanos]
) -> ProfileState:
    count, longest_wait_s = Counter[str](), None
    for job in jobs:
        now = now_of(job)
        if job.status is JobStatus.RUNNING:
            count["running"] += 1
        elif job.status is JobStatus.PENDING:
            longest_wait_s = max(longest_wait_s or 0.0, job.waited_s(now) or 0.0)
        elif job.ended_at is not None and (ago := (now - job.ended_at) // SECOND) < RECENT_S + BASELINE_S:
            when = "recently" if ago < RECENT_S else "before"
            count[when] += 1
            count[f"failed {when}"] += job.status is JobStatus.FAILED
    return ProfileState(
        profile=profile,
        up=sum(not one.is_unread for one in sources),
        sources=len(sources),
        running=count["running"],
        ended=count["recently"],
        failed=count["failed recently"],
        usual_share=count["failed before"] / count["before"] if count["before"] >= LEAST_ENDED else None,
        longest_wait_s=longest_wait_s,
    )


class JobTally:
    """Keeps the counts. `now` defines the last hour and the last minutes."""

    def __init__(self, now: Callable[[], Nanos]) -> None:
        self._pulse = RateCounter(now)
        self._by_status: Counter[JobStatus | None] = Counter()
        self._failed_at: dict[JobId, Nanos] = {}

    def move(self, before: Job | None, after: Job | None) -> None:
        """Count a changed job; None for one that was not there before, or is gone."""
        old = None if before is None or before.is_quasi else before.status
        new = None if after is None or after.is_quasi else after.status
        self._by_status[old] -= 1
        self._by_status[new] += 1
        if after is not None:
            self._pulse.note(before, after)
        if old is JobStatus.FAILED and before is not None:
            self._failed_at.pop(before.id, None)
        if new is JobStatus.FAILED and after is not None:
            at = after.ended_at if after.ended_at is not None else after.updated_at
            if at is not None:
                self._failed_at[after.id] = at

    def counts(self, now: Nanos) -> Counts:
        since = now - RECENT_S * SECOND
        self._failed_at = {job_id: at for job_id, at in self._failed_at.items() if at > since}
        by_status = {status: self._by_status[status] for status in JobStatus}
        return Counts(by_status, len(self._failed_at), self._pulse.pace(now))
