"""What the Linux kernel tells of changed files, by inotify(7). Costs nothing while nothing changes.

The library `watchfiles` tells the same on every system, but looks twenty times a second whether to end.
"""

import errno
import os
import struct
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ctypes

MODIFY, ATTRIB, CLOSE_WRITE = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF = 0x400, 0x800
UNMOUNT, OVERFLOW, IGNORED = 0x2000, 0x4000, 0x8000
ONLY_DIRECTORY = 0x1000000

_NONBLOCK, _CLOEXEC = os.O_NONBLOCK, os.O_CLOEXEC
_EVENT = struct.Struct("iIII")
_READ_BYTES = 1 << 16


class Event(NamedTuple):
    """Something that happened: to which watch, what, and to which name in a watched directory."""

    watch: int
    what: int
    name: str


@cache
def _kernel() -> "ctypes.CDLL":
    import ctypes  # a one-shot command never gets here, and a first paint need not wait for it

    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "inotify_init1"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    return library


class Inotify:
    """A queue of events. Raises OSError where there is none to be had."""

    def __init__(self) -> None:
        self._fd = _checked(_kernel().inotify_init1(_NONBLOCK | _CLOEXEC))

    def fileno(self) -> int:
        """The descriptor to wait for."""
        return self._fd

    def add(self, path: str, what: int) -> int:
        """Watch a file or directory; the number of the watch. May block. Raises OSError."""
        return _checked(_kernel().inotify_add_watch(self._fd, os.fsencode(path), what))

    def read(self) -> list[Event]:
        """What happened since the last call; never blocks. Raises OSError."""
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return []
        events, at = [], 0
        while at < len(data):
            watch, what, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size + length
            events.append(Event(watch, what, os.fsdecode(data[at - length : at].rstrip(b"\0"))))
        return events

    def close(self) -> None:
        """Release it. May be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _checked(result: int) -> int:
    if result < 0:
        import ctypes

        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
