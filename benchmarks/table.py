"""The job table and the whole dashboard on a pseudo-terminal: keys, bytes on the wire, idling, memory.

The table is `benchmarks/table_live.py`, a program of nothing but the widget and a clock.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.db_directory import write_db
from benchmarks.pty_meter import idle, press_often
from benchmarks.rows import Row, at_most, main
from benchmarks.startup import TABLE_HEAD, isolated
from benchmarks.terminal import Program, Terminal

JOBS, QUICK_JOBS = 100_000, 10_000
READY = "ready"
KEY_P95_MS = 50
LIVE_CPU_PERCENT = 2
LIVE_RSS_MB = 180
STILL_BYTES_PER_S = 250
STILL_CPU_PERCENT = 0.5
ROW_BYTES = 400
REPAINT_BYTES = 15_000


@contextmanager
def table(*words: str) -> Iterator[Terminal]:
    """The program once it is painted."""
    argv = [sys.executable, "-m", "benchmarks.table_live", *words]
    with Terminal(Program(argv=argv, ready=READY)) as terminal:
        terminal.wait_for(READY)
        terminal.settle()
        yield terminal


def live_table(jobs: int, presses: int, idle_s: float) -> Iterator[Row]:
    """Many jobs, of which 2 % change each second."""
    what = f"job table, {jobs:,} jobs, 2 % changing each second"
    with table("--jobs", str(jobs)) as terminal:
        for key in ("down", "pagedown"):
            yield at_most(
                f"{what}: key {key}, p95", press_often(terminal, key, presses).p95_ms, "ms", KEY_P95_MS
            )
        cpu_percent = idle(terminal, idle_s)[1]
        yield at_most(f"{what}: CPU, no key pressed", cpu_percent, "% of a core", LIVE_CPU_PERCENT)
        yield at_most(f"{what}: memory", terminal.rss_mb(), "MB", LIVE_RSS_MB)


def changed_row(idle_s: float) -> Row:
    """What one changed row costs: the table with one such row a second, less the same without."""
    sent = []
    for visible in ("1", "0"):
        with table("--jobs", "1000", "--share", "0", "--visible", visible) as terminal:
            sent.append(idle(terminal, idle_s)[0])
    return at_most("job table: one changed row", sent[0] - sent[1], "bytes", ROW_BYTES)


def still_dashboard(idle_s: float) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="jobtui-bench-") as place:
        home, db = Path(place, "home"), Path(place, "db")
        home.mkdir()
        write_db(db, 1_000)
        command = [sys.executable, "-m", "jobtui", "--srdb", str(db)]
        with Terminal(Program(argv=command, ready=TABLE_HEAD, environ=isolated(home))) as terminal:
            terminal.wait_for(TABLE_HEAD)
            terminal.settle()
            switched = [press_bytes(terminal, key) for key in ("6", "1")]
            repaint = [terminal.resize(120, rows) for rows in (39, 40)][-1]
            bytes_per_s, cpu_percent = idle(terminal, idle_s)
    yield at_most("dashboard, nothing changing: on the wire", bytes_per_s, "bytes/s", STILL_BYTES_PER_S)
    yield at_most("dashboard, nothing changing: CPU", cpu_percent, "% of a core", STILL_CPU_PERCENT)
    yield at_most("dashboard: full repaint of 120x40, after a resize", repaint, "bytes", REPAINT_BYTES)
    yield Row(what="dashboard: to another screen", measured=switched[0], unit="bytes")
    yield Row(what="dashboard: and back", measured=switched[1], unit="bytes")


def press_bytes(terminal: Terminal, key: str) -> int:
    """How many bytes a key gave back until all was quiet."""
    received = terminal.received
    terminal.press(key)
    terminal.settle()
    return terminal.received - received


def rows(quick: bool) -> Iterator[Row]:
    idle_s = 5.0 if quick else 20.0
    yield from live_table(QUICK_JOBS if quick else JOBS, 20 if quick else 100, idle_s)
    yield changed_row(idle_s / 2)
    yield from still_dashboard(idle_s)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", rows))
