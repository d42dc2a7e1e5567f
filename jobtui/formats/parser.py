"""Blocks of a log into records: only lines that can matter to a job become one.

A line of Sirepo (pykern) is `[<Mon DD HH:MM:SS> <pid> <thread> ]<file>:<line>:<func> <message>`; without the
part in brackets where the journal gives it. Three things wrap other lines:

- the supervisor forwards what a Docker agent prints, `<container> <text>`, cut after 1,000 bytes and glued
  without a newline to what came before;
- in development it echoes the last 200 lines of a cluster's agent log, so that old lines come again;
- a multi-line record of one process can be cut in two by a line of another.

So agents' records are taken from anywhere in a line where their prefix is, and exact repeats are dropped.

A line is `<YYYY-MM-DD HH:MM:SS.mmm> | <pid> | <LEVEL> | <logger>:<line>] <message>`, the format that Balsam
0.7.0a24 sets (balsam/config, LoggingConfig). Its time has no zone: it is that of the site's machines, and is
read as that of this one.

Lines that say nothing about a job have shapes too (`known.toml`), so a line without a shape is from a release
that is not known yet.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

from jobtui.formats.schema import MATCH_LIMIT, load, sift
from jobtui.model.bounded import Bounded
from jobtui.model.clock import MONTHS, TIME_LENGTH, LogClock, Nanos, latest, time_of_iso
from jobtui.model.health import FAULTS, Skip
from jobtui.model.ids import system_job_id
from jobtui.model.logs import LogRecord
from jobtui.model.numbers import whole

SHAPE = "damaged"
"""The shape of the record of a damaged part: a full disk, a host that went down, several writers."""
STRIDE = 1 << 16
"""At most one damaged part is reported in so many bytes."""
WHY = "the log is damaged: NUL bytes, or bytes that are not text"


def damaged_offsets(block: bytes) -> Iterator[int]:
    """The offsets in a block where it is damaged, at most one in `STRIDE` bytes."""
    if block.isascii() and b"\0" not in block:
        return
    at = 0
    while at < len(block):
        hole = block.find(b"\0", at)
        offsets = [hole] if hole >= 0 else []
        try:
            block[at:].decode("utf-8")
        except UnicodeDecodeError as error:
            offsets.append(at + error.start)
        if not offsets:
            return
        yield min(offsets)
        at = min(offsets) + STRIDE


TEXT_LIMIT = 8_192
"""Characters kept of one message."""
REPEATS_KEPT = 4_096
"""How many agent lines are remembered to recognize repeats; an echo is 200 lines."""
CONTAINERS_KEPT = 1_000
"""For how many containers the last line, which may be cut, is held."""

_TIME = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
_LINE = re.compile(rf"({_TIME} +\d++ +\d++ )?+([^ ]{{1,1000}}+) ((\w*+).*)", re.ASCII | re.DOTALL)
"""Time, pid and thread; a word that may be a call site; the message, and its first word."""
_functions_at = lru_cache(1_000)(re.compile(r"\A[^\s:]+:\d+:([\w<>]+)\Z", re.ASCII).findall)  # they are few
_INNER = re.compile(rf"{_TIME} +\d+ +\d+ (?=[^\s:]+:\d+:)", re.ASCII)
_FORWARDED = re.compile(r"(srj-[sp]-\w+) (.*)", re.ASCII | re.DOTALL)


def _any_beginning(parts: tuple[str, ...]) -> str:
    return f"(?:{parts[0]}{_any_beginning(parts[1:])})?" if parts else ""


_AFTER_MONTH = (
    *(" ", r"[ \d]", r"\d", " ", r"\d", r"\d", ":", r"\d", r"\d", ":", r"\d", r"\d"),
    *(" +", r"\d+", " +", r"\d+", " ", r"[^\s:]+", ":", r"\d+"),
)
_MONTH_LETTERS = sorted({name[:length] for name in MONTHS for length in (1, 2)}, key=len, reverse=True)
_BEGUN = re.compile(
    rf"(?:(?:{'|'.join(MONTHS)}){_any_beginning(_AFTER_MONTH)}|(?P<letters>{'|'.join(_MONTH_LETTERS)}))\Z",
    re.ASCII,
)
"""What may be the beginning of a line's head at the end of a text; more than a letter or two."""
_HEAD_LENGTH = 250
"""The most characters of a line's head: time, pid, thread and the path of a source file."""


def split(text: str) -> tuple[str | None, str, str, str] | None:
    """The parts of a line with a call site: time with pid and thread, function, message, its first word."""
    found = _LINE.match(text)
    if found is None:
        return None
    stamp, site, message, head = found.groups()
    functions = _functions_at(site)
    return (stamp, functions[0], message, head) if functions else None


R = TypeVar("R")


class Parsed(NamedTuple, Generic[R]):
    """What a block gave. `lines` counts its physical lines; `skips` are what was left out."""

    records: list[R]
    lines: int
    skips: list[Skip]


class LogParser:
    """Makes records of the blocks of one log, in order, through all its rotated files."""

    def __init__(self, source: str) -> None:
        self.clock = LogClock()
        self._source = source
        self._format = load("sirepo")
        self._newest = Nanos(0)
        self._stamp: tuple[str, Nanos | None, int | None] = "", None, None
        self._held = Bounded[str, str](CONTAINERS_KEPT)
        self._seen = Bounded[int, None](REPEATS_KEPT)
        self._last_line = Bounded[int, int](REPEATS_KEPT)
        self._records: list[LogRecord] = []

    def _begin(self, newest: Nanos) -> list[LogRecord]:
        self._newest, self._stamp, self._records = newest, ("", None, None), []
        return self._records

    def parse(self, block: bytes, offset: int, line: int, newest: Nanos) -> Parsed[LogRecord]:
        """The records of a block of whole lines.

        `offset` and `line` are those of its first line, `newest` bounds times that carry no year: the
        file's mtime, or now. Never raises on any bytes.
        """
        records = self._begin(newest)
        skips = []
        count, lines = sift(block, self._format)
        for number, start, text in lines:
            try:
                self._read(text.rstrip("\r"), line + number, offset + start)
            except Exception as error:  # noqa: BLE001 - it costs this line
                why = FAULTS.note(error, "reading a line").words
                skips.append(Skip(f"{self._source}:{line + number}", why))
        for begin in damaged_offsets(block):
            # the record is for correlation, the skip is for the list of sources
            number = line + block.count(b"\n", 0, begin)
            records.append(LogRecord(self._source, number, offset + begin, None, None, SHAPE, {}, WHY))
            skips.append(Skip(f"{self._source}:{number}", WHY))
        if skips:
            records.sort(key=lambda record: record.offset)
        return Parsed(records, count, skips)

    def time_of(self, line: bytes, newest: Nanos) -> Nanos | None:
        at = latest(line[:TIME_LENGTH].decode("ascii", "replace"), newest)
        return None if at is None else self.clock.utc(at)

    def read_message(
        self, text: str, offset: int, line: int, at: Nanos | None, pid: int | None
    ) -> list[LogRecord]:
        """The records of one line whose time and process are known from elsewhere, such as a journal.

        A fault of ours is raised.
        """
        records = self._begin(at or Nanos(0))
        self._read(text.rstrip("\r"), line, offset, at, pid)
        return records

    def _read(
        self,
        text: str,
        line: int,
        offset: int,
        at: Nanos | None = None,
        pid: int | None = None,
        container: str | None = None,
    ) -> bool:
        """Add the record of a line; False if its message has no shape."""
        parts = split(text)
        if parts is None:
            return False
        stamp, func, message, head = parts
        if func == "_write" and container is None and (forwarded := _FORWARDED.match(message)):
            self._read_forwarded(forwarded[1], forwarded[2], line, offset)
            return True
        matched = self._format.match(message, func, head)
        if matched is None:
            return False
        if stamp:
            if stamp != self._stamp[0]:  # lines come in runs of the same second and process
                at, pid = latest(stamp[:TIME_LENGTH], self._newest), whole(stamp[TIME_LENGTH:].split()[0])
                if at is not None and container is None:  # a container has a zone of its own
                    at = self.clock.utc(at, pid)
                self._stamp = stamp, at, pid
            _, at, pid = self._stamp
        shape, fields = matched
        if shape.from_agent:
            if pid is not None and self._is_repeat(at, pid, message, "o" in fields):
                return True
        elif shape.name == "container_rest":
            self._read_forwarded(fields["container"] or "", fields["output"] or "", line, offset)
        self._records.append(
            LogRecord(
                self._source, line, offset, at, pid, shape.name, fields, message[:TEXT_LIMIT], container
            )
        )
        return True

    def _read_forwarded(self, container: str, text: str, line: int, offset: int) -> None:
        """The records in a container's output. A line cut in two is held until its rest comes.

        So is what may be the beginning of the next line, glued to the end of a whole one.
        """
        text = self._held.pop(container, "") + text
        begun = _BEGUN.search(text, max(0, len(text) - _HEAD_LENGTH))
        sure_end = len(text) if begun is None or begun["letters"] else begun.start()
        rest = begun[0] if begun else ""
        starts = [found.start() for found in _INNER.finditer(text)]
        for start, end in pairwise([*starts, len(text)]):
            is_last = end == len(text)
            part = text[start : sure_end if is_last else end]
            is_record = self._read(part, line, offset, container=container)
            if is_last and not is_record:
                rest = text[start:]
        if 0 < len(rest) <= MATCH_LIMIT:
            self._held[container] = rest

    def _is_repeat(self, at: Nanos | None, pid: int, message: str, names_op: bool) -> bool:
        """Whether a process wrote this before; if it names no op, whether after the same line."""
        mark = hash((at, pid, message))
        before, self._last_line[pid] = self._last_line.get(pid, 0), mark
        if not names_op:
            mark = hash((mark, before))
        if mark in self._seen:
            return True
        self._seen[mark] = None
        return False


def split_all(text: str) -> list[tuple[tuple[str | None, str, str, str], bool]]:
    """The parts of the records in a line: itself, none, or those in a container's output.

    With each, whether its end may be in another line.
    """
    parts = split(text)
    if parts is None:
        return []
    forwarded = _FORWARDED.match(parts[2]) if parts[1] == "_write" else None
    if forwarded is None:
        return [(parts, False)]
    output = forwarded[2]
    ends = [*(inner.start() for inner in _INNER.finditer(output)), len(output)]
    segments = ((split(output[start:end]), end == len(output)) for start, end in pairwise(ends))
    return [(segment, is_last) for segment, is_last in segments if segment]


FORMAT = "balsam_site"
TIME_BYTES = len("2026-11-20 17:31:39.707")
_SITE_LINE = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) \| (?P<pid>\d{1,10}) \| "
    r"(?P<rest>(?P<level>[A-Z]{1,10}) \| [\w.]{1,200}:\d{1,10}\] (?P<message>(?P<head>\w*).*))",
    re.ASCII | re.DOTALL,
)


class SiteLogParser:
    """The records of one file, of jobs whose ids begin with `system`."""

    def __init__(self, source: str, system: str) -> None:
        self._source = source
        self._system = system
        self._format = load(FORMAT)

    def parse(self, block: bytes, offset: int, line: int, newest: Nanos) -> Parsed[LogRecord]:
        """The records of a block of whole lines; `offset` and `line` are those of its first. Never raises."""
        count, lines = sift(block, self._format)
        found = (self._record(text, line + number, offset + start) for number, start, text in lines)
        return Parsed([record for record in found if record is not None], count, [])

    def time_of(self, line: bytes, newest: Nanos) -> Nanos | None:
        return read_time(line[:TIME_BYTES].decode("ascii", "replace"))

    def _record(self, text: str, line: int, offset: int) -> LogRecord | None:
        found = _SITE_LINE.match(text.rstrip("\r"))
        if found is None:
            return None
        matched = self._format.match(found["message"], found["level"], found["head"])
        if matched is None:
            return None
        shape, fields = matched
        job_id = system_job_id(self._system, fields["job"] or "")
        return LogRecord(
            self._source, line, offset, read_time(found["time"]), whole(found["pid"]), shape.name,
            {**fields, "jid": job_id}, found["rest"][:TEXT_LIMIT],
        )  # fmt: skip


def read_time(text: str) -> Nanos | None:
    return time_of_iso(text, is_local=True) if len(text) == TIME_BYTES else None


EXAMPLES_KEPT = 5
"""How many examples of unknown messages are kept, each of another call site."""
EXAMPLE_LENGTH = 160


class Survey(NamedTuple):
    """Counts of lines. `records` begin with a call site, `unknown` of these have no known shape.

    `continuations` are lines without a record: they belong to the one before them, such as tracebacks,
    scripts on stdin, output of programs. One line of a container's output can hold several records.
    """

    lines: int
    records: int
    continuations: int
    unknown: int
    examples: tuple[str, ...]

    @property
    def unknown_share(self) -> float:
        """The share of the records without a known shape, 0 to 1."""
        return self.unknown / self.records if self.records else 0.0


def survey(lines: Iterable[bytes]) -> Survey:
    """Look at every line. Never raises on any bytes; examples are outside text, not masked."""
    count = records = continuations = unknown = 0
    examples: dict[str, str] = {}
    for line in lines:
        count += 1
        found = split_all(line.decode("utf-8", "replace").rstrip("\r\n"))
        continuations += not found
        for (_, func, message, head), may_be_cut in found:
            records += 1
            matches = (load(name).match(message, func, head) for name in ("sirepo", "known"))
            is_known = any(matched and not matched[0].catch_all for matched in matches)
            if not is_known and not may_be_cut:
                unknown += 1
                if len(examples) < EXAMPLES_KEPT:
                    examples.setdefault(func, message[:EXAMPLE_LENGTH])
    return Survey(count, records, continuations, unknown, tuple(examples.values()))
