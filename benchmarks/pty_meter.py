"""Measures terminal programs from outside, each on a pseudo-terminal of its own: paint, keys, idling, memory.

Byte counts are exact. Times depend on the machine and on what else it does, so two programs are started in
turn and their ratio is given, and keys are pressed often enough for a 95th percentile. Linux only.
"""

import statistics
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.minimal_app import READY
from benchmarks.rows import Row, at_most_times_in_turn
from benchmarks.terminal import NotReady, Program, Terminal

FIRST_PAINT_RATIO = 1.6


class KeyReport(NamedTuple):
    answered: int
    p95_ms: float
    median_bytes: int


def first_paint(what: str, program: Program, runs: int, ratio: float = FIRST_PAINT_RATIO) -> Row:
    """From starting a program to its ready text, beside the minimal program, started in turn with it."""
    argv = [sys.executable, "-m", "benchmarks.minimal_app"]
    minimal = Program(argv=argv, ready=READY, environ=program.environ)
    ours, theirs = zip(*([_painted_ms(one) for one in (program, minimal)] for _ in range(runs)), strict=True)
    return at_most_times_in_turn(what, ours, theirs, ratio)


def _painted_ms(program: Program) -> float:
    with Terminal(program) as terminal:
        return terminal.wait_for(program.ready) * 1e3


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-len(ordered) * share // 1) - 1))]


def press_often(terminal: Terminal, key: str, presses: int) -> KeyReport:
    """Press one key many times. Raises NotReady when it never had an answer."""
    answers = [answer for answer in (terminal.press(key) for _ in range(presses)) if answer]
    if not answers:
        raise NotReady(f"key {key!r} had no answer")
    p95_ms = percentile([answer.first_s * 1e3 for answer in answers], 0.95)
    return KeyReport(len(answers), p95_ms, int(statistics.median(answer.size_bytes for answer in answers)))


def idle(terminal: Terminal, seconds: float) -> tuple[float, float]:
    """Bytes per second and percent of one core while nobody touches the program."""
    terminal.settle(at_most_s=3.0)
    received, cpu, started = terminal.received, terminal.cpu_s(), time.perf_counter()
    while (left := seconds - (time.perf_counter() - started)) > 0 and terminal.read(left) != b"":
        pass
    passed = time.perf_counter() - started
    return (terminal.received - received) / passed, (terminal.cpu_s() - cpu) / passed * 100
