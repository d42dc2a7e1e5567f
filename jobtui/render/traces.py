"""Traces as text and JSON: the table of them, one with its waterfall, and all about one span."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from jobtui.analysis.traces import layout as layouts
from jobtui.analysis.traces.axis import Axis
from jobtui.analysis.traces.compare import ChangeKind, StepChange, took_ns
from jobtui.analysis.traces.critical_path import jaeger_path, whole_path
from jobtui.analysis.traces.failures import EXCEPTION, FailureKind, Findings, RootCause, error_spans
from jobtui.analysis.traces.filters import ListedTrace, TraceState
from jobtui.analysis.traces.tree import Tree, flags_of_span
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import SpanId
from jobtui.model.numbers import counted
from jobtui.model.secrets import mask_document, mask_text
from jobtui.model.traces import Span, SpanEvent, SpanLog
from jobtui.render import waterfall
from jobtui.render.columns import (
    Cells,
    Narrow,
    TableColumn,
    TimeLook,
    count_column,
    fixed,
    text_column,
    text_order,
    time_column,
)
from jobtui.render.json_output import fields_of, time_or_null
from jobtui.render.spans import Paragraph
from jobtui.render.spans import Piece as Text
from jobtui.render.styles import signs_of
from jobtui.render.table import fact_lines, paint, painted
from jobtui.render.text import NONE, Zone, clock_time, date_time, show
from jobtui.render.waterfall import WAIT_CELLS, name_cells, short_id, span_time

GLYPHS = signs_of("traces")
_ORDER = tuple(GLYPHS)


def _errors(listed: ListedTrace, look: TimeLook) -> str:
    errors = listed.summary.errors
    return f"✗ {errors:,}" if errors else "" if errors == 0 else NONE


def _state_cell(listed: ListedTrace, look: TimeLook) -> str:
    """Its state; a server's summary counts errors, and does not say whether they were handled."""
    if listed.standing is TraceState.UNKNOWN:
        return NONE
    return f"{GLYPHS[listed.standing][0]} {listed.standing}"


def _source_cell(listed: ListedTrace) -> str:
    """The name of a file without its directories, the address of a server as it is."""
    source = listed.summary.source
    return source if "://" in source else source.rstrip("/").rpartition("/")[2]


def _jobs(listed: ListedTrace, look: TimeLook) -> str:
    others = f" +{len(listed.jobs) - 1:,}" if len(listed.jobs) > 1 else ""
    return f"{show(listed.jobs[0])}{others}" if listed.jobs else NONE


TRACE_COLUMNS: tuple[TableColumn[ListedTrace, TimeLook], ...] = (
    TableColumn("state", "  STATE", _state_cell, fixed(12), 100,
                sort=lambda listed: _ORDER.index(listed.standing),
                style=lambda listed, look: GLYPHS[listed.standing][1],
                narrow=(Narrow(70, fixed(1), lambda listed, look: GLYPHS[listed.standing][0], ""),)),
    time_column("started", "START", lambda listed: listed.summary.started_at, fixed(6), 90),
    TableColumn("took", "TOOK", lambda listed, look: span_time(listed.duration_ns), Cells(6, 7, 7), 78,
                sort=lambda listed: -(listed.duration_ns or 0), align="right"),
    TableColumn("job", "JOB", _jobs, Cells(20, 20, 38), 92, keeps_ends=True,
                sort=lambda listed: listed.jobs[0] if listed.jobs else None,
                narrow=(Narrow(160, Cells(20, 20, 30)), Narrow(70, Cells(10, 14, 30)))),
    text_column("user", "USER", lambda listed: listed.judged.user, Cells(8, 8, 12), 75),
    TableColumn("failed", "FAILED STEP", lambda listed, look: show(listed.judged.failed),
                Cells(36, 40, 10_000), 96, sort=text_order(lambda listed: listed.judged.failed),
                style=lambda listed, look: "error",
                narrow=(Narrow(100, Cells(24, 40, 10_000)), Narrow(70, Cells(12, 40, 10_000)))),
    TableColumn("errors", "ERRORS", _errors, Cells(6, 6, 7), 70,
                sort=lambda listed: -(listed.summary.errors or 0),
                style=lambda listed, look: "error" if listed.summary.errors else "settled"),
    count_column("spans", "SPANS", lambda listed: listed.summary.spans, Cells(6, 6, 8), 60),
    text_column("service", "SERVICE", lambda listed: listed.summary.service, Cells(10, 18, 24), 40),
    text_column("root", "ROOT", lambda listed: listed.summary.name, Cells(14, 20, 30), 55),
    TableColumn("id", "TRACE", lambda listed, look: short_id(listed.summary.trace_id), fixed(13), 50,
                sort=lambda listed: listed.summary.trace_id, style=lambda listed, look: "dim"),
    text_column("source", "SOURCE", _source_cell, Cells(12, 14, 30), 30, style=lambda listed, look: "dim"),
)  # fmt: skip


def newest_first(traces: Iterable[ListedTrace]) -> list[ListedTrace]:
    return sorted(traces, key=lambda listed: (-(listed.summary.started_at or 0), listed.summary.trace_id))


CHANGES = signs_of("changes")
"""Words and style for how a step compares with another trace."""


def _step(step: StepChange, look: object) -> str:
    counts = dict.fromkeys(f"×{len(spans):,}" for spans in (step.this, step.other) if spans)
    many = "" if list(counts) == ["×1"] else f" {' beside '.join(counts)}"
    return f"{'  ' * step.depth}{show(step.span.name)}{many}"


def _longer(step: StepChange, look: object) -> str:
    if step.change in (ChangeKind.MISSING, ChangeKind.NEW):
        return NONE
    return f"{'-' if step.longer_ns < 0 else '+'}{span_time(abs(step.longer_ns))}"


def _taken(spans: Sequence[Span]) -> str:
    return span_time(took_ns(spans)) if spans else NONE


CHANGE_COLUMNS: tuple[TableColumn[StepChange, object], ...] = (
    TableColumn("change", "  CHANGE", lambda step, look: CHANGES[step.change][0], fixed(9), 100,
                style=lambda step, look: CHANGES[step.change][1],
                narrow=(Narrow(50, fixed(1), lambda step, look: CHANGES[step.change][0][0], ""),)),
    TableColumn("step", "STEP", _step, Cells(16, 40, 10_000), 99,
                style=lambda step, look: "settled" if step.change is ChangeKind.SAME else ""),
    TableColumn("service", "SERVICE", lambda step, look: show(step.span.service), Cells(10, 18, 24), 50,
                style=lambda step, look: "dim"),
    TableColumn("this", "THIS", lambda step, look: _taken(step.this), Cells(7, 8, 8), 79, "right"),
    TableColumn("other", "OTHER", lambda step, look: _taken(step.other), Cells(7, 8, 8), 78, "right"),
    TableColumn("longer", "LONGER", _longer, Cells(8, 9, 9), 90, "right", style=lambda step, look:
                "" if step.change is ChangeKind.FAILED else CHANGES[step.change][1]),
)  # fmt: skip


def change_words(steps: Iterable[StepChange]) -> str:
    counts = Counter(step.change for step in steps)
    kinds = (change for change in ChangeKind if counts[change] and change is not ChangeKind.SAME)
    return ", ".join(f"{counts[change]:,} {change}" for change in kinds) or "no difference"


USUAL_CELLS = 120
"""Cells of a waterfall without a limit, beside names, which have as many as they need."""
MOST_ROWS = 1_000
"""If a trace has more rows than this, only those that matter are drawn."""


def waterfall_lines(found: Findings, cells: int | None, most: int | None) -> Iterator[str]:
    """Its lines, runs folded; of more than `most` those that matter. Without that limit all, also of runs."""
    tree, layout, marks = found.tree, layouts.lay_out(found), layouts.ServiceMarks()
    marks.meet(tree.services)
    closed = layouts.closed_at_first(layout) if most is not None else frozenset[layouts.LineKey]()
    rows = layouts.shown_lines(layout, closed.__contains__)
    if most is not None and len(rows) > most:
        drawn = _that_matter(found, layout, rows, most)
        yield f"{len(drawn)} of {len(rows)} rows, those that lead to errors or took the time; all: --plain"
        rows = drawn
    columns = waterfall.columns_in(cells if cells is not None else USUAL_CELLS)
    axis = Axis(tree.started_at or 0, tree.ended_at or 0, max(1, columns.bar), found.waits, WAIT_CELLS)
    view = waterfall.WaterfallView(tree, layout, axis, found.failed_at, marks.of)
    if cells is None:
        columns = columns._replace(name=max((columns.name, *(name_cells(view, row) for row in rows))))
    yield painted(waterfall.heading_line(view, columns))
    for row in rows:
        is_closed = layout.lines[row].key in closed
        yield painted(waterfall.trace_line(view, columns, row, is_closed=is_closed))


def _that_matter(found: Findings, layout: layouts.TraceLayout, rows: Sequence[int], most: int) -> list[int]:
    """Rows of failures, waits, open spans, then of what took longest; each with all rows above it."""
    row_of: dict[SpanId, int] = {}
    for row, end in zip(rows, (*rows[1:], len(layout.lines)), strict=True):  # with the lines folded into it
        row_of.update((line.own.span_id, row) for line in layout.lines[row:end] if line.own is not None)
    waits = (row for row in rows if layout.lines[row].wait is not None)
    path = sorted(whole_path(found.tree), key=lambda segment: segment.from_ns - segment.to_ns)
    kept: set[int] = set()
    for wanted in chain(
        (row_of[cause.span.span_id] for cause in found.causes),
        (row_of[failure.span.span_id] for failure in found.failures),
        (row_of[span.span_id] for span in error_spans(found.tree)),
        waits,
        (row_of[span.span_id] for span in found.tree.spans if span.ended_at is None),
        (row_of[segment.span.span_id] for segment in path),
    ):
        for row in chain((wanted,), layout.above(wanted)):
            if row in kept or len(kept) >= most:
                break
            kept.add(row)
    return sorted(kept)


STACK_LINES = 12
"""How many lines of a stack trace are shown, from its end, which says most."""
MOST_UNPLACED = 12
"""How many log records without a span are shown, the last ones."""
CAUSES = 10


def trace_lines(
    found: Findings, notes: Iterable[str], cells: int | None, most: int | None = MOST_ROWS
) -> Iterator[str]:
    """A trace as a person reads it; of a waterfall of more than `most` rows only what matters."""
    tree = found.tree
    yield f"{paint(tree.trace_id, 'heading')}  {painted((waterfall.sentence_of(found),))}"
    yield from fact_lines(_facts(found, notes), cells)
    for cause in found.causes[:CAUSES]:
        yield ""
        yield from (paint(part.text, part.style) for part in span_parts(found, cause.span, ()))
    if len(found.causes) > CAUSES:
        yield f"and {len(found.causes) - CAUSES} more errors"
    if found.unplaced:
        yield ""
        yield paint(f"{counted(len(found.unplaced), 'log record')} of no span that was received", "warning")
    for log in found.unplaced[-MOST_UNPLACED:]:
        yield f"  {clock_time(log.at, millis=True)}  {show(log.level or 'log')}  {show(log.body)}"
    if tree.spans:
        yield ""
        yield from waterfall_lines(found, cells, most)


def _facts(found: Findings, notes: Iterable[str]) -> Iterator[tuple[str, Text]]:
    tree = found.tree
    for note in notes:
        yield "note", Text(show(note), "warning")
    if tree.started_at is not None:
        yield "started", Text(f"{date_time(tree.started_at)}{Zone.mark()}")
        yield "took", Text(span_time(tree.duration_ns))
    yield "size", Text(waterfall.count_words(found))
    yield "services", Text(", ".join(show(service) or NONE for service in tree.services))
    for missing, spans in tree.missing.items():
        children = f"{counted(len(spans), 'span')} below it"
        yield "missing", Text(f"parent {missing} was not received: {children}", "warning")
    for failure in found.failures:
        yield "failure", Text(show(failure.text), "error" if failure.is_last else "warning")
    for span, early_ns in found.skewed:
        text = f"{show(span.name)} begins {span_time(early_ns)} before its parent: clocks differ"
        yield "clock", Text(f"{text}, times are as sent", "warning")
    for wait in found.waits:
        between = f"between {show(wait.after.name)} and {show(wait.before.name)}"
        yield "waited", Text(f"{span_time(wait.duration_ns)} {between}")


MOST_HAPPENINGS = 500
"""How many events and log records of one span are shown, the last ones."""
LEVEL_CELLS = 7
TRAIL = " › "
BAD_LEVELS = ("ERR", "CRIT", "FATAL", "ALERT", "EMERG")
"""The beginnings of the levels of log records that are errors."""


def detail_parts(found: Findings, line: layouts.TraceLine, above: Sequence[str]) -> Iterator[Paragraph]:
    """Everything about a line; `above` are the names of the spans that it is in."""
    if line.missing is not None:
        yield Paragraph(f"span {line.missing} was not received", "warning")
        count = len(found.tree.missing.get(line.missing, ()))
        yield Paragraph(f"{counted(count, 'span')} that were received name it as their parent", "dim")
        why = "its process was killed before it sent the span, or still runs, or the span was dropped"
        yield Paragraph(why, "dim")
    elif line.wait is not None:
        after, before = show(line.wait.after.name), show(line.wait.before.name)
        yield Paragraph(f"nothing ran for {span_time(line.wait.duration_ns)}", "strong")
        yield Paragraph(f"from the end of {after or NONE} until {before or NONE} began", "dim")
        yield Paragraph(f"{_moment(line.wait.start)} – {_moment(line.wait.end)}{Zone.mark()}", "dim")
    elif line.run is not None:
        yield from _run_parts(found.tree, line.run)
    elif line.span is not None:
        yield from span_parts(found, line.span, above)


def span_parts(found: Findings, span: Span, above: Sequence[str]) -> Iterator[Paragraph]:
    cause = next((cause for cause in found.causes if cause.span.span_id == span.span_id), None)
    yield from _span_head(found, span, cause)
    yield Paragraph(_when(found.tree, span), "dim")
    if above:
        yield Paragraph(f"in {TRAIL.join(show(name) or NONE for name in above)}", "dim", 3)
    if span.attributes:
        yield Paragraph(show("  ".join(f"{key}={value}" for key, value in span.attributes.items())), "", 2)
    yield from _events_and_logs(found, span, cause)
    for event in span.events:
        if event.name != EXCEPTION:
            continue
        lines = str(event.attributes.get("exception.stacktrace", "")).rstrip().splitlines()
        if len(lines) > STACK_LINES:
            yield Paragraph(f"  … {len(lines) - STACK_LINES:,} lines before", "dim")
        yield from (Paragraph(f"  {show(line)}", "", 4) for line in lines[-STACK_LINES:])
    yield Paragraph()
    yield from _source(span)


def _span_head(found: Findings, span: Span, cause: RootCause | None) -> Iterator[Paragraph]:
    name = f"{show(span.name) or NONE}  {show(span.service) or NONE}"
    if cause is not None:
        handled = " (handled)" if cause.is_handled else ""
        style = "warning" if cause.is_handled else "error"
        yield Paragraph(f"✗ {name}{handled}  {show(cause.message)}".rstrip(), style, 2)
    elif span.is_error:
        yield Paragraph(f"↑ {name}  {show(span.message)}".rstrip(), "error", 2)
        yield Paragraph("it failed because something below it failed: e goes there", "dim")
    else:
        yield Paragraph(name, "strong", 2)
    for failure in found.failures:
        if failure.span.span_id == span.span_id:
            is_sure = failure.kind is not FailureKind.UNFINISHED
            sign, style = ("✗", "error") if is_sure else ("…", "warning")
            yield Paragraph(f"{sign} {show(failure.text)}", style, 2)
    for flag in flags_of_span(found.tree, span):
        if flag in waterfall.FLAG_WORDS:
            yield Paragraph(f"! {waterfall.FLAG_WORDS[flag]}", "warning", 2)


def _when(tree: Tree, span: Span) -> str:
    """When it began after the start of the trace, how long it took, and what part of its parent that is."""
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


def _events_and_logs(found: Findings, span: Span, cause: RootCause | None) -> Iterator[Paragraph]:
    """Events and log records by time. Those of spans that were not received go with an open span."""
    logs: Sequence[SpanLog] = cause.logs if cause else found.tree.logs_by_span.get(span.span_id, ())
    open_ids = {one.span.span_id for one in found.failures if one.kind is FailureKind.UNFINISHED}
    if span.span_id in open_ids:
        logs = (*logs, *found.unplaced)
    rows = [
        (event.at, "event", _event_text(event), "error" if event.name == EXCEPTION else "")
        for event in span.events
    ]
    for log in logs:
        level = log.level.upper()
        style = "error" if level.startswith(BAD_LEVELS) else "warning" if level.startswith("WARN") else ""
        rows.append((log.at, log.level or "log", log.body, style))
    rows.sort(key=lambda one: one[0])
    if len(rows) > MOST_HAPPENINGS:
        words = f"{len(rows) - MOST_HAPPENINGS:,} earlier events and log records are left out"
        yield Paragraph(words, "warning")
    for at, kind, text, style in rows[-MOST_HAPPENINGS:]:
        since = f"+{span_time(at - span.started_at)}" if at >= span.started_at > 0 else _moment(at)
        head = f"{clock_time(at, millis=True)} {since:>8} {show(kind):<{LEVEL_CELLS}}"
        yield Paragraph(f"{head} {show(text)}", style, 30)


def _event_text(event: SpanEvent) -> str:
    if event.name == EXCEPTION:
        words = (event.attributes.get(key) for key in ("exception.type", "exception.message"))
        return f"{event.name}  {': '.join(str(word) for word in words if word)}"
    given = "  ".join(f"{key}={value}" for key, value in event.attributes.items())
    return f"{event.name}  {given}".rstrip()


def _source(span: Span) -> Iterator[Paragraph]:
    ids = f"span {span.span_id}   trace {span.trace_id}"
    yield Paragraph(f"{ids}   parent {span.parent_id}" if span.parent_id else ids, "dim")
    yield Paragraph(show(f"{span.kind.value} {span.scope}".strip()), "dim")
    if span.resource.attributes:
        sender = (f"{key}={value}" for key, value in span.resource.attributes.items())
        yield Paragraph(show("  ".join(sender)), "dim", 2)
    for link in span.links:
        yield Paragraph(f"linked to span {link.span_id} of trace {link.trace_id}", "dim")
    if span.dropped:
        words = f"{span.dropped:,} attributes, events or links were left out by the sender"
        yield Paragraph(words, "warning")
    yield from (Paragraph(show(warning), "warning", 2) for warning in span.warnings)


def _run_parts(tree: Tree, run: layouts.SpanRun) -> Iterator[Paragraph]:
    lengths = sorted(max(0, span.duration_ns or 0) for span in run.spans)
    yield Paragraph(f"{show(run.name) or NONE} × {len(run.spans):,}", "strong", 2)
    yield Paragraph("similar spans in a row, none failed: → shows them", "dim")
    middle, last = lengths[len(lengths) // 2], run.longest
    between = f"{span_time(lengths[0])} to {span_time(lengths[-1])}, half of them within {span_time(middle)}"
    yield Paragraph(f"took {span_time(run.total_ns)} in all: {between}")
    yield Paragraph(f"the longest began at +{span_time(last.started_at - (tree.started_at or 0))}", "dim")
    services = sorted({show(span.service) or NONE for span in run.spans})
    yield Paragraph(", ".join(services), "dim", 2)


EMPTY: Mapping[str, object] = {
    "trace_id": None, "spans": 0, "services": [], "started_at": None, "duration_s": None, "roots": [],
    "missing_parents": [], "error_spans": [], "root_causes": [], "critical_path": {"jaeger": [], "whole": []},
}  # fmt: skip
LOG_FIELDS = "at span_id level text=body"


def trace_record(found: Findings, notes: Iterable[str]) -> dict[str, object]:
    """The document of a trace. Durations are seconds, times of a critical path since the trace began."""
    tree = found.tree
    return {
        "trace_id": tree.trace_id,
        "spans": len(tree.spans),
        "services": sorted(mask_text(service) for service in tree.services),
        "started_at": time_or_null(tree.started_at),
        "duration_s": None if tree.started_at is None else tree.duration_ns / SECOND,
        "roots": [span.span_id for span in tree.roots],
        "missing_parents": list(tree.missing),
        "error_spans": [span.span_id for span in error_spans(tree)],
        "root_causes": [cause_record(cause) for cause in found.causes],
        "critical_path": {
            name: [
                fields_of(one, "span_id=span.span_id name=span.name service=span.service")
                | {"from_s": one.from_ns / SECOND, "to_s": one.to_ns / SECOND, "wait": one.is_wait}
                for one in path
            ]
            for name, path in (("jaeger", jaeger_path(tree)), ("whole", whole_path(tree)))
        },
        "failures": [fields_of(one, "kind span_id=span.span_id text last=is_last") for one in found.failures],
        "waits": [
            fields_of(wait, "after=after.span_id before=before.span_id started_at=start")
            | {"duration_s": wait.duration_ns / SECOND}
            for wait in found.waits
        ],
        "skewed": [{"span_id": span.span_id, "early_s": early / SECOND} for span, early in found.skewed],
        "came_twice": tree.doubles,
        "loops": [span.span_id for span in tree.loops],
        "open_spans": [span.span_id for span in tree.spans if span.ended_at is None],
        "unplaced_logs": [fields_of(log, LOG_FIELDS) for log in found.unplaced],
        "notes": [mask_text(note) for note in notes],
    }


def cause_record(cause: RootCause) -> dict[str, object]:
    span = cause.span
    return {
        **fields_of(span, "span_id name service"),
        **fields_of(cause, "message handled=is_handled started_at=span.started_at"),
        "attributes": mask_document(dict(span.attributes)),
        "events": [
            fields_of(event, "at name") | {"attributes": mask_document(dict(event.attributes))}
            for event in span.events
        ],
        "logs": [fields_of(log, LOG_FIELDS) for log in cause.logs],
    }
