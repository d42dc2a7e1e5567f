"""What jobtui knows of its own sources: state, age, and what was left out."""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from jobtui.model.clock import Nanos, seconds_between


class SourceState(StrEnum):
    """Whether a source can be believed."""

    STARTING = "starting"
    OK = "ok"
    PARTIAL = "partial"
    DOWN = "down"


class Skip(msgspec.Struct, frozen=True):
    """One piece of input that made no sense: where it is and why it was left out."""

    where: str
    why: str


class SourceHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one source.

    `asked_at` is when it was first asked, `read_at` when it was last read with success, `records` and
    `skipped` count since the start, `last_skips` are the newest few of the skipped, `note` says what was
    deliberately not read, `begins_at` from when on it was read where its beginning was not, and `is_behind`
    that there is more to be read now.
    """

    name: str
    kind: str
    state: SourceState = SourceState.STARTING
    asked_at: Nanos | None = None
    read_at: Nanos | None = None
    records: int = 0
    skipped: int = 0
    last_skips: tuple[Skip, ...] = ()
    error: str | None = None
    note: str | None = None
    begins_at: Nanos | None = None
    is_behind: bool = False

    @property
    def reason(self) -> str:
        """What `error` says without the name of the source before it, "" when there is none."""
        return (self.error or "").removeprefix(f"{self.name}: ")

    def silent_s(self, now: Nanos) -> float:
        """For how long it has neither been read nor failed since it was first asked, in seconds."""
        if self.state is not SourceState.STARTING or self.asked_at is None:
            return 0.0
        return max(0.0, seconds_between(self.asked_at, now))

    def lag_s(self, now: Nanos) -> float | None:
        """Age of what it shows in seconds, None when it was never read."""
        return None if self.read_at is None else max(0.0, seconds_between(self.read_at, now))


def unread(sources: Iterable[SourceHealth]) -> list[str]:
    """What is to be said of the sources that cannot be read: which, and why."""
    return [f"{one.name} cannot be read: {one.reason}" for one in sources if one.state is SourceState.DOWN]
