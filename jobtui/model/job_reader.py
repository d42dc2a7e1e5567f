"""What a person reads about one job beside the tables: its record, the lines of its logs, its files.

Everything here is outside text as it was found: not masked, not safe for a terminal.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple, Protocol

import msgspec

from jobtui.model.clock import Nanos, time_of_seconds
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobDetail
from jobtui.model.journal import JournalEntry
from jobtui.model.logs import RawLine
from jobtui.model.numbers import real_of
from jobtui.model.scripts import Answer, Wanted

STATUS_FILE = "sbatch_status.json"


class SbatchStatus(msgspec.Struct, frozen=True):
    """The state of a run as the agent saw it last, and its id in Slurm. `state` is the agent's own word."""

    state: str
    slurm_id: str | None = None
    submitted_at: Nanos | None = None
    started_at: Nanos | None = None
    percent: float | None = None


def sbatch_status(document: object) -> SbatchStatus | None:
    if not isinstance(document, dict) or not isinstance(document.get("job_cmd_state"), str):
        return None
    slurm_id = document.get("sbatch_id")
    return SbatchStatus(
        state=document["job_cmd_state"],
        slurm_id=str(slurm_id) if isinstance(slurm_id, str | int) and str(slurm_id).isalnum() else None,
        submitted_at=_time(document.get("computeJobSerial")),
        started_at=_time(document.get("computeJobStart")),
        percent=_percent(document.get("parallelStatus")),
    )


def _time(value: object) -> Nanos | None:
    return time_of_seconds(real_of(value)) or None


def _percent(status: object) -> float | None:
    """How far it is; the agent may have put the whole message there, as text and taken apart."""
    if isinstance(status, dict) and isinstance(status.get("py"), dict):
        status = status["py"]
    return real_of(status.get("percentComplete")) if isinstance(status, dict) else None


LINES_BEHIND = 100
"""Lines that are read behind a step at most: what continues its record, such as a traceback."""


class Unreadable(Exception):
    """What was asked for could not be read; the text says what failed, where, and what to do."""


class FileKind(StrEnum):
    """What an entry of a directory is. Only regular files are ever opened.

    One that is missing should be there: the record of the job names it.
    """

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"
    MISSING = "missing"


class RunFile(msgspec.Struct, frozen=True):
    """One entry of a run directory. `size` in bytes."""

    name: str
    kind: FileKind
    size: int
    written_at: Nanos


class RunListing(msgspec.Struct, frozen=True):
    """The entries of a run directory, at most so many; `left_out` others were not looked at."""

    path: str
    files: tuple[RunFile, ...]
    left_out: int = 0


class FilePart(msgspec.Struct, frozen=True):
    """A stretch of a file from byte `begin` on; `size` is that of the whole file.

    `is_binary` says that it does not look like text, of which nothing is given then. `lines_before` is how
    many lines stand before it, None where they were not counted.
    """

    name: str
    text: str
    begin: int
    size: int
    written_at: Nanos
    is_to_end: bool = True
    is_binary: bool = False
    lines_before: int | None = None

    @property
    def is_whole(self) -> bool:
        return self.begin == 0 and self.is_to_end


SNIFFED_BYTES = 4_096
"""How much of a part is looked at to tell text from other data."""


def part_of(name: str, data: bytes, begin: int, size: int, written_at: Nanos) -> FilePart:
    """The bytes from `begin` on, which may be within a line: then they begin with the next line."""
    if begin:
        cut = data.find(b"\n") + 1
        begin, data = begin + cut, data[cut:]
    is_binary = b"\0" in data[:SNIFFED_BYTES]
    return FilePart(
        name=name,
        text="" if is_binary else data.decode("utf-8", "replace"),
        begin=begin,
        size=size,
        written_at=written_at,
        is_to_end=begin + len(data) >= size,
        is_binary=is_binary,
        lines_before=None if begin else 0,
    )


class Reached(NamedTuple):
    """How far logs were read again: `read` of `size` bytes where those are known, and how many records."""

    read: int
    size: int
    records: int


class Noted(NamedTuple):
    """The state of a run that was noted on its cluster, and the directory in which it is."""

    status: SbatchStatus
    directory: str


class LinePlace(Protocol):
    """Where a line of a log is, and what it says: a step of an op, a line that is printed.

    `line` is its number, not above 0 where that is not known; `cursor` is its place in a journal.
    """

    @property
    def source(self) -> str: ...

    @property
    def line(self) -> int: ...

    @property
    def offset(self) -> int:
        """The byte where it begins."""

    @property
    def text(self) -> str: ...

    @property
    def cursor(self) -> str | None: ...


class JobReader(Protocol):
    """Answers questions about one job. All methods raise Unreadable and nothing else."""

    def begins_after(self, at: Nanos) -> bool:
        """Whether a log was read from later than `at` only, and could be read from there."""

    async def reach_back(self, at: Nanos, progress: Callable[[Reached], None]) -> bool:
        """Read the logs again from `at` on; whether that was needed and done. Cancelled, it changes nothing.

        So much and no more is read for this; where it is too much, that is said and nothing is done.
        """

    async def detail(self, job_id: JobId) -> JobDetail | None:
        """Everything stored about a job, None when no source has it."""

    async def lines_behind(self, step: LinePlace, most: int) -> tuple[RawLine, ...]:
        """The line of a step and what continues its record, up to `most` lines.

        Nothing when the log holds other lines there by now, or its source has no lines.
        """

    async def list_files(self, path: str) -> RunListing: ...

    async def read_file(self, path: str, name: str, *, tail: bool) -> FilePart: ...

    async def noted_on_cluster(self, paths: Iterable[str]) -> Noted | None:
        """What the agent on a cluster noted of a run, in the first of these directories that has it."""

    async def host_messages(
        self, host: str, journal: str, begin: Nanos, end: Nanos
    ) -> tuple[JournalEntry, ...]:
        """What the kernel, systemd, Docker and Slurm wrote on a host between two times of its clock.

        `journal` is its own, as configured; "" asks those journals that are read anyway.
        """

    async def script(self, wanted: Wanted) -> Answer:
        """The script with which a job was submitted, and where it was sought with what result."""
