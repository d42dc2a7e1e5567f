"""A program on a pseudo-terminal that can be taken away from it, unlike a window of tmux. Linux only."""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Self

from tests.waiting import LONG_S, wait_for

CHUNK = 65_536


class PtyProgram:
    """Python with these words, as the leader of a session. A context manager that ends it for certain."""

    def __init__(
        self,
        words: Sequence[str],
        ignoring: Iterable[signal.Signals] = (),
        environ: Mapping[str, str] | None = None,
        size: tuple[int, int] = (24, 80),
    ) -> None:
        self.seen = b""
        self._code: int | None = None
        self._gone = False
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            for number in ignoring:
                signal.signal(number, signal.SIG_IGN)
            own = {**os.environ, "TERM": "xterm-256color", **(environ or {})}
            os.execve(sys.executable, [sys.executable, *words], own)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.settings = termios.tcgetattr(self._terminal)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.code() is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.hang_up()

    def wait_seen(self, text: bytes, count: int = 0) -> None:
        """Read until this was written, and this many bytes."""
        wait_for(lambda: self._read() and text in self.seen and len(self.seen) >= count)

    def _read(self) -> bool:
        if select.select([self._terminal], [], [], 0)[0]:
            self.seen += os.read(self._terminal, CHUNK)
        return True

    def press(self, keys: bytes) -> None:
        os.write(self._terminal, keys)

    def hold(self) -> None:
        line = os.open(f"/proc/{self.pid}/fd/0", os.O_RDWR | os.O_NOCTTY)
        termios.tcflow(line, termios.TCOOFF)
        os.close(line)

    def hang_up(self) -> None:
        if not self._gone:
            self._gone = True
            os.close(self._terminal)

    def now_settings(self) -> list[object]:
        return termios.tcgetattr(self._terminal)

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def code(self) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def wait_end(self, timeout_s: float) -> int:
        wait_for(lambda: self.code() is not None, timeout_s=timeout_s)
        assert self._code is not None
        return self._code

    def wait_over(self) -> int:
        """Read what it writes until it has ended; its exit code."""
        with suppress(OSError):  # the other side is closed
            wait_for(lambda: not self._read())
        return self.wait_end(LONG_S)
