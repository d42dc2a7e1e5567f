"""Runs every benchmark program and prints one table: what, budget, measured, reference, ratio, holds.

    python -m benchmarks.run [--quick] [--write FILE] [NAME ...]

Programs run one after the other, each in a process of its own. Nothing is written unless `--write` names a
file, in which the text between the two markers is replaced; of programs that are not named the rows stay.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.rows import Row, rows_in, table

PROGRAMS = (
    "startup", "db_scan", "log_lines", "log_follow", "explain", "table", "log_view", "journal", "balsam",
    "traces", "memory",
)  # fmt: skip
BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"


class BenchmarkFailed(Exception):
    """A benchmark program did not give its rows."""


def run_program(name: str, quick: bool) -> list[Row]:
    """The rows of one program. Raises BenchmarkFailed."""
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *(["--quick"] if quick else [])]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    try:
        return [Row(**row) for row in json.loads(ran.stdout)["rows"]]
    except (ValueError, KeyError, TypeError) as error:
        raise BenchmarkFailed(f"{name}: exit code {ran.returncode}, no rows: {error}") from error


def machine() -> str:
    found = re.search(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    model = found[1] if found else platform.machine()
    busy = os.getloadavg()[0]
    return (
        f"{model}, {len(os.sched_getaffinity(0))} cores, Linux {platform.release().partition('-')[0]}, "
        f"Python {platform.python_version()}, Textual {version('textual')}, "
        f"load {busy:.1f} at the end, {datetime.now(UTC):%Y-%m-%d}"
    )


def renewed(document: str, body: str) -> str:
    """The document with what is between the markers replaced. Raises ValueError when they are not there."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the markers {BEGIN} and {END} are not in it")
    return f"{before}{BEGIN}\n\n{body}\n\n{END}{after}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, write where asked; 1 when a budget does not hold or a program failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer repeats and less data: rough figures")
    parser.add_argument("--write", type=Path, metavar="FILE", help="renew the table in this document")
    parser.add_argument(
        "names", nargs="*", choices=[*PROGRAMS, []], help="only these programs", metavar="NAME"
    )
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    failed = False
    for name in options.names or PROGRAMS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            rows += run_program(name, options.quick)
        except BenchmarkFailed as error:
            print(error, file=sys.stderr)
            failed = True
    print(f"{table(rows)}\n\n{machine()}")
    if options.write and not failed:
        document = options.write.read_text()
        before = rows_in(document) if options.names else ()
        options.write.write_text(renewed(document, f"{table(rows, before)}\n\n{machine()}"))
    return int(failed or any(row.holds is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
