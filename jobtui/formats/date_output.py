"""Times as programs of worker nodes print them: `date`, in whatever language, and HTCondor's logs.

`Fri Jul 19 04:22:22 UTC 2024`, `Fri 19 Jul 2024 04:22:22 AM UTC`, `Fr 19. Jul 04:22:22 CEST 2024`,
`2026/11/20 20:40:07`, `2024-07-18T23:19:40-05:00`. A zone is known where it is UTC, an offset, or one of a
few names that mean the same everywhere; without one the time is given as if it were UTC, and marked.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from jobtui.model.clock import SECOND, Nanos

LONGEST = 64
"""Characters of a time at most."""

_MONTHS: Mapping[int, str] = {
    1: "jan janv ene gen", 2: "feb fev fév févr", 3: "mar mär mrz mars", 4: "apr avr abr",
    5: "may mai mayo mag", 6: "jun juin giu", 7: "jul juil lug", 8: "aug août ago aoû",
    9: "sep sept set", 10: "oct okt ott out", 11: "nov", 12: "dec dez déc dic",
}  # fmt: skip
"""How months are shortened in English, German, French, Spanish, Italian and Portuguese."""
_MONTH_OF: Mapping[str, int] = {word: number for number, words in _MONTHS.items() for word in words.split()}

_ZONES: Mapping[str, int] = {
    "UTC": 0, "GMT": 0, "Z": 0, "UCT": 0, "WET": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7,
    "MDT": -6, "PST": -8, "PDT": -7, "CET": 1, "CEST": 2, "MEZ": 1, "MESZ": 2, "EET": 2, "EEST": 3, "MSK": 3,
    "JST": 9, "KST": 9, "HST": -10,
}  # fmt: skip
"""Hours before UTC of zones by name. CST is that of America: computing sites use it so."""

_CLOCK = re.compile(
    r"(?<![\d:.])(?P<hour>\d{1,2}):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<part>\d{1,9}))?"
    r"\s?(?P<half>[AaPp]\.?[Mm]\.?(?!\w))?(?![\d:])"
)
_ISO = re.compile(r"(?P<year>\d{4})[-/](?P<month>\d\d?)[-/](?P<day>\d\d?)")
_OFFSET = re.compile(r"(?<![\d\w-])?(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d)?(?!\d)")
_NAME = re.compile(r"(?<![A-Za-z])[A-Z]{1,4}(?![A-Za-z])")
_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"\d+")


class Moment(NamedTuple):
    """A time; with `is_local` its zone is not written, and it is what it would be in UTC."""

    at: Nanos
    is_local: bool


def read_date(text: str) -> Moment | None:
    """The time that a text is; None when it is none."""
    text = text.strip()
    clock = _CLOCK.search(text) if len(text) <= LONGEST else None
    if clock is None:
        return None
    before, after = text[: clock.start()], text[clock.end() :]
    rest = f"{before.removesuffix('T')} {after}"
    day = _day(rest)
    if day is None:
        return None
    offset_s = _offset_s(after)
    hour = int(clock["hour"])
    if clock["half"]:
        hour = hour % 12 + 12 * (clock["half"][0] in "Pp")
    try:
        moment = datetime(*day, hour, int(clock["minute"]), min(int(clock["second"]), 59), tzinfo=UTC)
        moment -= timedelta(seconds=offset_s or 0)
    except (ValueError, OverflowError):
        return None
    part = int((clock["part"] or "0").ljust(9, "0"))
    return Moment(Nanos(int(moment.timestamp()) * SECOND + part), offset_s is None)


def _day(text: str) -> tuple[int, int, int] | None:
    """Year, month and day."""
    if iso := _ISO.search(text):
        return int(iso["year"]), int(iso["month"]), int(iso["day"])
    numbers = [int(number) for number in _NUMBER.findall(_OFFSET.sub(" ", text))]
    year = next((number for number in numbers if 1970 <= number <= 9999), None)
    small = [number for number in numbers if 1 <= number <= 31]
    if year is None or not small:
        return None
    months = [_MONTH_OF[word] for word in map(str.casefold, _WORD.findall(text)) if word in _MONTH_OF]
    if months:
        # a day of the week may be spelled like a month: the month is the one beside the day, which comes last
        return year, months[-1], small[0]
    return (year, small[0], small[1]) if len(small) > 1 else None


def _offset_s(text: str) -> int | None:
    """Seconds before UTC of the zone behind a time; None where none is known."""
    if offset := _OFFSET.search(text):
        seconds = int(offset["hours"]) * 3600 + int(offset["minutes"] or 0) * 60
        return -seconds if offset["sign"] == "-" else seconds
    names = [_ZONES[name] for name in _NAME.findall(text) if name in _ZONES]
    return names[0] * 3600 if names else None
