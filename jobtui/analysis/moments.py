"""Points in time as people write them: "14:00", "2026-11-20", "2026-11-20T14:00Z", "yesterday", "2h" (ago).

What was written is kept apart from what it means, because a time of day means another moment tomorrow.
"""

import re
from datetime import date
from typing import NamedTuple

from jobtui.analysis.time_words import parse_duration
from jobtui.model.clock import SECOND, Nanos

_DAY = 86_400 * SECOND
_EPOCH = date(1970, 1, 1).toordinal()
_DATE_TIME = (
    r"(?:(?P<date>\d{4}-\d\d-\d\d)|(?P<day>today|yesterday))?(?:(?:^|[T ])"
    r"(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?)?"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?"
)


class Span(NamedTuple):
    """From `start` up to but without `end`."""

    start: Nanos
    end: Nanos


class Moment(NamedTuple):
    """What was written. `length` is how much of time it names: a day, a minute, a second, or nothing.

    `ago` is set for "2h"; else `date` is days since 1970, or None for the last time it was `time_of_day`;
    `days_back` counts from today. `zone` is the offset written with it. All in nanoseconds.
    """

    length: int
    ago: int | None = None
    date: int | None = None
    days_back: int | None = None
    time_of_day: int = 0
    zone: int | None = None

    @property
    def is_day(self) -> bool:
        """Whether it names a whole day."""
        return self.length == _DAY

    def span(self, now: Nanos, offset_s: int = 0) -> Span:
        """The time it names, seen from `now`; `offset_s` is the zone's offset where none was written."""
        if self.ago is not None:
            return Span(Nanos(now - self.ago), Nanos(now - self.ago))
        offset = offset_s * SECOND if self.zone is None else self.zone
        today = (now + offset) // _DAY
        if self.date is not None:
            at = self.date * _DAY
        elif self.days_back is not None:
            at = (today - self.days_back) * _DAY
        else:
            at = today * _DAY
        at += self.time_of_day - offset
        if self.date is None and self.days_back is None and at > now:
            at -= _DAY
        return Span(Nanos(at), Nanos(at + self.length))


def parse_moment(text: str) -> Moment | None:
    """What `text` names, None when it is no point in time."""
    seconds = parse_duration(text)
    if seconds is not None:
        return Moment(0, ago=round(seconds * SECOND))
    found = re.fullmatch(_DATE_TIME, text, re.ASCII | re.IGNORECASE)
    if found is None or not (found["date"] or found["day"] or found["hour"]):
        return None
    time_of_day, length = _time_of_day(found), _length(found)
    if time_of_day is None:
        return None
    zone = _zone(found["zone"])
    if found["day"]:
        back = 0 if found["day"].lower() == "today" else 1
        return Moment(length, days_back=back, time_of_day=time_of_day, zone=zone)
    if found["date"] is None:
        return Moment(length, time_of_day=time_of_day, zone=zone)
    day = _date(found["date"])
    return None if day is None else Moment(length, date=day, time_of_day=time_of_day, zone=zone)


def _date(text: str) -> int | None:
    """Days since 1970."""
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH
    except ValueError:
        return None


def _time_of_day(found: re.Match[str]) -> int | None:
    hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int((found["fraction"] or "0").ljust(9, "0"))
    return ((hour * 60 + minute) * 60 + second) * SECOND + fraction


def _length(found: re.Match[str]) -> int:
    if found["hour"] is None:
        return _DAY
    if found["second"] is None:
        return 60 * SECOND
    return SECOND if found["fraction"] is None else 1


def _zone(text: str | None) -> int | None:
    if text is None:
        return None
    if text in "Zz":
        return 0
    digits = text[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return (-seconds if text[0] == "-" else seconds) * SECOND
