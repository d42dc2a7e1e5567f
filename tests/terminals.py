"""Programs on terminals: in tmux, as a person sees them, or on a pseudo-terminal that can be taken away."""

import fcntl
import os
import pty
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Self

from tests.waiting import LONG_S, wait_for


class Tmux:
    """A program that runs in a window of so many columns and rows. A context manager that ends it.

    The window stays when the program ends, so that what it left behind can be read.
    """

    def __init__(
        self, command: Sequence[str], columns: int, rows: int, environ: Mapping[str, str] | None = None
    ) -> None:
        self._socket = f"jobtui-{uuid.uuid4().hex[:12]}"
        extra = {"TERM": "tmux-256color", "COLORTERM": "truecolor", **(environ or {})}
        # The size of the window counts, not what the variables of whoever runs the test say.
        words = ["env", "-u", "COLUMNS", "-u", "LINES", *(f"{k}={v}" for k, v in extra.items()), *command]
        program = shlex.join(words)
        self._size = ["-x", str(columns), "-y", str(rows)]
        self._program = f"{program}; printf '\\n[ended %s]\\n' $?; exec sleep 3600"

    def __enter__(self) -> Self:
        quiet = [";", "set", "-g", "status", "off"]
        self.run("-f", os.devnull, "new-session", "-d", *self._size, self._program, *quiet)
        self.run("resize-window", *self._size)
        return self

    def __exit__(self, *error: object) -> None:
        subprocess.run(["tmux", "-L", self._socket, "kill-server"], check=False, capture_output=True)

    def run(self, *command: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._socket, *command], check=True, capture_output=True, text=True
        )
        return done.stdout

    def keys(self, *names: str) -> None:
        """Press keys, by tmux's names for them: `Enter`, `Escape`, `C-p`, `j`."""
        for name in names:
            self.run("send-keys", name)

    def press(self, *names: str, until: Callable[[str], object] | str) -> str:
        """Press keys, then wait for what comes of them; the text of the window then."""
        self.keys(*names)
        return self.wait_text(until)

    def type(self, text: str) -> None:
        self.run("send-keys", "-l", "--", text)

    def paste(self, text: str) -> None:
        """As a terminal pastes it: in brackets, where the program asks for them."""
        self.run("set-buffer", "--", text, ";", "paste-buffer", "-p")

    def text(self) -> str:
        return self.run("capture-pane", "-p")

    def styled(self) -> str:
        return self.run("capture-pane", "-p", "-e", "-N")

    def resize(self, columns: int, rows: int) -> None:
        self.run("resize-window", "-x", str(columns), "-y", str(rows))

    def wait_text(self, shows: Callable[[str], object] | str, timeout_s: float = LONG_S) -> str:
        """The text of the window once it holds or satisfies this; an AssertionError shows it otherwise."""
        seen = ""

        def there() -> bool:
            nonlocal seen
            seen = self.text()
            return shows in seen if isinstance(shows, str) else bool(shows(seen))

        try:
            wait_for(there, timeout_s=timeout_s, step_s=0.05)
        except AssertionError as error:
            raise AssertionError(f"{error}\nthe window shows:\n{seen}") from error
        return seen


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
