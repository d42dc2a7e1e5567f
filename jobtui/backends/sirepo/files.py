"""The files of a supervisor's db directory."""

import os
import re
from functools import partial

from jobtui.model.ids import JID, JobId

DIRECTORY = "supervisor-job"
SUFFIX = ".json"
MAX_BYTES = 8 << 20
"""The largest record that is read: four thousand times the usual size."""

_FIRST_BYTES = 8192
# O_NONBLOCK: should a pipe have taken the file's place by now, opening it must not wait for a writer.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
# "/" cannot be in a name, so names joined by it are distinct, and one pass finds those of records.
_NAMES = re.compile(rf"/({JID})\.json(?=/)", re.ASCII)
_AT_ONCE = 1_000


class RecordTooLarge(Exception):
    """A file is larger than what is read. The text says how large."""


def listed(directory: int | str) -> list[JobId]:
    """The ids of all records in a directory, in no order. Raises OSError."""
    names = os.listdir(directory)
    parts = (names[start : start + _AT_ONCE] for start in range(0, len(names), _AT_ONCE))
    return [jid for part in parts for jid in _NAMES.findall(f"/{'/'.join(part)}/")]


def _written(directory: int, jid: JobId) -> float:
    try:
        return os.stat(jid + SUFFIX, dir_fd=directory).st_mtime
    except OSError:
        return 0.0


def newest(directory: int, most: int) -> list[JobId]:
    """The ids of all records in a directory; of more than `most` the newest come first. Raises OSError."""
    jids = listed(directory)
    return sorted(jids, key=partial(_written, directory), reverse=True) if len(jids) > most else jids


def read_file(name: str, directory: int | None) -> bytes:
    """The bytes of a file. Raises OSError and RecordTooLarge."""
    fd = os.open(name, _FLAGS, dir_fd=directory)
    try:
        first = os.read(fd, _FIRST_BYTES)
        if len(first) < _FIRST_BYTES:
            return first
        size = os.fstat(fd).st_size
        parts, total = [first], len(first)
        while size <= MAX_BYTES and (part := os.read(fd, max(size - total + 1, _FIRST_BYTES))):
            parts.append(part)
            total += len(part)
            size = max(size, total)  # what `fstat` said, or more when it grows
    finally:
        os.close(fd)
    if size > MAX_BYTES:
        raise RecordTooLarge(f"{size} bytes, more than the {MAX_BYTES} that are read")
    return b"".join(parts)
