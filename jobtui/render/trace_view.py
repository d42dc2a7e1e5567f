"""A trace as lines of text: what it is, where it failed, and its waterfall."""

from collections.abc import Iterable, Iterator, Sequence

from jobtui.analysis.traces.failures import RootCause, error_spans
from jobtui.analysis.traces.findings import Findings
from jobtui.analysis.traces.tree import Tree
from jobtui.analysis.traces.waits import Wait
from jobtui.model.clock import Nanos
from jobtui.model.traces import SpanLog
from jobtui.model.words import counted
from jobtui.render.span_words import span_time
from jobtui.render.table import Cell, fact_lines, paint
from jobtui.render.text import NONE, Zone, clock_time, date_time, show
from jobtui.render.waterfall_text import MOST_ROWS, waterfall_lines

INDENT = "  "
STACK_LINES = 12
"""Of a stack trace its end is shown, which says most."""
HAPPENINGS = 12
"""Events and log records shown of a root cause, the last ones."""
CAUSES = 10


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
    if tree.spans:
        yield ""
        yield from waterfall_lines(found, cells, colour, most)


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
