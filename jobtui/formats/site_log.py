"""Blocks of the logs of a Balsam site into records: only lines that name a job become one.

A line is `<YYYY-MM-DD HH:MM:SS.mmm> | <pid> | <LEVEL> | <logger>:<line>] <message>`, the format that Balsam
0.7.0a24 sets (balsam/config, LoggingConfig). Its time has no zone: it is that of the site's machines, and is
read as that of this one.
"""

import re
from collections.abc import Callable
from datetime import datetime

from jobtui.formats.parser import TEXT_LIMIT, Parsed
from jobtui.formats.schema import load
from jobtui.formats.sieve import sift
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import system_job_id
from jobtui.model.logs import LogRecord

FORMAT = "balsam_site"
TIME_BYTES = len("2026-11-20 17:31:39.707")
LINE = re.compile(
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

    def parse(self, block: bytes, offset: int, line: int, newest: Nanos) -> Parsed:
        """The records of a block of whole lines; `offset` and `line` are those of its first. Never raises."""
        records = []
        for number, start, end in sift(block, self._format):
            text = block[start:end].decode("utf-8", "replace").rstrip("\r")
            if (record := self._record(text, line + number, offset + start)) is not None:
                records.append(record)
        return Parsed(records, block.count(b"\n"), [], 0)

    def time_of(self, line: bytes, newest: Nanos) -> Nanos | None:
        """The time at the head of a line; None when it has none."""
        return read_time(line[:TIME_BYTES].decode("ascii", "replace"))

    def _record(self, text: str, line: int, offset: int) -> LogRecord | None:
        found = LINE.match(text)
        if found is None:
            return None
        matched = self._format.match(found["message"], found["level"], found["head"])
        if matched is None:
            return None
        shape, fields = matched
        job_id = system_job_id(self._system, fields["job"] or "")
        return LogRecord(
            self._source, line, offset, read_time(found["time"]), int(found["pid"]), shape.name,
            {**fields, "jid": job_id}, found["rest"][:TEXT_LIMIT],
        )  # fmt: skip


def parsers_for(system: str) -> Callable[[str, str], SiteLogParser]:
    """What makes the parser of each file of a site."""
    return lambda source, role: SiteLogParser(source, system)


def read_time(text: str) -> Nanos | None:
    """A local time such as `2026-11-20 17:31:39.707`; None for what is none."""
    try:
        moment = datetime.fromisoformat(text) if len(text) == TIME_BYTES else None
        seconds = None if moment is None else int(moment.replace(microsecond=0).timestamp())
    except (ValueError, OverflowError, OSError):
        return None
    return None if moment is None or seconds is None else Nanos(seconds * SECOND + moment.microsecond * 1_000)
