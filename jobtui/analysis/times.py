"""Durations and times as people write them, and the times of a job for all views.

The typed text is kept apart from its meaning, because a time of day means another moment tomorrow.
"""

import math
import re
from typing import NamedTuple

from jobtui.model.clock import DAY, SECOND, Nanos, time_of_iso
from jobtui.model.numbers import real, whole
from jobtui.model.patterns import regex

NONE = "–"

_MINUTE_S = 60
_HOUR_S = 60 * _MINUTE_S
DAY_S = 24 * _HOUR_S
_COARSE_FROM_S = 10 * _MINUTE_S
_MOST_S = 100 * 366 * DAY_S


def age(seconds: float | None, *, coarse_from_s: float = _COARSE_FROM_S) -> str:
    """An age in useful units: "41s", "6m12s", "12m", "1h04m", "3d 2h", "12d"; "–" for None.

    From ten minutes on, or `coarse_from_s`, it changes only once a minute, so a table of ages sends little.
    """
    if seconds is None or not math.isfinite(seconds):
        return NONE
    if seconds < 0:
        return f"-{age(-seconds, coarse_from_s=coarse_from_s)}" if seconds <= -1 else "0s"
    if coarse_from_s <= seconds < _HOUR_S:
        return f"{int(seconds) // _MINUTE_S}m"
    return _in_units(int(seconds))


def duration(seconds: float | None) -> str:
    """A duration: "40ms", "2.9s", "41s", "6m12s", "1h04m", "3d 2h", "12d"; "–" for None."""
    if seconds is None or not math.isfinite(seconds):
        return NONE
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if 0 < seconds < 0.1:
        return f"{seconds * 1000:.0f}ms" if seconds >= 0.001 else "<1ms"
    if seconds < 9.95 and seconds != int(seconds):
        return f"{seconds:.1f}s".replace(".0s", "s")
    return _in_units(int(seconds))


def capital(text: str) -> str:
    """A text with a capital, unless it begins with a name, such as an address."""
    return f"{text[:1].upper()}{text[1:]}" if text.partition(" ")[0].isalpha() else text


def for_words(seconds: float | None) -> str:
    """The end of a sentence, such as " for 6m12s"; "" for None."""
    return "" if seconds is None else f" for {age(max(0.0, seconds))}"


def waits_words(waited: str) -> str:
    """The predicate for such words of a wait: "has waited 6m12s", and "waits" if its length is not known."""
    return f"has waited{waited.removeprefix(' for')}" if waited else "waits"


def ago_words(seconds: float | None) -> str:
    """The same, such as " 6m12s ago"."""
    return "" if seconds is None else f" {age(max(0.0, seconds))} ago"


def _in_units(seconds: int) -> str:
    if seconds < _MINUTE_S:
        return f"{seconds}s"
    if seconds < _HOUR_S:
        minutes, rest = divmod(seconds, _MINUTE_S)
        return f"{minutes}m{rest:02d}s" if rest else f"{minutes}m"
    if seconds < DAY_S:
        hours, rest = divmod(seconds, _HOUR_S)
        return f"{hours}h{rest // _MINUTE_S:02d}m" if rest >= _MINUTE_S else f"{hours}h"
    days, rest = divmod(seconds, DAY_S)
    return f"{days}d {rest // _HOUR_S}h" if rest >= _HOUR_S and days < 10 else f"{days}d"


ROUND_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400,
    172_800, 604_800, 1_209_600, 2_592_000, 7_776_000, 31_536_000,
)  # fmt: skip
"""Lengths of time in which people count, in seconds: what axes are divided into."""

_UNITS_S = {
    "w": 7 * DAY_S, "d": DAY_S, "h": _HOUR_S, "m": _MINUTE_S, "s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9,
}  # fmt: skip
_PART = r"(\d{1,18}(?:\.\d{1,18})?)(ns|us|ms|[smhdw])"


def parse_duration(text: str, *, in_order: bool = True) -> float | None:
    """Seconds of "90s", "2h30m", "3d 2h", "0.5s" or "10ms"; None for others, or above a century.

    With `in_order` each unit comes once, the longest first.
    """
    low = text.replace(" ", "").lower().replace("µ", "u")
    parts = re.findall(_PART, low, re.ASCII)
    units = [unit for _, unit in parts]
    is_in_order = units == [unit for unit in _UNITS_S if unit in units]
    if not parts or "".join(map("".join, parts)) != low or (in_order and not is_in_order):
        return None
    seconds = sum((real(amount) or 0.0) * _UNITS_S[unit] for amount, unit in parts)
    return seconds if seconds <= _MOST_S else None


_DATE_TIME = (
    r"(?:(?P<date>\d{4}-\d\d-\d\d)|(?P<day>today|yesterday))?(?:(?:^|[T ])"
    r"(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?)?"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?"
)


class TimeSpan(NamedTuple):
    """From `start` up to but without `end`."""

    start: Nanos
    end: Nanos


class Moment(NamedTuple):
    """A typed time. `length` is the span that it names: a day, a minute, a second, or nothing.

    `ago` is set for "2h". Otherwise `date` is days since 1970, or None for the last time it was
    `time_of_day`; `days_back` counts from today. `zone` is the typed offset. All in nanoseconds.
    """

    length: int
    ago: int | None = None
    date: int | None = None
    days_back: int | None = None
    time_of_day: int = 0
    zone: int | None = None

    def span(self, now: Nanos, offset_s: int = 0) -> TimeSpan:
        """The time it means at `now`; `offset_s` is the zone's offset if none was typed."""
        if self.ago is not None:
            return TimeSpan(Nanos(now - self.ago), Nanos(now - self.ago))
        offset = offset_s * SECOND if self.zone is None else self.zone
        today = (now + offset) // DAY
        if self.date is not None:
            at = self.date * DAY
        elif self.days_back is not None:
            at = (today - self.days_back) * DAY
        else:
            at = today * DAY
        at += self.time_of_day - offset
        if self.date is None and self.days_back is None and at > now:
            at -= DAY
        return TimeSpan(Nanos(at), Nanos(at + self.length))


def parse_moment(text: str) -> Moment | None:
    seconds = parse_duration(text)
    if seconds is not None:
        return Moment(0, ago=round(seconds * SECOND))
    found = re.fullmatch(_DATE_TIME, text, re.ASCII | re.IGNORECASE)
    if found is None or not (found["date"] or found["day"] or found["hour"]):
        return None
    hour, minute, second = (whole(found[name], 0) for name in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = whole((found["fraction"] or "0").ljust(9, "0"), 0)
    time_of_day = ((hour * 60 + minute) * 60 + second) * SECOND + fraction
    length = DAY
    if found["hour"] is not None:
        length = 60 * SECOND if found["second"] is None else SECOND if found["fraction"] is None else 1
    zone = _zone(found["zone"])
    if found["day"]:
        back = 0 if found["day"].lower() == "today" else 1
        return Moment(length, days_back=back, time_of_day=time_of_day, zone=zone)
    if found["date"] is None:
        return Moment(length, time_of_day=time_of_day, zone=zone)
    day = time_of_iso(found["date"])
    return None if day is None else Moment(length, date=day // DAY, time_of_day=time_of_day, zone=zone)


_LIKE_A_TIME = regex(
    r"[+-]\d[\w. ]*|(?:today|yesterday)[\d:. ]*|\d{4}-\d\d?-\d\d?(?:[T ][\d:.Z+-]*)?|\d\d?:[\d:.Z+-]*",
    re.ASCII | re.IGNORECASE,
)


def looks_like_time(text: str) -> bool:
    """Whether a typed text is meant as a time, perhaps a wrong one; ids and commands are not."""
    return _LIKE_A_TIME.fullmatch(text) is not None


def time_near(text: str, here: Nanos, now: Nanos, offset_s: int = 0) -> Nanos | None:
    """The time of "20:42:55", "-10m" or a date and time, typed at a line of the time `here`.

    A duration with a sign counts from the line. A time of day is on its day, or the last one before `now`.
    """
    if text[:1] in ("+", "-"):
        seconds = parse_duration(text[1:])
        step = round((seconds or 0.0) * SECOND)
        return None if seconds is None else Nanos(here - step if text[0] == "-" else here + step)
    moment = parse_moment(text)
    if moment is None or moment.ago is not None:
        return None
    if moment.date is None and moment.days_back is None:
        offset = offset_s * SECOND if moment.zone is None else moment.zone
        now = min(now, Nanos(((here + offset) // DAY + 1) * DAY - offset - 1))
    return moment.span(now, offset_s).start


def _zone(text: str | None) -> int | None:
    if text is None:
        return None
    if text in "Zz":
        return 0
    digits = text[1:].replace(":", "")
    seconds = whole(digits[:2], 0) * 3600 + whole(digits[2:], 0) * 60
    return (-seconds if text[0] == "-" else seconds) * SECOND
