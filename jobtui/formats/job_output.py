"""The output of jobsub's wrapper and commands around a job, and times as programs on worker nodes print them.

`Fri Jul 19 04:22:22 UTC 2024`, `Fri 19 Jul 2024 04:22:22 AM UTC`, `Fr 19. Jul 04:22:22 CEST 2024`,
`2026/11/20 20:40:07`, `2024-07-18T23:19:40-05:00`. A zone is known if it is UTC, an offset, or one of a few
names that mean the same everywhere; without one the time is given as if it were UTC, and marked.

Two lines begin with the output of `date` on the worker; only the first of them names the job, so a file is
read in order. Any line may name the trace that the job was given.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from jobtui.formats.schema import MATCH_LIMIT, load, sift
from jobtui.model.clock import SECOND, Nanos, time_of_parts
from jobtui.model.condor import BEGIN, END, SIGNAL, TRACEPARENT
from jobtui.model.health import Skip, rows_of
from jobtui.model.ids import CondorId, condor_id, find_trace
from jobtui.model.logs import CondorFact, Origin
from jobtui.model.numbers import whole
from jobtui.model.tables import tables_of

LONGEST = 64

_DATES = tables_of("jobtui.formats", "dates")
_MONTH_OF: Mapping[str, int] = {
    word: number for number, words in enumerate(_DATES["months"], 1) for word in words.split()
}
_ZONES: Mapping[str, int] = _DATES["zones"]

_CLOCK = re.compile(
    r"(?<![\d:.])(?P<hour>\d{1,2}):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<part>\d{1,9}))?"
    r"\s?(?P<half>[AaPp]\.?[Mm]\.?(?!\w))?(?![\d:])"
)
_ISO = re.compile(r"(?P<year>\d{4})[-/](?P<month>\d\d?)[-/](?P<day>\d\d?)")
_OFFSET = re.compile(r"(?<![\d\w-])?(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d)?(?!\d)")
_NAME = re.compile(r"(?<![A-Za-z])[A-Z]{1,4}(?![A-Za-z])")
_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"\d+")


class OutputTime(NamedTuple):
    """A time; with `is_local` it has no zone, and is given as if it were UTC."""

    at: Nanos
    is_local: bool


def read_date(text: str) -> OutputTime | None:
    text = text.strip()
    clock = _CLOCK.search(text) if len(text) <= LONGEST else None
    if clock is None:
        return None
    before, after = text[: clock.start()], text[clock.end() :]
    rest = f"{before.removesuffix('T')} {after}"
    day = _day(rest)
    if day is None:
        return None
    offset_s: int | None = None
    if offset := _OFFSET.search(after):
        offset_s = whole(offset["hours"], 0) * 3600 + whole(offset["minutes"], 0) * 60
        offset_s = -offset_s if offset["sign"] == "-" else offset_s
    elif names := [_ZONES[name] for name in _NAME.findall(after) if name in _ZONES]:
        offset_s = names[0] * 3600
    hour = whole(clock["hour"], 0)
    if clock["half"]:
        hour = hour % 12 + 12 * (clock["half"][0] in "Pp")
    at = time_of_parts(*day, hour, whole(clock["minute"], 0), min(whole(clock["second"], 0), 59))
    if at is None:
        return None
    part = whole((clock["part"] or "0").ljust(9, "0"), 0)
    return OutputTime(Nanos(at - (offset_s or 0) * SECOND + part), offset_s is None)


def _day(text: str) -> tuple[int, int, int] | None:
    if iso := _ISO.search(text):
        return whole(iso["year"], 0), whole(iso["month"], 0), whole(iso["day"], 0)
    numbers = [whole(number, 0) for number in _NUMBER.findall(_OFFSET.sub(" ", text))]
    year = next((number for number in numbers if 1970 <= number <= 9999), None)
    small = [number for number in numbers if 1 <= number <= 31]
    if year is None or not small:
        return None
    months = [_MONTH_OF[word] for word in map(str.casefold, _WORD.findall(text)) if word in _MONTH_OF]
    if months:
        # a day of the week may be spelled like a month: the month is the one beside the day, which comes last
        return year, months[-1], small[0]
    return (year, small[0], small[1]) if len(small) > 1 else None


KEPT_CHARACTERS = 2_000
"""Of one line."""
MOST_PROCESSES = 10_000
"""The most jobs that one submission may have made."""
_MARK = re.compile(
    r"(?:(?<= )\d{1,12}\.?\d{0,9}@[\w.@-]+ BEGIN EXECUTION|BEGIN EXECUTION|[^ ]* ?COMPLETED with exit status)"
)
_FIRST_WORD = re.compile(r"\w*", re.ASCII)
_TRACES = frozenset({"names_trace", BEGIN, END, SIGNAL})
_SUBMITTED = frozenset({"submitted", "submitted_count"})


class FactsRead(NamedTuple):
    """The facts of a block, its parts that cannot be read, and how many of its bytes are complete."""

    facts: list[CondorFact]
    skips: list[Skip]
    taken: int


class OutputReader:
    """Makes facts of the lines of one file. It remembers their job, and the trace that they named."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._job = ""
        self._trace = ""

    def read(self, data: bytes, begin: int, first_line: int, *, to_end: bool) -> FactsRead:
        """The facts of lines; `begin` is the byte, `first_line` the number of the first one.

        With `to_end` nothing follows. Never raises on any bytes.
        """
        taken = len(data) if to_end else data.rfind(b"\n") + 1
        data, skips = data[:taken], list[Skip]()

        def made(sifted: tuple[int, int, str]) -> list[CondorFact]:
            number, start, text = sifted
            text = text[:MATCH_LIMIT].replace("\0", "").rstrip("\r")
            return list(self._facts(text, first_line + number, begin + start))

        def skip(sifted: tuple[int, int, str], why: str) -> None:
            skips.append(Skip(f"{self._source}, byte {begin + sifted[1]}", why))

        found = rows_of(sift(data, load("jobsub"))[1], made, skip)
        return FactsRead([fact for facts in found for fact in facts], skips, taken)

    def _facts(self, text: str, line: int, offset: int) -> Iterator[CondorFact]:
        mark = _MARK.search(text[: 4 * LONGEST])
        moment = read_date(text[: mark.start()]) if mark is not None else None
        said = text[mark.start() :] if mark is not None and moment is not None else text
        head = _FIRST_WORD.match(said)
        func = "plain" if moment is None else "dated"
        matched = load("jobsub").match(said, func, head[0] if head else "")
        if matched is None:
            return
        shape, fields = matched
        if (named := condor_id(fields.get("job") or "")) is not None:
            self._job = named.job_id
        values = {name: value for name, value in fields.items() if value}
        if shape.name in _TRACES and (ref := find_trace(text)) is not None:
            values[TRACEPARENT] = self._trace = ref.trace_id
        elif shape.name == "names_trace":
            return
        if shape.name in _SUBMITTED and self._trace:
            values[TRACEPARENT] = self._trace
        at, is_local = moment or (None, False)
        jobs = [self._job]
        if shape.name == "submitted_count":
            cluster, count = whole(values["cluster"], 0), min(whole(values["count"], 0), MOST_PROCESSES)
            jobs = [CondorId(cluster, proc).job_id for proc in range(count)]
        for job in jobs:
            yield CondorFact(
                job, Origin.OUTPUT, shape.name, at, text[:KEPT_CHARACTERS], self._source, line, offset,
                values, is_local,
            )  # fmt: skip
