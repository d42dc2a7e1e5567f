"""Processes that write log lines, and the streams they write to.

A process works on one thing at a time and each of its lines takes a little while, so its own clock runs ahead
of the kernel's while it is busy. A stream puts the lines of its processes in the order of those clocks: that
is how the lines of a supervisor and of its local agents come to be mixed.
"""

import random
from collections import deque
from datetime import UTC, datetime
from heapq import heappop, heappush

from jobtui.demo.kernel import Kernel, TaskGroup
from jobtui.demo.lines import Catalog
from jobtui.model.clock import SECOND, Nanos

LINE_COST_NS = (60_000, 420_000)
"""How long writing a line takes, least and most."""
PIECE_GAP_S = (0.0005, 0.004)
"""How long after the first piece of a record the second is written."""


class Stream:
    """What several processes write into one file. `take` gives what is settled so far."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._waiting: list[tuple[int, int, bytes]] = []
        self._written = 0

    def write(self, at: Nanos, text: str) -> None:
        """Write one record (without its newline) at a process's own time."""
        self._written += 1
        heappush(self._waiting, (at, self._written, text.encode("utf-8", "surrogateescape") + b"\n"))

    def take(self, everything: bool = False) -> bytes:
        """All that no later line can come before; with `everything` also what is ahead of the clock."""
        waiting, parts = self._waiting, []
        now = self._kernel.now
        while waiting and (everything or waiting[0][0] <= now):
            parts.append(heappop(waiting)[2])
        return b"".join(parts)


class TailStream(Stream):
    """A stream that also remembers its newest records."""

    def __init__(self, kernel: Kernel, keep: int = 400) -> None:
        super().__init__(kernel)
        self._tail: deque[str] = deque(maxlen=keep)

    def write(self, at: Nanos, text: str) -> None:
        """Write one record."""
        super().write(at, text)
        self._tail.append(text)

    def tail(self) -> str:
        """The newest records."""
        return "".join(f"{text}\n" for text in self._tail)


class Head:
    """The time, process and thread at the head of a line, made once per second."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._second = -1
        self._text = ""

    def at(self, when: Nanos) -> str:
        """The head of a line written at `when`."""
        second = when // SECOND
        if second != self._second:
            self._second = second
            stamp = datetime.fromtimestamp(second, UTC).strftime("%b %d %H:%M:%S")
            self._text = f"{stamp} {self._pid:5d} {0:5d} "
        return self._text


class Process:
    """Something with a pid that writes lines and has tasks, until it ends."""

    def __init__(
        self,
        kernel: Kernel,
        rng: random.Random,
        catalog: Catalog,
        stream: Stream,
        pid: int,
        *,
        head: bool,
        torn: float = 0.0,
    ) -> None:
        self.kernel = kernel
        self.pid = pid
        self.alive = True
        self.tasks = TaskGroup(kernel)
        self._rng = rng
        self._catalog = catalog
        self._stream = stream
        self._head = Head(pid) if head else None
        self._torn = torn
        self._clock = kernel.now

    @property
    def clock(self) -> Nanos:
        """The process's own time: never before the kernel's, later while it is busy."""
        return max(self._clock, self.kernel.now)

    def work(self, seconds: float) -> None:
        """Be busy, so that what is written next is later."""
        self._clock = Nanos(self.clock + round(seconds * SECOND))

    def log(self, name: str, *values: object) -> str:
        """Write the line of this name; returns it as written (nothing is written after the end)."""
        line = self._catalog[name]
        if not self.alive or line is None:
            return ""
        self._clock = Nanos(self.clock + self._rng.randint(*LINE_COST_NS))
        head = self._head.at(self._clock) if self._head else ""
        text = f"{head}{line.site}{line.text.format(*values)}"
        self.emit(text)
        return text

    def emit(self, text: str) -> None:
        """Put finished text into the stream. What spans lines may be written in two pieces."""
        if self._torn and "\n" in text and self._rng.random() < self._torn:
            lines = text.split("\n")
            cut = self._rng.randrange(1, len(lines))
            self._stream.write(self._clock, "\n".join(lines[:cut]))
            self.work(self._rng.uniform(*PIECE_GAP_S))
            text = "\n".join(lines[cut:])
        self._stream.write(self._clock, text)

    def end(self) -> None:
        """No more lines, no more tasks."""
        self.alive = False
        self.tasks.close()
