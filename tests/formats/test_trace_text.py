"""Spans out of files: the same trace in every form, and input that is broken."""

import base64
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.formats.json_values import decoded
from jobtui.formats.otlp_protobuf import read_telemetry
from jobtui.model.traces import Span, SpanKind, SpanStatus, Telemetry
from tests.tracing import CAPTURES, EXPECTED, capture_file, telemetry_of

TRACE = "0af7651916cd43dd8448eb211c80319c"


def otlp(*spans: dict[str, Any], outer: str = "resourceSpans", scoped: str = "scopeSpans") -> bytes:
    return json.dumps(
        {outer: [{"resource": {}, scoped: [{"scope": {"name": "lib"}, "spans": spans}]}]}
    ).encode()


def one(data: bytes) -> Span:
    found = read_telemetry(data, "f")
    assert (len(found.spans), found.skip_count) == (1, 0)
    return found.spans[0]


@pytest.mark.parametrize("name", EXPECTED)
def test_protobuf_and_json_hold_the_same_spans(name: str) -> None:
    assert (
        telemetry_of(capture_file(name, "otlp.pb")).spans
        == telemetry_of(capture_file(name, "otlp.json")).spans
    )


@pytest.mark.parametrize("name", EXPECTED)
def test_jaegers_json_holds_the_same_to_the_microsecond(name: str) -> None:
    exact = {(span.span_id, span.name): span for span in telemetry_of(capture_file(name, "otlp.pb")).spans}
    spans = telemetry_of(capture_file(name, "jaeger.json")).spans
    assert {(span.span_id, span.name) for span in spans} == set(exact)
    for span in spans:
        true = exact[span.span_id, span.name]
        assert span.started_at == true.started_at // 1000 * 1000
        assert (span.parent_id, span.kind, span.status, span.message, span.scope, span.service) == (
            true.parent_id, true.kind, true.status, true.message, true.scope, true.service,
        )  # fmt: skip
        assert set(span.attributes) == set(true.attributes)
        assert [event.name for event in span.events] == [event.name for event in true.events]
        assert [(link.trace_id, link.span_id) for link in span.links] == [
            (link.trace_id, link.span_id) for link in true.links
        ]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("trace-v1.json", "jobsub-fail-copy"),
        ("trace-v2.json", "jobsub-fail-copy"),
        ("trace-v2.pb", "jobsub-fail-copy"),
        ("job-fail-v2.json", "job-fail"),
    ],
)
def test_tempos_answers_hold_the_same_spans(file: str, name: str) -> None:
    def by_id(found: Telemetry) -> dict[str, object]:
        return {
            span.span_id: (span.name, span.kind, span.status, span.events, span.ended_at)
            for span in found.spans
        }

    assert by_id(telemetry_of(CAPTURES / "tempo" / file)) == by_id(
        telemetry_of(capture_file(name, "otlp.json"))
    )


def test_tempos_answer_for_no_trace_is_empty() -> None:
    assert telemetry_of(CAPTURES / "tempo" / "trace-missing.txt") == Telemetry()


def test_single_exports_are_spans_or_log_records() -> None:
    found = [telemetry_of(path) for path in sorted((CAPTURES / "job-fail").glob("*.pb"))]
    assert (sum(len(one.spans) for one in found), sum(len(one.logs) for one in found)) == (29, 7)
    assert not any(one.skip_count for one in found)
    whole = telemetry_of(CAPTURES / "job-fail.logs.json").logs
    assert sorted(log.body for one in found for log in one.logs) == sorted(log.body for log in whole)


def test_the_javascript_sdk_is_understood() -> None:
    spans = telemetry_of(CAPTURES / "node-sdk.otlp.json").spans
    root = next(span for span in spans if span.parent_id is None)
    assert (root.kind, root.status, root.service) == (SpanKind.SERVER, SpanStatus.ERROR, "portal")
    assert root.attributes["big"] == 9007199254740992
    assert root.attributes["tags"] == ["a", "b"]
    assert root.attributes["cached"] is False


@pytest.mark.parametrize("text", [TRACE.upper(), TRACE.capitalize()])
def test_hex_ids_have_any_case(text: str) -> None:
    span = one(otlp({"traceId": text, "spanId": "B7AD6B7169203331", "unknown": {"x": [1]}}))
    assert (span.trace_id, span.span_id, span.parent_id) == (TRACE, "b7ad6b7169203331", None)
    assert (span.name, span.started_at, span.ended_at, span.scope) == ("", 0, None, "lib")


def test_tempos_ids_are_base64_and_its_enums_names() -> None:
    span = one(
        otlp(
            {
                "traceId": base64.b64encode(bytes.fromhex(TRACE)).decode(),
                "spanId": base64.b64encode(bytes.fromhex("b7ad6b7169203331")).decode(),
                "kind": "SPAN_KIND_CONSUMER",
                "status": {"code": "STATUS_CODE_ERROR"},
            },
            outer="batches",
            scoped="instrumentationLibrarySpans",
        )
    )
    assert (span.trace_id, span.span_id) == (TRACE, "b7ad6b7169203331")
    assert (span.kind, span.status) == (SpanKind.CONSUMER, SpanStatus.ERROR)


@pytest.mark.parametrize("start", ["1795207192811875883", 1795207192811875883])
def test_numbers_of_64_bits_are_texts_or_numbers(start: object) -> None:
    span = one(otlp({"traceId": TRACE, "spanId": "1" * 16, "startTimeUnixNano": start}))
    assert span.started_at == 1795207192811875883


@pytest.mark.parametrize("start", [-1, 1 << 70, "x", "1e9", "--1", None, True, [], "9" * 5000, 1e300])
def test_a_time_that_is_none_is_zero(start: object) -> None:
    data = otlp({"traceId": TRACE, "spanId": "1" * 16, "startTimeUnixNano": start})
    assert one(data).started_at == 0


def test_names_with_underscores_are_understood() -> None:
    span = {"trace_id": TRACE, "span_id": "1" * 16, "parent_span_id": None, "start_time_unix_nano": "5"}
    data = json.dumps({"resource_spans": [{"scope_spans": [{"spans": [span]}]}]}).encode()
    assert one(data).started_at == 5


def test_a_span_with_bad_ids_costs_that_span() -> None:
    found = read_telemetry(
        otlp({"traceId": "xyz", "spanId": "1", "name": "n"}, {"traceId": TRACE, "spanId": "1"}), "f"
    )
    assert (len(found.spans), found.skip_count) == (1, 1)
    assert found.skipped[0].where == "f: span 'n'"
    assert "no trace id: 'xyz'" in found.skipped[0].why


def test_lines_of_json_are_one_document_each() -> None:
    lines = [otlp({"traceId": TRACE, "spanId": f"{n:x}"}) for n in range(1, 4)]
    found = read_telemetry(b"\n".join([*lines, b"", b'{"resourceSpans": [{"sco']), "f")
    assert (len(found.spans), found.skip_count) == (3, 1)
    assert found.skipped[0].where == "f: line 5"


def test_jaegers_references_name_the_parent_and_links() -> None:
    references = [
        {"refType": "FOLLOWS_FROM", "traceID": TRACE, "spanID": "b"},
        {"refType": "CHILD_OF", "traceID": TRACE, "spanID": "a"},
        {"refType": "CHILD_OF", "traceID": TRACE, "spanID": "c"},
    ]
    tags = [{"key": "error", "type": "bool", "value": "true"}, {"key": "n", "type": "int64", "value": "12"}]
    span = {
        "traceID": TRACE[4:],
        "spanID": "1",
        "references": references,
        "tags": tags,
        "startTime": 7,
        "duration": 2,
    }
    span["references"] = [reference | {"traceID": TRACE[4:]} for reference in references]
    logs = [{"timestamp": 8, "fields": [{"key": "message", "type": "string", "value": "hello"}]}]
    read = one(json.dumps({"data": [{"traceID": TRACE[4:], "spans": [span | {"logs": logs}]}]}).encode())
    assert read.trace_id == TRACE[4:].zfill(32)
    assert read.parent_id == "a".zfill(16)
    assert [link.span_id for link in read.links] == ["b".zfill(16), "c".zfill(16)]
    assert (read.status, read.attributes["n"]) == (SpanStatus.ERROR, 12)
    assert (read.started_at, read.ended_at, read.events[0].name) == (7_000, 9_000, "hello")


def test_spans_of_jaeger_without_a_trace_around_them() -> None:
    span = {"traceID": "5", "spanID": "6", "process": {"serviceName": "web"}}
    assert one(json.dumps([span]).encode()).service == "web"


@pytest.mark.parametrize("name", [b"\xff\xfe", b"\\ud800", b"\\u0000"])
def test_an_odd_character_costs_nothing_else(name: bytes) -> None:
    data = otlp({"traceId": TRACE, "spanId": "1", "name": "NAME"}).replace(b"NAME", name)
    assert one(data).name


@pytest.mark.parametrize(
    "data",
    [
        b"not a trace\n",
        b"[[[[",
        b"{" * 100_000,
        b'{"a": ' * 100_000,
        b"[]" * 3,
        b'{"hello": 1}',
        b"\x1f\x8bnonsense",
        b"\xff\xfe\x00\x01",
        b"<html>Sign in</html>",
    ],
)
def test_what_is_no_trace_is_one_skip(data: bytes) -> None:
    found = read_telemetry(data, "file.json")
    assert (found.spans, found.logs) == ((), ())
    assert found.skip_count >= 1
    assert found.skipped[0].where.startswith("file.json")


@pytest.mark.parametrize("data", [b"", b" \n", b"{}", b"[]"])
def test_nothing_is_no_fault(data: bytes) -> None:
    assert read_telemetry(data, "f") == Telemetry()


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_no_bytes_raise(data: bytes) -> None:
    read_telemetry(data, "f")


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_no_damage_to_a_message_raises(data: st.DataObject) -> None:
    name = data.draw(
        st.sampled_from(["job-fail.otlp.pb", "broken.otlp.pb", "tempo/trace-v2.pb", "broken.otlp.json"])
    )
    raw = bytearray((CAPTURES / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    read_telemetry(bytes(raw[: data.draw(st.integers(0, len(raw)))]), "f")


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), 1 << 63)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_no_document_of_wrong_types_raises(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["broken.otlp.json", "broken.jaeger.json", "job-fail.logs.json"]))
    document = json.loads((CAPTURES / name).read_text())
    for _ in range(data.draw(st.integers(1, 4))):
        _damage(document, data)
    found = read_telemetry(msgspec.json.encode(document), "f")
    assert all(isinstance(span.started_at, int) and isinstance(span.name, str) for span in found.spans)


def _damage(document: Any, data: st.DataObject) -> None:
    """Put something else in some place of a document."""
    place = document
    for _ in range(data.draw(st.integers(1, 9))):
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or not place[key]:
            break
        parent, last, place = place, key, place[key]
    else:
        parent[last] = data.draw(JUNK)
        return
    place[key] = data.draw(JUNK)


FIXTURES_OF_JAEGER = Path(os.environ.get("JAEGER_FIXTURES", "/nonexistent"))
HOLD = {
    "FindTraces": 1,
    "GetTrace": 1,
    "otlp2jaeger-in": 2,
    "otlp2jaeger-out": 2,
    "trace_success": 2,
    "ui_01": 5,
}
"""Spans in those test data files of jaegertracing/jaeger that hold any."""


@pytest.mark.skipif(
    not FIXTURES_OF_JAEGER.is_dir(), reason="JAEGER_FIXTURES names no folder of Jaeger's test data"
)
@pytest.mark.parametrize("name", HOLD)
def test_jaegers_own_test_data_are_understood(name: str) -> None:
    found = read_telemetry((FIXTURES_OF_JAEGER / f"{name}.json").read_bytes(), name)
    assert (len(found.spans), found.skip_count) == (HOLD[name], 0)


def _containers(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)


def _whole(value: object) -> object:
    """A document with all of its pieces opened."""
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value)
    if isinstance(value, dict):
        return {key: _whole(one) for key, one in value.items()}
    return [_whole(one) for one in value] if isinstance(value, list) else value


@given(st.recursive(st.none() | st.booleans() | st.integers(0, 99) | st.text(max_size=5), _containers))
def test_a_large_document_in_pieces_is_the_same(value: object) -> None:
    text = json.dumps({"a": value, "b": [value, value]}).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jobtui.formats.json_values.PIECE_BYTES", 20)
        assert _whole(decoded(text)) == json.loads(text)


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
