"""Measures terminal programs from outside, each on a pseudo-terminal of its own: paint, keys, idling, memory.

Byte counts are exact. Times depend on the machine and on what else it does, so two programs are started in
turn and their ratio is given, and keys are pressed often enough for a 95th percentile. Linux only.
"""

import sys
import time
from collections.abc import Iterator, Sequence

from benchmarks.minimal_app import READY
from benchmarks.painted import Painted
from benchmarks.rows import Row, at_most, at_most_times
from benchmarks.terminal import KEYS, NotReady, Program, Terminal

FIRST_PAINT_RATIO = 1.6
QUIET_S, ANSWER_S = 0.6, 3.0
"""How long nothing but the clock changes once a key is answered; how long an answer is waited for at most."""


def first_paint(what: str, program: Program, runs: int, ratio: float = FIRST_PAINT_RATIO) -> Row:
    """From starting a program to its ready text, beside the minimal program, started in turn with it."""
    argv = [sys.executable, "-m", "benchmarks.minimal_app"]
    minimal = Program(argv=argv, ready=READY, environ=program.environ)
    ours, theirs = zip(*([_painted_ms(one) for one in (program, minimal)] for _ in range(runs)), strict=True)
    return at_most_times(what, ours, theirs, ratio)


def _painted_ms(program: Program) -> float:
    with Terminal(program) as terminal:
        return terminal.wait_for(program.ready) * 1e3


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-len(ordered) * share // 1) - 1))]


def key_row(terminal: Terminal, what: str, key: str, presses: int, limit_ms: float) -> Row:
    """One key, pressed many times: how soon the first byte comes. Raises NotReady when none ever came."""
    answers = [answer for answer in (terminal.press(key) for _ in range(presses)) if answer]
    if not answers:
        raise NotReady(f"key {key!r} had no answer")
    p95_ms = percentile([answer.first_s * 1e3 for answer in answers], 0.95)
    return at_most(f"{what}, p95", p95_ms, "ms", limit_ms)


def typed_rows(terminal: Terminal, what: str, keys: Sequence[str], limit_ms: float) -> Iterator[Row]:
    """Keys typed one after the other, each once the one before is answered: how soon all of it is painted."""
    screen = Painted(terminal.program.columns, terminal.program.rows)
    for rows in (screen.rows - 1, screen.rows):
        terminal.set_size(screen.columns, rows)
        _painted_ms_of(terminal, screen)
    times: list[float] = []
    for key in keys:
        terminal.write(KEYS.get(key, key).encode())
        times += filter(None, [_painted_ms_of(terminal, screen)])
    yield Row(what=f"{what}, p50", measured=percentile(times, 0.5), unit="ms")
    yield at_most(f"{what}, p95", percentile(times, 0.95), "ms", limit_ms)


def _painted_ms_of(terminal: Terminal, screen: Painted) -> float:
    """Milliseconds until the last change but for the time and counts of jobs; 0 without one."""
    begun, painted_s, seen = time.perf_counter(), 0.0, _answer_on(screen)
    while time.perf_counter() - begun < ANSWER_S and (data := terminal.read(QUIET_S)):
        passed_s = time.perf_counter() - begun
        screen.feed(data)
        if (answer := _answer_on(screen)) != seen:
            painted_s, seen = passed_s, answer
    return painted_s * 1e3


def _answer_on(screen: Painted) -> list[str]:
    """The lines with the answer: no time, and from the count of jobs on only what is typed there."""
    lines = screen.lines()[1:]
    count = next((at for at, line in enumerate(lines) if " jobs " in line), len(lines))
    return lines[:count] + [line for line in lines[count:] if line.startswith(" : ")]


def idle(terminal: Terminal, seconds: float) -> tuple[float, float]:
    """Bytes per second and percent of one core while nobody touches the program."""
    terminal.settle(at_most_s=3.0)
    received, cpu, started = terminal.received, terminal.cpu_s(), time.perf_counter()
    while (left := seconds - (time.perf_counter() - started)) > 0 and terminal.read(left) != b"":
        pass
    passed = time.perf_counter() - started
    return (terminal.received - received) / passed, (terminal.cpu_s() - cpu) / passed * 100
