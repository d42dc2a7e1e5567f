"""The dashboard on terminals that make it hard: one that is resized all the time, one on a slow line.

python -m benchmarks.strain [--quick] [--json]
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.records import write_records
from benchmarks.rows import Row, at_most, main
from benchmarks.startup import TABLE_HEAD, isolated
from benchmarks.terminal import KEYS, Program, Terminal

JOBS = 1_000
RESIZES = 200
QUIET_S = 0.3
STORM_LIMIT_MS = 1_000
LINE_BYTES_PER_S = 2_000
PRESSES_PER_S = 20
SLOW_S, QUICK_SLOW_S = 10.0, 4.0
BACKLOG_LIMIT = 20_000
"""What the kernel keeps of a pseudo-terminal, and a picture."""


def storm(program: Program) -> Iterator[Row]:
    """So many sizes in a second: when all is painted in the last one, and what it took."""
    with Terminal(program) as terminal:
        terminal.wait_for(program.ready)
        terminal.settle()
        received, cpu, begun = terminal.received, terminal.cpu_s(), time.perf_counter()
        for number in range(RESIZES):
            terminal.set_size(60 + number % 80, 15 + number % 31)
            while (left := begun + (number + 1) / RESIZES - time.perf_counter()) > 0:
                terminal.read(left)
        ended = last = time.perf_counter()
        while terminal.read(QUIET_S):
            last = time.perf_counter()
        what = f"dashboard, {RESIZES} resizes in a second"
        yield at_most(f"{what}: painted in the last size after", (last - ended) * 1e3, "ms", STORM_LIMIT_MS)
        yield Row(what=f"{what}: on the wire", measured=terminal.received - received, unit="bytes")
        yield Row(what=f"{what}: processor", measured=(terminal.cpu_s() - cpu) * 1e3, unit="ms")


def slow_line(program: Program, seconds: float) -> Row:
    """A line slower than what is painted, a page at every key: how much waits on it when the keys end."""
    with Terminal(program) as terminal:
        terminal.wait_for(program.ready)
        terminal.settle()
        begun, received, pressed = time.perf_counter(), terminal.received, 0
        while (passed := time.perf_counter() - begun) < seconds:
            if pressed < passed * PRESSES_PER_S:
                terminal.write(KEYS["pagedown" if pressed % 30 < 15 else "pageup"])
                pressed += 1
            allowed = int(passed * LINE_BYTES_PER_S) - (terminal.received - received)
            if allowed <= 0 or not terminal.read(0.01, allowed):
                time.sleep(0.01)
        received = terminal.received
        terminal.settle(0.1)
        what = f"dashboard, {PRESSES_PER_S} pages a second asked, {LINE_BYTES_PER_S:,} bytes/s taken: backlog"
        return at_most(what, terminal.received - received, "bytes", BACKLOG_LIMIT)


def measure(quick: bool) -> Iterator[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory(prefix="jobtui-bench-") as place:
        home, db = Path(place, "home"), Path(place, "db")
        home.mkdir()
        write_records(db, JOBS)
        command = [sys.executable, "-m", "jobtui", "--srdb", str(db)]
        program = Program(argv=command, ready=TABLE_HEAD, environ=isolated(home))
        yield from storm(program)
        yield slow_line(program, QUICK_SLOW_S if quick else SLOW_S)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", measure))
