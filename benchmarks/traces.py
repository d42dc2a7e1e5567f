"""Measures a large trace in the dashboard: how soon it opens, how it answers keys, what it takes.

    python -m benchmarks.traces [--quick] [--json]

The line names the trace of a captured job, whose spans and log records are read from files. The large trace
is read from a file of OTLP's JSON, one document a line. One span among 50,000 failed; it is open when that
one's message is on the screen.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.pty_meter import key_row
from benchmarks.rows import Row, at_most, main
from benchmarks.terminal import Program, Terminal

ROOT = Path(__file__).parents[1]
SPANS, QUICK_SPANS = 50_000, 10_000
PRESSES, QUICK_PRESSES = 60, 20
OPEN_LIMIT_MS, KEY_LIMIT_MS = 1_500.0, 50.0
RSS_LIMIT_MB = 400.0
TRACE = "5f" * 16
FAILURE = "checksum-mismatch-in-block-3391"
FIRST_NS = 1_795_200_000 * 10**9
A_POST = 512
"""Spans that one post holds, as the SDK for Python sends them."""
CAPTURES = ROOT / "tests" / "fixtures" / "tracing"
LINE = "Error running tracingJob.py. See TRACEPARENT 00-212c891717bfbac28a34dec05b616f14-ff9c35a8f8c0b21f-01"
SAID = ("at step 7 of 10", "Fail flag triggered. Failing executable now.")
"""What must be told of the captured job: its failure, and a log record of that step."""
RUNS, QUICK_RUNS = 15, 5
LINE_LIMIT_MS = 300.0
KEYS = ("down", "pagedown", "pageup", "up", "c", "w", "space", "x")
"""Moving, then marking the path, squeezing, folding half of the trace, filtering all of it, many times."""


def measure(quick: bool) -> Iterator[Row]:
    yield _from_line(QUICK_RUNS if quick else RUNS)
    spans = QUICK_SPANS if quick else SPANS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spans.jsonl"
        write_trace(path, spans)
        argv = [sys.executable, "-m", "jobtui", "--trace-file", str(path)]
        program = Program(argv=argv, ready="jobtui", environ={"PYTHONPATH": str(ROOT)}, timeout_s=20.0)
        with Terminal(program) as terminal:
            terminal.wait_for("jobtui")
            yield from _session(terminal, spans, QUICK_PRESSES if quick else PRESSES)


def _from_line(runs: int) -> Row:
    files = [CAPTURES / "job-fail.otlp.pb", CAPTURES / "job-fail.logs.json"]
    named = [word for file in files for word in ("--trace-file", str(file))]
    command = [str(Path(sys.executable).parent / "jobtui"), *named, "trace", LINE]
    took: list[float] = []
    for _ in range(runs):
        began = time.perf_counter()
        ran = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
        took.append(1e3 * (time.perf_counter() - began))
        if any(words not in ran.stdout for words in SAID):
            raise SystemExit(f"{command}: does not tell what failed: {ran.stdout}{ran.stderr}")
    return at_most("jobtui trace LINE: what failed in its job", statistics.median(took), "ms", LINE_LIMIT_MS)


def _session(terminal: Terminal, spans: int, presses: int) -> Iterator[Row]:
    what = f"a trace of {spans:,} spans"
    terminal.press("5")
    terminal.wait_for(f"{spans:,}")  # all of it was read
    terminal.settle(quiet_s=0.6, at_most_s=30.0)
    began = time.perf_counter()
    terminal.press("enter")
    terminal.wait_for(FAILURE)
    yield at_most(f"{what}: opened at its failure", 1e3 * (time.perf_counter() - began), "ms", OPEN_LIMIT_MS)
    terminal.settle(quiet_s=0.6, at_most_s=30.0)
    for key in ("home", "down", "enter"):  # unfolds the first half of the chunks
        terminal.press(key)
        terminal.settle(quiet_s=0.6, at_most_s=30.0)
    for key in KEYS:
        yield key_row(terminal, f"{what}: {key}", key, presses, KEY_LIMIT_MS)
    yield at_most(f"{what}: RSS", terminal.rss_mb(), "MB", RSS_LIMIT_MB)


def write_trace(path: Path, count: int) -> None:
    """A workflow of chunks with some events each on eight workers; one event of one chunk failed."""
    chance = random.Random(1)
    spans = [_span(1, 0, "workflow.run", 0, count * 10**6)]
    bad = count // 2
    chunk, latest = 0, spans[0]
    failed = {"status": {"code": 2, "message": "a part failed"}}
    spans[0].update(failed)
    for number in range(2, count + 1):
        at = number * 10**6
        failure = FAILURE if number == bad else ""
        if chunk == 0 or (chance.random() < 0.1 and not failure):
            chunk = number
            spans.append(_span(number, 1, "chunk", at, 9 * 10**6))
            latest = spans[-1]
        else:
            name = f"{chance.choice(('read', 'process', 'write'))}_event"
            spans.append(_span(number, chunk, name, at, chance.randrange(10**6), failure))
            latest.update(failed if failure else {})
    with path.open("w") as file:
        for at in range(0, len(spans), A_POST):
            file.write(json.dumps(_post(at // A_POST % 8, spans[at : at + A_POST])) + "\n")


def _span(number: int, parent: int, name: str, at: int, length: int, failure: str = "") -> dict[str, object]:
    return {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(FIRST_NS + at),
        "endTimeUnixNano": str(FIRST_NS + at + length),
        "attributes": [{"key": "event.number", "value": {"intValue": str(number)}}],
        "status": {"code": 2, "message": failure} if failure else {},
    }


def _post(worker: int, spans: list[dict[str, object]]) -> dict[str, object]:
    name = {"key": "service.name", "value": {"stringValue": f"worker-{worker}"}}
    scope = {"scope": {"name": "bench"}, "spans": spans}
    return {"resourceSpans": [{"resource": {"attributes": [name]}, "scopeSpans": [scope]}]}


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", measure))
