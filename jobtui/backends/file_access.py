"""Opening a log file without harm, and reading bytes at an offset of it. Knows nothing of lines.

Only regular files are opened: opening a pipe or a device can block, or disturb who writes to it. A file that
begins like gzip is read through it, as if it were the text inside.
"""

import errno
import gzip
import os
import stat
import threading
import zlib
from pathlib import Path
from typing import NamedTuple, Protocol

from jobtui.backends.base import SourceDenied, SourceError, SourceMissing, SourceUnreachable

GZIP_MAGIC = b"\x1f\x8b\x08"
CHUNK_BYTES = 1 << 20


class FileId(NamedTuple):
    """Which file it is, under whatever name."""

    device: int
    inode: int


class Look(NamedTuple):
    """What `stat` says of a file: when any of it differs, reading may find something new."""

    id: FileId
    size: int
    mtime_ns: int


class ByteSource(Protocol):
    """Bytes at offsets. `read` gives fewer than asked only at the end."""

    def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset` on."""
        ...

    def next_data(self, offset: int) -> int:
        """Where the first byte from `offset` on is that may not be NUL; `offset` when that is not known."""
        ...


class PlainBytes:
    """The bytes of an open file. May be closed while another thread reads: that one gets an OSError."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()

    def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset` on. Raises OSError."""
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
        """Release it. May be called twice."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
            self._fd = -1


class GzipBytes:
    """The text inside a gzip file. Reading on is cheap, reading back begins anew.

    `broken` says why the text ends early, None while all is well.
    """

    def __init__(self, fd: int) -> None:
        self._file = os.fdopen(os.dup(fd), "rb")
        self.broken: str | None = None
        self._start = 0
        self._window = b""
        self._rewind()

    def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset` of the text on. Raises OSError."""
        if offset < self._start:
            self._rewind()
        while self._start + len(self._window) < offset + size and (more := self._more()):
            passed = min(max(0, offset - self._start), len(self._window))
            self._window = self._window[passed:] + more
            self._start += passed
        begin = offset - self._start
        return self._window[begin : begin + size]

    def next_data(self, offset: int) -> int:
        """Not known here: `offset`."""
        return offset

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def _rewind(self) -> None:
        self._file.seek(0)
        self._text = gzip.GzipFile(fileobj=self._file, mode="rb")
        self._start = 0
        self._window = b""
        self.broken = None

    def _more(self) -> bytes:
        if self.broken is not None:
            return b""
        try:
            return self._text.read1(CHUNK_BYTES)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self.broken = str(error) or type(error).__name__
            return b""


class OpenFile:
    """A regular file opened for reading. `source` gives its bytes, unpacked when it is gzip."""

    def __init__(self, fd: int) -> None:
        self.plain = PlainBytes(fd)
        self.gzip = GzipBytes(fd) if self.plain.read(0, len(GZIP_MAGIC)) == GZIP_MAGIC else None
        self.id = self.look().id

    @property
    def source(self) -> ByteSource:
        """The bytes of its text."""
        return self.plain if self.gzip is None else self.gzip

    def look(self) -> Look:
        """Its present size and time of the last write. Raises OSError."""
        return _look(self.plain.status())

    def close(self) -> None:
        """Release it. May be called twice."""
        if self.gzip is not None:
            self.gzip.close()
        self.plain.close()


def look(path: Path) -> Look:
    """What `stat` says of the regular file at `path`. Raises SourceError."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise source_error(error, path) from error
    _refuse_irregular(status.st_mode, path)
    return _look(status)


def open_file(path: Path) -> OpenFile:
    """Open the regular file at `path`. Never blocks on a pipe. Raises SourceError."""
    look(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise source_error(error, path) from error
    try:
        _refuse_irregular(os.fstat(fd).st_mode, path)
        return OpenFile(fd)
    except (OSError, SourceError) as error:
        os.close(fd)
        raise (error if isinstance(error, SourceError) else source_error(error, path)) from error


def open_renamed(path: Path, file_id: FileId) -> OpenFile | None:
    """The file with this id when it is still at `path` or, rotated, beside it under a longer name."""
    try:
        names = sorted(name for name in os.listdir(path.parent) if name.startswith(path.name))
    except OSError:
        return None
    for candidate in (path.parent / name for name in names):
        try:
            if look(candidate).id != file_id:
                continue
            opened = open_file(candidate)
        except SourceError:
            continue
        if opened.id == file_id:
            return opened
        opened.close()
    return None


def source_error(error: OSError | ValueError, path: Path) -> SourceError:
    """The SourceError for a failure to read `path`."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return SourceMissing(f"{path}: no such file; check the path")
    if isinstance(error, PermissionError):
        return SourceDenied(f"{path}: permission denied; run as a user who may read it")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return SourceUnreachable(f"{path}: cannot be read: {reason}")


_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _refuse_irregular(mode: int, path: Path) -> None:
    if stat.S_ISREG(mode):
        return
    kind = next((text for test, text in _KINDS if test(mode)), "something else")
    raise SourceError(f"{path}: is {kind}, not a log file; name a regular file")


def _look(status: os.stat_result) -> Look:
    return Look(FileId(status.st_dev, status.st_ino), status.st_size, status.st_mtime_ns)
