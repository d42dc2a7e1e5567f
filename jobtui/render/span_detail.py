"""All about one line of a waterfall in paragraphs: what it says, when it was, what happened in it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jobtui.analysis.traces.failures import EXCEPTION, Failure, FailureKind, RootCause
from jobtui.analysis.traces.findings import Findings
from jobtui.analysis.traces.layout import LineKind, TraceLine
from jobtui.analysis.traces.runs import Run
from jobtui.analysis.traces.tree import Tree, flags_of_span
from jobtui.model.clock import Nanos
from jobtui.model.traces import Attributes, Span, SpanEvent, SpanLog
from jobtui.model.words import counted
from jobtui.render.span_words import FLAG_WORDS, span_time
from jobtui.render.text import NONE, Zone, clock_time, date_time, show
from jobtui.render.trace_view import STACK_LINES

MOST_HAPPENINGS = 500
"""Events and log records shown of one span, the last ones."""
LEVEL_CELLS = 7
TRAIL = " › "
BAD_LEVELS = ("ERR", "CRIT", "FATAL", "ALERT", "EMERG")
"""How the levels of log records begin that are errors."""


class Part(NamedTuple):
    """A paragraph that is safe to show; its further lines begin with `hang` blanks."""

    text: str = ""
    style: str = ""
    hang: int = 0


def detail_parts(found: Findings, line: TraceLine, above: Sequence[str]) -> Iterator[Part]:
    """Everything about a line; `above` are the names of the spans that it is in."""
    match line.kind:
        case LineKind.MISSING:
            yield from _missing_parts(found.tree, line)
        case LineKind.WAIT if line.wait is not None:
            after, before = show(line.wait.after.name), show(line.wait.before.name)
            yield Part(f"nothing ran for {span_time(line.wait.duration_ns)}", "strong")
            yield Part(f"from the end of {after or NONE} until {before or NONE} began", "dim")
            yield Part(f"{_moment(line.wait.start)} – {_moment(line.wait.end)}{Zone.mark()}", "dim")
        case LineKind.RUN if line.run is not None:
            yield from _run_parts(found.tree, line.run)
        case _ if line.span is not None:
            yield from span_parts(found, line.span, above)


def span_parts(found: Findings, span: Span, above: Sequence[str]) -> Iterator[Part]:
    """Everything about a span."""
    cause = next((cause for cause in found.causes if cause.span.span_id == span.span_id), None)
    yield from _head(found, span, cause)
    yield Part(_when(found.tree, span), "dim")
    if above:
        yield Part(f"in {TRAIL.join(show(name) or NONE for name in above)}", "dim", 3)
    if span.attributes:
        yield Part(show("  ".join(f"{key}={value}" for key, value in span.attributes.items())), "", 2)
    yield from _happenings(found, span, cause)
    for event in span.events:
        if event.name == EXCEPTION:
            yield from _stack(event)
    yield Part()
    yield from _source(span)


def _head(found: Findings, span: Span, cause: RootCause | None) -> Iterator[Part]:
    """What there is to say of how it went."""
    name = f"{show(span.name) or NONE}  {show(span.service) or NONE}"
    if cause is not None:
        handled = " (handled)" if cause.is_handled else ""
        style = "warning" if cause.is_handled else "error"
        yield Part(f"✗ {name}{handled}  {show(cause.message)}".rstrip(), style, 2)
    elif span.is_error:
        yield Part(f"↑ {name}  {show(span.message)}".rstrip(), "error", 2)
        yield Part("it failed as something below it failed: e goes there", "dim")
    else:
        yield Part(name, "strong", 2)
    for failure in found.failures:
        if failure.span.span_id == span.span_id:
            is_sure = failure.kind is not FailureKind.UNFINISHED
            sign, style = ("✗", "error") if is_sure else ("…", "warning")
            yield Part(f"{sign} {show(failure.text)}", style, 2)
    for flag in flags_of_span(found.tree, span):
        if flag in FLAG_WORDS:
            yield Part(f"! {FLAG_WORDS[flag]}", "warning", 2)


def _when(tree: Tree, span: Span) -> str:
    """When it was since the beginning of the trace, how long, and what part of its parent that is."""
    if not span.started_at:
        return "it has no time"
    begin = tree.started_at or 0
    words = [f"at +{span_time(span.started_at - begin)}"]
    if span.duration_ns is None:
        words.append("not ended")
    else:
        words.append(f"took {span_time(span.duration_ns)}")
        parent = tree.parent_of(span)
        whole = parent.duration_ns if parent else None
        if parent is not None and whole and 0 < span.duration_ns <= whole:
            words.append(f"{100 * span.duration_ns / whole:.0f} % of {show(parent.name) or NONE}")
    return f"{', '.join(words)}   {_moment(span.started_at)}{Zone.mark()}"


def _moment(at: Nanos) -> str:
    return f"{date_time(at)}.{at // 1_000_000 % 1_000:03d}"


def _happenings(found: Findings, span: Span, cause: RootCause | None) -> Iterator[Part]:
    """Events and log records by time; those of no span that came, below one that never told its end."""
    logs: Sequence[SpanLog] = cause.logs if cause else found.tree.logs_by_span.get(span.span_id, ())
    is_killed = any(_is_killed(failure, span) for failure in found.failures)
    if is_killed:
        logs = (*logs, *found.unplaced)
    told = [(event.at, "event", _event_text(event), _event_style(event)) for event in span.events]
    told += [(log.at, log.level or "log", log.body, _level_style(log.level)) for log in logs]
    told.sort(key=lambda one: one[0])
    if len(told) > MOST_HAPPENINGS:
        yield Part(f"{len(told) - MOST_HAPPENINGS:,} earlier events and log records are left out", "warning")
    for at, kind, text, style in told[-MOST_HAPPENINGS:]:
        since = f"+{span_time(at - span.started_at)}" if at >= span.started_at > 0 else _moment(at)
        head = f"{clock_time(at, millis=True)} {since:>8} {show(kind):<{LEVEL_CELLS}}"
        yield Part(f"{head} {show(text)}", style, 30)


def _is_killed(failure: Failure, span: Span) -> bool:
    return failure.kind is FailureKind.UNFINISHED and failure.span.span_id == span.span_id


def _event_text(event: SpanEvent) -> str:
    if event.name == EXCEPTION:
        words = (event.attributes.get(key) for key in ("exception.type", "exception.message"))
        return f"{event.name}  {': '.join(str(word) for word in words if word)}"
    given = "  ".join(f"{key}={value}" for key, value in event.attributes.items())
    return f"{event.name}  {given}".rstrip()


def _event_style(event: SpanEvent) -> str:
    return "error" if event.name == EXCEPTION else ""


def _level_style(level: str) -> str:
    upper = level.upper()
    return "error" if upper.startswith(BAD_LEVELS) else "warning" if upper.startswith("WARN") else ""


def _stack(event: SpanEvent) -> Iterator[Part]:
    """The end of a stack trace, which says most."""
    lines = str(event.attributes.get("exception.stacktrace", "")).rstrip().splitlines()
    if len(lines) > STACK_LINES:
        yield Part(f"  … {len(lines) - STACK_LINES:,} lines before", "dim")
    yield from (Part(f"  {show(line)}", "", 4) for line in lines[-STACK_LINES:])


def _source(span: Span) -> Iterator[Part]:
    """Who sent it, and by which names it goes."""
    ids = f"span {span.span_id}   trace {span.trace_id}"
    yield Part(f"{ids}   parent {span.parent_id}" if span.parent_id else ids, "dim")
    yield Part(show(f"{span.kind.value} {span.scope}".strip()), "dim")
    if span.resource.attributes:
        yield Part(show(_pairs(span.resource.attributes)), "dim", 2)
    for link in span.links:
        yield Part(f"linked to span {link.span_id} of trace {link.trace_id}", "dim")
    if span.dropped:
        yield Part(f"{span.dropped:,} attributes, events or links were left out by its sender", "warning")
    yield from (Part(show(warning), "warning", 2) for warning in span.warnings)


def _pairs(attributes: Attributes) -> str:
    return "  ".join(f"{key}={value}" for key, value in attributes.items())


def _missing_parts(tree: Tree, line: TraceLine) -> Iterator[Part]:
    count = len(tree.missing.get(line.missing, ())) if line.missing else 0
    yield Part(f"span {line.missing} was not received", "warning")
    yield Part(f"{counted(count, 'span')} that came name it as their parent", "dim")
    yield Part("what ran it was killed before it could send it, or still runs, or it was let go of", "dim")


def _run_parts(tree: Tree, run: Run) -> Iterator[Part]:
    """How often, how long: what is usual of them, and which one is not."""
    lengths = sorted(max(0, span.duration_ns or 0) for span in run.spans)
    yield Part(f"{show(run.name) or NONE} × {len(run.spans):,}", "strong", 2)
    yield Part("like spans beside each other, none of which failed: → shows them", "dim")
    middle, last = lengths[len(lengths) // 2], run.longest
    yield Part(f"took {span_time(run.total_ns)} in all: {span_time(lengths[0])} to {span_time(lengths[-1])}, "
               f"half of them within {span_time(middle)}")  # fmt: skip
    yield Part(f"the longest began at +{span_time(last.started_at - (tree.started_at or 0))}", "dim")
    services = sorted({show(span.service) or NONE for span in run.spans})
    yield Part(", ".join(services), "dim", 2)
