"""The run directory of a job: which files there are, and a bounded part of one. Reads only.

Only regular files right in the directory are opened, never through a link: a program that runs there can put
anything into it. All reading is done in one thread of its own, so that a dead mount holds up nothing else.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from jobtui.backends.worker import Worker
from jobtui.model.clock import Nanos
from jobtui.model.job_desk import FileKind, FilePart, RunFile, RunListing, Unreadable

MOST_ENTRIES = 2_000
"""Entries that are looked at; the others are only counted."""
PART_BYTES = 256 << 10
"""How much of a file is read at most."""
SNIFFED_BYTES = 4_096
"""How much of a part is looked at to tell text from other data."""

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# O_NONBLOCK: should a pipe have taken the file's place by now, opening it must not wait for a writer.
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_KINDS = {stat.S_IFREG: FileKind.FILE, stat.S_IFDIR: FileKind.DIRECTORY, stat.S_IFLNK: FileKind.LINK}
_REFUSED = {
    FileKind.DIRECTORY: "is a directory; only files right in the run directory are read",
    FileKind.LINK: "is a link, which is not followed: it may lead out of the run directory",
    FileKind.OTHER: "is not a regular file (a pipe, a socket or a device) and is not opened",
}


class RunDirs:
    """Reads run directories, one call at a time."""

    def __init__(self, *, most_entries: int = MOST_ENTRIES, part_bytes: int = PART_BYTES) -> None:
        self._worker = Worker("run directories")
        self._most_entries = most_entries
        self._part_bytes = part_bytes

    async def list_files(self, path: str) -> RunListing:
        """The entries of the directory at `path`. Raises Unreadable."""
        return await self._worker.run(partial(list_files, path, self._most_entries))

    async def read_file(self, path: str, name: str, *, tail: bool) -> FilePart:
        """The beginning or the end of a regular file in the directory at `path`. Raises Unreadable."""
        return await self._worker.run(partial(read_part, path, name, self._part_bytes, tail=tail))

    def close(self) -> None:
        """Let the thread go. May be called twice."""
        self._worker.close()


def list_files(path: str, most: int) -> RunListing:
    """The entries of a directory, by name. Raises Unreadable."""
    with _directory(path) as directory, os.scandir(directory) as entries:
        files: list[RunFile] = []
        left_out = 0
        for entry in entries:
            if len(files) >= most:
                left_out += 1
                continue
            try:
                status = os.stat(entry.name, dir_fd=directory, follow_symlinks=False)
            except FileNotFoundError:
                continue  # it went away meanwhile
            files.append(_run_file(entry.name, status))
    return RunListing(path, tuple(sorted(files, key=lambda file: file.name)), left_out)


def read_part(path: str, name: str, size: int, *, tail: bool) -> FilePart:
    """At most `size` bytes of a file, from its beginning or up to its end. Raises Unreadable."""
    if os.sep in name or name in ("", ".", ".."):
        raise Unreadable(f"{name}: is not the name of a file in {path}")
    with _directory(path) as directory:
        found = _run_file(name, os.stat(name, dir_fd=directory, follow_symlinks=False))
        if found.kind is not FileKind.FILE:
            raise Unreadable(f"{os.path.join(path, name)}: {_REFUSED[found.kind]}")
        fd = os.open(name, _FILE_FLAGS, dir_fd=directory)
        try:
            return _read_part(fd, name, size, tail=tail)
        finally:
            os.close(fd)


def _read_part(fd: int, name: str, size: int, *, tail: bool) -> FilePart:
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable(f"{name}: {_REFUSED[FileKind.OTHER]}")
    begin = max(0, status.st_size - size) if tail else 0
    data = os.pread(fd, size, begin)
    if begin:
        # a part that begins within a line begins with the next one, if there is one
        cut = data.find(b"\n") + 1
        begin, data = begin + cut, data[cut:]
    is_binary = b"\0" in data[:SNIFFED_BYTES]
    return FilePart(
        name=name,
        text="" if is_binary else data.decode("utf-8", "replace"),
        begin=begin,
        size=status.st_size,
        written_at=Nanos(status.st_mtime_ns),
        is_to_end=begin + len(data) >= status.st_size,
        is_binary=is_binary,
    )


def _run_file(name: str, status: os.stat_result) -> RunFile:
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), FileKind.OTHER)
    return RunFile(name, kind, status.st_size, Nanos(status.st_mtime_ns))


@contextmanager
def _directory(path: str) -> Iterator[int]:
    """The open directory. An OSError inside becomes Unreadable."""
    try:
        directory = os.open(path, _DIRECTORY_FLAGS)
    except (OSError, ValueError) as error:
        raise Unreadable(_reason(error, path)) from error
    try:
        yield directory
    except (OSError, ValueError) as error:
        raise Unreadable(_reason(error, path)) from error
    finally:
        os.close(directory)


def _reason(error: OSError | ValueError, path: str) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{path}: not on this machine, or removed"
    if isinstance(error, PermissionError):
        return f"{path}: permission denied; run as a user who may read it"
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{path}: cannot be read: {why}"
