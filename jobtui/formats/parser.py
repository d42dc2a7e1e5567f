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

from jobtui.formats.schema import LogFormat, load
from jobtui.formats.sieve import sift
from jobtui.formats.times import TIME_LENGTH, TimeReader
from jobtui.model.clock import Nanos
from jobtui.model.health import Skip
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Component

TEXT_LIMIT = 8_192
"""Characters kept of one message."""
REPEATS_KEPT = 4_096
"""Agent lines remembered to recognize repeats; an echo is 200 lines."""
ECHO = "agent-sbatch"
"""What stands as container of records out of an echoed cluster log: their pids are those of another host."""

_TIME = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
LINE = re.compile(rf"(?:({_TIME}) +(\d+) +\d+ )?([^\s:]+):\d+:([\w<>]+) (.*)", re.ASCII | re.DOTALL)
_INNER = re.compile(rf"{_TIME} +\d+ +\d+ (?=[^\s:]+:\d+:)", re.ASCII)
_FORWARDED = re.compile(r"(srj-[sp]-\w+) (.*)", re.ASCII | re.DOTALL)
_AGENT_SIDE = frozenset({Component.AGENT, Component.JOB_CMD})


class Parsed(NamedTuple):
    """What a block gave. `lines` counts its physical lines; `skips` names some of what was left out."""

    records: list[LogRecord]
    lines: int
    skips: list[Skip]
    skip_count: int


class _Place(NamedTuple):
    line: int
    offset: int
    newest: Nanos


class LogParser:
    """Turns the blocks of one file, in order, into records. A new file needs a new parser."""

    def __init__(self, source: str, role: str = "auto", log_format: LogFormat | None = None) -> None:
        self._source = source
        self._role = role
        self._format = log_format or load("sirepo")
        self._times = TimeReader()
        self._held: dict[str, str] = {}
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._echoing = False

    def parse(self, block: bytes, offset: int, line: int, newest: Nanos) -> Parsed:
        """The records of a block of whole lines.

        `offset` and `line` are those of its first line, `newest` bounds times that carry no year: the
        file's mtime, or now. Never raises on any bytes.
        """
        records: list[LogRecord] = []
        counted = 0
        for start, end in sift(block, self._format):
            line += block.count(b"\n", counted, start)
            counted = start
            text = block[start:end].decode("utf-8", "replace").rstrip("\r")
            self._read(text, _Place(line, offset + start, newest), records)
        return Parsed(records, block.count(b"\n"), [], 0)

    def time_of(self, line: bytes, newest: Nanos) -> Nanos | None:
        """The time at the head of a line; None when it has none."""
        return self._times.read(line[:TIME_LENGTH].decode("ascii", "replace"), newest)

    def read_message(
        self, text: str, offset: int, line: int, at: Nanos | None, pid: int | None
    ) -> list[LogRecord]:
        """The records of one line whose time and process are known from elsewhere, such as a journal."""
        records: list[LogRecord] = []
        self._read(text, _Place(line, offset, at or Nanos(0)), records, at, pid)
        return records

    def _read(
        self,
        text: str,
        place: _Place,
        records: list[LogRecord],
        at: Nanos | None = None,
        pid: int | None = None,
    ) -> None:
        found = LINE.match(text)
        if found is None:
            return
        time, own_pid, _, func, message = found.groups()
        if time:
            at = self._times.read(time, place.newest)
            pid = int(own_pid)
        if func == "_write" and (forwarded := _FORWARDED.match(message)):
            self._read_forwarded(forwarded[1], forwarded[2], place, records)
            return
        self._add(message, func, place, at, pid, None, records)

    def _add(
        self,
        message: str,
        func: str,
        place: _Place,
        at: Nanos | None,
        pid: int | None,
        container: str | None,
        records: list[LogRecord],
    ) -> bool:
        matched = self._format.match(message, func)
        if matched is None:
            return False
        shape, fields = matched
        if shape.component in _AGENT_SIDE:
            if container is None and self._echoing:
                container = ECHO
            if pid is not None and self._is_repeat(f"{at} {pid} {message}"):
                return True
        else:
            self._echoing = shape.name == "agent_echo"
        if shape.name == "container_rest":
            self._read_forwarded(fields["container"] or "", fields["output"] or "", place, records)
        records.append(
            LogRecord(
                self._source,
                place.line,
                place.offset,
                at,
                pid,
                shape.name,
                fields,
                message[:TEXT_LIMIT],
                container,
            )
        )
        return True

    def _read_forwarded(self, container: str, text: str, place: _Place, records: list[LogRecord]) -> None:
        starts = [found.start() for found in _INNER.finditer(text)]
        head = text[: starts[0]] if starts else text
        held = self._held.pop(container, None)
        if held is not None and head:
            self._read_inner(container, held + head, place, records)
        for start, end in pairwise([*starts, len(text)]):
            segment = text[start:end]
            if not self._read_inner(container, segment, place, records) and end == len(text):
                self._held[container] = segment[:TEXT_LIMIT]

    def _read_inner(self, container: str, text: str, place: _Place, records: list[LogRecord]) -> bool:
        found = LINE.match(text)
        if found is None or not found[1]:
            return False
        at = self._times.read(found[1], place.newest)
        return self._add(found[5], found[4], place, at, int(found[2]), container, records)

    def _is_repeat(self, text: str) -> bool:
        if text in self._seen:
            return True
        self._seen[text] = None
        if len(self._seen) > REPEATS_KEPT:
            self._seen.popitem(last=False)
        return False


def split_forwarded(func: str, message: str) -> list[tuple[str, str]]:
    """Function and message of each record in a line: itself, or those a container's output holds."""
    forwarded = _FORWARDED.match(message) if func == "_write" else None
    if forwarded is None:
        return [(func, message)]
    text = forwarded[2]
    starts = [found.start() for found in _INNER.finditer(text)]
    inner = (LINE.match(text[start:end]) for start, end in pairwise([*starts, len(text)]))
    return [(found[4], found[5]) for found in inner if found]
