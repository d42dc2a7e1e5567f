"""The run directory of a job: its files, a bounded part of one, what an agent noted in it. Reads only.

Only regular files directly in the directory are opened, never through a link: a program that runs there can
put anything into it, or in its place. All reading is done in a thread of its own, so that a dead mount delays
nothing else.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial

import msgspec

from jobtui.model.bounded import Bounded
from jobtui.model.clock import Nanos
from jobtui.model.job_reader import FileKind, FilePart, NoSuchFile, RunFile, RunListing, Unreadable, part_of
from jobtui.transport.files import FILE_FLAGS, OpenFile, packed_allowance
from jobtui.transport.worker import Worker

MOST_ENTRIES = 2_000
"""The most entries looked at; the others are only counted."""
PART_BYTES = 256 << 10
COUNTED_BYTES, COUNTED_AT_ONCE = 256 << 20, 1 << 20
"""How much of a file is read at most to count its lines."""
COMPARED_BYTES, COUNTS_KEPT = 64, 64
"""Bytes that tell a grown file from a rewritten one, and how many files are remembered."""

_BELOW_USER = 4
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_KINDS = {stat.S_IFREG: FileKind.FILE, stat.S_IFDIR: FileKind.DIRECTORY, stat.S_IFLNK: FileKind.LINK}
_REFUSED = {
    FileKind.DIRECTORY: "is a directory; only files directly in the run directory are read",
    FileKind.LINK: "is a link, which is not followed: it may lead out of the run directory",
    FileKind.OTHER: "is not a regular file (a pipe, a socket or a device) and is not opened",
}


class RunDirs:
    """Reads run directories, one call at a time."""

    def __init__(self) -> None:
        self._worker = Worker("run directories")
        self._known = Bounded[tuple[int, int], tuple[int, int, bytes]](COUNTS_KEPT)
        """How many lines are before an offset of a file, and the bytes before it."""

    async def list_files(self, path: str) -> RunListing:
        return await self._worker.run(partial(list_files, path))

    async def read_file(self, path: str, name: str, *, tail: bool) -> FilePart:
        return await self._worker.run(partial(read_part, path, name, tail=tail, count=self._lines_before))

    def _lines_before(self, file: OpenFile, end: int) -> int | None:
        """The number of lines before an offset. Of a file that grew only what was added is counted. None if
        that is too much to read. Raises OSError.
        """
        status, read = file.plain.status(), file.source.read
        key = status.st_dev, status.st_ino
        at, lines, before = self._known.get(key, (0, 0, b""))
        if at > end or read(at - len(before), len(before)) != before:
            at, lines = 0, 0
        if end - at > COUNTED_BYTES:
            return None
        while at < end and (data := read(at, min(COUNTED_AT_ONCE, end - at))):
            at, lines = at + len(data), lines + data.count(b"\n")
        self._known[key] = at, lines, read(max(0, at - COMPARED_BYTES), min(at, COMPARED_BYTES))
        return lines if at == end else None

    def close(self) -> None:
        self._worker.close()


def list_files(path: str) -> RunListing:
    """The entries of a directory, by name. Raises Unreadable."""
    with _directory(path) as directory, os.scandir(directory) as entries:
        files: list[RunFile] = []
        left_out = 0
        for entry in entries:
            if len(files) >= MOST_ENTRIES:
                left_out += 1
                continue
            try:
                status = os.stat(entry.name, dir_fd=directory, follow_symlinks=False)
            except FileNotFoundError:
                continue  # it is gone by now
            files.append(_run_file(entry.name, status))
    return RunListing(path, tuple(sorted(files, key=lambda file: file.name)), left_out)


def read_part(path: str, name: str, *, tail: bool, count: Callable[[OpenFile, int], int | None]) -> FilePart:
    """At most PART_BYTES of a file, or of the text of a packed one, from either end. Raises Unreadable."""
    if os.sep in name or name in ("", ".", ".."):
        raise Unreadable(f"{name}: is not the name of a file in {path}")
    with _directory(path) as directory:
        try:
            found = _run_file(name, os.stat(name, dir_fd=directory, follow_symlinks=False))
        except FileNotFoundError:
            raise NoSuchFile(f"{os.path.join(path, name)}: no such file") from None
        if found.kind is not FileKind.FILE:
            raise Unreadable(f"{os.path.join(path, name)}: {_REFUSED[found.kind]}")
        fd = os.open(name, FILE_FLAGS, dir_fd=directory)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable(f"{name}: {_REFUSED[FileKind.OTHER]}")
            with closing(OpenFile(os.dup(fd), packed_allowance())) as file:
                size = status.st_size if file.packed is None else file.packed.length()
                begin = max(0, size - PART_BYTES) if tail else 0
                data = file.source.read(begin, PART_BYTES)
                part = part_of(name, data, begin, size, Nanos(status.st_mtime_ns))
                lines = count(file, part.begin) if part.begin else part.lines_before
            return msgspec.structs.replace(part, lines_before=lines)
        finally:
            os.close(fd)


def _run_file(name: str, status: os.stat_result) -> RunFile:
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), FileKind.OTHER)
    return RunFile(name, kind, status.st_size, Nanos(status.st_mtime_ns))


@contextmanager
def _directory(path: str) -> Iterator[int]:
    directory = -1
    try:
        directory = _open_directory(path)
        yield directory
    except (OSError, ValueError) as error:
        raise Unreadable(_reason(error, path)) from error
    finally:
        if directory >= 0:
            os.close(directory)


def _open_directory(path: str) -> int:
    """The directory, opened without following a link in the part of its path that jobs can write."""
    *known, last = path.rstrip(os.sep).split(os.sep)
    own = [last]
    if len(known) > _BELOW_USER and known[-_BELOW_USER] == "user":  # Sirepo's user/UID/APP/SIMULATION/MODEL
        known, own = known[: 1 - _BELOW_USER], [*known[1 - _BELOW_USER :], last]
    directory = os.open(os.sep.join(known) or (os.sep if path.startswith(os.sep) else "."), _DIRECTORY_FLAGS)
    for name in own:
        above = directory
        try:
            if stat.S_ISLNK(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
                raise Unreadable(f"{path}: {name} is a link, which is not followed; name its target")
            directory = os.open(name, _DIRECTORY_FLAGS | os.O_NOFOLLOW, dir_fd=above)
        finally:
            os.close(above)
    return directory


def _reason(error: OSError | ValueError, path: str) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{path}: not on this machine, or removed"
    if isinstance(error, PermissionError):
        return f"{path}: permission denied; run as a user who may read it"
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{path}: cannot be read: {why}"
