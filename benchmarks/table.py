"""The dashboard on a pseudo-terminal: keys, what is typed, bytes on the wire, idling, memory, also while
records change.
"""

import json
import random
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.db_directory import write_db
from benchmarks.pty_meter import idle, key_row, typed_rows
from benchmarks.rows import Row, at_most, main
from benchmarks.startup import TABLE_HEAD, isolated
from benchmarks.terminal import Program, Terminal

JOBS, QUICK_JOBS = 100_000, 10_000
SHARE = 0.02
"""How many of the records are replaced in a second."""
VISIBLE = 20
"""Few enough jobs to be on one screen."""
BURSTS_PER_S = 10
KEY_P95_MS = 50
LIVE_CPU_PERCENT = 2
LIVE_RSS_MB = 180
STILL_BYTES_PER_S = 250
STILL_CPU_PERCENT = 0.5
ROW_BYTES = 400
TYPED: Mapping[str, str] = {
    "a filter by name": "/beamline 33",
    "a filter by state": "/status:failed",
    "a filter by time": "/age<30d",
    "a fuzzy filter": "/hwrep",
    "the palette": "\x10sort",
    "a command": ":goto SHmUaG",
}
"""What is typed at all these jobs: the key that opens the line, and each letter."""
REPAINT_BYTES = 15_000


@contextmanager
def dashboard(jobs: int, replaced_per_s: float = 0.0) -> Iterator[Terminal]:
    """The dashboard on so many records, once it is at rest, while so many of them are replaced."""
    with tempfile.TemporaryDirectory(prefix="jobtui-bench-") as place:
        home, db = Path(place, "home"), Path(place, "db")
        home.mkdir()
        records = sorted(write_db(db, jobs).iterdir())
        command = [sys.executable, "-m", "jobtui", "--srdb", str(db)]
        with Terminal(Program(argv=command, ready=TABLE_HEAD, environ=isolated(home))) as terminal:
            terminal.wait_for(TABLE_HEAD)
            terminal.rest()
            with replacing(records if replaced_per_s > 1 else records[:1], replaced_per_s):
                yield terminal


@contextmanager
def replacing(records: list[Path], per_s: float) -> Iterator[None]:
    """Records get other errors in bursts, so many in a second, as long as this lasts."""
    chance, ended = random.Random(1), threading.Event()
    every_s, burst = (1 / BURSTS_PER_S, round(per_s / BURSTS_PER_S)) if per_s >= BURSTS_PER_S else (1.0, 1)

    def replace() -> None:
        while not ended.wait(every_s):
            for path in chance.sample(records, burst):
                beside = path.with_suffix(".json.pkio-tmp-0")
                told = {"status": "error", "error": f"no such element: crystal{chance.randrange(10)}"}
                beside.write_text(json.dumps(json.loads(path.read_bytes()) | told))
                beside.replace(path)

    thread = threading.Thread(target=replace, daemon=True)
    if per_s:
        thread.start()
    yield
    ended.set()
    if per_s:
        thread.join()


def live_dashboard(jobs: int, presses: int, idle_s: float) -> Iterator[Row]:
    what = f"dashboard, {jobs:,} jobs, {SHARE:.0%} replaced each second"
    with dashboard(jobs, jobs * SHARE) as terminal:
        for key in ("down", "pagedown"):
            yield key_row(terminal, f"{what}: key {key}", key, presses, KEY_P95_MS)
        cpu_percent = idle(terminal, idle_s)[1]
        yield at_most(f"{what}: CPU, no key pressed", cpu_percent, "% of a core", LIVE_CPU_PERCENT)
        yield at_most(f"{what}: memory", terminal.rss_mb(), "MB", LIVE_RSS_MB)


def typing(jobs: int, rounds: int) -> Iterator[Row]:
    with dashboard(jobs) as terminal:
        for what, text in TYPED.items():
            keys = [*text, "escape", "escape"] * rounds
            yield from typed_rows(terminal, f"dashboard, {jobs:,} jobs: {what}", keys, KEY_P95_MS)


def changed_row(idle_s: float) -> Row:
    """What one changed row costs: the dashboard with one such row a second, less the same without."""
    sent = []
    for replaced in (1.0, 0.0):
        with dashboard(VISIBLE, replaced) as terminal:
            sent.append(idle(terminal, idle_s)[0])
    return at_most("dashboard: one changed row", sent[0] - sent[1], "bytes", ROW_BYTES)


def still_dashboard(idle_s: float) -> Iterator[Row]:
    with dashboard(1_000) as terminal:
        repaint = [terminal.resize(120, rows) for rows in (39, 40)][-1]
        bytes_per_s, cpu_percent = idle(terminal, idle_s)
    yield at_most("dashboard, nothing changing: on the wire", bytes_per_s, "bytes/s", STILL_BYTES_PER_S)
    yield at_most("dashboard, nothing changing: CPU", cpu_percent, "% of a core", STILL_CPU_PERCENT)
    yield at_most("dashboard: full repaint of 120x40, after a resize", repaint, "bytes", REPAINT_BYTES)


def rows(quick: bool) -> Iterator[Row]:
    idle_s = 5.0 if quick else 20.0
    jobs = QUICK_JOBS if quick else JOBS
    yield from live_dashboard(jobs, 20 if quick else 100, idle_s)
    yield from typing(jobs, 1 if quick else 3)
    yield changed_row(idle_s / 2)
    yield from still_dashboard(idle_s)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", rows))
