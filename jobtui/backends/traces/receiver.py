"""What is sent over OTLP/HTTP as a source, with its small HTTP/1.1 server.

It listens from its first poll on. Received data waits for the next poll, up to a limit beyond which senders
are asked to retry; nothing is kept here once it was polled. Bodies are in memory, all of it bounded. A sender
that is slow, silent or gone costs one connection for a while; if all are taken, the one that was silent
longest is closed. h11 reads the protocol.
"""

import asyncio
import errno
import ipaddress
import logging
import os
import re
import socket
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import NamedTuple

import h11

from jobtui.backends.base import Batch, PolledSource
from jobtui.formats.otlp_protobuf import Encoding, Signal, TooMany, answer_to, read_export, status_of_error
from jobtui.model.health import FAULTS, Skip, SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.numbers import MOST_INT64, whole
from jobtui.model.specs import ReadWindow, SourceSpec, is_loopback, listen_host
from jobtui.model.traces import Span, SpanLog
from jobtui.transport.unpacking import TooLarge, UnknownPacking, Unpacker, UnpackError
from jobtui.transport.worker import Worker

MOST_CONNECTIONS = 200
BACKLOG = 128
HEAD_BYTES = 16 << 10
BODY_BYTES = 64 << 20
"""The most bytes of a body, packed and unpacked."""
HELD_BYTES = 192 << 20
"""Bodies of all connections together."""
READ_BYTES = 64 << 10
IDLE_S = 90.0
"""How long a connection may stay open between requests."""
SILENCE_S = 10.0
"""How long a sender may be silent within a request."""
REQUEST_S = 60.0
GIVES_WAY_S = 1.0
"""A connection that was silent for this long is closed if a new one needs its place."""
LINGER_S = 1.0
"""How long a refused request is read and thrown away, so that the sender can read the answer."""

log = logging.getLogger(__name__)


class Refusal(Exception):
    """A request that is not read to its end: the status and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Reply(NamedTuple):
    """An answer. `retry_s` is how many seconds the sender should wait before it tries again."""

    status: int
    body: bytes
    kind: str
    retry_s: int | None = None


class _Connection:
    def __init__(
        self, receiver: "Receiver", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._receiver = receiver
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._held = 0
        self.heard_at = time.monotonic()
        self.is_answering = False

    async def serve(self) -> None:
        if (sock := self._writer.get_extra_info("socket")) is not None:
            with suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        try:
            while await self._answer_one():
                self._http.start_next_cycle()
        except (OSError, TimeoutError, h11.ProtocolError):
            pass  # the sender is gone or confused: it may send again
        finally:
            self._let_go()
            self._writer.close()

    async def _answer_one(self) -> bool:
        head: h11.Request | None = None
        try:
            event = await self._event(IDLE_S)
            if not isinstance(event, h11.Request):
                return False
            head = event
            refuse_browsers(_headers(head), self._receiver.host)
            async with asyncio.timeout(REQUEST_S):
                body = await self._body(_headers(head))
            self.is_answering = True
            reply = await self._receiver._answer(head, body)
            del body
        except h11.RemoteProtocolError as error:
            reply = self._receiver.error(error.error_status_hint, str(error), _headers(head))
        except Refusal as refusal:
            reply = self._receiver.error(refusal.status, str(refusal), _headers(head))
        finally:
            self.is_answering = False
            self._let_go()
        return await self._send(reply)

    async def _send(self, reply: Reply) -> bool:
        keep = self._http.their_state is h11.DONE
        headers = [
            ("Content-Type", reply.kind),
            ("Content-Length", str(len(reply.body))),
            ("Server", "jobtui"),
        ]
        headers += [("Retry-After", str(reply.retry_s))] if reply.retry_s is not None else []
        headers += [] if keep else [("Connection", "close")]
        state: object = self._http.our_state
        if state not in (h11.IDLE, h11.SEND_RESPONSE):
            return False
        reason = HTTPStatus(reply.status).phrase.encode() if reply.status in set(HTTPStatus) else b""
        head = h11.Response(status_code=reply.status, headers=headers, reason=reason)
        for event in (head, h11.Data(data=reply.body), h11.EndOfMessage()):
            self._writer.write(self._http.send(event) or b"")
        async with asyncio.timeout(SILENCE_S):
            await self._writer.drain()
        if not keep:  # read on for a moment: a connection that is closed with unread bytes loses our answer
            if self._writer.can_write_eof():
                self._writer.write_eof()
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER_S):
                    while await self._reader.read(READ_BYTES):
                        pass
        return keep

    async def _body(self, headers: Mapping[str, str]) -> bytes:
        """The body, unpacked. Raises Refusal."""
        length = headers.get("content-length", "0")
        if length.isdigit() and whole(length, MOST_INT64) > BODY_BYTES:
            raise Refusal(413, f"the body has {length} bytes, more than {BODY_BYTES}")
        parts: list[bytes] = []
        try:
            unpacker = Unpacker.of_body(headers.get("content-encoding", ""), BODY_BYTES)
            while isinstance(event := await self._event(SILENCE_S), h11.Data):
                for part in unpacker.feed(bytes(event.data)):
                    self._held += len(part)
                    self._receiver.held_bytes += len(part)
                    if self._receiver.held_bytes > HELD_BYTES:
                        raise Refusal(503, "too many requests at once")
                    parts.append(part)
            unpacker.end()
        except UnpackError as error:
            status = 413 if isinstance(error, TooLarge) else 415 if isinstance(error, UnknownPacking) else 400
            raise Refusal(status, f"the body is refused: {error}") from error
        if not isinstance(event, h11.EndOfMessage):
            raise Refusal(400, "the body is incomplete")
        return b"".join(parts)

    def _let_go(self) -> None:
        self._receiver.held_bytes -= self._held
        self._held = 0

    async def _event(self, patience_s: float) -> object:
        """The next event. Raises TimeoutError if none comes in time."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                self._writer.write(self._http.send(go_on) or b"")
            async with asyncio.timeout(patience_s):
                data = await self._reader.read(READ_BYTES)
            self.heard_at = time.monotonic()
            patience_s = min(patience_s, SILENCE_S)
            self._http.receive_data(data)
        return event


def refuse_browsers(headers: Mapping[str, str], listens_at: str) -> None:
    """Raise Refusal for what a page in somebody's browser sends.

    Browsers name the page in `Origin`. One that was led here by another name, whose owner points it at this
    machine, names that in `Host`: only addresses and the names of this machine are taken.
    """
    if "origin" in headers:
        raise Refusal(403, "requests from web pages are refused (header Origin)")
    named = headers.get("host", "").strip().lower()
    name = re.sub(r":\d*\Z", "", named).strip("[]").rstrip(".")
    try:
        ipaddress.ip_address(name)
    except ValueError:
        own = socket.gethostname().lower()
        short = name.partition(".")[0] if not is_loopback(listens_at) else name
        if name and name not in ("localhost", listens_at.lower(), own) and short != own.partition(".")[0]:
            why = f"{name[:60]} is not a name of this receiver (header Host); name it in --otlp-listen"
            raise Refusal(403, why) from None


def _headers(head: h11.Request | None) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers} if head else {}


MOST_WAITING = 20_000
"""How many spans and log records may wait for the next poll before senders are asked to wait."""
WAITING_BYTES = 128 << 20
"""The most bytes of the requests in which they came."""
BATCH = 2_000
"""Spans and log records of one poll: the store takes them in at once."""
RETRY_S = 2
SKIPS_NAMED = 20
PATHS = {f"/v1/{signal.value}": signal for signal in Signal}
NO_METRICS = "metrics are not kept: send them elsewhere"
CODES = {400: 3, 403: 7, 404: 5, 405: 12, 413: 8, 415: 3, 503: 14}
"""Codes of gRPC by those of HTTP."""
INTERNAL = 13


class Receiver(PolledSource):
    kind = "otlp"

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.port = 0
        """The port at which it listens, 0 while it does not."""
        self.host, self._wanted = listen_host(target)
        self.held_bytes = 0
        """Bytes of bodies that all connections hold."""
        self._server: asyncio.Server | None = None
        self._open: dict[_Connection, asyncio.Task[None]] = {}
        self._worker = Worker(f"spans sent to {target}")
        self._turn = asyncio.Lock()
        self._waiting: deque[Span | SpanLog] = deque()
        self._waiting_bytes = 0
        self._skips: deque[Skip] = deque(maxlen=SKIPS_NAMED)
        self._skip_count = 0
        self._news = asyncio.Event()

    async def read(self, *, begins: bool) -> Batch:
        """What was received since the last poll. Raises SourceError, also if it cannot listen there."""
        if self._server is None:
            host = None if self.host in ("", "*") else self.host
            try:
                self._server = await asyncio.start_server(
                    self._accept, host, self._wanted, limit=READ_BYTES, backlog=BACKLOG
                )
            except OSError as error:
                raise self._fault(error) from error
            self.port = self._server.sockets[0].getsockname()[1]
        taken = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
        skipped, skip_count = tuple(self._skips), self._skip_count
        self._skips.clear()
        self._skip_count = 0
        if not self._waiting:
            self._waiting_bytes = 0
            self._news.clear()
        whom = ": anybody who reaches this machine may send, unencrypted and without a login"
        if is_loopback(self.host):
            whom = ", for this machine only"
        return Batch(
            spans=tuple(one for one in taken if isinstance(one, Span)),
            span_logs=tuple(one for one in taken if isinstance(one, SpanLog)),
            skipped=skipped,
            skip_count=skip_count,
            count=len(taken),
            more=bool(self._waiting),
            note=f"listens at http://{self.name.rpartition(':')[0]}:{self.port}{whom}",
        )

    def _fault(self, error: OSError) -> SourceError:
        if error.errno == errno.EADDRINUSE:
            words = "the address is in use, perhaps by another jobtui; give another port"
            return SourceUnreachable(f"{self.name}: {words}")
        if error.errno in (errno.EACCES, errno.EPERM):
            return SourceDenied(f"{self.name}: no permission to listen there; use a port from 1024 on")
        # asyncio of Python 3.12 and later gives no number where this machine has none of the addresses
        number = errno.EADDRNOTAVAIL if error.errno is None else error.errno
        why = os.strerror(number) if number > 0 else error.strerror
        return SourceMissing(f"{self.name}: cannot listen there: {why}")

    async def changed(self, timeout_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._news.wait()

    async def aclose(self) -> None:
        await super().aclose()
        self._news.set()
        if self._server is not None:
            self._server.close()
        tasks = list(self._open.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._worker.close()

    @property
    def connections(self) -> int:
        return len(self._open)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_taken = not self.closing.is_set()
        if is_taken and len(self._open) >= MOST_CONNECTIONS:
            # the one that was silent longest is closed, if that was long enough
            silent = min(self._open, key=lambda one: one.heard_at)
            is_taken = not silent.is_answering and time.monotonic() - silent.heard_at >= GIVES_WAY_S
            if is_taken:
                self._open.pop(silent).cancel()
        if not is_taken:
            writer.transport.abort()
            return
        connection = _Connection(self, reader, writer)

        def ended(task: asyncio.Task[None]) -> None:
            self._open.pop(connection, None)
            if not task.cancelled() and (error := task.exception()) is not None:
                log.error("internal error in a connection", exc_info=error)

        task = asyncio.get_running_loop().create_task(connection.serve())
        self._open[connection] = task
        task.add_done_callback(ended)

    async def _answer(self, head: h11.Request, body: bytes) -> Reply:
        headers = _headers(head)
        encoding = encoding_of(headers.get("content-type", ""))
        method, target = (part.decode("ascii", "replace") for part in (head.method, head.target))
        path = target.partition("?")[0]
        if (signal := PATHS.get(path)) is None:
            return self.error(404, f"{path} is not served, only {', '.join(PATHS)}", headers)
        if method != "POST":
            return self.error(405, f"{method} is not supported, only POST", headers)
        if encoding is None:
            kind = headers.get("content-type", "nothing")
            return self.error(415, f"content type {kind}, expected {' or '.join(Encoding)}", headers)
        if signal is Signal.METRICS:
            return Reply(200, answer_to(signal, encoding, 0, NO_METRICS), encoding.value)
        async with self._turn:
            if len(self._waiting) >= MOST_WAITING or self._waiting_bytes >= WAITING_BYTES:
                return self.error(503, "too many requests at once", headers)
            try:
                found = await self._worker.run(lambda: read_export(body, signal, encoding, self.name))
            except TooMany as error:
                return self.error(413, str(error), headers)
            except ValueError as error:
                return self.error(400, str(error), headers)
            except Exception as error:  # noqa: BLE001 - it costs what this request brought
                return self.error(500, FAULTS.note(error, "reading what was sent").words, headers)
        self._waiting.extend((*found.spans, *found.logs))
        self._waiting_bytes += len(body) if found.spans or found.logs else 0
        self._skips.extend(found.skipped)
        self._skip_count += found.skip_count
        if found.spans or found.logs or found.skip_count:
            self._news.set()
        why = found.skipped[0].why if found.skipped else ""
        return Reply(200, answer_to(signal, encoding, found.skip_count, why), encoding.value)

    def error(self, status: int, why: str, headers: Mapping[str, str]) -> Reply:
        """An error, in the encoding of the request; counted, unless it is a matter of waiting."""
        retry_s = RETRY_S if status == 503 else None
        if retry_s is None:
            self._skip_count += 1
            self._skips.append(Skip(self.name, f"a request was refused ({status}): {why}"))
            self._news.set()
        encoding = encoding_of(headers.get("content-type", "")) or Encoding.JSON
        body = status_of_error(CODES.get(status, INTERNAL), why, encoding)
        return Reply(status, body, encoding.value, retry_s)


def encoding_of(content_type: str) -> Encoding | None:
    kind = content_type.partition(";")[0].strip().lower()
    return Encoding(kind) if kind in frozenset(Encoding) else None


def open_source(spec: SourceSpec, window: ReadWindow) -> Receiver:
    return Receiver(spec.target)
