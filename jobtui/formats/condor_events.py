"""Files of HTCondor and jobsub: what kind they are, their parts, and the facts about jobs in them.

Values become texts: a string its content, anything else as it is written. An environment is written in two
ways, `A=1;B=2` and `"A=1 B='2 3'"` (https://htcondor.readthedocs.io/en/latest/man-pages/condor_submit.html,
command `environment`).

An event of a user log is a block that ends in a line `...` in the classic form, an element `<c>` in XML, an
object in JSON. Job ads are the same two of the latter, or blocks of lines `Name = value`, parted by empty
ones. The bytes may be anything; an unfinished part is left for later.

The classic form of events: a head `NNN (cluster.proc.subproc) date time text`, lines that `condor.toml`
knows, and a first other line that is the reason. Old logs have `MM/DD` without a year: it is that of
the file's last change or one before it, so that no event comes after the next. XML and JSON hold the
attributes themselves.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from functools import lru_cache
from html import unescape
from itertools import groupby, pairwise
from typing import NamedTuple

import msgspec

from jobtui.formats.job_output import FactsRead, OutputReader, OutputTime, read_date
from jobtui.formats.schema import LogFormat, load
from jobtui.model import condor
from jobtui.model.clock import SECOND, Nanos, time_of_parts, time_of_seconds, utc_of
from jobtui.model.health import Skip, rows_of
from jobtui.model.ids import CondorId, TraceRef, condor_id, find_trace
from jobtui.model.logs import CondorFact, Origin
from jobtui.model.numbers import counted, read_json, real, whole
from jobtui.model.tables import tables_of

MOST_CHARACTERS = 64 << 10
"""The most characters that are kept of one value."""

_ATTRIBUTE = re.compile(r"\s*\+?(?P<name>[A-Za-z_][\w.]*)\s*=(?P<value>.*)", re.ASCII | re.DOTALL)
BLANKS = " \t\r\n\f\v"
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Mapping[str, str] = {"n": "\n", "t": "\t", "r": "\r"}
_XML_ATTRIBUTE = re.compile(
    r'<a n="(?P<name>\w{1,200})">\s*(?:<b v="(?P<bool>[tf])"\s*/>'
    r"|<(?P<kind>[a-z]{1,9})>(?P<value>[^<]*)</(?P=kind)>|<s/>)\s*</a>"
    r'|<a n="(?P<outer>\w{1,200})">\s*<c>|(?:<a n="(?P<items>\w{1,200})">\s*)?<l>|(?P<end></c>\s*</a>|</l>)',
    re.ASCII,
)
"""An attribute; or the beginning of a nested ad or a list; or the end of either."""
_JSON_EXPRESSION = re.compile(r"/Expr\((?P<expression>.*)\)/", re.DOTALL)
"""An expression among strings, as HTCondor writes it into JSON."""
ENVIRONMENTS = frozenset({"environment", "env"})
"""Attributes that hold the environment of a job, in lower case."""
_OLD_SEPARATOR = re.compile(r"[;|]")
_WORD = re.compile(r"(?:[^\s']|'(?:[^']|'')*+(?:'|\Z))+")
_QUOTED = re.compile(r"'((?:[^']|'')*+)(?:'|\Z)")
"""Blanks in it separate no words, and two quotes in it mean one."""


class Attribute(NamedTuple):
    """One attribute: `value` is a text without quotes if `is_text`, else as written; None for a list."""

    name: str
    value: str | None
    is_text: bool = False

    @property
    def literal(self) -> str:
        value = self.value or ""
        if self.is_text:
            return f'"{value}"' if len(value) <= LONGEST_VALUE else ""
        return value.lower() if value.lower() in LITERAL_WORDS or real(value) is not None else ""


def attribute(line: str) -> Attribute | None:
    """The attribute of a line `Name = value`; None for any other line."""
    found = _ATTRIBUTE.fullmatch(line[:MOST_CHARACTERS])
    if found is None:
        return None
    value = found["value"].strip(BLANKS)
    if not _STRING.fullmatch(value):
        return Attribute(found["name"], value)
    text = _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), value[1:-1])
    return Attribute(found["name"], text, is_text=True)


def attributes(text: str) -> Iterator[Attribute]:
    """The attributes of an ad in any form; those of a nested ad as `Outer.Inner`."""
    if text[:1] == "{":
        document: object = None
        with suppress(ValueError):
            document = read_json(text)
        for name, value in document.items() if isinstance(document, dict) else ():
            yield _of_json(name, value)
            inner = value.items() if isinstance(value, dict) else ()
            yield from (_of_json(f"{name}.{within}", one) for within, one in inner)
    elif text[:1] == "<":
        path: list[str] = []
        for found in _XML_ATTRIBUTE.finditer(text):
            if found["end"]:
                del path[-1:]
            elif found["name"] is None:
                if not path:
                    yield Attribute(found["outer"] or found["items"] or "", None)
                path.append(found["outer"] or "")
            elif not path or (len(path) == 1 and path[0]):
                value = {"t": "true", "f": "false"}.get(found["bool"] or "", unescape(found["value"] or ""))
                is_text = not found["bool"] and found["kind"] in ("s", None)
                yield Attribute(".".join((*path, found["name"])), value, is_text)
    else:
        yield from filter(None, map(attribute, text.split("\n")))


def _of_json(name: str, value: object) -> Attribute:
    if isinstance(value, str) and (found := _JSON_EXPRESSION.fullmatch(value)):
        return Attribute(name, found["expression"])
    if isinstance(value, bool):
        return Attribute(name, str(value).lower())
    text = str(value) if isinstance(value, str | int | float) else None
    return Attribute(name, text, isinstance(value, str))


def texts_of(text: str) -> dict[str, str]:
    return {one.name: one.value[:MOST_CHARACTERS] for one in attributes(text) if one.value is not None}


def literals(text: str) -> dict[str, str]:
    """The attributes of an ad as one writes them into an expression, by names in lower case.

    A literal is a number, true, false, undefined, or a text in quotes; "" where it is an expression or long.
    """
    return {one.name.lower(): one.literal for one in attributes(text)}


def environment(value: str) -> dict[str, str]:
    value = value.strip()
    is_new = value[:1] == '"' and value[-1:] == '"' and len(value) > 1
    if is_new:
        value = value[1:-1].replace('""', '"')
    if is_new or (";" not in value and (" " in value or "'" in value)):
        found = (word[0] for word in _WORD.finditer(value))
        words = [_QUOTED.sub(lambda quoted: quoted[1].replace("''", "'"), word) for word in found]
    else:
        words = _OLD_SEPARATOR.split(value)
    pairs = (word.partition("=") for word in words)
    return {name.strip(): value for name, equals, value in pairs if equals and name.strip()}


def trace_of(values: Mapping[str, str]) -> TraceRef | None:
    """The trace that a job was given, by its ad or submit file: its attribute, else its environment."""
    handed: list[str] = []
    for name, value in values.items():
        if (lower := name.lower()) == "traceparent":
            handed.insert(0, value)
        elif lower in ENVIRONMENTS:
            held = environment(value)
            handed += [held[name] for name in held if name.upper() == "TRACEPARENT"]
    return next((ref for value in handed if (ref := find_trace(value)) is not None), None)


HEAD_BYTES = 64 << 10
"""How many bytes of a file are read to learn what it is."""


class Form(StrEnum):
    CLASSIC = "events"
    XML = "xml"
    JSON = "json"
    ADS = "ads"
    XML_ADS = "xml ads"
    JSON_ADS = "json ads"
    MACHINES = "machine ads"
    SUBMIT = "submit"
    OUTPUT = "output"


GROWING = frozenset({Form.CLASSIC, Form.XML, Form.JSON, Form.OUTPUT})
"""Files that grow at their end, and are not rewritten."""

HEADER = re.compile(
    rb"(?:^|(?<=\0))(?P<number>\d{3}) "
    rb"\((?P<cluster>-?\d{1,12})\.(?P<proc>-?\d{1,9})\.(?P<subproc>-?\d{1,9})\) "
    rb"(?P<date>\d{4}-\d\d-\d\d|\d\d/\d\d(?:/\d{2,4})?)[ T](?P<time>\d\d:\d\d:\d\d(?:\.\d{1,9})?"
    rb"(?:Z|[+-]\d\d:?\d\d)?) ?(?P<text>[^\n]*)",
    re.MULTILINE,
)
"""The first line of an event in the classic form. In the head of a schedd's own log all are -1."""
_EVENT = b"EventTypeNumber"
"""What every event in XML and JSON has, and no job ad."""
_MACHINE = re.compile(rb'\bMyType(?:"\s*:|\s*=|">\s*<s>)\s*"?Machine\b')
MOST_VALUES = 1_000
"""How many different values of an attribute of slots are kept."""
LONGEST_VALUE = 200
LITERAL_WORDS = frozenset({"true", "false", "undefined"})
_DOTS = re.compile(rb"^\.\.\.[ \t\r]*(?:\n|\Z)", re.MULTILINE)
_QUEUE = re.compile(rb"^\s*queue\b", re.MULTILINE | re.IGNORECASE)
_COMMAND = re.compile(rb"^\s*(?:universe|executable|transfer_\w+|arguments)\s*=", re.M | re.I)
_ATTRIBUTE_LINE = re.compile(rb"[A-Za-z_][\w.]*\s*=[^=]")
_WRAPPER = re.compile(rb"BEGIN EXECUTION|COMPLETED with exit status")
_TAG = re.compile(rb"</?c>")
_EMPTY_LINE = re.compile(rb"(?:^[ \t\r]*\n|^\*\*\* [^\n]*\n)+", re.MULTILINE)
_OBJECT = re.compile(rb"^[ \t\r\f\v,\[]*+(?=\{)", re.MULTILINE)
"""The beginning of an object. Each line is read once: a log may have a million empty ones."""
_NEXT_OBJECT = re.compile(rb"[ \t\r\n\f\v,]*+(?=\{)")
BLANK_BYTES = b" \t\r\n\0"
OF_ENDS = frozenset({"003", "004", "005", "007", "015"})
"""Events that say what a run sent or used."""
_HEADS: Mapping[str, Iterable[str]] = tables_of("jobtui.model", "condor")["heads"]
_OF_ONE_KIND = (
    (OF_ENDS, re.compile(rb"^\s+\d+  -  (?:Run|Total) Bytes |Partitionable Resources :", re.MULTILINE)),
    ({"005", "015"}, re.compile(rb"  -  Total (?:Bytes|Remote|Local) ")),
    ({"001"}, re.compile(rb"^\tSlotName: ", re.MULTILINE)),
)
"""Lines of these events only: another that has one is one's beginning and another one's end."""
_FIGURE = re.compile(rb"  -  (?:Run|Total) [A-Z][\w ]+")
_HEADING, _ROW = b"\tPartitionable Resources :", re.compile(rb"^\t   \w+(?: \(\w+\))? +:", re.MULTILINE)
ENDS = (b"}", b"</c>")
"""The end of an event in JSON and XML."""
_NAMED = re.compile(
    rb"^\d{3} \((\d{1,12})\.(\d{1,9})"
    rb'|\bCluster"(?:>\s*<i>|\s*:\s*)(\d{1,12})(?s:.{0,2000}?)\bProc"(?:>\s*<i>|\s*:\s*)(\d{1,9})'
)
"""The job that the beginning of an event names, in any form."""
ADS_WANTED = 3
"""A file with this many attributes in its first lines is an ad."""


class EventFrame(NamedTuple):
    """One piece of a block. `is_whole` is False for one whose end is missing though more came after it."""

    data: bytes
    offset: int
    is_whole: bool = True


_Framed = tuple[list[EventFrame], int]
"""The pieces of a block, and how many bytes of it they take: the rest is not whole yet."""


def form_of(head: bytes) -> Form | None:
    """The kind of a file, by its beginning; None while that is unknown."""
    head = head[:HEAD_BYTES]
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n\0")
    if not text:
        return None
    if HEADER.search(head) and not _WRAPPER.search(head):
        return Form.CLASSIC
    is_xml = text[:1] == b"<" and (b"<c>" in head or b"<?xml" in head or b"<classads" in head)
    if is_xml or text[:1] in (b"{", b"["):
        if _EVENT in head:
            return Form.XML if is_xml else Form.JSON
        return Form.MACHINES if _MACHINE.search(head) else Form.XML_ADS if is_xml else Form.JSON_ADS
    if _QUEUE.search(head) and _COMMAND.search(head):
        return Form.SUBMIT
    lines = [line for line in text.split(b"\n")[: ADS_WANTED * 3] if line.strip()]
    attributes = sum(_ATTRIBUTE_LINE.match(line) is not None for line in lines)
    is_ad = attributes >= min(ADS_WANTED, len(lines)) and attributes * 2 > len(lines)
    if not is_ad or _WRAPPER.search(head):
        return Form.OUTPUT
    return Form.MACHINES if _MACHINE.search(head) else Form.ADS


def _frames_in(form: Form, data: bytes, *, to_end: bool) -> _Framed:
    """The pieces of a block. With `to_end` nothing follows it: what has no end is given as it is."""
    if form is Form.MACHINES:
        forms = {b"<": Form.XML_ADS, b"[": Form.JSON_ADS, b"{": Form.JSON_ADS}
        form = forms.get(data.lstrip(BLANK_BYTES)[:1], Form.ADS)
    match form:
        case Form.CLASSIC:
            return _classic(data)
        case Form.XML | Form.XML_ADS:
            return _xml(data)
        case Form.JSON | Form.JSON_ADS:
            return _json(data)
        case Form.ADS:
            return _blocks(data, to_end=to_end)
    return [EventFrame(data, 0)], len(data)


def _classic(data: bytes) -> _Framed:
    """Events one after the other. Before the event of a block may be some whose end was never written."""
    frames: list[EventFrame] = []
    begin = 0
    for dots in _DOTS.finditer(data):
        if dots.end() == len(data) and data[-1:] != b"\n":
            break  # it may be the beginning of a longer line
        last = dots.start()
        heads = [begin + found.start() for found in HEADER.finditer(data[begin:last])]
        starts = sorted({begin, *heads}) if heads else [begin]
        for start, end in pairwise([*starts, last]):
            piece = data[start:end]
            if piece.strip(BLANK_BYTES) or b"\0" in piece or not heads:  # one of which nothing is left counts
                is_whole = end == last and (not heads or start >= heads[0]) and b"\0" not in piece
                frames.append(EventFrame(piece, start, is_whole))
        begin = dots.end()
    return frames, begin


def _xml(data: bytes) -> _Framed:
    """Elements `<c>`, which may have others inside. One that begins a line is inside none."""
    frames: list[EventFrame] = []
    taken, begin, depth = 0, -1, 0
    for tag in _TAG.finditer(data):
        if tag[0] == b"<c>":
            if depth and data[tag.start() - 1 : tag.start()] == b"\n":
                frames.append(EventFrame(data[begin : tag.start()], begin, is_whole=False))
                depth, taken = 0, tag.start()
            begin, depth = (tag.start() if not depth else begin), depth + 1
        elif depth:
            depth -= 1
            if not depth:
                frames.append(EventFrame(data[begin : tag.end()], begin))
                taken = tag.end()
        else:  # the end of one whose beginning is missing
            frames.append(EventFrame(data[taken : tag.end()], taken, is_whole=False))
            taken = tag.end()
    return frames, taken


def _blocks(data: bytes, *, to_end: bool) -> _Framed:
    frames: list[EventFrame] = []
    begin = 0
    for gap in _EMPTY_LINE.finditer(data):
        if data[begin : gap.start()].strip():
            frames.append(EventFrame(data[begin : gap.start()], begin))
        begin = gap.end()
    if to_end and data[begin:].strip(BLANK_BYTES):
        frames.append(EventFrame(data[begin:], begin))
        begin = len(data)
    return frames, begin


def _json(data: bytes) -> _Framed:
    """Objects, one after the other or in a list. One that is broken ends where the next line begins one."""
    frames: list[EventFrame] = []
    starts = iter([found.end() for found in _OBJECT.finditer(data)])
    text, taken, start = data.decode("latin-1"), 0, next(starts, None)
    while start is not None:
        try:
            _, after = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            later = next((one for one in starts if one > start), None)
            if later is None and data[start:].rstrip(BLANK_BYTES).endswith(b"\n}"):
                later = len(data)  # it was written to its end, so the end of what is broken will not come
            if later is None:
                break
            frames.append(EventFrame(data[start:later], start, is_whole=False))
            taken = start = later
        else:
            frames.append(EventFrame(data[start:after], start))
            taken = after
            follows = _NEXT_OBJECT.match(data, after)
            start = follows.end() if follows else next((one for one in starts if one >= after), None)
    return frames, taken


_DECODER = json.JSONDecoder()

NOTE = "generic"
MOST_LINES = 200
REASON = "Reason"
DAY_S = 86_400
ZONES_S = 15 * 3600
"""A time without a zone may be so far ahead of one in UTC."""
CLUSTERS_KEPT = 5_000
"""Of at least this many newest clusters the schedd is remembered."""

_ALIAS = re.compile(r"[?&]alias=([\w.-]+)")
_FIRST_WORD = re.compile(r"\w*", re.ASCII)
_NEW = re.compile(r"\+?\w[\w.]*\s*=", re.ASCII)
_WITH_REASON = frozenset(f"{code:03}" for code in (2, 4, 7, 8, 9, 10, 11, 12, 13, 16, 18, 20, 21, 22, 24, 29))
"""Events of which a line of free text says why."""
_REASONS = ("HoldReason", "Message", "DisconnectReason", "EventDescription", "ErrorMsg", REASON)
"""Attributes that hold why something happened, in the XML and JSON forms."""


class _EventFact(NamedTuple):
    """What a piece says about a job, or about none if it has no process."""

    number: CondorId
    origin: Origin
    what: str
    moment: OutputTime | None
    text: str
    values: dict[str, str]
    has_year: bool = True


class EventReader:
    """Makes facts of one file, block by block in order. It remembers the schedd of each cluster."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._output = OutputReader(source)
        self._schedds: dict[int, str] = {}
        self._schedds_before: Mapping[int, str] = {}

    def read(
        self, form: Form, data: bytes, begin: int, line: int, newest: Nanos, *, to_end: bool = False
    ) -> FactsRead:
        """The facts of a block. `begin` is its byte in the file, `line` the number of its first line.

        Lines have no numbers when that is 0. `newest` is when the file was last changed. With `to_end`
        nothing follows. Never raises on any bytes.
        """
        if form is Form.OUTPUT:
            return self._output.read(data, begin, line, to_end=to_end)
        frames, taken = _frames_in(form, data, to_end=to_end)
        if form is Form.MACHINES:
            return self._machines(frames, data, begin, taken)
        facts: list[CondorFact] = []
        skips: list[Skip] = []
        yearless: list[int] = []
        lines = counted = 0

        def made(frame: EventFrame) -> tuple[CondorFact, bool]:
            nonlocal lines, counted
            lines, counted = lines + data.count(b"\n", counted, frame.offset), frame.offset
            at, said = (line and line + lines, begin + frame.offset), None
            text = frame.data.strip(BLANK_BYTES)
            if frame.is_whole and b"\0" not in text:
                said = _event(frame.data) if form is Form.CLASSIC else _ad(form, frame.data)
            if said is not None:
                return self._fact(said, *at), said.has_year
            if form in GROWING:
                is_torn = not (frame.is_whole or b"\0" in text or text.endswith(ENDS))
                facts.append(self.gap(text if is_torn else b"", *at))
            is_odd = "is neither an event nor a job ad"
            raise ValueError(is_odd if frame.is_whole else "its beginning or end was never written")

        def skip(frame: EventFrame, why: str) -> None:
            skips.append(Skip(f"{self.source}, byte {begin + frame.offset}", why))

        for fact, has_year in rows_of(frames, made, skip, ValueError):
            if not has_year:
                yearless.append(len(facts))
            facts.append(fact)
        _give_years(facts, yearless, newest)
        return FactsRead(facts, skips, taken)

    def gap(self, data: bytes, line: int, offset: int) -> CondorFact:
        """An event that was not written whole, of its job or, where it names none, of any.

        One that has an end, or a hole, is two, and what is lost between them may be of any job.
        """
        named = _NAMED.search(data.strip(BLANK_BYTES))
        cluster, proc = (whole(one, 0) for one in named.groups() if one) if named else (-1, None)
        text = f"{self.source} has an event at byte {offset} that was not written whole"
        said = _EventFact(CondorId(cluster, proc), Origin.EVENT, condor.LOG_GAP, None, text, {})
        return self._fact(said, line, offset)

    def _machines(self, frames: list[EventFrame], data: bytes, begin: int, taken: int) -> FactsRead:
        """The ads of all slots of a pool as one fact; none where an ad or the end of the list is missing.

        A dynamic slot is a part of one that counts, as `condor_q -better-analyze` has it.
        """
        numbers: defaultdict[str, dict[str, list[list[int]]]] = defaultdict(dict)
        slots = newest = 0
        end = {b"<": b"</classads>", b"[": b"]"}.get(data.lstrip(BLANK_BYTES)[:1], b"")
        is_whole = data[taken:].strip(BLANK_BYTES) == end and (bool(end) or data.endswith(b"\n\n"))
        for frame in frames:
            ad = literals(frame.data.decode("utf-8", "replace")) if frame.is_whole else {}
            if ad.get("mytype") != '"Machine"' or "requirements" not in ad:
                is_whole = False
            elif ad.get("dynamicslot") != "true":
                newest = max(newest, whole(ad.get("lastheardfrom", "").strip('"'), 0))
                for name, literal in ad.items():
                    values = numbers[name]
                    is_kept = len(values) < MOST_VALUES or literal in values
                    spans = values.setdefault(literal if is_kept else "", [])
                    if not spans or spans[-1][1] != slots - 1:
                        spans.append([slots, slots])
                    spans[-1][1] = slots
                slots += 1
        if not is_whole:
            skip = Skip(f"{self.source}, byte {begin}", "not all machine ads are whole")
            return FactsRead([], [skip], taken)
        slots_of = {
            f"{name}={literal}": ",".join(f"{first}-{last}" for first, last in spans)
            for name, values in numbers.items()
            for literal, spans in values.items()
        }
        at, text = time_of_seconds(newest) or None, counted(slots, "slot")
        fact = CondorFact("", Origin.AD, condor.MACHINES, at, text, self.source, 0, begin, slots_of)
        return FactsRead([fact], [], taken)

    def _fact(self, said: _EventFact, line: int, offset: int) -> CondorFact:
        cluster, proc, values = said.number.cluster, said.number.proc, said.values
        known = self._schedds.get(cluster, "")
        schedd = _schedd_in(values) or known or self._schedds_before.get(cluster, "")
        if schedd and schedd != known:
            if len(self._schedds) >= CLUSTERS_KEPT:
                self._schedds, self._schedds_before = {}, self._schedds
            self._schedds[cluster] = schedd
        if (ref := trace_of(values)) is not None:
            values = values | {condor.TRACEPARENT: ref.trace_id}
        job = CondorId(cluster, proc, schedd).job_id if proc is not None and cluster else ""
        at, is_local = said.moment or (None, False)
        return CondorFact(
            job, said.origin, said.what, at, said.text, self.source, line, offset, values, is_local
        )


def _event(data: bytes) -> _EventFact | None:
    """What a piece in the classic form says; `has_year` is whether its time has a year."""
    head = HEADER.match(data)
    if head is None:
        return None
    parts = (part.decode("utf-8", "replace") for part in head.groups())
    event, cluster, proc, _, date, time, first = parts
    moment, has_year = _time_of(date, time)
    is_cut = not first.startswith(tuple(_HEADS.get(event, ("",)))) or "<" in first.rpartition(">")[2]
    is_cut |= any(event not in kinds and line.search(data) is not None for kinds, line in _OF_ONE_KIND)
    is_cut |= _is_joined(data)
    if moment is None or is_cut:
        return None
    kind = condor.EVENTS.get(whole(event, -1))
    text = (data.replace(b"\0", b"") if b"\0" in data else data).decode("utf-8", "replace")
    text = text[:MOST_CHARACTERS]
    _, *others = text.split("\n", MOST_LINES)[:MOST_LINES]
    number = CondorId(whole(cluster, -1), None if proc.startswith("-") else whole(proc))
    values = _values_of(event, [first, *others])
    what = kind.name if kind else condor.UNKNOWN_EVENT
    return _EventFact(number, Origin.EVENT, what, moment, text, values, has_year)


def _is_joined(data: bytes) -> bool:
    """Whether figures of an event are there twice or below its table, or the table has lost its heading."""
    figures = [one for one, _ in groupby(_FIGURE.findall(data))]  # a line that was written twice is one
    row = _ROW.search(data)
    if row is not None and (_HEADING not in data[: row.start()] or _FIGURE.search(data, row.start())):
        return True
    return len(set(figures)) < len(figures)


def _ad(form: Form, data: bytes) -> _EventFact | None:
    text = data.replace(b"\0", b"").decode("utf-8", "replace")
    joined = text.replace("\\\r\n", " ").replace("\\\n", " ") if form is Form.SUBMIT else text
    values = texts_of(joined)
    if form is Form.SUBMIT:
        ref, of_none = trace_of(values), CondorId(-1, None)
        words = f"TRACEPARENT {ref.trace_id}" if ref is not None else ""
        return _EventFact(of_none, Origin.SUBMIT, "submit_file", None, words, values) if words else None
    if values.get("EventTypeNumber", "").isdigit() or values.get("MyType", "").endswith("Event"):
        kind = condor.EVENTS.get(whole(values.get("EventTypeNumber"), -1))
        number = _numbered(values, "Cluster", "Proc")
        reason = next((values[name] for name in _REASONS if name in values), None)
        values = values | ({REASON: reason} if reason else {})
        what, origin = kind.name if kind else condor.UNKNOWN_EVENT, Origin.EVENT
        if "Cluster" not in values and what in (NOTE, condor.UNKNOWN_EVENT):  # the head of a schedd's own log
            number = CondorId(-1, None)
    else:
        number, what, origin = _numbered(values, "ClusterId", "ProcId"), "ad", Origin.AD
    if number is None:
        return None
    moment = read_date(values.get("EventTime", ""))
    return _EventFact(number, origin, what, moment, text[:MOST_CHARACTERS], values)


def _values_of(number: str, lines: Iterable[str]) -> dict[str, str]:
    """The attributes that the lines of an event give, the first line without a shape as its reason."""
    values: dict[str, str] = {}
    for index, line in enumerate(map(str.strip, lines)):
        said = _line_values(number, line)
        if said:
            values.update(said)
        elif said is None and index and line and REASON not in values and number in _WITH_REASON:
            values[REASON] = line
    return values


def _line_values(number: str, line: str) -> tuple[tuple[str, str], ...] | None:
    shapes: LogFormat = load("condor")
    head = _FIRST_WORD.match(line)
    if matched := shapes.match(line, number, head[0] if head else ""):
        return tuple((name, value) for name, value in matched[1].items() if value is not None)
    pair = attribute(line) if _NEW.match(line) else None
    return None if pair is None else ((pair.name, pair.value or ""),)


def _numbered(values: Mapping[str, str], cluster: str, proc: str) -> CondorId | None:
    if values.get(cluster) == "-1":  # the same in older releases
        return CondorId(-1, None)
    if (first := whole(values.get(cluster), -1)) < 0:
        return condor_id(values.get("GlobalJobId", "")) or condor_id(values.get("JobsubJobId", ""))
    second = whole(values.get(proc), -1)
    return CondorId(first, second if second >= 0 else None)


def _schedd_in(values: Mapping[str, str]) -> str:
    """The schedd in jobsub's id, in GlobalJobId, or in the address of the submit host."""
    for name in ("JobsubJobId", "GlobalJobId"):
        if name in values and (known := condor_id(values[name])) is not None and known.schedd:
            return known.schedd
    found = _ALIAS.search(values["SubmitHost"]) if "SubmitHost" in values else None
    return found[1] if found else ""


@lru_cache(maxsize=4_096)
def _time_of(date: str, time: str) -> tuple[OutputTime | None, bool]:
    """The time of a head, and whether it has a year; without one the year is 2000."""
    if "/" not in date:
        return read_date(f"{date} {time}"), True
    month, day, *year = date.split("/")
    if year:
        return read_date(f"20{year[0][-2:]}-{month}-{day} {time}"), True
    return read_date(f"2000-{month}-{day} {time}"), False


def _give_years(facts: list[CondorFact], indexes: list[int], newest: Nanos) -> None:
    """Set the year of the facts at these places: the latest in which they stay in order."""
    limit = Nanos(newest + ZONES_S * SECOND)
    for index in reversed(indexes):
        fact = facts[index]
        if fact.at is None:
            continue
        _, *parts = utc_of(fact.at).timetuple()[:6]
        last = utc_of(Nanos(limit + DAY_S * SECOND)).year
        times = (time_of_parts(year, *parts) for year in range(last, last - 9, -1))  # None: February 29
        at = next((there for there in times if there is not None and there <= limit), None)
        facts[index] = msgspec.structs.replace(fact, at=at)
        if at is not None:
            limit = Nanos(min(limit, at + DAY_S * SECOND))
