"""Events and job ads of HTCondor as facts about jobs, out of the pieces that `condor_frames` finds.

The classic form of events: a head `NNN (cluster.proc.subproc) date time text`, lines that `condor.toml`
knows, and a first other line that is the reason. Old logs have `MM/DD` without a year: it is that of
the file's last change or one before it, so that no event comes after the next. XML and JSON hold the
attributes themselves.
"""

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from jobtui.formats.class_ads import MOST_CHARACTERS, attribute, texts_of, texts_of_xml, trace_of
from jobtui.formats.condor_frames import HEADER, Form, Frame
from jobtui.formats.date_output import Moment, read_date
from jobtui.formats.schema import LogFormat, load
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.condor import EVENTS, TRACEPARENT
from jobtui.model.condor_facts import CondorFact, Teller
from jobtui.model.condor_ids import CondorId, condor_id
from jobtui.model.health import Skip

NOTE = "generic"
MOST_LINES = 200
"""Lines of one event that are looked at."""
REASON = "Reason"
DAY_S = 86_400
ZONES_S = 15 * 3600
"""A time without a zone may be so far ahead of one in UTC."""
CLUSTERS_KEPT = 5_000
"""Of so many clusters that came last the schedd is known, at least."""
LINES_KEPT = 8_192
LONGEST_KEPT = 256
"""What a line says is remembered, as most come again and again, unless it has more characters."""

_ALIAS = re.compile(r"[?&]alias=([\w.-]+)")
_FIRST_WORD = re.compile(r"\w*", re.ASCII)
_NEW = re.compile(r"\+?\w[\w.]*\s*=", re.ASCII)
_WITH_REASON = frozenset(
    f"{number:03}" for number in (2, 4, 7, 8, 9, 10, 11, 12, 13, 16, 18, 20, 21, 22, 24, 29)
)
"""Events of which a line of free text says why."""
_REASONS = ("HoldReason", "Message", "DisconnectReason", "EventDescription", "ErrorMsg", REASON)
"""Attributes that hold why something happened, in the XML and JSON forms."""


class Read(NamedTuple):
    """What pieces gave: facts, and what of them made no sense."""

    facts: list[CondorFact]
    skips: list[Skip]


class _Place(NamedTuple):
    """Where a piece begins: its byte in the file, and its line, 0 where lines have no numbers."""

    offset: int
    line: int


class EventReader:
    """Makes facts of the pieces of one file, in order. It remembers the schedd of each cluster."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._schedds: dict[int, str] = {}
        self._schedds_before: Mapping[int, str] = {}
        self._skips: list[Skip] = []

    def copy(self) -> "EventReader":
        """One that has read the same, and goes on by itself."""
        other = EventReader(self.source)
        other._schedds, other._schedds_before = dict(self._schedds), self._schedds_before
        return other

    def read(self, form: Form, frames: Iterable[Frame], begin: int, line: int, newest: Nanos) -> Read:
        """The facts of pieces. `begin` is the byte of their block, `line` the number of its first line.

        Lines have no numbers when that is 0. `newest` is when the file was last changed.

        Never raises on any bytes.
        """
        self._skips = []
        facts: list[CondorFact] = []
        yearless: list[int] = []
        for frame in frames:
            at = begin + frame.offset
            if not frame.is_whole:
                self._skip(at, "its end or its beginning was never written")
                continue
            place = _Place(at, line and line + frame.line)
            is_event = form is Form.CLASSIC
            found = self._event(frame.data, place) if is_event else self._ad(form, frame.data, place)
            if found is None:
                self._skip(at, "is neither an event nor a job ad")
                continue
            fact, has_year = found
            if not has_year:
                yearless.append(len(facts))
            facts.append(fact)
        _give_years(facts, yearless, newest)
        return Read(facts, self._skips)

    def _skip(self, offset: int, why: str) -> None:
        self._skips.append(Skip(f"{self.source}, byte {offset}", why))

    def _event(self, data: bytes, place: _Place) -> tuple[CondorFact, bool] | None:
        """The event of a piece in the classic form, and whether its time has a year."""
        head = HEADER.match(data)
        if head is None:
            return None
        parts = (part.decode("utf-8", "replace") for part in head.groups())
        event, cluster, proc, _, date, time, first = parts
        kind = EVENTS.get(int(event))
        text = (data.replace(b"\0", b"") if b"\0" in data else data).decode("utf-8", "replace")
        text = text[:MOST_CHARACTERS]
        _, *others = text.split("\n", MOST_LINES)[:MOST_LINES]
        values = _values_of(event, [first, *others])
        moment, has_year = _time_of(date, time)
        if moment is None:
            return None
        number = CondorId(int(cluster), None if proc.startswith("-") else int(proc))
        what = kind.name if kind else NOTE
        return self._fact(number, Teller.EVENT, what, moment, text, place, values), has_year

    def _ad(self, form: Form, data: bytes, place: _Place) -> tuple[CondorFact, bool] | None:
        """The event or job ad of a piece that holds attributes."""
        text = data.replace(b"\0", b"").decode("utf-8", "replace")
        values = _attributes(form, text)
        if form is Form.SUBMIT:
            return self._submission(values, place)
        moment = read_date(values.get("EventTime", ""))
        if values.get("EventTypeNumber", "").isdigit() or values.get("MyType", "").endswith("Event"):
            kind = EVENTS.get(_int(values.get("EventTypeNumber")))
            number = _numbered(values, "Cluster", "Proc")
            reason = next((values[name] for name in _REASONS if name in values), None)
            values = values | ({REASON: reason} if reason else {})
            what, teller = kind.name if kind else NOTE, Teller.EVENT
        else:
            number, what, teller = _numbered(values, "ClusterId", "ProcId"), "ad", Teller.AD
        if number is None:
            return None
        return self._fact(number, teller, what, moment, text[:MOST_CHARACTERS], place, values), True

    def _submission(self, values: dict[str, str], place: _Place) -> tuple[CondorFact, bool] | None:
        ref = trace_of(values)
        if ref is None:
            return None
        text = f"TRACEPARENT {ref.trace_id}"
        values = values | {TRACEPARENT: ref.trace_id}
        fact = CondorFact(
            "", Teller.SUBMIT, "submit_file", None, text, self.source, place.line, place.offset, values
        )
        return fact, True

    def _fact(
        self,
        number: CondorId,
        teller: Teller,
        what: str,
        moment: Moment | None,
        text: str,
        place: _Place,
        values: dict[str, str],
    ) -> CondorFact:
        schedd = self._schedd(number.cluster, values)
        if (ref := trace_of(values)) is not None:
            values = values | {TRACEPARENT: ref.trace_id}
        job = CondorId(number.cluster, number.proc, schedd).job_id if number.proc is not None else ""
        at, is_local = moment or (None, False)
        return CondorFact(
            job, teller, what, at, text, self.source, place.line, place.offset, values, is_local
        )

    def _schedd(self, cluster: int, values: Mapping[str, str]) -> str:
        """The schedd of a cluster: the one that is told here, else the one that was told last."""
        known = self._schedds.get(cluster, "")
        schedd = _schedd_in(values) or known or self._schedds_before.get(cluster, "")
        if schedd and schedd != known:
            if len(self._schedds) >= CLUSTERS_KEPT:
                self._schedds, self._schedds_before = {}, self._schedds
            self._schedds[cluster] = schedd
        return schedd


def _values_of(number: str, lines: Iterable[str]) -> dict[str, str]:
    """The attributes that the lines of an event give, the first line without a shape as its reason."""
    values: dict[str, str] = {}
    for place, line in enumerate(map(str.strip, lines)):
        said = _said_before(number, line) if len(line) <= LONGEST_KEPT else _said_by(number, line)
        if said:
            values.update(said)
        elif said is None and place and line and REASON not in values and number in _WITH_REASON:
            values[REASON] = line
    return values


def _said_by(number: str, line: str) -> tuple[tuple[str, str], ...] | None:
    """The attributes that a line of an event gives; None where it has no shape."""
    shapes: LogFormat = load("condor")
    head = _FIRST_WORD.match(line)
    if matched := shapes.match(line, number, head[0] if head else ""):
        return tuple((name, value) for name, value in matched[1].items() if value is not None)
    pair = attribute(line) if _NEW.match(line) else None
    return None if pair is None else (pair,)


_said_before = lru_cache(maxsize=LINES_KEPT)(_said_by)


def _attributes(form: Form, text: str) -> dict[str, str]:
    if form in (Form.XML, Form.XML_ADS):
        return texts_of_xml(text)
    if form in (Form.JSON, Form.JSON_ADS):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return {}
        return texts_of(document) if isinstance(document, dict) else {}
    joined = text.replace("\\\r\n", " ").replace("\\\n", " ") if form is Form.SUBMIT else text
    return dict(pair for line in joined.split("\n") if (pair := attribute(line)))


def _numbered(values: Mapping[str, str], cluster: str, proc: str) -> CondorId | None:
    if values.get(cluster) == "-1":  # the head of a schedd's own log
        return CondorId(-1, None)
    if (first := _int(values.get(cluster))) < 0:
        return condor_id(values.get("GlobalJobId", "")) or condor_id(values.get("JobsubJobId", ""))
    second = _int(values.get(proc))
    return CondorId(first, second if second >= 0 else None)


def _int(text: str | None) -> int:
    """A number that is not negative; -1 for anything else."""
    return int(text) if text and len(text) < 13 and text.isascii() and text.isdigit() else -1


def _schedd_in(values: Mapping[str, str]) -> str:
    """The schedd that attributes name: by jobsub's id, by GlobalJobId, by the address of the submit host."""
    for name in ("JobsubJobId", "GlobalJobId"):
        if name in values and (known := condor_id(values[name])) is not None and known.schedd:
            return known.schedd
    found = _ALIAS.search(values["SubmitHost"]) if "SubmitHost" in values else None
    return found[1] if found else ""


@lru_cache(maxsize=4_096)
def _time_of(date: str, time: str) -> tuple[Moment | None, bool]:
    """The time of a head, and whether it has a year; without one it is of the year 2000."""
    if "/" not in date:
        return read_date(f"{date} {time}"), True
    month, day, *year = date.split("/")
    if year:
        return read_date(f"{int(year[0]) % 100 + 2000}-{month}-{day} {time}"), True
    return read_date(f"2000-{month}-{day} {time}"), False


def _give_years(facts: list[CondorFact], places: list[int], newest: Nanos) -> None:
    """Give the facts at these places the latest year in which none comes after what follows it."""
    limit = Nanos(newest + ZONES_S * SECOND)
    for place in reversed(places):
        fact = facts[place]
        at = None if fact.at is None else _latest(fact.at, limit)
        facts[place] = msgspec.structs.replace(fact, at=at)
        if at is not None:
            limit = Nanos(min(limit, at + DAY_S * SECOND))


def _latest(at: Nanos, limit: Nanos) -> Nanos | None:
    """A time of the year 2000 in the latest year that lets it be no later than `limit`; None for none."""
    from datetime import UTC, datetime, timedelta

    moment = datetime.fromtimestamp(at / SECOND, UTC)
    try:
        last = datetime.fromtimestamp(limit / SECOND, UTC) + timedelta(days=1)
    except (ValueError, OverflowError, OSError):
        return None
    for year in range(last.year, last.year - 9, -1):
        try:
            dated = moment.replace(year=year)
        except ValueError:  # February 29
            continue
        if (there := Nanos(int(dated.timestamp()) * SECOND)) <= limit:
            return there
    return None
