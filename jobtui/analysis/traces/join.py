"""A job's trace beside the lines of its logs: which trace a line names, and both in one order of time."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from jobtui.analysis.time_words import duration
from jobtui.analysis.traces.findings import Findings
from jobtui.analysis.traces.layout import Layout, LineKind, TraceLine
from jobtui.analysis.traces.tree import end_of
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId, OpPrefix
from jobtui.model.ops import Certainty, Component, Op, OpStatus, Step, Unlinked
from jobtui.model.trace_ids import SpanId, TraceId, find_trace
from jobtui.model.traces import Span, SpanLog

MOST_STEPS = 400
"""Steps of a trace in a timeline: of a larger one what failed, then what stands highest."""
KEY = -1
"""The key of the op that stands for a trace; those of real ops are not below 0."""
_SOURCE = "span "


class TraceLink(NamedTuple):
    """The trace of a job: how sure that is, and why."""

    trace_id: TraceId
    certainty: Certainty
    why: str


def link_in_lines(ops: Iterable[Op], unlinked: Iterable[Unlinked]) -> TraceLink | None:
    """The trace that a line of a job's logs hands on or names; None when no line does."""
    named = [(step, step.certainty) for op in ops for step in op.steps]
    named += [(loose.step, loose.step.certainty) for loose in unlinked]
    for step, certainty in sorted(named, key=lambda one: (one[1].rank, one[0].at or 0)):
        if "trace" in step.text.lower() and (ref := find_trace(step.text)) is not None:
            return TraceLink(ref.trace_id, certainty, "a line of its log names the trace")
    return None


def trace_op(
    found: Findings,
    layout: Layout,
    link: TraceLink,
    job_id: JobId,
    ops: Iterable[Op],
    unlinked: Iterable[Unlinked],
    *,
    grows: bool = False,
) -> Op:
    """A trace as an op of a job: its spans and their log records with the lines of the job, by time.

    It is open as long as it `grows`. Each step has the certainty of its own link: a span that of the trace,
    a line that which it has in its op.
    """
    lines = _chosen(found, layout)
    steps = [step for line in lines for step in _steps_of(found, line, link)]
    steps += [_of_log(log, link) for log in found.tree.logs]
    steps += [_beside(step) for op in ops for step in op.steps]
    steps += [_beside(loose.step) for loose in unlinked]
    tree = found.tree
    return Op(
        key=KEY,
        op=OpPrefix(tree.trace_id[:4]),
        name="trace",
        status=OpStatus.REPLIED if grows else OpStatus.ENDED,
        jid=job_id,
        result="error" if found.has_failed else None if found.is_unfinished else "ok",
        error=_error(found),
        created_at=tree.started_at,
        ended_at=None if grows else tree.ended_at,
        certainty=link.certainty,
        steps=tuple(_in_order(steps)),
        dropped_steps=sum(line.kind is LineKind.SPAN for line in layout.lines) - len(lines),
    )


def span_of(step: Step) -> tuple[TraceId, SpanId] | None:
    """The span that a step of a timeline stands for; None for the line of a log."""
    if step.component is not Component.SPAN or not step.source.startswith(_SOURCE):
        return None
    span_id, _, trace_id = step.source.removeprefix(_SOURCE).partition(" of trace ")
    return TraceId(trace_id), SpanId(span_id)


def _error(found: Findings) -> str | None:
    return next((cause.message or cause.span.name for cause in found.causes if not cause.is_handled), None)


def _chosen(found: Findings, layout: Layout) -> list[TraceLine]:
    """The lines that are steps: one for a run; of many what failed and what stands highest."""
    inside = 0
    lines: list[TraceLine] = []
    for at, line in enumerate(layout.lines):
        if at < inside:
            continue
        if line.kind is LineKind.RUN:
            inside = layout.ends[at]
        if line.kind in (LineKind.SPAN, LineKind.RUN):
            lines.append(line)
    if len(lines) <= MOST_STEPS:
        return lines
    causes = {cause.span.span_id for cause in found.causes}
    lines.sort(key=lambda line: (line.span is None or line.span.span_id not in causes, line.depth))
    return lines[:MOST_STEPS]


def _steps_of(found: Findings, line: TraceLine, link: TraceLink) -> Iterator[Step]:
    span = line.span
    if span is None:
        return
    if line.run is not None:
        yield _step(span, f"{line.run.name} × {len(line.run.spans)} begin", span.started_at, link)
        return
    took = "" if span.duration_ns is None else f", took {duration(span.duration_ns / SECOND)}"
    yield _step(span, f"{span.name} begins{took}", span.started_at, link)
    cause = next((cause for cause in found.causes if cause.span.span_id == span.span_id), None)
    if cause is not None:
        said = "was handled after an error" if cause.is_handled else "failed"
        yield _step(span, f"{span.name} {said}: {cause.message}", end_of(span), link)


def _step(span: Span, words: str, at: Nanos, link: TraceLink) -> Step:
    source = f"{_SOURCE}{span.span_id} of trace {span.trace_id}"
    given = "  ".join(f"{key}={value}" for key, value in span.attributes.items())
    text = f"{span.service}  {words}  {given}".rstrip()
    return Step(words, at or None, Component.SPAN, text, source, 0, 0, link.certainty)


def _of_log(log: SpanLog, link: TraceLink) -> Step:
    source = f"{_SOURCE}{log.span_id} of trace {log.trace_id}" if log.span_id else f"trace {log.trace_id}"
    text = f"{log.level} {log.body}".strip()
    return Step(text, log.at, Component.SPAN, text, source, 0, 0, link.certainty)


def _beside(step: Step) -> Step:
    """A step of an op, as a line of a log beside spans."""
    return msgspec.structs.replace(step, component=Component.LOG, step=f"{step.component}: {step.step}")


def _in_order(steps: Iterable[Step]) -> list[Step]:
    """By time; what has none stays behind what came before it."""
    latest = Nanos(0)
    keyed: list[tuple[Nanos, Step]] = []
    for step in steps:
        latest = step.at if step.at is not None else latest
        keyed.append((latest, step))
    return [step for _, step in sorted(keyed, key=lambda one: one[0])]
