"""What is remembered of runs that are over, and what that tells of a job: seen before, and how long yet."""

import msgspec

from jobtui.model.clock import Nanos

FIELDS = ("system", "user", "app", "model", "host", "node", "driver", "version")
"""What is counted of each run, by the names of the fields of `Finished`."""


class Finished(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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

    @property
    def lift(self) -> float:
        return self.share / self.usual_share if self.usual_share else float("inf")


class Seen(msgspec.Struct, frozen=True):
    """A signature: when it was seen first and last, how often, of how many users, and what goes with it.

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


class Range(msgspec.Struct, frozen=True):
    """Between which seconds something is expected; such ranges held for `held` of the last `of`."""

    low_s: float
    high_s: float
    held: int
    of: int


class Remembered(msgspec.Struct, frozen=True):
    """What memory tells of one job at a time: was its failure seen before, when it may start and end."""

    at: Nanos = Nanos(0)
    seen: Seen | None = None
    start: Range | None = None
    end: Range | None = None


class Change(msgspec.Struct, frozen=True):
    """Something that is otherwise in one stretch of time than in another.

    `what` is new, gone, more, less or slower; of `field` and `value`, where field `signature` is a failure.
    Shares are of runs, and `interval` is that of `share`; of what is slower both are factors.
    """

    what: str
    field: str
    value: str
    count: int
    of: int
    share: float
    before: float
    interval: tuple[float, float]


class Compared(msgspec.Struct, frozen=True):
    """Two stretches of time, or two kinds of runs: how many runs there are in each, and what is otherwise."""

    before: int
    now: int
    changes: tuple[Change, ...] = ()


class Deviation(msgspec.Struct, frozen=True):
    """A site that deviates from its own past since a day: its share of failures, or how long runs wait."""

    field: str
    value: str
    rule: str
    since: Nanos
    now: float
    usual: float


class Overview(msgspec.Struct, frozen=True):
    """What a memory tells by itself: failures, where more of them are than elsewhere, sites that deviate."""

    signatures: tuple[Seen, ...] = ()
    places: tuple[Share, ...] = ()
    sites: tuple[Deviation, ...] = ()
