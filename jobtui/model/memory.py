"""Finished runs as the memory keeps them, and what it answers about a job."""

import msgspec

from jobtui.model.clock import Nanos

FIELDS = ("system", "user", "app", "model", "host", "node", "driver", "version")


class EndedRun(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One run that is over. `text` says why it failed, as written. `kind` is what like runs share.

    Lengths are in seconds, None where they are not known.
    """

    id: str
    system: str
    kind: str
    ended_at: Nanos
    verdict: str
    user: str = ""
    app: str = ""
    model: str = ""
    driver: str = ""
    host: str = ""
    node: str = ""
    version: str = ""
    is_failed: bool = False
    text: str = ""
    waited_s: float | None = None
    ran_s: float | None = None


class Share(msgspec.Struct, frozen=True):
    """`count` of `of` runs have a fact: `share`, within `interval` (95 %); of other runs `usual_share`."""

    field: str
    value: str
    count: int
    of: int
    share: float
    usual_share: float
    interval: tuple[float, float]


class Seen(msgspec.Struct, frozen=True):
    """A signature: when it was first and last seen, how often, for how many users, and what goes with it.

    `days` is how often on each of the last days, the oldest first. `example` is one text as it was written,
    of `job`, the last one. What `is_new` was not seen for long before a week ago.
    """

    signature: str
    first: Nanos
    last: Nanos
    count: int
    users: int
    where: tuple[Share, ...] = ()
    example: str = ""
    job: str = ""
    days: tuple[int, ...] = ()
    is_new: bool = False


class SecondsRange(msgspec.Struct, frozen=True):
    """A range of seconds from now. Such ranges held for `held` of the last `of` like runs."""

    low_s: float
    high_s: float
    held: int
    of: int


class JobMemory(msgspec.Struct, frozen=True):
    """What the memory knew of a job at a time: its failure, and when it may start and end."""

    at: Nanos = Nanos(0)
    seen: Seen | None = None
    start: SecondsRange | None = None
    end: SecondsRange | None = None


class PeriodChange(msgspec.Struct, frozen=True):
    """One difference between two periods: `what` is new, gone, more, less or slower.

    It is in `now`, whose usual share is that before; the field `signature` is a failure. Shares of what is
    slower are factors.
    """

    what: str
    now: Share


class Compared(msgspec.Struct, frozen=True):
    """The number of runs in two periods, or of two kinds, and their differences."""

    before: int
    now: int
    changes: tuple[PeriodChange, ...] = ()


class Deviation(msgspec.Struct, frozen=True):
    """A site whose share of failures, or whose waits, deviate from its own past since a day."""

    field: str
    value: str
    rule: str
    since: Nanos
    now: float
    usual: float


class MemoryOverview(msgspec.Struct, frozen=True):
    """What is in a memory: failures, hosts with more of them than elsewhere, and sites that deviate."""

    signatures: tuple[Seen, ...] = ()
    shares: tuple[Share, ...] = ()
    sites: tuple[Deviation, ...] = ()
