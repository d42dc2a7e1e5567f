"""The files of a journal directory: which can be read, which not, and why not; libsystemd says nothing of it.

Names: `system.journal`, `system@...journal` (archived), `user-1000.journal`, `remote-host.journal`,
and with a `~` behind when a file was not closed in order. They lie in the directory, or one below it that is
named by a machine id. The header of a file: systemd's JOURNAL_FILE_FORMAT document.
"""

import contextlib
import getpass
import os
import re
import stat
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from jobtui.model.journal import JournalCondition

LOCAL_DIRECTORIES = ("/var/log/journal", "/run/log/journal")
NOTED_FILES = 3
"""Files named in a note; of the others their number."""

_NAME = re.compile(r".+\.journal~?")
_MACHINE_ID = re.compile(r"[0-9a-f]{32}")
_MAGIC = b"LPKSHHRH"
_HEADER = struct.Struct("<8s II 8s 16s 16s 16s 16s QQ")
"""Signature, flags, state and reserved bytes, four ids, the sizes of header and arena."""


class FileState(StrEnum):
    """How a journal file stands, in words for whoever has to look after it."""

    GOOD = "good"
    DENIED = "not readable for you"
    EMPTY = "empty"
    TRUNCATED = "cut off"
    FOREIGN = "no journal file"
    NOT_OPENED = "not accepted by libsystemd; see: journalctl --verify"


class JournalFile(NamedTuple):
    """One file and its state."""

    path: Path
    state: FileState


def local_directories(machine: str | None = None) -> tuple[Path, ...]:
    """Where the journal of this machine is: below directories named by its machine id."""
    machine = machine or _machine_id()
    return tuple(Path(each, machine) for each in LOCAL_DIRECTORIES)


def survey(directories: Iterable[Path]) -> tuple[JournalFile, ...]:
    """Every journal file of these directories. What vanishes meanwhile is left out. Raises OSError."""
    return tuple(
        JournalFile(path, state)
        for directory in directories
        for path in _files_of(directory)
        if (state := _state_of(path)) is not None
    )


def listed(directories: Iterable[Path]) -> Iterator[tuple[str, int]]:
    """The names of what lies in these directories and below, with inodes. What cannot be read is left out."""
    for directory in directories:
        with contextlib.suppress(OSError), os.scandir(directory) as found:
            for entry in found:
                yield entry.path, entry.inode()
                if _MACHINE_ID.fullmatch(entry.name):
                    yield from listed([Path(entry.path)])


def _files_of(directory: Path) -> Iterator[Path]:
    with os.scandir(directory) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if _NAME.fullmatch(entry.name):
            yield Path(entry.path)
    for entry in entries:
        if _MACHINE_ID.fullmatch(entry.name) and entry.is_dir():
            try:
                below = sorted(os.listdir(entry.path))
            except OSError:
                continue
            yield from (Path(entry.path, name) for name in below if _NAME.fullmatch(name))


def _state_of(path: Path) -> FileState | None:
    """None for what is there no more, or is no file at all."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            return None
        with path.open("rb") as file:
            head = file.read(_HEADER.size)
    except FileNotFoundError:
        return None
    except OSError:
        return FileState.DENIED
    if not found.st_size:
        return FileState.EMPTY
    if not head.startswith(_MAGIC):
        return FileState.FOREIGN
    if len(head) < _HEADER.size:
        return FileState.TRUNCATED
    header_size, arena_size = _HEADER.unpack(head)[-2:]
    return FileState.TRUNCATED if header_size + arena_size > found.st_size else FileState.GOOD


def opened_here() -> frozenset[Path] | None:
    """The journal files that this process has open; None where the system does not tell."""
    opened = set()
    try:
        numbers = os.listdir("/proc/self/fd")
    except OSError:
        return None
    for number in numbers:
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
        if _NAME.fullmatch(target):
            opened.add(Path(target))
    return frozenset(opened)


def checked(files: Sequence[JournalFile], opened: frozenset[Path] | None) -> tuple[JournalFile, ...]:
    """The files again, those that look good and were not opened marked as such."""
    if opened is None:
        return tuple(files)
    return tuple(
        JournalFile(path, FileState.NOT_OPENED)
        if state is FileState.GOOD and Path(os.path.realpath(path)) not in opened
        else JournalFile(path, state)
        for path, state in files
    )


def is_denied(files: Sequence[JournalFile]) -> bool:
    """Whether there are files and permission is what keeps all of them from being read."""
    states = {each.state for each in files}
    return FileState.DENIED in states and FileState.GOOD not in states


def condition_of(files: Sequence[JournalFile], damaged_entries: int = 0, let_go: int = 0) -> JournalCondition:
    """How a journal of these files stands."""
    bad = [each for each in files if each.state is not FileState.GOOD]
    notes = []
    if bad:
        notes.append(f"{len(files) - len(bad)} of {len(files)} journal files read: {_told(bad)}")
    if any(each.state is FileState.DENIED for each in bad):
        notes.append(remedy())
    if damaged_entries:
        notes.append(f"{damaged_entries} damaged entries left out; see: journalctl --verify")
    if let_go:
        notes.append("a file is damaged inside, what is behind that may be missing; see: journalctl --verify")
    if not files:
        notes.append("there are no journal files in it yet")
    return JournalCondition(len(files) - len(bad), len(bad), "; ".join(notes))


def _told(bad: Sequence[JournalFile]) -> str:
    told = [f"{path.name} {state}" for path, state in bad[:NOTED_FILES]]
    rest = Counter(state for _, state in bad[NOTED_FILES:])
    return ", ".join([*told, *(f"{count} more {state}" for state, count in rest.items())])


def remedy() -> str:
    """What lets this user read the journal."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "$USER"
    return f"to read all: sudo usermod -aG systemd-journal {user}, then log in anew"


def _machine_id() -> str:
    try:
        return Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return "uninitialized"
