"""The directories in which SArchive keeps scripts by the day, month or year in which it archived them.

The date is the local one of the machine that archived, two seconds after submission. That zone is not known
here, so that a day on either side is looked at, too.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from jobtui.model.clock import SECOND, Nanos

DAY = 86_400 * SECOND
FORMS = ("%Y%m%d", "%Y%m", "%Y")
WHOLE = ""
"""The name of the place where everything is kept without directories."""
_NAME = re.compile(r"(?:19|20|21)\d\d(?:\d\d(?:\d\d)?)?", re.ASCII)


class Period(NamedTuple):
    """One of the directories: from the beginning of its first day up to the end of its last, as if in UTC.

    Both are None for the place without directories.
    """

    name: str
    begin: Nanos | None = None
    end: Nanos | None = None

    def days_from(self, at: Nanos) -> float:
        """How many days a time is outside of it, 0 inside and where it has no bounds."""
        if self.begin is None or self.end is None:
            return 0.0
        return max(0, self.begin - at, at - self.end) / DAY


EVERYTHING = Period(WHOLE)


def parse_period(name: str) -> Period | None:
    """The period that a directory is for, None for any other name."""
    if not _NAME.fullmatch(name):
        return None
    try:
        first = datetime.strptime(name, {8: "%Y%m%d", 6: "%Y%m", 4: "%Y"}[len(name)]).replace(tzinfo=UTC)
    except ValueError:
        return None
    begin = round(first.timestamp()) * SECOND
    return Period(name, Nanos(begin), Nanos(begin + _days(name, first.date()) * DAY))


def _days(name: str, first: date) -> int:
    if len(name) == 8:
        return 1
    following = (
        first.replace(day=28) + timedelta(days=4) if len(name) == 6 else first.replace(month=12, day=31)
    )
    last = following - timedelta(days=following.day) if len(name) == 6 else following
    return (last - first).days + 1


def likely(at: Nanos) -> tuple[Period, ...]:
    """The periods in which a job submitted then may be, likeliest first, the place without any included."""
    days = [_date(at + offset * DAY) for offset in (0, 1, -1)]
    names = dict.fromkeys(day.strftime(form) for form in FORMS for day in days if day is not None)
    return (EVERYTHING, *(period for period in map(parse_period, names) if period is not None))


def recent(now: Nanos, days: int = 400, years: int = 10) -> Iterator[Period]:
    """Periods back from now, for a directory that may not be listed."""
    today = _date(now) or date(1970, 1, 1)
    back = [today - timedelta(days=count) for count in range(-1, days)]
    months = [date(today.year - count // 12, count % 12 + 1, 1) for count in range(12 * min(years, 2))]
    names = [day.strftime("%Y%m%d") for day in back]
    names += dict.fromkeys(day.strftime("%Y%m") for day in (*back, *months))
    names += [f"{today.year - count:04d}" for count in range(years)]
    yield EVERYTHING
    yield from (period for period in map(parse_period, names) if period is not None)


def _date(at: int) -> date | None:
    try:
        return datetime.fromtimestamp(at // SECOND, UTC).date()
    except (OverflowError, ValueError, OSError):
        return None
