"""What a line of a trace says, on the screen and as text: sign, name, remarks, length."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from jobtui.analysis.traces.axis import Axis
from jobtui.analysis.traces.critical_path import Segment
from jobtui.analysis.traces.layout import Layout, LineKind, TraceLine
from jobtui.analysis.traces.services import ServiceMark
from jobtui.analysis.traces.tree import Tree, flags_of_span
from jobtui.model.trace_ids import SpanId
from jobtui.model.traces import Span
from jobtui.render.span_words import FLAG_WORDS, span_time
from jobtui.render.text import NONE, show

ROOT_CAUSE, PASSED_ON, HANDLED = ("✗", "error"), ("↑", "error"), ("!", "warning")
"""Sign and style: where it failed, what an error only passed through, an error that was handled."""
HIDDEN_ERROR, OPEN_SPAN, NOT_RECEIVED = ("✗", "warning"), ("●", "good"), ("◌", "warning")
"""The same of what is folded over an error, of what has not ended, of a parent that did not come."""
NO_SIGN = (" ", "")
AWAITED = "┄"
"""What stands for time that passed without a span."""
COLOURS = 6
"""Styles `service.0` and on."""

Path = Mapping[SpanId, Sequence[Segment]]


class View(NamedTuple):
    """What a line is drawn by. `failed_at` has the spans at which something failed: whether it was handled.

    `path` is None unless the critical path is marked, with the segments by span. `passes` tells, where there
    is a filter, which spans pass.
    """

    tree: Tree
    layout: Layout
    axis: Axis
    failed_at: Mapping[SpanId, bool]
    mark_of: Callable[[str], ServiceMark]
    path: Path | None = None
    passes: Callable[[Span], bool] | None = None


def service_style(mark: ServiceMark) -> str:
    """The style of a service, which is never that of an error."""
    return f"service.{mark.number % COLOURS}"


def took_of(line: TraceLine) -> tuple[str, str]:
    """How long it was, and in which style that is said."""
    match line.kind:
        case LineKind.WAIT if line.wait is not None:
            return span_time(line.wait.duration_ns), "dim"
        case LineKind.RUN if line.run is not None:
            return span_time(line.run.total_ns), "dim"
        case LineKind.SPAN if line.span is not None:
            return ("open", "good") if line.span.ended_at is None else (span_time(line.span.duration_ns), "")
    return "", "dim"


def sign_of(view: View, index: int, *, is_closed: bool) -> tuple[str, str]:
    """The sign of a line and its style: what there is to look at."""
    line = view.layout.lines[index]
    span = line.span if line.kind is LineKind.SPAN else None
    if line.kind is LineKind.MISSING:
        return NOT_RECEIVED
    if span is not None and (is_handled := view.failed_at.get(span.span_id)) is not None:
        return HANDLED if is_handled else ROOT_CAUSE
    if span is not None and span.is_error:
        return PASSED_ON
    if is_closed and view.layout.errors[index]:
        return HIDDEN_ERROR
    return OPEN_SPAN if span is not None and span.ended_at is None else NO_SIGN


def name_of(view: View, line: TraceLine) -> tuple[str, str]:
    """What it is called, safe to show, and its style."""
    match line.kind:
        case LineKind.WAIT:
            return f"{AWAITED * 2} nothing ran {AWAITED * 2}", "dim"
        case LineKind.MISSING:
            return f"{line.missing}", "settled"
        case LineKind.RUN if line.run is not None:
            return show(line.run.name) or NONE, ""
    assert line.span is not None
    is_beside = view.passes is not None and not view.passes(line.span)
    return show(line.span.name) or NONE, "settled" if is_beside else bar_style(view, line.span)


def remarks_on(view: View, index: int, *, is_closed: bool) -> list[str]:
    """What else is said of a line."""
    line = view.layout.lines[index]
    words: list[str] = []
    match line.kind:
        case LineKind.MISSING:
            return ["not received"]
        case LineKind.RUN if line.run is not None:
            words.append(f"× {len(line.run.spans):,}")
        case LineKind.SPAN if line.span is not None:
            flags = flags_of_span(view.tree, line.span)
            words += [FLAG_WORDS[flag] for flag in flags if flag in FLAG_WORDS and flag != "open"]
            if is_closed:
                words.append(f"{view.layout.spans[index] - 1:,} below")
    if is_closed and (errors := view.layout.errors[index]):
        words.append(f"✗ {errors:,}")
    return words


def bar_style(view: View, span: Span) -> str:
    """The style of the bar of a span at which something failed, "" for others."""
    is_handled = view.failed_at.get(span.span_id)
    return "" if is_handled is None else "warning" if is_handled else "error"


def path_by_span(segments: Iterable[Segment]) -> Path:
    """The segments of a critical path by the span that they belong to."""
    found: dict[SpanId, list[Segment]] = {}
    for segment in segments:
        found.setdefault(segment.span.span_id, []).append(segment)
    return found
