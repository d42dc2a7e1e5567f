"""What starting costs: one-shot commands beside bare Python, a first paint beside that of a minimal app."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.db_directory import write_db
from benchmarks.pty_meter import first_paint, percentile
from benchmarks.rows import Row, at_most, at_most_over, main
from benchmarks.terminal import Program

ROOT = Path(__file__).parents[1]
ONE_SHOT_OVER_BARE_MS = 150
FIRST_ROWS_RATIO = 2.5
COMPLETION_MS = 50
TABLE_HEAD = "STATE"
"""On the wire once the job table is painted, with or without jobs."""
A_ROW = "Beamline"
"""On the wire once a job is painted: the name of each begins so."""


def isolated(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "PYTHONPATH": str(ROOT)}


def run_ms(command: Sequence[str], environ: Mapping[str, str]) -> float:
    """Milliseconds that a command takes."""
    started = time.perf_counter()
    subprocess.run(command, env={**os.environ, **environ}, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - started) * 1e3


def one_shots(home: Path, small: Path, runs: int) -> Iterator[Row]:
    environ = isolated(home)
    commands = {
        "jobtui --version": ["--version"],
        "jobtui --help": ["--help"],
        "jobtui jobs --json, 100 jobs": ["--srdb", str(small), "jobs", "--json"],
    }
    # The console script, as a user starts it; the interpreter of the same environment.
    program, bare = [str(Path(sys.executable).parent / "jobtui")], [sys.executable, "-c", "pass"]
    for name, words in commands.items():
        rounds = [(run_ms([*program, *words], environ), run_ms(bare, environ)) for _ in range(runs)]
        measured, reference = (statistics.median(column) for column in zip(*rounds, strict=True))
        yield at_most_over(name, measured, "ms", reference=reference, limit=ONE_SHOT_OVER_BARE_MS)


def first_paints(home: Path, small: Path, large: Path, runs: int) -> Iterator[Row]:
    """The dashboard over sources that answer, hang, or are not there, each in turn with a minimal app."""
    hanging = home / "hanging.log"
    os.mkfifo(hanging)  # opening it to read does not return
    log = home / "supervisor.log"
    log.touch()
    cases = {
        "first paint, sources up": (["--srdb", str(small), "--log", str(log)], A_ROW),
        "first paint, 20,000 records and a log that hangs": (
            ["--srdb", str(large), "--log", f"supervisor={hanging}"],
            TABLE_HEAD,
        ),
        "first paint, sources down": (
            ["--srdb", str(home / "gone"), "--log", f"supervisor={home / 'gone.log'}"],
            TABLE_HEAD,
        ),
    }
    environ = isolated(home)
    for name, (words, ready) in cases.items():
        command = [sys.executable, "-m", "jobtui", *words]
        yield first_paint(name, Program(argv=command, ready=ready, environ=environ), runs)


def first_rows(home: Path, runs: int, records: int) -> Row:
    """From starting the dashboard on many records to the first row, beside a minimal app's first paint."""
    write_db(home / "many", records)
    command = [sys.executable, "-m", "jobtui", "--srdb", str(home / "many")]
    program = Program(argv=command, ready=A_ROW, environ=isolated(home))
    return first_paint(f"first rows of {records:,} records", program, runs, FIRST_ROWS_RATIO)


def completions(home: Path, runs: int, records: int) -> Iterator[Row]:
    """A shell asks for the ids of jobs that begin with two letters, from when a list of them is there."""
    db, environ = home / "many", isolated(home)
    begun = min((db / "supervisor-job").iterdir()).name[:2]
    program = str(Path(sys.executable).parent / "jobtui")
    command = [program, "completion", "bash", "--", "--srdb", str(db), "explain", begun]
    while not subprocess.run(command, env={**os.environ, **environ}, capture_output=True, check=True).stdout:
        pass
    times = [run_ms(command, environ) for _ in range(3 * runs)]
    what = f"completion of an id of {records:,} in a shell"
    yield Row(what=f"{what}, p50", measured=percentile(times, 0.5), unit="ms")
    yield at_most(f"{what}, p95", percentile(times, 0.95), "ms", COMPLETION_MS)


def measure(quick: bool) -> Iterator[Row]:
    runs = 3 if quick else 11
    with tempfile.TemporaryDirectory(prefix="jobtui-bench-") as place:
        home, small, large = (Path(place, name) for name in ("home", "small", "large"))
        home.mkdir()
        write_db(small, 100)
        write_db(large, 20_000)
        yield from one_shots(home, small, runs)
        yield from first_paints(home, small, large, runs)
        records = 10_000 if quick else 100_000
        yield first_rows(home, runs, records)
        yield from completions(home, runs, records)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", measure))
