"""How jobs went from state to state: what charts, timelines and time-in-state are made of, for any system."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

import msgspec

from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.ids import JobId
from jobtui.model.numbers import counted
from jobtui.model.secret_words import MASK
from jobtui.model.secrets import is_secret_key

SILENT_S = 300
"""A launcher that was silent for this many seconds is dead to its server; the agent of a site may be."""
RUNNING = "running"
OPEN = frozenset({RUNNING, "pending_submission", "queued"})
ENDED_ALLOCATIONS = frozenset({"finished", "submit_failed"})
UNLISTED = "unlisted"
"""The state of an allocation that a launcher names and its server does not list."""


class StateChange(msgspec.Struct, frozen=True, gc=False):
    """One change of one job's state. `before` and `after` are the system's own words.

    `id` is unique within `source` and grows in the order in which the system learnt of changes. The order of
    `at` may differ: senders have their own clocks and queues. `nodes` is how many nodes (or what part of one)
    the job takes while it runs, if the system says so. `detail` is what else it says: outside text.
    """

    id: int
    job_id: JobId
    at: Nanos
    before: str
    after: str
    source: str
    nodes: float | None = None
    detail: dict[str, object] | None = None


def in_order(own: Iterable[StateChange]) -> list[StateChange]:
    """The changes of one job in the order in which its system learnt of them, whatever their clocks said.

    This is the order of their ids, unless ids were used twice: a server that was restored from a backup does
    so, and lines of a rotated log begin again. Then it is the order of their times, or the one in which they
    are given. The best order is the one in which the fewest begin in another state than the last ended in.
    """
    given = list(own)
    by_id = sorted(given, key=_learnt)
    if not _breaks(by_id):
        return by_id
    return min(sorted(given, key=_happened), by_id, given, key=_breaks)


_learnt, _happened = attrgetter("id"), attrgetter("at", "id")


def _breaks(own: Sequence[StateChange]) -> int:
    return sum(one.after != other.before for one, other in pairwise(own))


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that a scheduler gives to a job system for a time: Balsam's batch job.

    `start_at` and `end_at` are None while they are not known. With `start_estimated`, `start_at` is the time
    of the first sign of life. `note` is what the system says of its state: outside text.
    """

    id: int
    source: str
    site_id: int
    state: str
    nodes: int
    scheduler_id: str | None = None
    project: str = ""
    queue: str = ""
    mode: str = ""
    wall_time_s: float | None = None
    submitted_at: Nanos | None = None
    start_at: Nanos | None = None
    end_at: Nanos | None = None
    start_estimated: bool = False
    launchers: int = 0
    heartbeat_at: Nanos | None = None
    tags: tuple[tuple[str, str], ...] = ()
    note: str = ""

    def is_stale(self, now: Nanos) -> bool:
        """Whether it runs, and has no launcher or one that has been silent for `SILENT_S`."""
        heard_at = self.heartbeat_at if self.launchers else self.start_at
        return self.state == RUNNING and heard_at is not None and seconds_between(heard_at, now) > SILENT_S

    def takes(self, tags: str) -> bool:
        """Whether its launchers take jobs with these tags, words as `tag_word` makes them."""
        return {tag_word(name, value) for name, value in self.tags} <= set(tags.split(" "))


def tag_word(name: str, value: str) -> str:
    return f"{name}:{MASK if is_secret_key(name) else value}".replace(" ", "_")


class Serving(NamedTuple):
    """The allocations in which a job that could run may run, and, in words, what it waits for.

    `live` run, `silent` run without a launcher that is heard of, `coming` are in the queue.
    """

    live: Sequence[Allocation]
    silent: Sequence[Allocation]
    coming: Sequence[Allocation]
    words: str


def serving(tags: str, nodes: int, here: Iterable[Allocation], now: Nanos) -> Serving:
    """What serves a job with these tags, of so many nodes, of the allocations of its site."""
    going = [one for one in here if one.state in OPEN]
    fitting = [one for one in going if one.takes(tags)]
    enough = [one for one in fitting if one.nodes >= nodes]
    live = [one for one in enough if one.state == RUNNING and not one.is_stale(now)]
    silent = [one for one in enough if one.is_stale(now)]
    coming = [one for one in enough if one.state != RUNNING]
    if live or silent:
        words = "a launcher with room" if live else "a launcher that is heard from"
    elif coming:
        words = f"nodes: {counted(len(coming), 'allocation')} of its site in the queue, none running"
    elif fitting:
        most = max(one.nodes for one in fitting)
        words = f"no allocation of {counted(nodes, 'node')} (the largest has {most})"
    else:
        words = "no allocation that takes jobs with its tags" if going else "no allocation"
    return Serving(live, silent, coming, words)


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """Where a job system runs, with an agent that reports from there: Balsam's site."""

    id: int
    source: str
    name: str
    path: str = ""
    seen_at: Nanos | None = None
    queued: int = 0

    def is_down(self, now: Nanos) -> bool:
        return self.seen_at is not None and seconds_between(self.seen_at, now) > SILENT_S


class ReportQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which changes a report is made of. A field that is None or empty selects all.

    `jobs` are ids as a person writes them: `balsam/12`, `12`, `12@host`, a computeJid. So are `batch_job` and
    `scheduler_id`: `2`, `2@host`.
    """

    since: Nanos | None = None
    until: Nanos | None = None
    jobs: tuple[str, ...] = ()
    batch_job: str | None = None
    scheduler_id: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    from_state: str | None = None
    to_state: str | None = None
    allocation_state: str | None = None
