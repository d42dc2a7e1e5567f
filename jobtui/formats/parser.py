"""Blocks of a log into records: only lines that can matter to a job become one.

A line of Sirepo (pykern) is `[<Mon DD HH:MM:SS> <pid> <thread> ]<file>:<line>:<func> <message>`; without the
part in brackets where the journal gives it. Three things wrap other lines:

- the supervisor forwards what a Docker agent prints, `<container> <text>`, cut after 1,000 bytes and glued
  without a newline to what came before;
- in development it echoes the last 200 lines of a cluster's agent log, so that old lines come again;
- a multi-line record of one process can be cut in two by a line of another.

So agents' records are taken from wherever their prefix stands in a line, and exact repeats are dropped.
"""

import re
from collections import OrderedDict
from itertools import pairwise
from typing import NamedTuple

from jobtui.formats.damage import SHAPE as DAMAGED
from jobtui.formats.damage import WHY, damaged_places
from jobtui.formats.schema import MATCH_LIMIT, LogFormat, Shape, load
from jobtui.formats.sieve import sift
from jobtui.formats.times import MONTHS, TIME_LENGTH, TimeReader
from jobtui.model.clock import Nanos
from jobtui.model.health import Skip
from jobtui.model.logs import LogRecord

TEXT_LIMIT = 8_192
"""Characters kept of one message."""
REPEATS_KEPT = 4_096
"""Agent lines remembered to recognize repeats; an echo is 200 lines."""
CONTAINERS_KEPT = 1_000
"""Containers whose last, perhaps cut, line is held."""

_TIME = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
LINE = re.compile(
    rf"(?:(?P<time>{_TIME}) +(?P<pid>\d+) +\d+ )?[^\s:]+:\d+:(?P<func>[\w<>]+) (?P<message>(?P<head>\w*).*)",
    re.ASCII | re.DOTALL,
)
"""A line with a call site: time, pid, function, message, and the message's first word."""
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
"""What may be the beginning of a line's head at the end of a text. A letter or two are likely not."""
_HEAD_LENGTH = 250
"""Characters of a line's head at most: time, pid, thread and the path of a source file."""


class Parsed(NamedTuple):
    """What a block gave. `lines` counts its physical lines; `skips` names some of what was left out."""

    records: list[LogRecord]
    lines: int
    skips: list[Skip]
    skip_count: int


class LogParser:
    """Turns the blocks of one file, in order, into records. A new file needs a new parser."""

    def __init__(self, source: str, role: str = "auto", log_format: LogFormat | None = None) -> None:
        self._source = source
        self._role = role
        self._format = log_format or load("sirepo")
        self._times = TimeReader()
        self._newest = Nanos(0)
        self._held: dict[str, str] = {}
        self._seen: OrderedDict[int, None] = OrderedDict()
        self._said: OrderedDict[int, int] = OrderedDict()
        self._records: list[LogRecord] = []

    def parse(self, block: bytes, offset: int, line: int, newest: Nanos) -> Parsed:
        """The records of a block of whole lines.

        `offset` and `line` are those of its first line, `newest` bounds times that carry no year: the
        file's mtime, or now. Never raises on any bytes.
        """
        self._newest = newest
        records: list[LogRecord] = []
        self._records = records
        for number, start, end in sift(block, self._format):
            self._read(block[start:end].decode("utf-8", "replace"), line + number, offset + start)
        skips = self._tell_damage(block, offset, line)
        return Parsed(records, block.count(b"\n"), skips, len(skips))

    def _tell_damage(self, block: bytes, offset: int, line: int) -> list[Skip]:
        """Note damaged places: a record for each tells correlation, a skip whoever looks at the source."""
        skips = []
        for place in damaged_places(block):
            number = line + block.count(b"\n", 0, place)
            self._records.append(
                LogRecord(self._source, number, offset + place, None, None, DAMAGED, {}, WHY)
            )
            skips.append(Skip(f"{self._source}:{number}", WHY))
        if skips:
            self._records.sort(key=lambda record: record.offset)
        return skips

    def time_of(self, line: bytes, newest: Nanos) -> Nanos | None:
        """The time at the head of a line; None when it has none."""
        return self._times.read(line[:TIME_LENGTH].decode("ascii", "replace"), newest)

    def read_message(
        self, text: str, offset: int, line: int, at: Nanos | None, pid: int | None
    ) -> list[LogRecord]:
        """The records of one line whose time and process are known from elsewhere, such as a journal."""
        self._newest = at or Nanos(0)
        records: list[LogRecord] = []
        self._records = records
        self._read(text, line, offset, at, pid)
        return records

    def _read(
        self, text: str, line: int, offset: int, at: Nanos | None = None, pid: int | None = None
    ) -> None:
        found = LINE.match(text)
        if found is None:
            return
        time, own_pid, func, message, head = found.groups()
        message = message.rstrip("\r")
        if func == "_write" and (forwarded := _FORWARDED.match(message)):
            self._read_forwarded(forwarded[1], forwarded[2], line, offset)
            return
        matched = self._format.match(message, func, head)
        if matched is None:
            return
        if time:
            at = self._times.read(time, self._newest)
            pid = int(own_pid)
        self._add(matched, message, line, offset, at, pid, None)

    def _add(
        self,
        matched: tuple[Shape, dict[str, str | None]],
        message: str,
        line: int,
        offset: int,
        at: Nanos | None,
        pid: int | None,
        container: str | None,
    ) -> None:
        shape, fields = matched
        if shape.from_agent:
            if pid is not None and self._is_repeat(at, pid, message, "o" in fields):
                return
        elif shape.name == "container_rest":
            self._read_forwarded(fields["container"] or "", fields["output"] or "", line, offset)
        if len(message) > TEXT_LIMIT:
            message = message[:TEXT_LIMIT]
        self._records.append(
            LogRecord(self._source, line, offset, at, pid, shape.name, fields, message, container)
        )

    def _read_forwarded(self, container: str, text: str, line: int, offset: int) -> None:
        """Records out of what a container printed; a line cut in two is held until its rest comes.

        So is what may be the beginning of the next line, glued to the end of a whole one.
        """
        text = self._held.pop(container, "") + text
        begun = _BEGUN.search(text, max(0, len(text) - _HEAD_LENGTH))
        whole = len(text) if begun is None or begun["letters"] else begun.start()
        rest = begun[0] if begun else ""
        starts = [found.start() for found in _INNER.finditer(text)]
        for start, end in pairwise([*starts, len(text)]):
            last = end == len(text)
            if not self._read_inner(container, text[start : whole if last else end], line, offset) and last:
                rest = text[start:]
        self._hold(container, rest)

    def _read_inner(self, container: str, text: str, line: int, offset: int) -> bool:
        found = LINE.match(text)
        if found is None or not found["time"]:
            return False
        time, pid, func, message, head = found.groups()
        matched = self._format.match(message, func, head)
        if matched is None:
            return False
        at = self._times.read(time, self._newest)
        self._add(matched, message, line, offset, at, int(pid), container)
        return True

    def _hold(self, container: str, text: str) -> None:
        if not 0 < len(text) <= MATCH_LIMIT:
            return
        self._held[container] = text
        if len(self._held) > CONTAINERS_KEPT:
            del self._held[next(iter(self._held))]

    def _is_repeat(self, at: Nanos | None, pid: int, message: str, names_op: bool) -> bool:
        """Whether a process said this before; of what names no op, whether after the same line as now."""
        mark = hash((at, pid, message))
        before = self._said.pop(pid, 0)
        self._said[pid] = mark
        if not names_op:
            mark = hash((mark, before))
        if mark in self._seen:
            return True
        self._seen[mark] = None
        if len(self._seen) > REPEATS_KEPT:
            self._seen.popitem(last=False)
            if len(self._said) > REPEATS_KEPT:
                self._said.popitem(last=False)
        return False


class Split(NamedTuple):
    """A record in a line. `may_be_cut` when its end may stand in another line."""

    found: re.Match[str]
    may_be_cut: bool


def split_line(text: str) -> list[Split]:
    """Matches of `LINE` for the records in a line: itself, none, or those a container's output holds."""
    found = LINE.match(text)
    if found is None:
        return []
    forwarded = _FORWARDED.match(found["message"]) if found["func"] == "_write" else None
    if forwarded is None:
        return [Split(found, False)]
    output = forwarded[2]
    ends = [*(inner.start() for inner in _INNER.finditer(output)), len(output)]
    segments = ((LINE.match(output[start:end]), end == len(output)) for start, end in pairwise(ends))
    return [Split(segment, last) for segment, last in segments if segment]
