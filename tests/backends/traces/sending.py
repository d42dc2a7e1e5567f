"""Sending to the receiver: whole requests, raw bytes, and what was taken in."""

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

from jobtui.backends.base import Batch
from jobtui.backends.traces.receiver import Receiver
from tests.trace_servers import JSON
from tests.waiting import LONG_S

PROTOBUF = "application/x-protobuf"


class Sent(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def json(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.body)
        return found


@asynccontextmanager
async def listening() -> AsyncIterator[Receiver]:
    receiver = Receiver("127.0.0.1:0")
    await receiver.poll(None)
    try:
        yield receiver
    finally:
        await receiver.aclose()


async def send(
    receiver: Receiver,
    body: bytes | Iterable[bytes],
    kind: str = JSON,
    path: str = "/v1/traces",
    method: str = "POST",
    **headers: str,
) -> Sent:
    def ask() -> Sent:
        connection = http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=LONG_S)
        said = {"Content-Type": kind} | {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, said, encode_chunked=not isinstance(body, bytes))
            answer = connection.getresponse()
            return Sent(answer.status, answer.read(), {k.lower(): v for k, v in answer.getheaders()})
        finally:
            connection.close()

    return await asyncio.to_thread(ask)


async def taken(receiver: Receiver) -> Batch:
    batch = await receiver.poll("last")
    spans, logs, skips = list(batch.spans), list(batch.span_logs), list(batch.skipped)
    while batch.more:
        batch = await receiver.poll(batch.cursor)
        spans += batch.spans
        logs += batch.span_logs
    return Batch(cursor=batch.cursor, spans=tuple(spans), span_logs=tuple(logs), skipped=tuple(skips))


async def raw(receiver: Receiver, *pieces: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", receiver.port)
    for piece in pieces:
        writer.write(piece)
        await asyncio.sleep(0)
    try:
        writer.write_eof()
        return await asyncio.wait_for(reader.read(), LONG_S)
    except OSError:
        return b""
    finally:
        writer.close()


def resident_kb() -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


SPAN = {"traceId": "AB" * 16, "spanId": "CD" * 8}


def export(*spans: object) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}).encode()
