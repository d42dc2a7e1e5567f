"""Spans out of files: the same trace in every form, and input that is broken."""

import base64
import json
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from jobtui.formats.otlp_protobuf import TRACES_DATA, count_parts, read_telemetry
from jobtui.model.traces import Span, SpanKind, SpanStatus, Telemetry
from tests.offenders import each
from tests.rows import ROWS
from tests.tracing import CAPTURES, EXPECTED, capture_file, telemetry_of

TRACE = "0af7651916cd43dd8448eb211c80319c"


def otlp(*spans: dict[str, Any]) -> bytes:
    scoped = [{"scope": {"name": "lib"}, "spans": spans}]
    return json.dumps({"resourceSpans": [{"resource": {}, "scopeSpans": scoped}]}).encode()


def one(data: bytes) -> Span:
    found = read_telemetry(data, "f")
    assert (len(found.spans), found.skip_count) == (1, 0)
    return found.spans[0]


@each(*EXPECTED)
def test_protobuf_and_json_hold_the_same_spans(name: str) -> None:
    assert (
        telemetry_of(capture_file(name, "otlp.pb")).spans
        == telemetry_of(capture_file(name, "otlp.json")).spans
    )


@each(*ROWS["answers of Tempo"])
def test_tempos_answers_hold_the_same_spans(file: str, name: str) -> None:
    def by_id(found: Telemetry) -> dict[str, object]:
        return {
            span.span_id: (span.name, span.kind, span.status, span.events, span.ended_at)
            for span in found.spans
        }

    assert by_id(telemetry_of(CAPTURES / "tempo" / file)) == by_id(
        telemetry_of(capture_file(name, "otlp.json"))
    )


def test_the_javascript_sdk_is_understood() -> None:
    spans = telemetry_of(CAPTURES / "node-sdk.otlp.json").spans
    root = next(span for span in spans if span.parent_id is None)
    assert (root.kind, root.status, root.service) == (SpanKind.SERVER, SpanStatus.ERROR, "portal")
    assert root.attributes["big"] == 9007199254740992
    assert root.attributes["tags"] == ["a", "b"]
    assert root.attributes["cached"] is False


def in_base64(digits: str) -> str:
    return base64.b64encode(bytes.fromhex(digits)).decode()


SPAN = "b7ad6b7169203331"


@each((TRACE.upper(), SPAN.upper()), (TRACE.capitalize(), SPAN), (in_base64(TRACE), in_base64(SPAN)))
def test_ids_are_hex_of_any_case_or_base64(trace: str, span: str) -> None:
    found = one(otlp({"traceId": trace, "spanId": span, "unknown": {"x": [1]}}))
    assert (found.trace_id, found.span_id, found.parent_id) == (TRACE, SPAN, None)
    assert (found.name, found.started_at, found.ended_at, found.scope) == ("", 0, None, "lib")


@each(
        ("1795207192811875883", 1795207192811875883), (1795207192811875883, 1795207192811875883), (-1, 0),
        (1 << 70, 0), ("x", 0), ("1e9", 0), ("--1", 0), (None, 0), (True, 0), ([], 0), ("9" * 5000, 0),
        (1e300, 0),
    )  # fmt: skip
def test_a_time_is_a_text_or_a_number_of_64_bits_or_zero(start: object, read: int) -> None:
    assert one(otlp({"traceId": TRACE, "spanId": "1" * 16, "startTimeUnixNano": start})).started_at == read


def test_other_names_and_spans_without_a_trace_around_them_are_understood() -> None:
    span = {"trace_id": TRACE, "span_id": "1" * 16, "parent_span_id": None, "start_time_unix_nano": "5"}
    data = json.dumps({"resource_spans": [{"scope_spans": [{"spans": [span]}]}]}).encode()
    assert one(data).started_at == 5
    alone = {"traceID": "5", "spanID": "6", "process": {"serviceName": "web"}}
    assert one(json.dumps([alone]).encode()).service == "web"


def test_a_span_with_bad_ids_or_a_cut_line_loses_only_itself() -> None:
    found = read_telemetry(
        otlp({"traceId": "xyz", "spanId": "1", "name": "n"}, {"traceId": TRACE, "spanId": "1"}), "f"
    )
    assert (len(found.spans), found.skip_count) == (1, 1)
    assert found.skipped[0].where == "f: span 'n'"
    assert "no trace id: 'xyz'" in found.skipped[0].why
    lines = [otlp({"traceId": TRACE, "spanId": f"{n:x}"}) for n in range(1, 4)]
    found = read_telemetry(b"\n".join([*lines, b"", b'{"resourceSpans": [{"sco']), "f")
    assert (len(found.spans), found.skip_count) == (3, 1)
    assert found.skipped[0].where == "f: line 5"


def test_jaegers_references_name_the_parent_and_links() -> None:
    short = TRACE[4:]
    kinds = (("FOLLOWS_FROM", "b"), ("CHILD_OF", "a"), ("CHILD_OF", "c"))
    tags = [{"key": "error", "type": "bool", "value": "true"}, {"key": "n", "type": "int64", "value": "12"}]
    span = {
        "traceID": short, "spanID": "1", "tags": tags, "startTime": 7, "duration": 2,
        "references": [{"refType": kind, "traceID": short, "spanID": own} for kind, own in kinds],
        "logs": [{"timestamp": 8, "fields": [{"key": "message", "type": "string", "value": "hello"}]}],
    }  # fmt: skip
    read = one(json.dumps({"data": [{"traceID": short, "spans": [span]}]}).encode())
    assert (read.trace_id, read.parent_id) == (short.zfill(32), "a".zfill(16))
    assert [link.span_id for link in read.links] == ["b".zfill(16), "c".zfill(16)]
    assert (read.status, read.attributes["n"]) == (SpanStatus.ERROR, 12)
    assert (read.started_at, read.ended_at, read.events[0].name) == (7_000, 9_000, "hello")


@each(b"\xff\xfe", b"\\ud800", b"\\u0000")
def test_an_odd_character_costs_nothing_else(name: bytes) -> None:
    data = otlp({"traceId": TRACE, "spanId": "1", "name": "NAME"}).replace(b"NAME", name)
    assert one(data).name


NO_TRACES = (
    b"not a trace\n", b"[[[[", b"{" * 100_000, b'{"a": ' * 100_000, b"[]" * 3, b'{"hello": 1}',
    b"\x1f\x8bnonsense", b"\xff\xfe\x00\x01", b"<html>Sign in</html>",
)  # fmt: skip


@each(*NO_TRACES)
def test_a_file_that_is_not_a_trace_is_one_skip(data: bytes) -> None:
    found = read_telemetry(data, "file.json")
    assert (found.spans, found.logs) == ((), ())
    assert found.skip_count >= 1
    assert found.skipped[0].where.startswith("file.json")


@pytest.mark.parametrize("size", [30, 300, 3_000])
@pytest.mark.parametrize(
    "name", ["broken.otlp.json", "broken.jaeger.json", "tempo/trace-v2.json", "job-fail.logs.json"]
)
def test_a_trace_read_in_pieces_is_the_same(name: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (CAPTURES / name).read_bytes()
    whole = read_telemetry(data, "x")
    monkeypatch.setattr("jobtui.formats.json_values.PIECE_BYTES", size)
    assert read_telemetry(data, "x") == whole
    assert whole.spans or whole.logs


MOST = 1_000


def spans(count: int, attributes: int) -> bytes:
    message = TracesData()
    scope = message.resource_spans.add().scope_spans.add()
    for _ in range(count):
        span = scope.spans.add()
        for number in range(attributes):
            span.attributes.add(key="k").value.array_value.values.add().int_value = number
    return message.SerializeToString()


@each((2_000, 0), (1, 2_000), (300, 3))
def test_parts_at_any_depth_are_counted(count: int, attributes: int) -> None:
    assert count_parts(spans(count, attributes), TRACES_DATA, MOST) > MOST


def test_count_parts_is_exact_below_its_limit() -> None:
    # resource spans, scope spans; of each span: itself, and of its attribute key, value, array and element
    assert count_parts(spans(10, 2), TRACES_DATA, 130) == 2 + 10 * (1 + 2 * 5)
    assert count_parts(spans(1, 0), TRACES_DATA, MOST) == 0
    assert 0 <= count_parts(b"\x0a" + b"\xff" * 20, TRACES_DATA, 1) <= 2, "a number without an end"
