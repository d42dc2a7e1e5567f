"""Captured traces, and spans made by hand."""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from jobtui.formats.otlp_protobuf import read_telemetry
from jobtui.model.clock import Nanos
from jobtui.model.ids import SpanId, TraceId
from jobtui.model.traces import Resource, Span, SpanStatus, Telemetry, Trace
from tests.rows import FIXTURES

CAPTURES = FIXTURES / "tracing"
EXPECTED: dict[str, dict[str, Any]] = json.loads((CAPTURES / "expected.json").read_text())
FORMATS = ("otlp.pb", "otlp.json", "jaeger.json")
TRACE_ID = TraceId("0123456789abcdef0123456789abcdef")
SERVICE = Resource("work", {})


def capture_file(name: str, form: str) -> Path:
    plain = CAPTURES / f"{name}.{form}"
    return plain if plain.exists() else CAPTURES / f"{name}.{form}.gz"


@cache
def telemetry_of(path: Path) -> Telemetry:
    data = path.read_bytes()
    return read_telemetry(gzip.decompress(data) if path.suffix == ".gz" else data, path.name)


def captured(name: str, form: str = "otlp.pb") -> Trace:
    spans = telemetry_of(capture_file(name, form)).spans
    logs = CAPTURES / f"{name}.logs.json"
    records = telemetry_of(logs).logs if logs.exists() else ()
    return Trace(trace_id=TraceId(EXPECTED[name]["traceID"]), spans=spans, logs=records)


def span_id(number: int) -> SpanId:
    return SpanId(f"{number:016x}")


def a_span(
    number: int,
    parent: int | None = None,
    start: int = 1_000,
    end: int | None = 2_000,
    *,
    error: bool = False,
    name: str = "",
    service: Resource = SERVICE,
    **more: Any,
) -> Span:
    """A span with what matters to a test; times in nanoseconds."""
    return Span(
        trace_id=TRACE_ID,
        span_id=span_id(number),
        parent_id=None if parent is None else span_id(parent),
        name=name or f"s{number}",
        resource=service,
        started_at=Nanos(start),
        ended_at=None if end is None else Nanos(end),
        status=SpanStatus.ERROR if error else SpanStatus.UNSET,
        **more,
    )


def a_trace(*spans: Span) -> Trace:
    return Trace(trace_id=TRACE_ID, spans=spans)
