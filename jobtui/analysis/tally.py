"""How many jobs there are of each status, kept up to date job by job."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from jobtui.analysis.pace import MINUTES, Flow, Pace, Pulse
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus

RECENT_S = 3600
"""Failures count as recent for this long."""


_NOTHING = Flow((0,) * MINUTES, 0)
STILL = Pace(_NOTHING, _NOTHING)
"""Nothing came and nothing ended."""


class Counts(NamedTuple):
    """Jobs by status, how many failed in the last hour, how many come and end. Quasi jobs do not count."""

    by_status: dict[JobStatus, int]
    failed_lately: int
    pace: Pace = STILL


class Tally:
    """Counts of the jobs it was told of. `now` tells what is too old to be counted as lately."""

    def __init__(self, now: Callable[[], Nanos]) -> None:
        self._pulse = Pulse(now)
        self._by_status: Counter[JobStatus] = Counter()
        self._failed_at: dict[JobId, Nanos] = {}

    def move(self, before: Job | None, after: Job | None) -> None:
        """A job changed; None where it was not there, or is no more."""
        old = None if before is None or before.is_quasi else before.status
        new = None if after is None or after.is_quasi else after.status
        if old is not new:
            if old is not None:
                self._by_status[old] -= 1
            if new is not None:
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
        """The counts, as of now."""
        since = now - RECENT_S * SECOND
        self._failed_at = {job_id: at for job_id, at in self._failed_at.items() if at > since}
        by_status = {status: self._by_status[status] for status in JobStatus}
        return Counts(by_status, len(self._failed_at), self._pulse.pace(now))
