"""The health of a source: its state, its age, and what was left out."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Self

import msgspec

from jobtui.model.clock import Nanos, from_seconds, seconds_between

MOST_NEWS = 5
"""How many of the last polls with news are used to tell how late news come."""
GRAIN_S = 2.0
"""Servers give whole seconds: a clock that is off by less than this may be right."""
QUIET_S = 60.0
"""A source without a successful poll for this many seconds does not show the present."""


FEWEST_NEWS, LEAST_PAUSE_S, UNUSUAL, FADING = 10, 120.0, 5.0, 0.95
"""After so many news a pause that is so long, and so many times as long as usual, is unusual."""


class SourceState(StrEnum):
    """Whether a source can be trusted."""

    STARTING = "starting"
    OK = "ok"
    PARTIAL = "partial"
    DOWN = "down"


class Skip(msgspec.Struct, frozen=True):
    """One piece of input that could not be read: where it is and why it was left out."""

    where: str
    why: str


class SourceHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one source.

    `asked_at` is when it was first asked, `read_at` when it was last read. `records` and `skipped` count
    since the start; `last_skips` are the newest of the skipped. `note` says what was left out on purpose,
    and `begins_at` is the time from which it was read if its beginning was not. `is_behind`: there is more
    to read now, `left` records where that is known. `was_at_end`: it was read to its end once. `ahead_s` is
    how far its clock is ahead of ours.
    `newest_at` is the time of its newest record, by its own clock.
    `news_late` is how many seconds old its newest record was when it came, for the last few polls. Something
    new came `news` times since it was read to its end, last at `news_at`; `pause_s` is the usual pause.
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
    left: int = 0
    ahead_s: float = 0.0
    was_at_end: bool = False
    newest_at: Nanos | None = None
    news_late: tuple[float, ...] = ()
    news: int = 0
    news_at: Nanos | None = None
    pause_s: float = 0.0
    profile: str = ""
    """The profile that names it, where several are read side by side."""

    @property
    def is_first_read(self) -> bool:
        return self.is_behind and not self.was_at_end

    @property
    def reason(self) -> str:
        """`error` without the name of the source, "" if there is none."""
        return (self.error or "").removeprefix(f"{self.name}: ")

    def silent_s(self, now: Nanos) -> float:
        """For how many seconds it has neither been read nor failed since it was first asked."""
        if self.state is not SourceState.STARTING or self.asked_at is None:
            return 0.0
        return max(0.0, seconds_between(self.asked_at, now))

    def nothing_new_s(self, now: Nanos) -> float:
        """For how many seconds nothing new came; 0 where that is not unusually long, or not known."""
        if self.news < FEWEST_NEWS or self.news_at is None or self.read_at is None:
            return 0.0
        seconds = seconds_between(self.news_at, min(now, self.read_at))
        return seconds if seconds > max(LEAST_PAUSE_S, UNUSUAL * self.pause_s) else 0.0

    def with_news(self, now: Nanos) -> Self:
        """It just gave something new. Of pauses the longest counts, and less and less as others follow."""
        pause_s = 0.0 if self.news_at is None else seconds_between(self.news_at, now)
        longest_s = max(pause_s, self.pause_s * FADING)
        return msgspec.structs.replace(self, news=self.news + 1, news_at=now, pause_s=longest_s)

    def now_at(self, now: Nanos) -> Nanos:
        """The time by its own clock when it was last read. Its records are judged by this time."""
        return self.shifted(now if self.read_at is None else min(now, self.read_at))

    def shifted(self, at: Nanos) -> Nanos:
        return Nanos(at + from_seconds(self.ahead_s)) if abs(self.ahead_s) > GRAIN_S else at

    def is_quiet(self, now: Nanos) -> bool:
        """Whether it was not read for longer than the time between two polls."""
        return (self.lag_s(now) or 0.0) > QUIET_S

    def newest_s(self, now: Nanos) -> float | None:
        """The age of its newest record in seconds; None where no record has a time."""
        at = self.newest_at
        return None if at is None else max(0.0, seconds_between(at, self.shifted(now)))

    def lag_s(self, now: Nanos) -> float | None:
        """The age of what it shows in seconds; None if it was never read."""
        return None if self.read_at is None else max(0.0, seconds_between(self.read_at, now))


def progress(sources: Iterable[SourceHealth]) -> str:
    """How many records were read, and of how many where that is known."""
    read = left = 0
    for source in sources:
        read, left = read + source.records, left + source.left
    return f"{read:,} of {read + left:,}" if left else f"{read:,}"


ClockOf = Callable[[str, Nanos], Nanos]
"""Gives the time by the clock of a source, as of when it was last read, for a time of ours."""


def here(source: str, now: Nanos) -> Nanos:
    return now


def now_at(sources: Iterable[SourceHealth], name: str, now: Nanos) -> Nanos:
    """The time by the clock of a source when it was last read."""
    found = next((one for one in sources if one.name == name), None)
    return now if found is None else found.now_at(now)


def unread(sources: Iterable[SourceHealth]) -> list[str]:
    """A text for each source that cannot be read: which, and why."""
    return [f"{one.name} cannot be read: {one.reason}" for one in sources if one.state is SourceState.DOWN]
