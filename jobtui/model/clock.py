"""The one unit of time, and the one way to ask for now.

Inside jobtui a time is `Nanos`: int nanoseconds since the Unix epoch, UTC. Backends convert what a
service wrote into it; only `render` turns it into text again.
"""

import time
from datetime import UTC, datetime
from typing import NewType, Protocol

Nanos = NewType("Nanos", int)

SECOND = 1_000_000_000


class Clock(Protocol):
    """Where now comes from, so that tests and replays can set it."""

    def now(self) -> Nanos:
        """The present time."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> Nanos:
        """The present time of this machine."""
        return Nanos(time.time_ns())


class FixedClock:
    """A clock that stands still until it is moved."""

    def __init__(self, at: Nanos) -> None:
        self._at = at

    def now(self) -> Nanos:
        """The time it was set to."""
        return self._at

    def advance(self, seconds: float) -> None:
        """Move the clock by `seconds`."""
        self._at = Nanos(self._at + round(seconds * SECOND))


def from_seconds(seconds: float) -> Nanos:
    """Nanos of an epoch time in seconds; floats are kept to the microsecond, which is all they hold."""
    if isinstance(seconds, int):
        return Nanos(seconds * SECOND)
    return Nanos(round(seconds * 1_000_000) * 1_000)


def to_seconds(at: Nanos) -> float:
    """Epoch seconds of a time."""
    return at / SECOND


def seconds_between(start: Nanos, end: Nanos) -> float:
    """`end - start` in seconds; negative when end is earlier."""
    return (end - start) / SECOND


def to_rfc3339(at: Nanos) -> str:
    """RFC 3339 UTC text with `Z`, to the microsecond, without a fraction when there is none."""
    seconds, nanos = divmod(at, SECOND)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    micros = nanos // 1_000
    return f"{text}.{micros:06d}Z" if micros else f"{text}Z"
