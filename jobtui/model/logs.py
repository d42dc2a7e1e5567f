"""Lines and records of logs, facts about HTCondor jobs, line numbers while those before are not counted."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

import msgspec

from jobtui.model.clock import Nanos

UNCOUNTED = 1 << 40
"""Subtracted from the number of a line while the lines before the start of reading are not counted."""


class RawLine(msgspec.Struct, frozen=True, gc=False):
    """One physical line, without its newline.

    `line` is its 1-based number, None where that is not known; `offset` the byte where it begins. `text` is
    decoded with errors replaced, perhaps cut: not masked, not safe for a terminal.
    """

    line: int | None
    offset: int
    text: str


class Reached(NamedTuple):
    """How far logs were read again: `read` of `size` bytes if these are known, and the count of records."""

    read: int
    size: int
    records: int


def provisional(nth: int) -> int:
    """The number of the `nth` line (1-based) after the start of reading while those before are not counted.

    Such numbers are negative and grow from line to line.
    """
    return nth - UNCOUNTED


class LogRecord(msgspec.Struct, frozen=True, gc=False):
    """One log record whose message has a known shape.

    `source` is its file or journal, `line` its 1-based line number there (negative while the lines before it
    are not counted, see `provisional`), `offset` its byte offset. `shape` is the name of the shape in
    `formats/`, and `fields` are the groups of the shape's pattern. `text` is the message without its prefix,
    as written: not masked, not safe for a terminal. `container` is set if the record was forwarded from a
    container. `pid` is None if the process writes none.

    A record of a journal has line number 0. Its `cursor` is the position of its entry, `offset` a number that
    grows along the journal, and `identity` is the same if two journals hold the same entry. `cursor` and
    `identity` are None for a record of a file.
    """

    source: str
    line: int
    offset: int
    at: Nanos | None
    pid: int | None
    shape: str
    fields: dict[str, str | None]
    text: str
    container: str | None = None
    cursor: str | None = None
    identity: int | None = None


class Origin(StrEnum):
    """What kind of text a fact was read in, the one that knows best first."""

    EVENT = "event"
    AD = "ad"
    OUTPUT = "output"
    SUBMIT = "submit"

    @property
    def rank(self) -> int:
        """0 for the one that knows best."""
        return _RANK[self]


_RANK = {origin: rank for rank, origin in enumerate(Origin)}


class CondorFact(msgspec.Struct, frozen=True, gc=False):
    """One thing that a file says of a job.

    `job` is `<cluster>.<proc>@<schedd>`, without the schedd where the file does not tell, "" where it names
    no job. `what` is the name of an event, or the shape of a line. With `is_local` the time was written
    without a zone, and `at` is what it would be in UTC. `values` are attributes as texts. `text` is as
    written: not masked, not safe for a terminal. `rotation` counts the logs that had this name before, `part`
    the files of the same log that it went on from. `written_at` is when the file was last written, if this is
    the last in it.
    """

    job: str
    origin: Origin
    what: str
    at: Nanos | None
    text: str
    source: str
    line: int
    offset: int
    values: Mapping[str, str] = {}
    is_local: bool = False
    rotation: int = 0
    part: int = 0
    written_at: Nanos | None = None
