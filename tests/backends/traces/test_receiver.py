"""The receiver: what it takes in, how it answers, and the real SDK."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator
from contextlib import nullcontext
from operator import attrgetter

import pytest
from google.rpc import status_pb2  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.backends.traces import receiver as receiver_module
from jobtui.backends.traces.receiver import Receiver, Refusal, refuse_browsers
from jobtui.model.health import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from tests.backends.traces import sending
from tests.backends.traces.sending import JSON, PROTOBUF, SPAN, export, listening, raw, send, taken
from tests.rows import ROWS
from tests.tracing import CAPTURES, EXPECTED, capture_file, captured
from tests.waiting import wait_until

HEAD = (
    b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with listening() as made:
        yield made


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(("form", "kind", "empty"), [("otlp.pb", PROTOBUF, b""), ("otlp.json", JSON, b"{}")])
async def test_every_encoding(
    receiver: Receiver, form: str, kind: str, empty: bytes, chunked: bool, packed: bool
) -> None:
    data = capture_file("job-fail", form).read_bytes()
    body = gzip.compress(data) if packed else data
    headers = {"Content_Encoding": "gzip"} if packed else {}
    pieces = [body[:300], body[300:]] if chunked else body
    sent = await send(receiver, pieces, f"{kind}; charset=utf-8", **headers)
    assert (sent.status, sent.body, sent.headers["content-type"]) == (200, empty, kind)
    assert (await taken(receiver)).spans == captured("job-fail").spans


async def test_the_exports_of_a_job_arrive_one_after_the_other(receiver: Receiver) -> None:
    exports = sorted((CAPTURES / "job-fail").glob("*.pb"))
    assert exports
    for path in exports:
        signal = path.name.split(".")[1]
        assert (await send(receiver, path.read_bytes(), PROTOBUF, f"/v1/{signal}")).status == 200
    found = await taken(receiver)
    expected = EXPECTED["job-fail"]
    assert {span.trace_id for span in found.spans} == {expected["traceID"]}
    by_time = attrgetter("at")
    assert sorted(found.span_logs, key=by_time) == sorted(captured("job-fail").logs, key=by_time)


async def test_what_makes_no_sense_is_left_out_and_counted_on_both_sides(receiver: Receiver) -> None:
    sent = await send(receiver, export(SPAN, {"name": "x"}, {"name": "y"}))
    partial = sent.json["partialSuccess"]
    assert partial == {"rejectedSpans": "2", "errorMessage": "no trace id: ''"}
    batch = await receiver.poll("x")
    assert ([span.trace_id for span in batch.spans], batch.skip_count) == (["ab" * 16], 2)


async def test_a_partial_success_as_protobuf_is_one_that_others_read(receiver: Receiver) -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    message = TracesData()
    for _ in range(300):
        message.resource_spans.add().scope_spans.add().spans.add(name="no id")
    sent = await send(receiver, message.SerializeToString(), PROTOBUF)
    answer = ExportTraceServiceResponse.FromString(sent.body)
    assert answer.partial_success.rejected_spans == 300
    assert answer.partial_success.error_message == "no trace id: ''"


@pytest.mark.parametrize("kind", [JSON, PROTOBUF])
async def test_metrics_are_declined_politely(receiver: Receiver, kind: str) -> None:
    sent = await send(receiver, b"\xff\xff", kind, "/v1/metrics")
    assert sent.status == 200
    assert b"metrics are not kept" in sent.body
    assert (await receiver.poll("x")).skip_count == 0


BROKEN = capture_file("job-fail", "otlp.pb").read_bytes()[:-10]
CUT = gzip.compress(export(SPAN), mtime=0)[:-9]
LIMIT = 1 << 16
BIG = b" " * 70_000
GZIP = {"Content_Encoding": "gzip"}
ERRORS = [
    ({"body": b"{", "kind": JSON}, 400, 3, "is no JSON"),
    ({"body": b"[]", "kind": JSON}, 400, 3, "is no JSON object"),
    ({"body": b"[" * 5000, "kind": JSON}, 400, 3, "is no JSON"),
    ({"body": BROKEN, "kind": PROTOBUF}, 400, 3, "is no protobuf message of traces"),
    ({"body": b"{}", "kind": PROTOBUF}, 400, 3, "is no protobuf message of traces"),
    ({"body": b"{}", "kind": "text/plain"}, 415, 3, "content type text/plain"),
    ({"body": b"{}", "kind": JSON, "Content_Encoding": "br"}, 415, 3, "packed as 'br'; only gzip is taken"),
    ({"body": b"{}", "kind": JSON, "Content_Encoding": "gzip, gzip"}, 415, 3, "only gzip is taken"),
    ({"body": b"{}", "kind": JSON, "Origin": "http://evil.example"}, 403, 7, "from web pages"),
    ({"body": b"{}", "kind": JSON, "Origin": "null"}, 403, 7, "from web pages (header Origin)"),
    ({"body": b"{}", "kind": JSON, "Host": "evil.example:4318"}, 403, 7, "evil.example is no name at which"),
    ({"body": b"{}", "kind": JSON, **GZIP}, 400, 3, "it cannot be unpacked"),
    ({"body": CUT, "kind": JSON, **GZIP}, 400, 3, "what is packed is cut off"),
    ({"body": b"{}", "kind": JSON, "path": "/v1/other"}, 404, 5, "nothing is taken at /v1/other"),
    ({"body": b"{}", "kind": JSON, "method": "PUT"}, 405, 12, "PUT is not taken, but POST"),
    ({"body": BIG, "kind": PROTOBUF}, 413, 8, "the body has 70000 bytes of 65536"),
    ({"body": [b" " * 40_000] * 2, "kind": JSON}, 413, 8, "it has more than 65536 bytes"),
    ({"body": gzip.compress(BIG, mtime=0), "kind": PROTOBUF, **GZIP}, 413, 8, "more than 65536"),
    ({"body": zlib.compress(BIG), "kind": JSON, "Content_Encoding": "deflate"}, 413, 8, "than 65536"),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "status", "code", "words"), ERRORS, ids=lambda one: str(one)[:30])
async def test_errors_say_why_in_the_encoding_of_the_request(
    receiver: Receiver,
    request_: dict[str, object],
    status: int,
    code: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(receiver_module, "BODY_BYTES", LIMIT)
    sent = await send(receiver, **request_)  # type: ignore[arg-type]
    assert sent.status == status
    if request_["kind"] == PROTOBUF:
        told = status_pb2.Status.FromString(sent.body)
        assert told.code == code
        assert words in told.message
    else:
        assert sent.json["code"] == code
        assert words in str(sent.json["message"])
    batch = await receiver.poll("x")
    assert batch.skip_count == 1
    assert f"a request was refused ({status}): " in batch.skipped[0].why
    assert (await send(receiver, export(SPAN))).status == 200


@pytest.mark.parametrize("limit", ["MOST_WAITING", "WAITING_BYTES"])
async def test_too_much_is_refused(receiver: Receiver, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(receiver_module, limit, 1)
    assert (await send(receiver, export(SPAN))).status == 200
    sent = await send(receiver, export(SPAN))
    assert (sent.status, sent.headers["retry-after"], sent.json["code"]) == (503, "2", 14)
    batch = await receiver.poll("x")
    assert (len(batch.spans), batch.skip_count) == (1, 0)
    assert (await send(receiver, export(SPAN))).status == 200


async def test_what_is_no_http_is_told_so(receiver: Receiver) -> None:
    assert b"400 Bad Request" in await raw(receiver, b"hello\r\n\r\n")
    assert b"HTTP/1.1 4" in await raw(receiver, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert b"HTTP/1.1 431" in await raw(receiver, b"POST /v1/traces HTTP/1.1\r\nX: " + b"x" * 40_000)
    assert await raw(receiver, b"") == b""
    assert await raw(receiver, HEAD + b"\r\n{")
    assert (await send(receiver, export(SPAN))).status == 200


async def test_a_sender_is_told_to_go_on_and_a_connection_carries_many_requests() -> None:
    async with listening() as receiver:
        reader, writer = await asyncio.open_connection("127.0.0.1", receiver.port)
        writer.write(HEAD + b"Expect: 100-continue\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        writer.write(b"{}")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        writer.close()
    request = HEAD + b"\r\n{}"
    async with listening() as receiver:
        assert (await raw(receiver, request * 5)).count(b"HTTP/1.1 200 OK") == 5


async def test_it_listens_on_loopback_and_says_so(receiver: Receiver) -> None:
    note = (await receiver.poll("x")).note
    assert note == f"listens at http://127.0.0.1:{receiver.port}, for this machine only"
    again = Receiver(f"127.0.0.1:{receiver.port}")
    with pytest.raises(SourceUnreachable, match="the address is in use, perhaps by another jobtui"):
        await again.poll(None)
    await again.aclose()
    everywhere = Receiver("0.0.0.0:0")
    batch = await everywhere.poll(None)
    assert "whoever reaches this machine may send" in str(batch.note)
    await everywhere.aclose()
    with pytest.raises(SourceError, match="is closed"):
        await everywhere.poll(None)
    nowhere = Receiver("192.0.2.1:4318")
    with pytest.raises((SourceMissing, SourceDenied), match=r"192\.0\.2\.1:4318: cannot be listened at"):
        await nowhere.poll(None)
    await nowhere.aclose()


async def test_a_batch_that_was_lost_comes_again(receiver: Receiver) -> None:
    cursor = (await receiver.poll(None)).cursor
    await send(receiver, export(SPAN))
    first = await receiver.poll(cursor)
    assert first.spans
    assert await receiver.poll(cursor) == first
    assert (await receiver.poll(first.cursor)).spans == ()


@pytest.mark.parametrize(("host", "listens_at", "is_refused"), ROWS["names of this host"])
def test_other_names_are_refused(
    host: str, listens_at: str, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "this-host")
    with pytest.raises(Refusal) if is_refused else nullcontext():
        refuse_browsers({"host": host}, listens_at)


async def test_silent_connections_give_way(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver_module, "GIVES_WAY_S", 0.0)
    monkeypatch.setattr(receiver_module, "MOST_CONNECTIONS", 5)
    silent = [await asyncio.open_connection("127.0.0.1", receiver.port) for _ in range(20)]
    for _, writer in silent[::2]:
        writer.write(b"POST /v1/traces HT")
    assert (await send(receiver, export(SPAN))).status == 200
    assert receiver.connections <= 5
    for _, writer in silent:
        writer.close()


async def test_one_too_many_is_turned_away(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver_module, "MOST_CONNECTIONS", 2)
    held = [await asyncio.open_connection("127.0.0.1", receiver.port) for _ in range(2)]
    await wait_until(lambda: receiver.connections == 2)
    assert await raw(receiver, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") == b""
    for _, writer in held:
        writer.close()
    await wait_until(lambda: receiver.connections == 0)
    assert (await send(receiver, export(SPAN))).status == 200


@pytest.mark.parametrize("limit", ["SILENCE_S", "REQUEST_S"])
async def test_slow_senders_end(receiver: Receiver, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver_module, limit, 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", receiver.port)
    writer.write(b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
    await wait_until(lambda: receiver.connections == 1)

    async def drip() -> None:
        while True:
            writer.write(b"x")
            await asyncio.sleep(0.01)

    dripping = asyncio.create_task(drip()) if limit == "REQUEST_S" else None
    await wait_until(lambda: receiver.connections == 0)
    if dripping is not None:
        dripping.cancel()
    assert receiver.held_bytes == 0
    writer.close()
    del reader


async def test_all_bodies_are_bounded(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver_module, "HELD_BYTES", 100_000)
    first, writer = await asyncio.open_connection("127.0.0.1", receiver.port)
    writer.write(HEAD.replace(b": 2", b": 90001") + b"\r\n" + b" " * 90_000)
    await wait_until(lambda: receiver.held_bytes == 90_000)
    sent = await send(receiver, b" " * 60_000, JSON)
    assert (sent.status, sent.headers["retry-after"]) == (503, "2")
    writer.close()
    await wait_until(lambda: receiver.held_bytes == 0)
    assert (await send(receiver, export(SPAN))).status == 200
    del first


async def test_a_bomb_is_refused_before_it_goes_off(receiver: Receiver) -> None:
    inner = gzip.compress(b"\0" * (70 << 20), 1)
    assert (await send(receiver, b"{}")).status == 200
    before = sending.resident_kb()
    for kind in (PROTOBUF, JSON):
        assert (await send(receiver, inner, kind, Content_Encoding="gzip")).status == 413
    assert receiver.held_bytes == 0
    assert sending.resident_kb() - before < 4 * receiver_module.BODY_BYTES >> 10


@settings(max_examples=15)
@given(st.lists(st.binary(max_size=200), max_size=4))
def test_no_bytes_on_the_wire_make_it_fail(pieces: list[bytes]) -> None:
    async def ask() -> None:
        async with listening() as receiver:
            await raw(receiver, *pieces)
            assert (await send(receiver, export(SPAN))).status == 200

    asyncio.run(ask())


async def test_it_ends_at_once_while_senders_are_connected() -> None:
    receiver = Receiver("127.0.0.1:0")
    await receiver.poll(None)
    _, writer = await asyncio.open_connection("127.0.0.1", receiver.port)
    writer.write(b"POST /v1/traces HTTP/1.1\r\n")
    await wait_until(lambda: receiver.connections)
    await receiver.aclose()
    await receiver.aclose()
    assert receiver.connections == 0
    writer.close()
