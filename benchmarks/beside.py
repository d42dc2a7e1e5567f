"""Ours beside programs that people know: a minimal Textual app, Textual's DataTable, htop, lnav.

    python -m benchmarks.beside [--quick] [--json]

First paints are made in turn; idling is watched in the same moments. htop and lnav are Debian packages, which
`scripts/bench` installs where it may; a row says so when one is not there.
"""

import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path

from benchmarks import minimal_app
from benchmarks.log_view import LAST, write_log
from benchmarks.pty_meter import first_paints_ms, idle_beside, press_often, ratio
from benchmarks.records import write_records
from benchmarks.rows import Row, beside, main
from benchmarks.startup import TABLE_HEAD, isolated
from benchmarks.terminal import Program, Terminal

JOBS = 1_000
TABLE_ROWS, QUICK_TABLE_ROWS = 20_000, 2_000
LINES, QUICK_LINES = 1_000_000, 100_000
READY = "ready"
SETTLED_S = 3.0
"""Time for what a program still does after its first paint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Our program and the one beside it; `still` are both with nothing changing, where that differs."""

    what: str
    ours: Program
    theirs: Program
    keys: Sequence[str] = ()
    still: tuple[Program, Program] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How often and how long."""

    paints: int
    presses: int
    idle_s: float


def compared(pair: Pair, effort: Effort) -> Iterator[Row]:
    """All figures of two programs."""
    programs = (pair.ours, pair.theirs)
    ours, theirs = first_paints_ms(programs, effort.paints)
    yield Row(
        what=f"{pair.what}: first paint",
        measured=statistics.median(ours),
        unit="ms",
        reference=statistics.median(theirs),
        ratio=ratio(ours, theirs),
    )
    with Terminal(pair.ours) as first, Terminal(pair.theirs) as second:
        terminals = (first, second)
        for terminal in terminals:
            terminal.wait_for(terminal.program.ready)
            terminal.settle(at_most_s=SETTLED_S)
        for key in pair.keys:
            told = [press_often(terminal, key, effort.presses) for terminal in terminals]
            yield beside(f"{pair.what}: key {key}, p95", told[0].p95_ms, "ms", told[1].p95_ms)
        (ours_bytes, ours_cpu), (their_bytes, their_cpu) = idle_beside(terminals, effort.idle_s)
        yield beside(f"{pair.what}: nobody touching it, CPU", ours_cpu, "% of a core", their_cpu)
        yield beside(f"{pair.what}: the same, on the wire", ours_bytes, "bytes/s", their_bytes)
        yield beside(f"{pair.what}: RSS", first.rss_mb(), "MB", second.rss_mb())
    sizes = [repaint_bytes(program) for program in pair.still or programs]
    yield beside(f"{pair.what}: full repaint after a resize", sizes[0], "bytes", sizes[1])


def repaint_bytes(program: Program) -> int:
    """What is sent when the terminal takes another size, of one line less."""
    with Terminal(program) as terminal:
        terminal.wait_for(program.ready)
        terminal.settle(at_most_s=SETTLED_S)
        return terminal.resize(program.columns, program.rows - 1)


def left_out(package: str) -> Row:
    """Says in the place of a comparison why there is none."""
    what = f"beside {package}: left out, it is not installed. As root: apt-get install {package}"
    return Row(what=what, measured=nan, unit="")


def measure(quick: bool) -> Iterator[Row]:
    """All comparisons."""
    effort = Effort(paints=3, presses=20, idle_s=4.0) if quick else Effort(paints=3, presses=40, idle_s=8.0)
    with tempfile.TemporaryDirectory(prefix="jobtui-bench-") as place:
        home = Path(place, "home")
        home.mkdir()
        for pair in pairs(Path(place), home, quick):
            if shutil.which(pair.theirs.argv[0]):
                yield from compared(pair, effort)
            else:
                yield left_out(pair.theirs.argv[0])


def pairs(place: Path, home: Path, quick: bool) -> Iterator[Pair]:
    """What is compared with what; files are written when they are needed."""
    environ = isolated(home)

    def python(ready: str, *words: str) -> Program:
        return Program(argv=[sys.executable, "-m", *words], ready=ready, environ=environ)

    write_records(place / "db", JOBS)
    dashboard = python(TABLE_HEAD, "jobtui", "--srdb", str(place / "db"))
    minimal = python(minimal_app.READY, "benchmarks.minimal_app")
    yield Pair(what=f"dashboard, {JOBS:,} jobs, beside a minimal Textual app", ours=dashboard, theirs=minimal)
    htop = Program(argv=["htop", "-d", "10"], ready="Quit", environ=environ)
    yield Pair(
        what=f"dashboard, {JOBS:,} jobs, beside htop -d 10", ours=dashboard, theirs=htop, keys=("down",)
    )
    count = QUICK_TABLE_ROWS if quick else TABLE_ROWS
    many = ("--jobs", str(count))
    names = ("benchmarks.table_live", "benchmarks.data_table_live")
    ours, theirs = (python(READY, name, *many) for name in names)
    still = (python(READY, names[0], *many, "--share", "0"), python(READY, names[1], *many, "--share", "0"))
    yield Pair(
        what=f"job table, {count:,} rows, 2 % changing each second, beside Textual's DataTable",
        ours=ours,
        theirs=theirs,
        keys=("down", "pagedown"),
        still=still,
    )
    path, lines = place / "supervisor.log", QUICK_LINES if quick else LINES
    write_log(path, lines)
    yield Pair(
        what=f"log view, {lines:,} lines, beside lnav",
        ours=python(LAST, "benchmarks.log_live", str(path)),
        theirs=Program(argv=["lnav", str(path)], ready=LAST, environ=environ),
        keys=("pageup", "up"),
    )


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", measure))
