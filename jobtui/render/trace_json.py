"""A trace as the JSON contract has it. Every text from outside is masked."""

from collections.abc import Iterable, Iterator, Mapping

from jobtui.analysis.traces.candidates import TraceCandidate
from jobtui.analysis.traces.critical_path import Segment, jaeger_path, whole_path
from jobtui.analysis.traces.failures import Failure, RootCause, error_spans
from jobtui.analysis.traces.findings import Findings
from jobtui.analysis.traces.waits import Wait
from jobtui.model.clock import SECOND
from jobtui.model.secrets import mask_document, mask_text
from jobtui.model.traces import SpanLog
from jobtui.render.json_output import time_or_null

EMPTY: Mapping[str, object] = {
    "trace_id": None, "spans": 0, "services": [], "started_at": None, "duration_s": None, "roots": [],
    "missing_parents": [], "error_spans": [], "root_causes": [], "critical_path": {"jaeger": [], "whole": []},
}  # fmt: skip
"""What is printed when there is no trace."""


def candidate_records(candidates: Iterable[TraceCandidate]) -> list[dict[str, object]]:
    """Traces that could be meant, likeliest first."""
    return [
        {
            "trace_id": one.trace_id,
            "score": one.score,
            "why": [mask_text(why) for why in one.why],
            "started_at": time_or_null(one.started_at),
        }
        for one in candidates
    ]


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
        "root_causes": [_cause(cause) for cause in found.causes],
        "critical_path": {
            "jaeger": [_segment(segment) for segment in jaeger_path(tree)],
            "whole": [_segment(segment) for segment in whole_path(tree)],
        },
        "failures": [_failure(failure) for failure in found.failures],
        "waits": [_wait(wait) for wait in found.waits],
        "skewed": [{"span_id": span.span_id, "early_s": early / SECOND} for span, early in found.skewed],
        "came_twice": tree.doubles,
        "loops": [span.span_id for span in tree.loops],
        "open_spans": [span.span_id for span in tree.spans if span.ended_at is None],
        "unplaced_logs": [_log(log) for log in found.unplaced],
        "notes": [mask_text(note) for note in notes],
    }


def cause_records(found: Findings) -> Iterator[Mapping[str, object]]:
    """The root causes, each with the id of its trace."""
    return ({"trace_id": found.tree.trace_id, **_cause(cause)} for cause in found.causes)


def _cause(cause: RootCause) -> dict[str, object]:
    span = cause.span
    return {
        "span_id": span.span_id,
        "name": mask_text(span.name),
        "service": mask_text(span.service),
        "message": mask_text(cause.message),
        "handled": cause.is_handled,
        "started_at": time_or_null(span.started_at),
        "attributes": mask_document(dict(span.attributes)),
        "events": [
            {
                "at": time_or_null(event.at),
                "name": mask_text(event.name),
                "attributes": mask_document(dict(event.attributes)),
            }
            for event in span.events
        ],
        "logs": [_log(log) for log in cause.logs],
    }


def _failure(failure: Failure) -> dict[str, object]:
    return {
        "kind": failure.kind.value,
        "span_id": failure.span.span_id,
        "text": mask_text(failure.text),
        "last": failure.is_last,
    }


def _wait(wait: Wait) -> dict[str, object]:
    return {
        "after": wait.after.span_id,
        "before": wait.before.span_id,
        "started_at": time_or_null(wait.start),
        "duration_s": wait.duration_ns / SECOND,
    }


def _log(log: SpanLog) -> dict[str, object]:
    return {
        "at": time_or_null(log.at),
        "span_id": log.span_id,
        "level": mask_text(log.level),
        "text": mask_text(log.body),
    }


def _segment(segment: Segment) -> dict[str, object]:
    return {
        "span_id": segment.span.span_id,
        "name": mask_text(segment.span.name),
        "service": mask_text(segment.span.service),
        "from_s": segment.from_ns / SECOND,
        "to_s": segment.to_ns / SECOND,
        "wait": segment.is_wait,
    }
