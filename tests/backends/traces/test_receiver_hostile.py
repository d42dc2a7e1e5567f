"""What neither stops nor grows the receiver: bombs, slow and silent senders, thousands of connections."""

import asyncio
import gzip
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.backends.traces import otlp_http
from jobtui.backends.traces.receiver import Receiver
from tests.backends.traces.sending import JSON, PROTOBUF, listening, raw, send
from tests.backends.traces.test_receiver import SPAN, export
from tests.waiting import wait_until

CONNECTIONS = 300
"""`tests/real` opens ten thousand; some machines take 4 ms for each."""
GROWTH_KB = 8_000


def resident_kb() -> int:
    """Memory of this process, in kilobytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


OPEN_AND_DROP = """
import socket, sys
for number in range(int(sys.argv[2])):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=10) as one:
        if number % 3 == 1:
            one.send(b"POST /v1/traces HTTP/1.1\\r\\nContent-Length: 100\\r\\n\\r\\n{")
        if number % 3 == 2:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\\1\\0\\0\\0\\0\\0\\0\\0")
"""
"""Opens connections one after the other, says a little on some, and drops them, some by a reset."""


async def open_and_drop(port: int, count: int) -> None:
    """Let another process do that."""
    arguments = (sys.executable, "-c", OPEN_AND_DROP, str(port), str(count))
    assert await (await asyncio.create_subprocess_exec(*arguments)).wait() == 0


async def test_connections_opened_and_dropped_leave_nothing() -> None:
    assert await growth_kb(CONNECTIONS) < GROWTH_KB


async def growth_kb(connections: int) -> int:
    """By how much this process grows when so many connections are opened and dropped."""
    async with listening() as receiver:
        await open_and_drop(receiver.port, 100)
        await wait_until(lambda: not receiver.server.connections)
        before = resident_kb()
        await open_and_drop(receiver.port, connections)
        assert (await send(receiver, export(SPAN))).status == 200
        await wait_until(lambda: not receiver.server.connections)
        assert receiver.server.held_bytes == 0
        return resident_kb() - before


async def test_silent_connections_give_way_to_those_that_send(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_http, "GIVES_WAY_S", 0.0)
    async with listening(connections=5) as receiver:
        silent = [await asyncio.open_connection("127.0.0.1", receiver.port) for _ in range(20)]
        for _, writer in silent[::2]:
            writer.write(b"POST /v1/traces HT")
        assert (await send(receiver, export(SPAN))).status == 200
        assert receiver.server.connections <= 5
        for _, writer in silent:
            writer.close()


async def test_when_all_are_busy_one_more_is_turned_away() -> None:
    async with listening(connections=2) as receiver:
        held = [await asyncio.open_connection("127.0.0.1", receiver.port) for _ in range(2)]
        await wait_until(lambda: receiver.server.connections == 2)
        assert await raw(receiver, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n") == b""
        for _, writer in held:
            writer.close()
        await wait_until(lambda: receiver.server.connections == 0)
        assert (await send(receiver, export(SPAN))).status == 200


@pytest.mark.parametrize("limit", ["SILENCE_S", "REQUEST_S"])
async def test_a_slow_sender_is_let_go(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_http, limit, 0.05)
    async with listening() as receiver:
        reader, writer = await asyncio.open_connection("127.0.0.1", receiver.port)
        writer.write(b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
        await wait_until(lambda: receiver.server.connections == 1)

        async def drip() -> None:
            while True:
                writer.write(b"x")
                await asyncio.sleep(0.01)

        dripping = asyncio.create_task(drip()) if limit == "REQUEST_S" else None
        await wait_until(lambda: receiver.server.connections == 0)
        if dripping is not None:
            dripping.cancel()
        assert receiver.server.held_bytes == 0
        writer.close()
        del reader


async def test_bodies_of_all_connections_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_http, "HELD_BYTES", 100_000)
    async with listening() as receiver:
        first, writer = await asyncio.open_connection("127.0.0.1", receiver.port)
        writer.write(b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Length: 90001\r\n\r\n" + b" " * 90_000)
        await wait_until(lambda: receiver.server.held_bytes == 90_000)
        sent = await send(receiver, b" " * 60_000, JSON)
        assert (sent.status, sent.headers["retry-after"]) == (503, "2")
        writer.close()
        await wait_until(lambda: receiver.server.held_bytes == 0)
        assert (await send(receiver, export(SPAN))).status == 200
        del first


async def test_a_bomb_is_refused_before_it_goes_off() -> None:
    inner = gzip.compress(b"\0" * (70 << 20), 1)
    async with listening() as receiver:
        assert (await send(receiver, b"{}")).status == 200
        before = resident_kb()
        for kind in (PROTOBUF, JSON):
            assert (await send(receiver, inner, kind, Content_Encoding="gzip")).status == 413
        assert receiver.server.held_bytes == 0
        assert resident_kb() - before < 4 * otlp_http.BODY_BYTES >> 10


@settings(max_examples=15)
@given(body=st.binary(max_size=300), kind=st.sampled_from([JSON, PROTOBUF]), packed=st.booleans())
def test_no_bytes_make_it_fail(body: bytes, kind: str, packed: bool) -> None:
    async def ask() -> None:
        async with listening() as receiver:
            headers = {"Content_Encoding": "gzip"} if packed else {}
            for path in ("/v1/traces", "/v1/logs"):
                assert (await send(receiver, body, kind, path, **headers)).status in (200, 400, 413)

    asyncio.run(ask())


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
    await wait_until(lambda: receiver.server.connections)
    await receiver.aclose()
    await receiver.aclose()
    assert receiver.server.connections == 0
    writer.close()
