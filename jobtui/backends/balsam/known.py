"""What is known of a Balsam server's jobs, and records out of it: what changed when rows and events came in.

Rows of jobs tell how they are, events how they came to be so; either may come first. Within bounds: of jobs
the ones changed longest ago go first.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from jobtui.backends.balsam.rows import (
    SYSTEM,
    AppRow,
    JobRow,
    Lifetime,
    Placed,
    SiteRow,
    job_of,
)
from jobtui.model.changes import StateChange
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId, system_job_id
from jobtui.model.jobs import Job
from jobtui.model.state_runs import RUNNING

JOBS_KEPT = 200_000
SEEN_KEPT = 400_000
"""The newest so many events are known again, more than come while it is looked back."""


class Known:
    """Rows and events of one server. `source` is its name, `owner` whose jobs they are.

    `system` is what the ids of its jobs begin with.
    """

    def __init__(self, source: str, owner: str, system: str = SYSTEM) -> None:
        self._source = source
        self._system = system
        self._prefix = len(f"{system}/")
        self._owner = owner
        self._lives: dict[int, Lifetime] = {}
        self._seen: dict[int, Nanos] = {}
        self._seen_before: dict[int, Nanos] = {}
        self._silent: dict[int, str] = {}
        self.rows: dict[int, JobRow] = {}
        self.apps: dict[int, AppRow] = {}
        self.sites: dict[int, SiteRow] = {}
        self.allocations: dict[int, str] = {}
        """The ids by which each allocation is known: its own and the scheduler's."""
        self.signs: dict[int, Nanos] = {}
        """When the first job began to run in each allocation."""
        self.newest = Nanos(0)
        """The newest time of an event."""
        self.went_back = False
        """Whether an id came again for another event or site: a backup, or a server that was set up anew."""

    def take_sites(self, sites: Mapping[int, SiteRow]) -> None:
        """Learn which sites there are. One of the same id that was made at another time is another one.

        So a server that was set up anew shows as soon as it has a site, also where no event's id collides.
        """
        known = self.sites
        if any(id in known and known[id].creation_date != site.creation_date for id, site in sites.items()):
            self.went_back = True
            self.apps.clear()
        self.sites = dict(sites)

    def take_jobs(self, rows: Iterable[JobRow]) -> list[JobRow]:
        """Learn from rows; those that tell something new."""
        fresh = [row for row in rows if self.rows.get(row.id) != row]
        for row in fresh:
            # To the end: the first are those whose change was seen longest ago
            self.rows.pop(row.id, None)
            self.rows[row.id] = row
        return fresh

    def let_go(self) -> tuple[JobId, ...]:
        """Forget those jobs that are too many; their ids."""
        surplus = len(self.rows) - JOBS_KEPT
        return self.drop(list(islice(self.rows, surplus))) if surplus > 0 else ()

    def take_changes(self, changes: Iterable[StateChange]) -> list[StateChange]:
        """Learn from changes; those that were not known, each once."""
        fresh: list[StateChange] = []
        for change in changes:
            known_at = self._seen.get(change.id, self._seen_before.get(change.id))
            if known_at == change.at:
                continue
            self.went_back = self.went_back or known_at is not None
            self._seen[change.id] = change.at
            number = self._number(change)
            self._lives.setdefault(number, Lifetime()).take(change)
            self._note_sign(number, change)
            self.newest = max(self.newest, change.at)
            fresh.append(change)
        self._forget_events()
        return fresh

    def rows_of(self, changes: Iterable[StateChange]) -> Iterator[JobRow]:
        """The rows of the jobs that changes are about."""
        numbers = dict.fromkeys(map(self._number, changes))
        return (self.rows[number] for number in numbers if number in self.rows)

    def strangers(self, changes: Iterable[StateChange]) -> Iterator[int]:
        """Jobs of which only events are known."""
        return (number for number in dict.fromkeys(map(self._number, changes)) if number not in self.rows)

    def unexplained(self, rows: Iterable[JobRow]) -> list[int]:
        """Jobs in a state to which no event is known to have led: its sender's clock may be off.

        Each is named once for each change of its row, as there may be no such event.
        """
        found = []
        for row in rows:
            life = self._lives.get(row.id)
            if (life is None or life.state != row.state) and self._silent.get(row.id) != row.last_update:
                found.append(row.id)
        return found

    def asked_about(self, numbers: Iterable[int]) -> None:
        """All events of these jobs were asked for; there may be none that explains their state."""
        for number in numbers:
            if number in self.rows:
                self._silent[number] = self.rows[number].last_update

    def forget_events(self) -> None:
        """Let all events be read anew, as some that were read are not the server's any more."""
        for kept in (self._lives, self._silent, self._seen, self._seen_before, self.signs):
            kept.clear()
        self.went_back = False

    def drop(self, numbers: Iterable[int]) -> tuple[JobId, ...]:
        """Forget jobs that are no more; their ids."""
        ids = []
        for number in numbers:
            self._lives.pop(number, None)
            self._silent.pop(number, None)
            if self.rows.pop(number, None) is not None:
                ids.append(system_job_id(self._system, number))
        return tuple(ids)

    def job(self, row: JobRow, alert: str | None = None) -> Job:
        """A job as all systems have it."""
        app = self.apps.get(row.app_id)
        site = self.sites.get(app.site_id) if app is not None else None
        allocation = self.allocations.get(row.batch_job_id, "") if row.batch_job_id is not None else ""
        placed = Placed(app.name if app else "", site.name if site else "", self._owner, alert, allocation)
        return job_of(row, self._lives.get(row.id, Lifetime()), placed, self._source, self._system)

    def site_of(self, row: JobRow) -> int | None:
        """The site that a job is for."""
        app = self.apps.get(row.app_id)
        return None if app is None else app.site_id

    def _note_sign(self, number: int, change: StateChange) -> None:
        """The first sign of life of an allocation, which has no start before its end."""
        row = self.rows.get(number)
        if change.after == RUNNING and row is not None and row.batch_job_id is not None:
            known = self.signs.get(row.batch_job_id)
            self.signs[row.batch_job_id] = change.at if known is None else min(known, change.at)

    def _forget_events(self) -> None:
        """Keep the newest of what was seen, in two halves, so that forgetting takes no time."""
        if len(self._seen) > SEEN_KEPT // 2:
            self._seen_before, self._seen = self._seen, {}

    def _number(self, change: StateChange) -> int:
        return int(change.job_id[self._prefix :])
