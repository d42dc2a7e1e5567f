"""Reading files below a directory that others write into: whole, bounded, not through links, never waiting.

A directory may be passed through without being readable (mode 0711), so that each is opened as a place only.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from jobtui.backends.base import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.clock import Nanos
from jobtui.model.scripts import Outcome

MOST_BYTES = 64 << 20
"""A larger file is refused. Slurm takes scripts of 4 MB unless told otherwise."""
PIECE_BYTES = 1 << 20
_THROUGH = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a pipe must not wait for a writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_KINDS = {
    stat.S_IFDIR: "is a directory",
    stat.S_IFLNK: "is a link, which is not followed: it may lead out of the archive",
    stat.S_IFIFO: "is a pipe, which is not opened",
    stat.S_IFSOCK: "is a socket, which is not opened",
    stat.S_IFCHR: "is a device, which is not opened",
    stat.S_IFBLK: "is a device, which is not opened",
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
        root = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
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
    *directories, name = path.split("/")
    with _passed(root, directories) as directory:
        try:
            _check_kind(os.stat(name, dir_fd=directory, follow_symlinks=False), path, most)
            file = os.open(name, _FILE, dir_fd=directory)
        except (OSError, ValueError) as error:
            raise _not_read(error, path) from error
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
    *directories, name = path.split("/")
    with _passed(root, directories) as directory:
        try:
            return Nanos(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mtime_ns)
        except (OSError, ValueError) as error:
            raise _not_read(error, path) from error


@contextmanager
def listed(root: int, path: str) -> "Iterator[Iterator[os.DirEntry[str]]]":
    """The entries of a directory below the root, "" for itself, in no order. Raises NotRead."""
    with _passed(root, path.split("/") if path else []) as directory:
        try:
            readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
        except OSError as error:
            raise _not_read(error, path or ".") from error
        try:
            with os.scandir(readable) as entries:
                yield entries
        except OSError as error:
            raise _not_read(error, path or ".") from error
        finally:
            os.close(readable)


@contextmanager
def _passed(root: int, directories: list[str]) -> Iterator[int]:
    """The directory to which these lead from the root. Raises NotRead."""
    here = os.dup(root)
    try:
        for name in directories:
            try:
                there = os.open(name, _THROUGH, dir_fd=here)
            except (OSError, ValueError) as error:
                raise _not_read(_linked(error, name, here), name) from error
            os.close(here)
            here = there
        yield here
    finally:
        os.close(here)


def _linked(error: OSError | ValueError, name: str, directory: int) -> OSError | ValueError:
    """The error of passing through a link, which the system calls no directory."""
    if not isinstance(error, NotADirectoryError):
        return error
    try:
        is_link = stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        is_link = False  # it is gone by now
    return OSError(errno.ELOOP, "") if is_link else FileNotFoundError(errno.ENOENT, "")


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
    if isinstance(error, FileNotFoundError):
        return NotRead(Outcome.NOT_THERE)
    if isinstance(error, PermissionError):
        return NotRead(Outcome.DENIED, path)
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return NotRead(Outcome.REFUSED, f"{path} {_KINDS[stat.S_IFLNK]}")
    return NotRead(Outcome.NO_ANSWER, f"{path}: {getattr(error, 'strerror', None) or error}")
