"""Measures terminal programs from outside, each on a pseudo-terminal of its own: paint, keys, idling, memory.

Byte counts are exact. Times depend on the machine and on what else it does, so two programs are started in
turn and their ratio is given, and keys are pressed often enough for a 95th percentile. Linux only; uses
nothing but the standard library, so that it can measure any program.
"""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.terminal import NotReady, Program, Terminal


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyReport:
    answered: int
    p50_ms: float
    p95_ms: float
    median_bytes: int
    most_bytes: int


def first_paint_ms(program: Program) -> float:
    """Milliseconds from starting the program to its ready text. Raises NotReady."""
    with Terminal(program) as terminal:
        return terminal.wait_for(program.ready) * 1e3


def first_paints_ms(programs: Sequence[Program], runs: int) -> list[list[float]]:
    """First paints of several programs, started in turn so that a busy moment hits all; one list for each."""
    rounds = [[first_paint_ms(program) for program in programs] for _ in range(runs)]
    return [list(column) for column in zip(*rounds, strict=True)]


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-len(ordered) * share // 1) - 1))]


def press_often(terminal: Terminal, key: str, presses: int) -> KeyReport:
    """Press one key many times. Raises NotReady when it never had an answer."""
    answers = [answer for answer in (terminal.press(key) for _ in range(presses)) if answer]
    if not answers:
        raise NotReady(f"key {key!r} had no answer")
    times = [answer.first_s * 1e3 for answer in answers]
    sizes = [answer.size_bytes for answer in answers]
    return KeyReport(
        answered=len(answers),
        p50_ms=statistics.median(times),
        p95_ms=percentile(times, 0.95),
        median_bytes=int(statistics.median(sizes)),
        most_bytes=max(sizes),
    )


def idle(terminal: Terminal, seconds: float) -> tuple[float, float]:
    """Bytes per second and percent of one core while nobody touches the program."""
    terminal.settle(at_most_s=3.0)
    received, cpu, started = terminal.received, terminal.cpu_s(), time.perf_counter()
    while (left := seconds - (time.perf_counter() - started)) > 0 and terminal.read(left) != b"":
        pass
    passed = time.perf_counter() - started
    return (terminal.received - received) / passed, (terminal.cpu_s() - cpu) / passed * 100
