"""A trace as lines of text: what it is, where it failed, and its waterfall."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from jobtui.analysis.time_words import duration
from jobtui.analysis.traces.critical_path import whole_path
from jobtui.analysis.traces.failures import RootCause, error_spans
from jobtui.analysis.traces.findings import Findings
from jobtui.analysis.traces.tree import Row, SpanFlag, Tree, end_of, flags_of_span, rows_of
from jobtui.analysis.traces.waits import Wait
from jobtui.model.clock import Nanos
from jobtui.model.trace_ids import SpanId
from jobtui.model.traces import Span, SpanLog
from jobtui.model.words import counted
from jobtui.render.table import Cell, Head, fact_lines, paint, table_lines
from jobtui.render.text import NONE, Zone, clock_time, date_time, show

MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000
INDENT = "  "
BAR_CELLS = 30
BAR, TICK, OPEN, SQUEEZED = "─", "│", "›", "·"
WAIT_CELLS = 2
DEEPEST_INDENT = 30
"""Levels that are indented; deeper ones stand below each other, with their level in front."""
RUN_LENGTH = 6
"""So many like spans beside each other, or more, are one line."""
MOST_ROWS = 1_000
"""Of a trace with more rows those are drawn that matter."""
STACK_LINES = 12
"""Of a stack trace its end is shown, which says most."""
HAPPENINGS = 12
"""Events and log records shown of a root cause, the last ones."""
CAUSES = 10

HEADS = (
    Head("FROM", "right", least=6),
    Head("TOOK", "right", least=6),
    Head("", least=BAR_CELLS, drop=2),
    Head("SERVICE", least=8, drop=3),
    Head("SPAN", least=16),
    Head("NOTE", least=14),
)


def span_time(nanos: int | None) -> str:
    """A length of time as spans have it: "1m23s", "2.9s", "845ms", "12.3µs"."""
    if nanos is None:
        return NONE
    if nanos < 0:
        return f"-{span_time(-nanos)}"
    if nanos < MICROSECOND:
        return f"{nanos}ns" if nanos else "0"
    if nanos < MILLISECOND:
        return f"{nanos / MICROSECOND:.1f}µs" if nanos < 100 * MICROSECOND else f"{nanos // MICROSECOND}µs"
    if nanos < SECOND:
        return f"{nanos / MILLISECOND:.1f}ms" if nanos < 10 * MILLISECOND else f"{nanos // MILLISECOND}ms"
    return duration(nanos / SECOND)


def trace_lines(
    found: Findings, notes: Iterable[str], cells: int | None, colour: bool, most: int | None = MOST_ROWS
) -> Iterator[str]:
    """Everything about a trace that a person reads; of a larger waterfall than `most` rows what matters."""
    tree = found.tree
    style = "error" if found.has_failed else ""
    yield f"{paint(tree.trace_id, 'heading', colour)}  {paint(found.sentence_word, style, colour)}"
    yield from fact_lines(_facts(found, notes), cells, colour)
    for cause in found.causes[:CAUSES]:
        yield ""
        yield from cause_lines(cause, colour)
    if len(found.causes) > CAUSES:
        yield f"and {len(found.causes) - CAUSES} more errors"
    yield from _unplaced_lines(found.unplaced, colour)
    if not tree.spans:
        return
    yield ""
    runs = list(_folded(tree))
    if most is not None and len(runs) > most:
        drawn = _that_matter(found, runs, most)
        yield f"{len(drawn)} of {len(runs)} rows, those that lead to errors or took the time; --plain has all"
        runs = drawn
    yield from table_lines(HEADS, _rows(found, runs), cells, colour)


def _that_matter(found: Findings, runs: Sequence[Sequence[Row]], most: int) -> list[Sequence[Row]]:
    """The rows of errors, root causes first, then of the critical path; each with all that is above it."""
    tree = found.tree
    causes = (cause.span for cause in found.causes)
    path = (segment.span for segment in whole_path(tree))
    kept: set[SpanId] = set()
    for span in (*causes, *error_spans(tree), *path):
        at: Span | None = span
        while at is not None and at.span_id not in kept and len(kept) < most:
            kept.add(at.span_id)
            at = tree.parent_of(at)
    return [run for run in runs if any(row.span and row.span.span_id in kept for row in run)]


def _facts(found: Findings, notes: Iterable[str]) -> Iterator[tuple[str, Cell]]:
    tree = found.tree
    for note in notes:
        yield "note", Cell(show(note), "warning")
    if tree.started_at is not None:
        yield "started", Cell(f"{date_time(tree.started_at)}{Zone.mark()}")
        yield "took", Cell(span_time(tree.duration_ns))
    yield "spans", Cell(_counts(tree))
    yield "services", Cell(", ".join(show(service) or NONE for service in tree.services))
    for missing, spans in tree.missing.items():
        children = f"{counted(len(spans), 'span')} below it"
        yield "missing", Cell(f"parent {missing} was not received: {children}", "warning")
    for failure in found.failures:
        yield "failure", Cell(show(failure.text), "error" if failure.is_last else "warning")
    for span, early_ns in found.skewed:
        text = f"{show(span.name)} begins {span_time(early_ns)} before its parent: clocks differ"
        yield "clock", Cell(f"{text}, times are as sent", "warning")
    for wait in found.waits:
        yield "waited", Cell(_wait_text(wait))


def _counts(tree: Tree) -> str:
    parts = [str(len(tree.spans))]
    if errors := len(error_spans(tree)):
        parts.append(counted(errors, "error"))
    if open_spans := sum(1 for span in tree.spans if span.ended_at is None):
        parts.append(f"{open_spans} open")
    if tree.doubles:
        parts.append(f"{tree.doubles} came twice")
    if tree.loops:
        parts.append(f"{len(tree.loops)} in circles of parents")
    return ", ".join(parts)


def _wait_text(wait: Wait) -> str:
    return f"{span_time(wait.duration_ns)} between {show(wait.after.name)} and {show(wait.before.name)}"


def cause_lines(cause: RootCause, colour: bool) -> Iterator[str]:
    """Where something failed: what it says, what it was given, the end of its stack, what happened in it."""
    span = cause.span
    what = f"{show(span.name) or NONE} ({show(span.service) or NONE})"
    handled = ", which was handled" if cause.is_handled else ""
    said = f": {show(cause.message)}" if cause.message else ""
    yield paint(f"{what} failed{handled}{said}", "warning" if cause.is_handled else "error", colour)
    if span.attributes:
        given = (f"{key}={value}" for key, value in span.attributes.items())
        yield f"{INDENT}{show('  '.join(given))}"
    if cause.exception is not None:
        stack = str(cause.exception.attributes.get("exception.stacktrace", "")).rstrip().splitlines()
        yield from (f"{INDENT}{show(line)}" for line in stack[-STACK_LINES:])
    for at, kind, text in happenings(cause)[-HAPPENINGS:]:
        yield f"{INDENT}{clock_time(at, millis=True)}  {show(kind)}  {show(text)}"


def happenings(cause: RootCause) -> list[tuple[Nanos, str, str]]:
    """Events of the span and its log records, by time: when, of what kind, in what words."""
    events = [(event.at, "event", event.name) for event in cause.span.events]
    logs = [(log.at, log.level or "log", log.body) for log in cause.logs]
    return sorted(events + logs, key=lambda happening: happening[0])


def _unplaced_lines(logs: Sequence[SpanLog], colour: bool) -> Iterator[str]:
    """The last log records of spans that were not received."""
    if not logs:
        return
    count = counted(len(logs), "log record")
    yield ""
    yield paint(f"{count} of no span that was received", "warning", colour)
    for log in logs[-HAPPENINGS:]:
        yield f"{INDENT}{clock_time(log.at, millis=True)}  {show(log.level or 'log')}  {show(log.body)}"


class _Axis(NamedTuple):
    """The time of a trace on cells, with its waits squeezed into one blank and one mark each."""

    start: int
    waits: Sequence[Wait]
    active_ns: int
    cells: int

    def place(self, at: int) -> int:
        """The cell of a time."""
        passed = at - self.start
        squeezed = 0
        for wait in self.waits:
            if at >= wait.end:
                passed -= wait.duration_ns
                squeezed += WAIT_CELLS
            elif at > wait.start:
                passed -= at - wait.start
                squeezed += 1
        room = self.cells - WAIT_CELLS * len(self.waits) - 1
        return max(0, min(self.cells - 1, squeezed + passed * room // max(1, self.active_ns)))


def _axis(tree: Tree, waits: Sequence[Wait]) -> _Axis:
    longest = sorted(waits, key=lambda wait: -wait.duration_ns)[: BAR_CELLS // (3 * WAIT_CELLS)]
    kept = sorted(longest, key=lambda wait: wait.start)
    active = tree.duration_ns - sum(wait.duration_ns for wait in kept)
    return _Axis(tree.started_at or 0, kept, active, BAR_CELLS)


def _bar(axis: _Axis, span: Span) -> str:
    if not span.started_at:
        return ""
    first, last = axis.place(span.started_at), axis.place(end_of(span))
    marks = [" "] * axis.cells
    for wait in axis.waits:
        marks[min(axis.cells - 1, axis.place(wait.start) + 1)] = SQUEEZED
    marks[first : last + 1] = [BAR if last > first else TICK] * (last - first + 1)
    if span.ended_at is None:
        marks[first] = OPEN
    return "".join(marks).rstrip()


def _rows(found: Findings, runs: Iterable[Sequence[Row]]) -> list[list[Cell]]:
    axis = _axis(found.tree, found.waits)
    causes = {cause.span.span_id: cause for cause in found.causes}
    return [_row(found.tree, run, axis, causes) for run in runs]


def _row(tree: Tree, run: Sequence[Row], axis: _Axis, causes: Mapping[SpanId, RootCause]) -> list[Cell]:
    first = run[0]
    indent = INDENT * min(first.depth, DEEPEST_INDENT)
    level = f"[{first.depth}] " if first.depth > DEEPEST_INDENT else ""
    span = first.span
    if span is None:
        name = f"{indent}{level}{first.missing}"
        return [
            Cell(""),
            Cell(""),
            Cell(""),
            Cell(""),
            Cell(name, "settled"),
            Cell("not received", "warning"),
        ]
    times = f" x {len(run)}" if len(run) > 1 else ""
    took = sum(max(0, row.span.duration_ns or 0) for row in run if row.span) if times else span.duration_ns
    begin = tree.started_at or 0
    style = "error" if span.is_error else ""
    return [
        Cell(span_time(span.started_at - begin) if span.started_at else NONE),
        Cell(span_time(took)),
        Cell(_bar(axis, span), style),
        Cell(show(span.service)),
        Cell(f"{indent}{level}{show(span.name) or NONE}{times}", style),
        Cell(_note(tree, span, causes), style or "warning"),
    ]


FLAG_WORDS: Mapping[SpanFlag, str] = {
    SpanFlag.OPEN: "open",
    SpanFlag.NEGATIVE: "ends before it begins",
    SpanFlag.UNTIMED: "without a time",
    SpanFlag.TWICE: "came twice",
    SpanFlag.LOOP: "circle of parents",
    SpanFlag.SKEWED: "before its parent",
}


def _note(tree: Tree, span: Span, causes: Mapping[SpanId, RootCause]) -> str:
    words = [FLAG_WORDS[flag] for flag in flags_of_span(tree, span) if flag in FLAG_WORDS]
    if span.is_error:
        cause = causes.get(span.span_id)
        words.insert(0, "error" if cause is None else "handled" if cause.is_handled else "root cause")
    return ", ".join(words)


def _folded(tree: Tree) -> Iterator[Sequence[Row]]:
    """The rows of the tree; many like ones beside each other, with nothing to say of them, as one."""

    def likeness(row: Row) -> tuple[object, ...]:
        span = row.span
        if span is None or tree.below(span) or span.is_error or span.ended_at is None:
            return (id(row),)
        return (row.depth, span.parent_id, span.name, span.service)

    for _, run in groupby(rows_of(tree), likeness):
        rows = list(run)
        if len(rows) >= RUN_LENGTH:
            yield rows
        else:
            yield from ([row] for row in rows)
