"""A trace in one line: where it failed, and on what its time went."""

from collections.abc import Iterator
from typing import NamedTuple

from jobtui.analysis.traces.failures import FailureKind
from jobtui.analysis.traces.findings import Findings
from jobtui.analysis.traces.tree import end_of
from jobtui.model.trace_ids import TraceId
from jobtui.model.traces import Span
from jobtui.model.words import counted
from jobtui.render.span_words import span_time
from jobtui.render.text import NONE, show

GIVEN_CELLS = 24
"""An attribute that is longer is not told in a line."""
GIVEN = 2
STAGES = 5
"""So many stretches between waits are told at most."""


class Sentence(NamedTuple):
    """What is to be said, safe to show, and its style."""

    text: str
    style: str


def short_id(trace_id: TraceId) -> str:
    """Enough of an id to tell traces from each other."""
    return f"{trace_id[:8]}…{trace_id[-4:]}"


def sentence_of(found: Findings, growing: str = "") -> Sentence:
    """How a trace stands, in one sentence; `growing` says why more may come."""
    fatal = [cause for cause in found.causes if not cause.is_handled]
    if fatal:
        more = f"  (and {len(fatal) - 1:,} more)" if len(fatal) > 1 else ""
        return Sentence(f"✗ {named(fatal[0].span)}: {show(fatal[0].message) or 'failed'}{more}", "error")
    said = [failure for failure in found.failures if failure.kind is not FailureKind.UNFINISHED]
    if said:
        return Sentence(f"✗ {show(said[0].text)}", "error")
    if growing:
        return Sentence(f"… not complete: {show(growing)}", "good")
    last = next((failure for failure in found.failures if failure.is_last), None)
    if last is not None:
        return Sentence(f"✗ {show(last.text)}", "warning")
    if not found.tree.spans:
        return Sentence("no span of it was received", "warning")
    if found.causes:
        more = f"  (and {len(found.causes) - 1:,} more)" if len(found.causes) > 1 else ""
        first = found.causes[0]
        words = f"{named(first.span)}: {show(first.message) or 'failed'}, and what it was in went on well"
        return Sentence(f"! {words}{more}", "warning")
    return Sentence("✓ nothing failed in it", "settled")


def named(span: Span) -> str:
    """The name of a span, with what it was given when that is short."""
    given = (f"{key}={value}" for key, value in span.attributes.items())
    short = [words for words in given if len(words) <= GIVEN_CELLS][:GIVEN]
    return " ".join((show(span.name) or NONE, *map(show, short)))


def stage_words(found: Findings) -> str:
    """On what its time went: what ran between its waits, and those."""
    return " · ".join(_stages(found))


def _stages(found: Findings) -> Iterator[str]:
    tree = found.tree
    if tree.started_at is None or tree.ended_at is None:
        return
    waits = sorted(found.waits)[: STAGES // 2]
    begins = [tree.started_at, *(wait.end for wait in waits)]
    ends = [*(wait.start for wait in waits), tree.ended_at]
    for nth, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        if nth:
            yield f"waited {span_time(waits[nth - 1].duration_ns)}"
        within = [span for span in tree.spans if begin <= span.started_at and end_of(span) <= end]
        service = show(within[0].service) if within else ""
        yield f"{service} {span_time(end - begin)}".strip()


def count_words(found: Findings) -> str:
    """How many spans, errors and services there are."""
    spans, services = len(found.tree.spans), len(found.tree.services)
    errors = sum(span.is_error for span in found.tree.spans)
    parts = [counted(spans, "span"), counted(services, "service")]
    if errors:
        parts.insert(1, counted(errors, "error"))
    if found.tree.missing:
        parts.append(f"{len(found.tree.missing):,} not received")
    if found.tree.doubles:
        parts.append(f"{found.tree.doubles:,} came twice")
    if found.skewed:
        parts.append("clocks differ")
    return ", ".join(parts)
