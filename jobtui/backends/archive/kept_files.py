"""Files below a directory that others write into: read whole, bounded, none from elsewhere, never waiting."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from jobtui.backends.archive.beneath import THROUGH, Place, beneath
from jobtui.backends.base import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.clock import Nanos
from jobtui.model.scripts import Outcome

MOST_BYTES = 64 << 20
"""A larger file is refused. Slurm takes scripts of 4 MB unless told otherwise."""
PIECE_BYTES = 1 << 20
# O_NONBLOCK: opening a pipe must not wait for a writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_LISTING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = {
    stat.S_IFDIR: "is a directory",
    stat.S_IFIFO: "is a pipe, which is not opened",
    stat.S_IFSOCK: "is a socket, which is not opened",
    stat.S_IFCHR: "is a device, which is not opened",
    stat.S_IFBLK: "is a device, which is not opened",
}
_LINKS = {
    errno.EXDEV: "leads by a link out of the archive, which is not followed",
    errno.ELOOP: "leads by links into a ring, or was exchanged for a link meanwhile",
}


class NotRead(Exception):
    """A file of an archive that is not read; `outcome` says of which kind the reason is."""

    def __init__(self, outcome: Outcome, note: str = "") -> None:
        super().__init__(note)
        self.outcome = outcome
        self.note = note


class Kept(NamedTuple):
    """A file as it was read."""

    data: bytes
    written_at: Nanos


@contextmanager
def opened_root(path: str) -> Iterator[int]:
    """The directory itself, which may be a link; for passing through. Raises SourceError."""
    try:
        root = os.open(path, THROUGH)
    except (OSError, ValueError) as error:
        raise _root_error(path, error) from error
    try:
        yield root
    finally:
        os.close(root)


def _root_error(path: str, error: OSError | ValueError) -> SourceError:
    if isinstance(error, FileNotFoundError):
        return SourceMissing(f"{path}: no such directory")
    if isinstance(error, NotADirectoryError):
        return SourceMissing(f"{path}: is no directory; name the one that SArchive writes into")
    if isinstance(error, PermissionError):
        return SourceDenied(f"{path}: permission denied; run as a user who may read it")
    return SourceUnreachable(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}")


def read_kept(root: int, path: str, most: int = MOST_BYTES) -> Kept:
    """The file at a path below the root. Raises NotRead."""
    with _found(root, path) as (directory, name):
        _check_kind(os.stat(name, dir_fd=directory, follow_symlinks=False), path, most)
        file = os.open(name, _FILE, dir_fd=directory)
    try:
        status = os.fstat(file)
        _check_kind(status, path, most)
        return Kept(_all(file, path, most), Nanos(status.st_mtime_ns))
    except OSError as error:
        raise _not_read(error, path) from error
    finally:
        os.close(file)


def written_at(root: int, path: str) -> Nanos:
    """When something at a path below the root was last written, whatever it is. Raises NotRead."""
    with _found(root, path) as (directory, name):
        return Nanos(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mtime_ns)


@contextmanager
def listed(root: int, path: str) -> "Iterator[Iterator[os.DirEntry[str]]]":
    """The entries of a directory below the root, "" for itself, in no order. Raises NotRead."""
    with _found(root, path) as (directory, name):
        readable = os.open(
            name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory
        )
        try:
            with os.scandir(readable) as entries:
                yield entries
        finally:
            os.close(readable)


@contextmanager
def _found(root: int, path: str) -> Iterator[Place]:
    """Where a path below the root ends. Raises NotRead, also for what goes wrong there."""
    try:
        with beneath(root, path) as place:
            yield place
    except (OSError, ValueError) as error:
        raise _not_read(error, path or ".") from error


def _check_kind(status: os.stat_result, path: str, most: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        words = _KINDS.get(stat.S_IFMT(status.st_mode), "is no regular file")
        raise NotRead(Outcome.REFUSED, f"{path} {words}")
    if status.st_size > most:
        raise NotRead(Outcome.REFUSED, f"{path} is larger than {most >> 20} MiB")


def _all(file: int, path: str, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := os.read(file, PIECE_BYTES):
        parts.append(part)
        size += len(part)
        if size > most:
            raise NotRead(Outcome.REFUSED, f"{path} is larger than {most >> 20} MiB")
    return b"".join(parts)


def _not_read(error: OSError | ValueError, path: str) -> NotRead:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return NotRead(Outcome.NOT_THERE)
    if isinstance(error, PermissionError):
        return NotRead(Outcome.DENIED, path)
    if isinstance(error, OSError) and error.errno in _LINKS:
        return NotRead(Outcome.REFUSED, f"{path} {_LINKS[error.errno]}")
    return NotRead(Outcome.NO_ANSWER, f"{path}: {getattr(error, 'strerror', None) or error}")
