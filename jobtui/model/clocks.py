"""How far apart the clocks of two machines may be, as far as messages between them tell."""

from collections.abc import Mapping
from typing import NamedTuple

HERE = ""
"""The clock of log files: the machine on which they were written is not known by name."""


class Offset(NamedTuple):
    """How much a clock is ahead of another, in seconds: at least `low`, at most `high`, out of `pairs` pairs.

    None where no message tells.
    """

    low: float | None
    high: float | None
    pairs: int = 0

    @property
    def spread_s(self) -> float | None:
        """How much earlier or later than it seems something may have been; None when that is not known."""
        return None if self.low is None or self.high is None else max(abs(self.low), abs(self.high))


Offsets = Mapping[tuple[str, str], Offset]
"""By two clocks: how much the second one is ahead of the first."""


def clock_of(source: str) -> str:
    """The machine whose clock gives the times of a source: that of a stream's host, else HERE."""
    return source.rpartition("@")[2].partition(" (")[0] if "@" in source and "/" not in source else HERE


def spread_between(offsets: Offsets, one: str, other: str) -> float:
    """How many seconds apart two events on these clocks must seem for their order to be certain."""
    if one == other:
        return 0.0
    found = offsets.get((one, other)) or offsets.get((other, one))
    return (found.spread_s or 0.0) if found else 0.0
