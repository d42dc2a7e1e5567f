"""The one way to open files that others wrote: it never blocks, and reads bytes at any offset.

Opening a pipe blocks until somebody writes to it, opening a device may do something, and either may have no
end. Imports nothing that costs the start of the program.

So only regular files are opened. A file that is packed (gzip, xz, bzip2, by its first bytes) is read as if it
were the text inside, within a bound.
"""

import errno
import os
import select
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from jobtui.model.clock import SKEW, TIME_LENGTH, Nanos, latest
from jobtui.model.health import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.transport.unpacking import FILE_PACKINGS, TooLarge, Unpacker, UnpackError, UnpackLimit

PIPE_S = 5.0
"""How long the writer of a pipe that a user named may take for all of it."""

NOTHING = os.devnull
"""The device that is an empty file to everybody."""

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def odd_kind(mode: int) -> str | None:
    """What a file of this mode is, None when it is a regular one."""
    return None if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "something else")


def open_regular(path: str | os.PathLike[str]) -> int:
    """A descriptor of the regular file at a path. Raises OSError, also for what is none."""
    try:
        _refuse_odd(os.stat(path), path)  # before it is opened: that alone may do something
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except ValueError as error:  # a name that no file can have
        raise OSError(errno.EINVAL, str(error), os.fspath(path)) from error
    try:
        _refuse_odd(os.fstat(fd), path)
    except OSError:
        os.close(fd)
        raise
    return fd


def read_small(path: str | os.PathLike[str], most: int) -> bytes:
    """The first bytes of the regular file at a path, at most `most`. Raises OSError."""
    if os.fspath(path) == NOTHING:
        return b""
    with open(open_regular(path), "rb") as file:
        return file.read(most)


def read_given(path: str | os.PathLike[str], most: int) -> bytes:
    """The same for a file that a user named, or a pipe, as a shell makes one of `<(...)`. A pipe can be read
    once, so its bytes are kept. Raises OSError, also if nobody writes to it in time.
    """
    try:
        status = os.stat(path)
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error), os.fspath(path)) from error
    if not stat.S_ISFIFO(status.st_mode):
        return read_small(path, most)
    known = status.st_dev, status.st_ino
    if known not in _pipes:
        until, content = time.monotonic() + PIPE_S, b""
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0) as pipe:
            poll = select.poll()
            poll.register(pipe, select.POLLIN)
            is_whole = False
            while not is_whole and poll.poll(max(0.0, until - time.monotonic()) * 1_000):
                piece = pipe.read(most - len(content)) or b""
                content += piece
                is_whole = not piece or len(content) >= most
        _pipes[known] = content if is_whole else None
    if (known_content := _pipes[known]) is None:
        raise OSError(errno.ETIMEDOUT, f"it is a pipe whose writer did not finish within {PIPE_S:g} s")
    return known_content


_pipes: dict[tuple[int, int], bytes | None] = {}
"""What was read of pipes, by device and inode: of the few that one command line can name."""


def _refuse_odd(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    if kind := odd_kind(status.st_mode):
        number = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL
        raise OSError(number, f"it is {kind}; name a regular file", os.fspath(path))


# O_NONBLOCK: should a pipe have taken a file's place by now, opening it must not wait for a writer
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
CHUNK_BYTES = 1 << 20
PACKED_CHUNK_BYTES = 1 << 16
UNPACKED_BYTES = 64 << 20
TAIL_BYTES = 1 << 12
"""How much of the end of a file is searched for its last time."""
MOST_RATIO = 100
"""A packed file may unpack to this many times its size, and UNPACKED_BYTES beyond; logs pack to a tenth."""


class FileId(NamedTuple):
    """Which file it is, under whatever name."""

    device: int
    inode: int


class FileStat(NamedTuple):
    """What `stat` says of a file: if any of it changed, reading may find something new."""

    id: FileId
    size: int
    mtime_ns: int


class ByteSource(Protocol):
    """Bytes at offsets. `read` gives fewer than asked only at the end."""

    def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset` on."""

    def next_data(self, offset: int) -> int:
        """Where the first byte from `offset` on is that may not be NUL; `offset` when that is not known."""
        return offset


class PlainBytes:
    """The bytes of an open file. May be closed while another thread reads: that one gets an OSError."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()

    def read(self, offset: int, size: int) -> bytes:
        with self._lock:
            return os.pread(self._fd, size, offset)

    def next_data(self, offset: int) -> int:
        """The end of the hole at `offset` where the file system knows of one, else `offset`."""
        with self._lock:
            try:
                return os.lseek(self._fd, offset, os.SEEK_DATA)
            except OSError as error:
                # ENXIO: there is nothing but a hole from here to the end. Else: not supported here.
                return max(offset, os.fstat(self._fd).st_size) if error.errno == errno.ENXIO else offset

    def status(self) -> os.stat_result:
        """What `stat` says of it. Raises OSError."""
        with self._lock:
            return os.fstat(self._fd)

    def duplicate(self) -> int:
        """One more descriptor of the file, to be closed by who asked for it. Raises OSError."""
        with self._lock:
            return os.dup(self._fd)

    def close(self) -> None:
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
            self._fd = -1


class PackedBytes(ByteSource):
    """The text inside a packed file. Reading on is cheap, reading back starts again.

    `broken` says why the text ends early, None while all is well: what is damaged, or what unpacks to far
    more than a log would. Several files may share an allowance.
    """

    def __init__(self, fd: int, opener: Callable[[], Any], allowance: UnpackLimit) -> None:
        self._file = os.fdopen(os.dup(fd), "rb")
        self._opener, self._allowance = opener, allowance
        self.size = os.fstat(fd).st_size
        self._begin()

    def _begin(self) -> None:
        self.broken: str | None = None
        self._start, self._window = 0, b""
        self._unpacker = Unpacker(self._opener, sys.maxsize, self._allowance)
        self._steps = self._unpacked()

    def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset` of the text on. Raises OSError."""
        if offset < self._start:
            self._file.seek(0)
            self._unpacker.give_back()
            self._begin()
        while self._start + len(self._window) < offset + size and (more := self._more()):
            passed = min(max(0, offset - self._start), len(self._window))
            self._window = self._window[passed:] + more
            self._start += passed
        begin = offset - self._start
        return self._window[begin : begin + size]

    def length(self) -> int:
        """How long the text is, as far as it can be unpacked. Raises OSError."""
        while self.read(self._start + len(self._window), 1):
            pass
        return self._start + len(self._window)

    def close(self) -> None:
        self._file.close()

    def _unpacked(self) -> Iterator[bytes]:
        while data := self._file.read(PACKED_CHUNK_BYTES):
            yield from filter(None, self._unpacker.feed(data))
        self._unpacker.end()

    def _more(self) -> bytes:
        try:
            return next(self._steps, b"")
        except TooLarge as error:
            self.broken = f"{error}, no more of it is read"
        except UnpackError as error:
            self.broken = str(error)
        return b""


class OpenFile:
    """A regular file opened for reading. `source` gives its bytes, unpacked when it is packed."""

    def __init__(self, fd: int, allowance: UnpackLimit) -> None:
        self.plain = PlainBytes(fd)
        begin = self.plain.read(0, max(map(len, FILE_PACKINGS)))
        opener = next((opener for magic, opener in FILE_PACKINGS.items() if begin.startswith(magic)), None)
        self.packed = None if opener is None else PackedBytes(fd, opener, allowance)
        self.id = self.look().id

    @property
    def source(self) -> ByteSource:
        return self.plain if self.packed is None else self.packed

    def look(self) -> FileStat:
        """Its present size and time of the last write. Raises OSError."""
        return _look(self.plain.status())

    def close(self) -> None:
        if self.packed is not None:
            self.packed.close()
        self.plain.close()


def look(path: Path) -> FileStat:
    """What `stat` says of the regular file at `path`. Raises SourceError."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise source_error(error, path) from error
    if kind := odd_kind(status.st_mode):
        raise SourceError(f"{path}: is {kind}; name a regular file")
    return _look(status)


def look_quietly(path: Path) -> FileStat | None:
    """What `stat` says of the regular file at `path`, None when there is none to read."""
    try:
        return look(path)
    except SourceError:
        return None


def packed_allowance() -> UnpackLimit:
    """What packed files that are read as one may unpack to, beyond the usual ratio."""
    return UnpackLimit(UNPACKED_BYTES, MOST_RATIO)


def open_file(path: Path, allowance: UnpackLimit | None = None) -> OpenFile:
    """Open the regular file at `path`. Never blocks on a pipe. Raises SourceError."""
    look(path)
    with explained(path):
        fd = open_regular(path)
    try:
        return OpenFile(fd, allowance or packed_allowance())
    except (OSError, SourceError) as error:
        os.close(fd)
        why = error if isinstance(error, OSError) else OSError(None, str(error))
        raise (error if str(path) in str(error) else source_error(why, path)) from error


@contextmanager
def opened_file(path: Path) -> Iterator[OpenFile]:
    """The regular file at `path`, open. What is raised while it is read is a SourceError."""
    with closing(open_file(path)) as opened, explained(path):
        yield opened


def source_error(error: OSError | ValueError, path: Path | str) -> SourceError:
    """The SourceError for a failure to read `path`."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return SourceMissing(f"{path}: no such file; check the path")
    if isinstance(error, PermissionError):
        return SourceDenied(f"{path}: permission denied; run as a user who may read it")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return SourceUnreachable(f"{path}: cannot be read: {reason}")


@contextmanager
def explained(path: Path | str) -> Iterator[None]:
    """Raises a SourceError in place of an error of the system."""
    try:
        yield
    except OSError as error:
        raise source_error(error, path) from error


def written_at(opened: OpenFile, seen: FileStat) -> Nanos:
    """When a file was last written: its own time, or that of its last line if later and not in the future.

    A copy or a clock that is off makes it older than its lines, by less than half a year we assume.
    """
    mtime, now = Nanos(seen.mtime_ns), Nanos(time.time_ns())
    if opened.packed is not None or now <= mtime + SKEW:
        return mtime
    tail = ""
    with suppress(OSError):
        tail = opened.source.read(max(0, seen.size - TAIL_BYTES), TAIL_BYTES).decode("ascii", "replace")
    until = Nanos(min(now, mtime + 183 * SKEW))
    times = (latest(line[:TIME_LENGTH], until) for line in reversed(tail.split("\n")))
    return max(mtime, next((at for at in times if at is not None), mtime))


def _look(status: os.stat_result) -> FileStat:
    return FileStat(FileId(status.st_dev, status.st_ino), status.st_size, status.st_mtime_ns)
