"""One program on a pseudo-terminal that answers what a real terminal would: its output, its processes.

Linux only; nothing but the standard library, so that it can run any program.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

KEYS: Mapping[str, str] = {
    "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
    "pageup": "\x1b[5~", "pagedown": "\x1b[6~", "enter": "\r", "escape": "\x1b", "tab": "\t", "space": " ",
    "shift+tab": "\x1b[Z", "shift+up": "\x1b[1;2A", "shift+down": "\x1b[1;2B",
}  # fmt: skip
"""What a terminal sends for a key that is no character; any other key is sent as it is written."""

ANSWERS: Mapping[bytes, bytes] = {
    b"\x1b[?2026$p": b"\x1b[?2026;2$y",  # synchronized output: known, off
    b"\x1b[c": b"\x1b[?62;22c",  # a VT220 with colour
    b"\x1b[?u": b"\x1b[?0u",  # no extra keyboard flags
    b"\x1b[6n": b"\x1b[1;1R",  # cursor at home
}
"""What programs ask a terminal at their start, and what it says."""

CHUNK = 65_536
LONGEST_QUERY = max(map(len, ANSWERS))
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
REST_S = 0.03
"""Seconds of processor time in a second in which a program has nothing to do but to show the time."""


class NotReady(Exception):
    """The program did not show what marks it as ready, in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to measure. It counts as painted once `ready` is on the wire."""

    argv: Sequence[str]
    ready: str
    environ: Mapping[str, str] = field(default_factory=dict)
    columns: int = 120
    rows: int = 40
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class KeyAnswer:
    first_s: float
    size_bytes: int


class Terminal:
    """One running program on a pseudo-terminal that answers what a real terminal would. A context manager."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.received = 0
        self._tail = b""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", program.rows, program.columns, 0, 0))
        self._master = master
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            program.argv, stdin=slave, stdout=slave, stderr=slave, env=environment(program.environ),
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def fileno(self) -> int:
        return self._master

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_code(self) -> int:
        """How the program ended; waits until it has, for a while. Raises TimeoutExpired."""
        return self._process.wait(self.program.timeout_s)

    def read(self, timeout_s: float, most: int = CHUNK) -> bytes | None:
        """One chunk of output, None when none came in time, nothing at the end of the program."""
        if not select.select([self._master], [], [], timeout_s)[0]:
            return None
        try:
            data = os.read(self._master, most)
        except OSError:  # Linux says so when the other side is closed
            return b""
        self.received += len(data)
        self._answer(data)
        return data

    def write(self, data: bytes) -> None:
        os.write(self._master, data)

    def wait_for(self, text: str, timeout_s: float | None = None) -> float:
        """Seconds since the start until `text` was on the wire. Raises NotReady."""
        wanted, seen = text.encode(), bytearray()
        deadline = time.perf_counter() + (self.program.timeout_s if timeout_s is None else timeout_s)
        while time.perf_counter() < deadline:
            data = self.read(0.2)
            if data == b"":
                raise NotReady(f"{self.program.argv[0]} ended without {text!r}: {bytes(seen)[-2000:]!r}")
            if data:
                # Only the new part, and as much before it as the text could be cut by.
                start = max(0, len(seen) - len(wanted))
                seen += data
                if seen.find(wanted, start) >= 0:
                    return time.perf_counter() - self.started
        raise NotReady(f"{self.program.argv[0]} did not show {text!r} in time: {bytes(seen)[-2000:]!r}")

    def settle(self, quiet_s: float = 0.3, at_most_s: float = 10.0) -> None:
        deadline = time.perf_counter() + at_most_s
        while time.perf_counter() < deadline and self.read(quiet_s):
            pass

    def rest(self, at_most_s: float = 60.0) -> None:
        """Read on until a second takes no more than `REST_S` of processor time: a clock is never quiet."""
        deadline = time.perf_counter() + at_most_s
        while (now := time.perf_counter()) < deadline:
            used = self.cpu_s()
            while (left := now + 1.0 - time.perf_counter()) > 0 and self.read(left) != b"":
                pass
            if self.cpu_s() - used <= REST_S:
                return

    def press(self, key: str, gap_s: float = 0.03) -> KeyAnswer | None:
        """Press a key; how soon the first byte came back and how many came in all. None without an answer."""
        pressed = time.perf_counter()
        self.write(KEYS.get(key, key).encode())
        data = self.read(3.0)
        if not data:
            return None
        first_s, count = time.perf_counter() - pressed, len(data)
        while more := self.read(gap_s):
            count += len(more)
        return KeyAnswer(first_s, count)

    def resize(self, columns: int, rows: int) -> int:
        """Give the terminal another size; how many bytes the program sent for it."""
        self.settle()
        received = self.received
        self.set_size(columns, rows)
        self.settle()
        return self.received - received

    def set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def cpu_s(self) -> float:
        return sum(map(_ticks, self._tree())) / TICKS_PER_S

    def rss_mb(self) -> float:
        return sum(_status_kb(pid, "VmRSS") for pid in self._tree()) / 1024

    def rss_of_files_mb(self) -> float:
        return sum(_status_kb(pid, "RssFile") for pid in self._tree()) / 1024

    def close(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is None:
                os.killpg(self._process.pid, number)
            deadline = time.perf_counter() + 2.0
            while self._process.poll() is None and time.perf_counter() < deadline:
                self.read(0.05)
        os.close(self._master)

    def _answer(self, data: bytes) -> None:
        seen = self._tail + data
        for query, answer in ANSWERS.items():
            if seen.find(query, max(0, len(self._tail) - len(query) + 1)) >= 0:
                self.write(answer)
        self._tail = seen[-LONGEST_QUERY:]

    def _tree(self) -> Iterator[int]:
        pending = [self._process.pid]
        while pending:
            pid = pending.pop()
            yield pid
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                pending += map(int, _read(children).split())


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of a measured program: ours, with one kind of terminal and its true size."""
    plain = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")
    }
    return plain | {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"} | dict(extra)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _ticks(pid: int) -> int:
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12]) if fields else 0


def _status_kb(pid: int, name: str) -> int:
    for line in _read(Path(f"/proc/{pid}/status")).splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0
