"""Why a job waits, in one record for every system. Sentence, screens and the JSON contract are made of it."""

from enum import StrEnum

import msgspec

from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId

MOST_REASONS = 12
"""Reasons of one job that are kept while it is watched, the newest of them."""
MOST_HOLDERS = 3
"""Jobs that are named of those ahead, or of those that hold what a job waits for; all are counted."""


class Category(StrEnum):
    """What kind of thing a job waits for. The words are stable; scripts depend on them."""

    PRIORITY = "priority"
    RESOURCES = "resources"
    NODES = "nodes"
    REQUEST = "request"
    DEPENDENCY = "dependency"
    HELD = "held"
    LIMIT = "limit"
    LICENSE = "license"
    RESERVATION = "reservation"
    BEGIN_TIME = "begin_time"
    PARTITION = "partition"
    ARRAY = "array"
    ALLOCATION = "allocation"
    SITE = "site"
    TRANSFER = "transfer"
    SLOT = "slot"
    AGENT = "agent"
    LOGIN = "login"
    MACHINE = "machine"
    RETRY = "retry"
    OTHER = "other"


class ReasonSeen(msgspec.Struct, frozen=True, gc=False):
    """The reason for which a pending job waited when its source was asked; told of jobs that had several."""

    job_id: JobId
    at: Nanos
    reason: str


class HeldBy(msgspec.Struct, frozen=True, kw_only=True):
    """A job that has what another waits for, or that is ahead of it. `has` says what it has, `since` when.

    `held_s` is for how long, `limit_s` how long at most, `usual_s` how long such jobs usually do.
    """

    job: str
    user: str = ""
    has: str = ""
    since: Nanos | None = None
    held_s: float | None = None
    limit_s: float | None = None
    usual_s: float | None = None


class NodeTally(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes that a job may run on, each counted once, under the first of these that is so of it.

    They are down, drained, reserved for others, lack a feature, lack a GRES, are too small, are full, or are
    free. `wanted` is how many the job asks for. `reasons` are those for which nodes are down or drained, each
    with the nodes; `features` and `gres` what is asked for.
    """

    total: int
    wanted: int = 1
    down: int = 0
    drained: int = 0
    reserved: int = 0
    no_feature: int = 0
    no_gres: int = 0
    too_small: int = 0
    full: int = 0
    free: int = 0
    reasons: tuple[tuple[str, str], ...] = ()
    features: str = ""
    gres: str = ""

    @property
    def up(self) -> int:
        return self.total - self.down - self.drained


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that a job runs into: whose it is, its name, of what, how much it allows, how much is taken."""

    of: str
    name: str
    what: str
    most: float
    used: float | None = None


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job waits.

    `reason` is its system's own word, `words` what it waits for in ours. `since` is when that reason was
    first seen, or since when it waits. `ahead` counts the jobs before it of the `of` that wait in `queue`,
    `next` are those right before it. `needs` are jobs or transfers that it needs, each with how that is.
    `eligible_at` is when it may begin at the soonest, `scheduler_estimate` when its scheduler means to start
    it. `is_stuck` says that a person has to do something. `asked` are the commands that were run for this
    alone, with what they cost; `unread` says why they told nothing.
    """

    category: Category
    reason: str = ""
    words: str = ""
    since: Nanos | None = None
    queue: str = ""
    ahead: int | None = None
    of: int | None = None
    next: tuple[HeldBy, ...] = ()
    nodes: NodeTally | None = None
    limit: Limit | None = None
    holders: tuple[HeldBy, ...] = ()
    holder_count: int = 0
    needs: tuple[tuple[str, str], ...] = ()
    note: str = ""
    eligible_at: Nanos | None = None
    scheduler_estimate: Nanos | None = None
    is_stuck: bool = False
    history: tuple[tuple[Nanos, str], ...] = ()
    asked: tuple[str, ...] = ()
    unread: str = ""
