"""What is sent to us over OTLP/HTTP as a source: spans, and log records that name one.

It listens from its first poll on. What it took in waits for the next poll, up to a limit beyond which senders
are asked to come again; nothing is kept here once it was polled.
"""

import asyncio
import errno
import os
from collections import deque
from contextlib import suppress

from jobtui.backends.base import Batch, SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.backends.traces.otlp_body import Refusal
from jobtui.backends.traces.otlp_http import BODY_BYTES, MOST_CONNECTIONS, HttpServer, Reply, Request
from jobtui.backends.worker import Worker
from jobtui.formats.otlp_requests import (
    Encoding,
    Signal,
    TooMany,
    answer_to,
    read_export,
    status_of_error,
)
from jobtui.model.health import Skip
from jobtui.model.trace_specs import is_loopback, listen_place
from jobtui.model.traces import Span, SpanLog, Telemetry

MOST_WAITING = 20_000
"""So many spans and log records may wait for the next poll before senders are asked to wait."""
WAITING_BYTES = 128 << 20
"""What they came in may have so many bytes together."""
BATCH = 2_000
"""Spans and log records of one poll: the store takes them in at once."""
RETRY_S = 2
SKIPS_NAMED = 20
PATHS = {f"/v1/{signal.value}": signal for signal in Signal}
NO_METRICS = "metrics are not kept: send them elsewhere"
CODES = {400: 3, 404: 5, 405: 12, 413: 8, 415: 3, 503: 14}
"""Codes of gRPC by those of HTTP."""
INTERNAL = 13


class Receiver:
    """An address at which is listened."""

    kind = "otlp"

    def __init__(
        self, target: str, *, body_bytes: int = BODY_BYTES, connections: int = MOST_CONNECTIONS
    ) -> None:
        self.name = target
        self.port = 0
        """At which it listens, 0 as long as it does not."""
        self._host, self._wanted = listen_place(target)
        self.server = HttpServer(self._answer, self._refuse, body_bytes, connections)
        self._worker = Worker(f"spans sent to {target}")
        self._turn = asyncio.Lock()
        self._waiting: deque[Span | SpanLog] = deque()
        self._waiting_bytes = 0
        self._skips: deque[Skip] = deque(maxlen=SKIPS_NAMED)
        self._skip_count = 0
        self._news = asyncio.Event()
        self._issued = 0
        self._last: Batch | None = None
        self._is_closed = False

    async def poll(self, cursor: str | None) -> Batch:
        """What was received since the last poll; with the cursor before the last the same again.

        Raises SourceError, also when it cannot listen there.
        """
        if self._is_closed:
            raise SourceError(f"{self.name}: is closed")
        if not self.port:
            await self._listen()
        if self._last is not None and cursor == str(self._issued - 1):
            return self._last
        self._issued += 1
        self._last = self._next_batch()
        return self._last

    async def _listen(self) -> None:
        try:
            self.port = await self.server.start("" if self._host == "*" else self._host, self._wanted)
        except OSError as error:
            raise self._fault(error) from error

    def _fault(self, error: OSError) -> SourceError:
        if error.errno == errno.EADDRINUSE:
            return SourceUnreachable(
                f"{self.name}: the address is in use, perhaps by another jobtui; give another port"
            )
        if error.errno in (errno.EACCES, errno.EPERM):
            return SourceDenied(f"{self.name}: may not be listened at; take a port from 1024 on")
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        return SourceMissing(f"{self.name}: cannot be listened at: {why}")

    def _next_batch(self) -> Batch:
        taken = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
        skipped, skip_count = tuple(self._skips), self._skip_count
        self._skips.clear()
        self._skip_count = 0
        if not self._waiting:
            self._waiting_bytes = 0
            self._news.clear()
        return Batch(
            cursor=str(self._issued),
            spans=tuple(one for one in taken if isinstance(one, Span)),
            span_logs=tuple(one for one in taken if isinstance(one, SpanLog)),
            skipped=skipped,
            skip_count=skip_count,
            count=len(taken),
            more=bool(self._waiting),
            note=self._note(),
        )

    def _note(self) -> str:
        place = f"listens at http://{self.name.rpartition(':')[0]}:{self.port}"
        if is_loopback(self._host):
            return f"{place}, for this machine only"
        return f"{place}: whoever reaches this machine may send, unencrypted and without a login"

    async def changed(self, timeout_s: float) -> None:
        """Return when something was received, at the latest after `timeout_s`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._news.wait()

    async def aclose(self) -> None:
        """Listen no more. May be called twice."""
        self._is_closed = True
        self._news.set()
        await self.server.close()
        self._worker.close()

    async def _answer(self, request: Request) -> Reply:
        """The answer to a request."""
        encoding = encoding_of(request.headers.get("content-type", ""))
        if (signal := PATHS.get(request.path)) is None:
            return self._error(
                404, f"nothing is taken at {request.path}, but at {', '.join(PATHS)}", encoding
            )
        if request.method != "POST":
            return self._error(405, f"{request.method} is not taken, but POST", encoding)
        if encoding is None:
            told = request.headers.get("content-type", "nothing")
            return self._error(415, f"content type {told}, expected {' or '.join(Encoding)}", encoding)
        if signal is Signal.METRICS:
            return Reply(200, answer_to(signal, encoding, 0, NO_METRICS), encoding.value)
        return await self._take_in(request.body, signal, encoding)

    async def _take_in(self, body: bytes, signal: Signal, encoding: Encoding) -> Reply:
        async with self._turn:
            if len(self._waiting) >= MOST_WAITING or self._waiting_bytes >= WAITING_BYTES:
                return self._error(503, "too much is sent at once", encoding)
            try:
                found = await self._worker.run(lambda: read_export(body, signal, encoding, self.name))
            except TooMany as error:
                return self._error(413, str(error), encoding)
            except ValueError as error:
                return self._error(400, str(error), encoding)
        self._keep(found, len(body))
        why = found.skipped[0].why if found.skipped else ""
        return Reply(200, answer_to(signal, encoding, found.skip_count, why), encoding.value)

    def _keep(self, found: Telemetry, size: int) -> None:
        self._waiting.extend(found.spans)
        self._waiting.extend(found.logs)
        self._waiting_bytes += size if found.spans or found.logs else 0
        self._skips.extend(found.skipped)
        self._skip_count += found.skip_count
        if found.spans or found.logs or found.skip_count:
            self._news.set()

    def _refuse(self, refusal: Refusal) -> Reply:
        """The answer to a request that was not read to its end."""
        kind = refusal.headers.get("content-type", "")
        return self._error(refusal.status, str(refusal), encoding_of(kind))

    def _error(self, status: int, why: str, encoding: Encoding | None) -> Reply:
        """An error, in the encoding of the request; counted, unless it is a matter of waiting."""
        retry_s = RETRY_S if status == 503 else None
        if retry_s is None:
            self._skip_count += 1
            self._skips.append(Skip(self.name, f"a request was refused ({status}): {why}"))
            self._news.set()
        encoding = encoding or Encoding.JSON
        body = status_of_error(CODES.get(status, INTERNAL), why, encoding)
        return Reply(status, body, encoding.value, retry_s)


def encoding_of(content_type: str) -> Encoding | None:
    """How a request is encoded, None when it is neither way."""
    kind = content_type.partition(";")[0].strip().lower()
    return Encoding(kind) if kind in frozenset(Encoding) else None
