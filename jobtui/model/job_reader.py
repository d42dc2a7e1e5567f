"""What can be read about one job: its record, the lines of its logs, its files, its script.

Everything here is outside text as it was found: not masked, not safe for a terminal.
"""

from enum import StrEnum
from typing import NamedTuple

import msgspec

from jobtui.model.clock import Nanos, time_of_seconds
from jobtui.model.numbers import real_of
from jobtui.model.patterns import regex

STATUS_FILE = "sbatch_status.json"


class SbatchStatus(msgspec.Struct, frozen=True):
    """The last state of a run that the agent wrote, and its id in Slurm. `state` is the agent's own word."""

    state: str
    slurm_id: str | None = None
    submitted_at: Nanos | None = None
    started_at: Nanos | None = None
    percent: float | None = None


def sbatch_status(document: object) -> SbatchStatus | None:
    if not isinstance(document, dict) or not isinstance(document.get("job_cmd_state"), str):
        return None
    slurm_id, progress = document.get("sbatch_id"), document.get("parallelStatus")
    if isinstance(progress, dict) and isinstance(progress.get("py"), dict):
        progress = progress["py"]  # the agent may have written the whole message there, as text and parsed
    return SbatchStatus(
        state=document["job_cmd_state"],
        slurm_id=str(slurm_id) if isinstance(slurm_id, str | int) and str(slurm_id).isalnum() else None,
        submitted_at=_time(document.get("computeJobSerial")),
        started_at=_time(document.get("computeJobStart")),
        percent=real_of(progress.get("percentComplete")) if isinstance(progress, dict) else None,
    )


def _time(value: object) -> Nanos | None:
    return time_of_seconds(real_of(value)) or None


LINES_BEHIND = 100
"""The most lines that are read after a step's first line: those that continue it, such as a traceback."""


class Unreadable(Exception):
    """Something could not be read. The text says what failed, where, and what to do."""


class NoSuchFile(Unreadable):
    """The directory can be read, and the file is not in it."""


class FileKind(StrEnum):
    """What an entry of a directory is. Only regular files are ever opened.

    The record of the job names a file that does not exist (MISSING), or that was not looked for (UNLISTED).
    """

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"
    MISSING = "missing"
    UNLISTED = "unknown"


class RunFile(msgspec.Struct, frozen=True):
    """One entry of a run directory. `size` in bytes."""

    name: str
    kind: FileKind
    size: int
    written_at: Nanos


class RunListing(msgspec.Struct, frozen=True):
    """The entries of a run directory up to a limit. `left_out` is how many more there are.

    `note` says what of it may be missing.
    """

    path: str
    files: tuple[RunFile, ...]
    left_out: int = 0
    note: str = ""


class FilePart(msgspec.Struct, frozen=True):
    """A part of a file from byte `begin` on; `size` is the size of the whole file.

    With `is_binary` the file is not text, and `text` is empty. `text` has one NUL for a hole of them.
    `lines_before` is the number of lines before the part, None if they were not counted.
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
_CONTROL = regex(rb"[\x01-\x06\x0e-\x1a]")
_HOLE = regex("\0+")


def part_of(name: str, data: bytes, begin: int, size: int, written_at: Nanos) -> FilePart:
    """The part of a file that begins at `begin`, or at the next line if that is within a line."""
    if begin:
        cut = data.find(b"\n") + 1
        begin, data = begin + cut, data[cut:]
    # A node that dies, and a log that is cut while it is written, leave holes of NULs in a text.
    head = data.lstrip(b"\0")[:SNIFFED_BYTES]
    is_binary = b"\0" in data[:SNIFFED_BYTES] and (not head or _CONTROL.search(head) is not None)
    return FilePart(
        name=name,
        text="" if is_binary else _HOLE.sub("\0", data.decode("utf-8", "replace")),
        begin=begin,
        size=size,
        written_at=written_at,
        is_to_end=begin + len(data) >= size,
        is_binary=is_binary,
        lines_before=None if begin else 0,
    )


class ClusterStatus(NamedTuple):
    """The state of a run as written on its cluster, and the directory of the file."""

    status: SbatchStatus
    directory: str
