"""The one unit of time, and the one way to ask for now.

Inside jobtui a time is `Nanos`: int nanoseconds since the Unix epoch, UTC. Backends convert what a service
wrote with the functions here, which give None for anything outside the years 1970 to 2260. Only `render`
makes text of it. Neither raises.
"""

import math
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, NewType, Protocol

from jobtui.model.bounded import Bounded
from jobtui.model.numbers import whole

Nanos = NewType("Nanos", int)

MICROSECOND, MILLISECOND, SECOND = 1_000, 1_000_000, 1_000_000_000
MINUTE, DAY = 60 * SECOND, 86_400 * SECOND
LATEST_S = 9_183_110_400
"""The year 2261, after which nanoseconds no longer fit into 64 bits."""
_FIRST_S, _LAST_S = -62_135_510_400, 253_402_214_400
"""The second day of year 1 and the last but one of 9999: what can be shown in every time zone."""


class Clock(Protocol):
    """Where the present time comes from, so that tests and replays can set it."""

    def now(self) -> Nanos: ...


class SystemClock:
    def now(self) -> Nanos:
        return Nanos(time.time_ns())


class FixedClock:
    def __init__(self, at: Nanos) -> None:
        self._at = at

    def now(self) -> Nanos:
        return self._at

    def advance(self, seconds: float) -> None:
        self._at = Nanos(self._at + round(seconds * SECOND))


def from_seconds(seconds: float) -> Nanos:
    """Nanos of seconds. A float is rounded to the microsecond, and limited to what 64 bits hold."""
    if isinstance(seconds, int):
        return Nanos(seconds * SECOND)
    return Nanos(round(max(-LATEST_S, min(LATEST_S, seconds)) * 1_000_000) * 1_000)


def to_seconds(at: Nanos) -> float:
    return at / SECOND


def seconds_between(start: Nanos, end: Nanos) -> float:
    """`end - start` in seconds; negative when end is earlier."""
    return (end - start) / SECOND


def since_s(at: Nanos | None, now: Nanos) -> float | None:
    """Seconds from a time to now, 0 if it is in the future; None for None."""
    return None if at is None else max(0.0, seconds_between(at, now))


def time_of_seconds(seconds: float | None) -> Nanos | None:
    """The time of epoch seconds; None for None and for a number out of range."""
    return from_seconds(seconds) if seconds is not None and 0 <= seconds < LATEST_S else None


def time_of_iso(text: str, *, is_local: bool = False) -> Nanos | None:
    """A time in ISO 8601. Without a zone it is UTC, or with `is_local` in this machine's zone."""
    try:
        return time_of_moment(datetime.fromisoformat(text), is_local=is_local)
    except ValueError:
        return None


def time_of_parts(year: int, month: int, day: int, hour: int, minute: int, second: int) -> Nanos | None:
    """A time in UTC from its parts; None if there is no such time."""
    try:
        return time_of_moment(datetime(year, month, day, hour, minute, second, tzinfo=UTC))
    except (ValueError, OverflowError):
        return None


def time_of_mail(text: str) -> Nanos | None:
    """A time with a zone in RFC 5322 form, such as the Date of an HTTP answer."""
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return None if moment.tzinfo is None else time_of_moment(moment)


def time_of_moment(moment: datetime, *, is_local: bool = False) -> Nanos | None:
    """The time of a datetime; one without a zone is UTC, or with `is_local` in this machine's zone."""
    if moment.tzinfo is None and not is_local:
        moment = moment.replace(tzinfo=UTC)
    try:
        seconds = math.floor(moment.replace(microsecond=0).timestamp())
    except (ValueError, OverflowError, OSError):
        return None
    at = time_of_seconds(seconds)
    return None if at is None else Nanos(at + moment.microsecond * 1_000)


def shown_seconds(at: Nanos) -> int:
    """The whole epoch seconds of a time, limited to what can be shown in every time zone."""
    return min(max(at // SECOND, _FIRST_S), _LAST_S)


def utc_of(at: Nanos) -> datetime:
    """A time as a datetime in UTC, to the second."""
    return datetime.fromtimestamp(shown_seconds(at), UTC)


def to_rfc3339(at: Nanos) -> str:
    """RFC 3339 UTC text with `Z`, to the microsecond, without a fraction when there is none."""
    text = utc_of(at).strftime("%Y-%m-%dT%H:%M:%S")
    micros = at % SECOND // 1_000
    return f"{text}.{micros:06d}Z" if micros else f"{text}Z"


HERE = ""
"""The clock of log files: the machine on which they were written is not known by name."""


class Window(NamedTuple):
    """A stretch of time with its ends; None for no bound."""

    since: Nanos | None = None
    until: Nanos | None = None

    def holds(self, at: Nanos | None) -> bool:
        """Whether a time is in it; None is in every window."""
        if at is None:
            return True
        return (self.since is None or self.since <= at) and (self.until is None or at <= self.until)


class Offset(NamedTuple):
    """How far a clock is ahead of another, in seconds: at least `low`, at most `high`; None if not known."""

    low: float | None
    high: float | None

    @property
    def spread_s(self) -> float | None:
        """By how many seconds the order of two events may be wrong; None if that is not known."""
        return None if self.low is None or self.high is None else max(abs(self.low), abs(self.high))


Offsets = Mapping[tuple[str, str], Offset]
"""By two clocks: how far the second is ahead of the first."""


def clock_of(source: str) -> str:
    """The machine whose clock gives the times of a source: the host of a journal's stream, else HERE."""
    return source.rpartition("@")[2].partition(" (")[0] if "@" in source and "/" not in source else HERE


def spread_between(offsets: Offsets, one: str, other: str) -> float:
    """How many seconds apart two events on these clocks must be for their order to be certain."""
    if one == other:
        return 0.0
    found = offsets.get((one, other)) or offsets.get((other, one))
    return (found.spread_s or 0.0) if found else 0.0


MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: number for number, name in enumerate(MONTHS, 1)}
TIME_LENGTH = len("Nov 20 20:34:30")
SKEW = DAY
"""How far a line may be ahead of its file's newest time before it is taken for last year's.

Clocks and zones differ, and a log that goes back for a whole year is rare.
"""


@lru_cache(maxsize=256)  # lines come in runs of the same second
def latest(text: str, newest: Nanos) -> Nanos | None:
    """The latest time written `Mon DD HH:MM:SS` that is not more than SKEW after `newest`.

    Feb 29 is looked for in up to eight years back. None when `text` is not such a time.
    """
    if not (month := _MONTHS.get(text[:3])):
        return None  # few lines of a journal begin with a time
    day, hour, minute, second = [whole(text[at : at + 2].strip(), 99) for at in (4, 7, 10, 13)]
    latest_at = Nanos(newest + SKEW)
    year = utc_of(latest_at).year
    found = (time_of_parts(one, month, day, hour, minute, second) for one in range(year, year - 9, -1))
    return next((at for at in found if at is not None and at <= latest_at), None)


QUARTER_S = 900
"""Zones differ by quarters of an hour."""
MOST_ZONE_S = 14 * 3600
"""No zone is farther from UTC."""


def zone_shift(difference: int, slack_s: float) -> int | None:
    """A difference of times in whole quarters of an hour; None if no zone has it."""
    shift = round(difference / SECOND / QUARTER_S) * QUARTER_S * SECOND
    is_zone = abs(difference - shift) <= slack_s * SECOND and abs(shift) <= MOST_ZONE_S * SECOND
    return shift if is_zone else None


AGREE = 3
"""So many events in a row must agree on a zone."""
EVENTS_KEPT, PROCESSES_KEPT = 500, 10_000
NOTED_S, OUT_OF_ORDER = 2.0, MINUTE
"""How far apart a line and a record note an event, and how far lines of a log may be out of order."""


class LogClock:
    """Gives the times of a log's lines, which have no zone, in UTC. `words` name its zone, "" for UTC.

    A newer pykern writes local times. Events whose time in UTC is known, too, tell the zone; until several
    agree, times are left as they are. A clock that is set for summer or winter has another zone from then on.
    Agents that write to the log of their supervisor may write UTC.
    """

    def __init__(self) -> None:
        self.words = ""
        self._events = Bounded[int, int](EVENTS_KEPT)
        """By the second of an event in UTC: how far its line was from that."""
        self._zones: list[tuple[Nanos, int]] = []
        self._writes_utc = Bounded[int, bool](PROCESSES_KEPT)
        self._before = Nanos(0)

    def utc(self, written: Nanos, pid: int | None = None) -> Nanos:
        """The time of a line. With its process they are given in order: the line before shows whether a
        clock was set back, and whether a process that is new writes UTC.
        """
        at = Nanos(written + self._zones[0][1]) if self._zones else written
        for since, shift in self._zones[1:]:
            later = Nanos(written + shift)
            at = later if at >= since or at < self._before - OUT_OF_ORDER <= later else at
        if pid is not None and self._zones:
            is_near = abs(written - self._before) < OUT_OF_ORDER < abs(at - self._before)
            self._before = at = written if self._writes_utc.setdefault(pid, is_near) else at
        return at

    def learn(self, events: Iterable[tuple[Nanos, Iterable[Nanos]]]) -> None:
        """Learn from times of lines, as `utc` gave them, with moments one of which may be its event's."""
        for at, known in events:
            in_force = next((shift for since, shift in reversed(self._zones) if since <= at), 0)
            shifts = ((zone_shift(moment - at, NOTED_S), moment) for moment in known)
            if near := [(abs(shift), shift, moment) for shift, moment in shifts if shift is not None]:
                _, shift, moment = min(near)
                self._events[moment // SECOND] = in_force + shift
        zones: list[tuple[Nanos, int]] = []
        for shift, alike in groupby(sorted(self._events.items()), itemgetter(1)):
            seconds = [second for second, _ in alike]
            if len(seconds) >= AGREE and (not zones or zones[-1][1] != shift):
                zones.append((from_seconds(seconds[0] if zones else 0), shift))
        self._zones = zones if any(shift for _, shift in zones) else []
        named = (str(timezone(timedelta(seconds=-shift // SECOND))) for _, shift in self._zones)
        self.words = f"writes local time, {', then '.join(named)}" if self._zones else ""
