"""A small HTTP/1.1 server for what programs send: bodies in memory, all of it bounded, no long waits.

A sender that is slow, silent or gone costs one connection for a while; when all are taken, the one that was
silent longest gives way. The protocol itself is read by h11.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from jobtui.backends.traces.otlp_body import BodyParts, Refusal

if TYPE_CHECKING:
    import h11

MOST_CONNECTIONS = 200
BACKLOG = 128
HEAD_BYTES = 16 << 10
BODY_BYTES = 64 << 20
"""A body may have so many bytes, packed and unpacked."""
HELD_BYTES = 192 << 20
"""Bodies of all connections together."""
READ_BYTES = 64 << 10
IDLE_S = 90.0
"""So long a connection may be kept open between requests."""
SILENCE_S = 10.0
"""So long a sender may be silent within a request."""
REQUEST_S = 60.0
"""So long a request may take to come."""
GIVES_WAY_S = 1.0
"""A connection that was silent for so long gives way to a new one."""
LINGER_S = 1.0
"""So long what is sent to us is read and thrown away, that the sender may see why it was refused."""

log = logging.getLogger(__name__)


class Request(NamedTuple):
    """One request. Names of headers are in lower case; `body` is unpacked."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Reply(NamedTuple):
    """An answer. `retry_s` asks for the same again after so many seconds."""

    status: int
    body: bytes = b""
    kind: str = "text/plain; charset=utf-8"
    retry_s: int | None = None


Handle = Callable[[Request], Awaitable[Reply]]
Refuse = Callable[[Refusal], Reply]


class HttpServer:
    """A server at an address. `handle` answers requests, `refuse` those that cannot be read."""

    def __init__(
        self, handle: Handle, refuse: Refuse, body_bytes: int = BODY_BYTES, most: int = MOST_CONNECTIONS
    ) -> None:
        self.handle = handle
        self.refuse = refuse
        self.body_bytes = body_bytes
        self.held_bytes = 0
        self._most = most
        self._server: asyncio.Server | None = None
        self._open: dict[_Connection, asyncio.Task[None]] = {}
        self._is_closing = False

    async def start(self, host: str, port: int) -> int:
        """Listen; the port, also when 0 was asked for. Raises OSError."""
        self._server = await asyncio.start_server(
            self._accept, host or None, port, limit=READ_BYTES, backlog=BACKLOG
        )
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def close(self) -> None:
        """Listen no more, and let go of all connections. May be called twice."""
        self._is_closing = True
        if self._server is not None:
            self._server.close()
        tasks = list(self._open.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._open)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_closing or (len(self._open) >= self._most and not self._make_room()):
            writer.transport.abort()
            return
        connection = _Connection(self, reader, writer)
        task = asyncio.get_running_loop().create_task(connection.serve())
        self._open[connection] = task
        task.add_done_callback(lambda done: self._ended(connection, done))

    def _ended(self, connection: "_Connection", task: asyncio.Task[None]) -> None:
        self._open.pop(connection, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("internal error in a connection", exc_info=error)

    def _make_room(self) -> bool:
        """Let the connection that was silent longest give way; whether one was silent long enough."""
        silent = min(self._open, key=lambda one: one.heard_at)
        if silent.is_answering or time.monotonic() - silent.heard_at < GIVES_WAY_S:
            return False
        self._open.pop(silent).cancel()
        return True


class _Connection:
    """One connection, request after request."""

    def __init__(
        self, server: HttpServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        import h11

        self._server = server
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._held = 0
        self.heard_at = time.monotonic()
        self.is_answering = False

    async def serve(self) -> None:
        """Answer until either side has enough."""
        import h11

        if (sock := self._writer.get_extra_info("socket")) is not None:
            with suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        try:
            while await self._answer_one():
                self._http.start_next_cycle()
        except (OSError, TimeoutError, h11.ProtocolError):
            pass  # the sender is gone or has lost its way: it sends again if it wants to
        finally:
            self._let_go()
            self._writer.close()

    async def _answer_one(self) -> bool:
        """Read a request and answer it; whether another may follow."""
        import h11

        head: h11.Request | None = None
        try:
            event = await self._event(IDLE_S)
            if not isinstance(event, h11.Request):
                return False
            head = event
            async with asyncio.timeout(REQUEST_S):
                body = await self._body(_headers(head))
            self.is_answering = True
            target = head.target.decode("ascii", "replace").partition("?")[0]
            request = Request(head.method.decode("ascii", "replace"), target, _headers(head), body)
            del body
            reply = await self._server.handle(request)
            del request
        except h11.RemoteProtocolError as error:
            reply = self._server.refuse(Refusal(error.error_status_hint, str(error), _headers(head)))
        except Refusal as refusal:
            refusal.headers = _headers(head)
            reply = self._server.refuse(refusal)
        finally:
            self.is_answering = False
            self._let_go()
        return await self._send(reply)

    async def _send(self, reply: Reply) -> bool:
        """Send an answer; whether the connection can be kept."""
        import h11

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
        head = h11.Response(status_code=reply.status, headers=headers, reason=_reason(reply.status))
        for event in (head, h11.Data(data=reply.body), h11.EndOfMessage()):
            self._writer.write(self._http.send(event) or b"")
        async with asyncio.timeout(SILENCE_S):
            await self._writer.drain()
        if not keep:
            await self._throw_away()
        return keep

    async def _throw_away(self) -> None:
        """Read on for a moment: a connection that is closed with unread bytes loses our answer."""
        if self._writer.can_write_eof():
            self._writer.write_eof()
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                while await self._reader.read(READ_BYTES):
                    pass

    async def _body(self, headers: Mapping[str, str]) -> bytes:
        """The body, unpacked. Raises Refusal."""
        import h11

        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._server.body_bytes:
            raise Refusal(413, f"the body has {length} bytes of {self._server.body_bytes}")
        parts = BodyParts(headers.get("content-encoding", ""), self._server.body_bytes)
        while True:
            event = await self._event(SILENCE_S)
            if isinstance(event, h11.Data):
                self._hold(parts.take(bytes(event.data)))
            elif isinstance(event, h11.EndOfMessage):
                return parts.whole()
            else:
                raise Refusal(400, "the body broke off")

    def _hold(self, size: int) -> None:
        self._held += size
        self._server.held_bytes += size
        if self._server.held_bytes > HELD_BYTES:
            raise Refusal(503, "too much is sent at once")

    def _let_go(self) -> None:
        self._server.held_bytes -= self._held
        self._held = 0

    async def _event(self, patience_s: float) -> object:
        """The next event. Raises TimeoutError when nothing is heard for so long."""
        import h11

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


def _headers(head: "h11.Request | None") -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers} if head else {}


def _reason(status: int) -> bytes:
    return HTTPStatus(status).phrase.encode() if status in set(HTTPStatus) else b""
