"""Events and job ads of HTCondor as facts about jobs, out of the pieces that `condor_frames` finds.

The classic form of events: a head `NNN (cluster.proc.subproc) date time text`, lines that `condor.toml`
knows, and a first other line that is the reason. Old logs have `MM/DD` without a year: it is that of
the file's last change or one before it, so that no event comes after the next. XML and JSON hold the
attributes themselves.
"""

import json
import re
from collections.abc import Iterable, Mapping
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
CLUSTERS_KEPT = 10_000

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


class EventReader:
    """Makes facts of the pieces of one file, in order. It remembers the schedd of each cluster."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._schedds: dict[int, str] = {}
        self._skips: list[Skip] = []

    def copy(self) -> "EventReader":
        """One that has read the same, and goes on by itself."""
        other = EventReader(self.source)
        other._schedds = dict(self._schedds)
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
            found = self._event(frame.data, at) if form is Form.CLASSIC else self._ad(form, frame.data, at)
            if found is None:
                self._skip(at, "is neither an event nor a job ad")
                continue
            fact, has_year = found
            fact = msgspec.structs.replace(fact, line=line and line + frame.line)
            if not has_year:
                yearless.append(len(facts))
            facts.append(fact)
        _give_years(facts, yearless, newest)
        return Read(facts, self._skips)

    def _skip(self, offset: int, why: str) -> None:
        self._skips.append(Skip(f"{self.source}, byte {offset}", why))

    def _event(self, data: bytes, offset: int) -> tuple[CondorFact, bool] | None:
        """The event of a piece in the classic form, and whether its time has a year."""
        head = HEADER.match(data)
        if head is None:
            return None
        kind = EVENTS.get(int(head["number"]))
        text = data.replace(b"\0", b"").decode("utf-8", "replace")[:MOST_CHARACTERS]
        lines = text.split("\n")[:MOST_LINES]
        values = _values_of(head["number"].decode(), [head["text"].decode("utf-8", "replace"), *lines[1:]])
        moment, has_year = _time_of(head)
        if moment is None:
            return None
        number = CondorId(int(head["cluster"]), _proc(head["proc"]))
        fact = self._fact(number, Teller.EVENT, kind.name if kind else NOTE, moment, text, offset, values)
        return fact, has_year

    def _ad(self, form: Form, data: bytes, offset: int) -> tuple[CondorFact, bool] | None:
        """The event or job ad of a piece that holds attributes."""
        text = data.replace(b"\0", b"").decode("utf-8", "replace")
        values = _attributes(form, text)
        if form is Form.SUBMIT:
            return self._submission(values, offset)
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
        return self._fact(number, teller, what, moment, text[:MOST_CHARACTERS], offset, values), True

    def _submission(self, values: dict[str, str], offset: int) -> tuple[CondorFact, bool] | None:
        ref = trace_of(values)
        if ref is None:
            return None
        text = f"TRACEPARENT {ref.trace_id}"
        values = values | {TRACEPARENT: ref.trace_id}
        return CondorFact("", Teller.SUBMIT, "submit_file", None, text, self.source, 0, offset, values), True

    def _fact(
        self,
        number: CondorId,
        teller: Teller,
        what: str,
        moment: Moment | None,
        text: str,
        offset: int,
        values: dict[str, str],
    ) -> CondorFact:
        schedd = _schedd_in(values) or self._schedds.get(number.cluster, "")
        if schedd:
            self._schedds[number.cluster] = schedd
            if len(self._schedds) > CLUSTERS_KEPT:
                del self._schedds[next(iter(self._schedds))]
        if (ref := trace_of(values)) is not None:
            values = values | {TRACEPARENT: ref.trace_id}
        job = number._replace(schedd=schedd).job_id if number.proc is not None else ""
        at, is_local = moment or (None, False)
        return CondorFact(job, teller, what, at, text, self.source, 0, offset, values, is_local)


def _values_of(number: str, lines: Iterable[str]) -> dict[str, str]:
    """The attributes that the lines of an event give, the first line without a shape as its reason."""
    shapes: LogFormat = load("condor")
    values: dict[str, str] = {}
    for place, line in enumerate(map(str.strip, lines)):
        head = _FIRST_WORD.match(line)
        if matched := shapes.match(line, number, head[0] if head else ""):
            values.update((name, value) for name, value in matched[1].items() if value is not None)
        elif _NEW.match(line) and (pair := attribute(line)):
            values[pair[0]] = pair[1]
        elif place and line and REASON not in values and number in _WITH_REASON:
            values[REASON] = line
    return values


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
    if (first := _int(values.get(cluster))) < 0:
        return condor_id(values.get("GlobalJobId", "")) or condor_id(values.get("JobsubJobId", ""))
    second = _int(values.get(proc))
    return CondorId(first, second if second >= 0 else None)


def _int(text: str | None) -> int:
    """A number that is not negative; -1 for anything else."""
    return int(text) if text and len(text) < 13 and text.isascii() and text.isdigit() else -1


def _proc(text: bytes) -> int | None:
    """The process; None for what is told of a whole cluster."""
    return None if text.startswith(b"-") else int(text)


def _schedd_in(values: Mapping[str, str]) -> str:
    """The schedd that attributes name: by jobsub's id, by GlobalJobId, by the address of the submit host."""
    for name in ("JobsubJobId", "GlobalJobId"):
        if (known := condor_id(values.get(name, ""))) is not None and known.schedd:
            return known.schedd
    found = _ALIAS.search(values.get("SubmitHost", ""))
    return found[1] if found else ""


def _time_of(head: re.Match[bytes]) -> tuple[Moment | None, bool]:
    """The time of a head, and whether it has a year; without one it is of the year 2000."""
    date, time = head["date"].decode(), head["time"].decode()
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
