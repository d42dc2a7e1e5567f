"""Programs beside a simulated site that send their spans and log records to the dashboard by OTLP/HTTP."""

import http.client
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from typing import Any

from benchmarks.growing_traces import GrowingTraces, base64_of
from benchmarks.otlp_sender import (
    HOST,
    LOGS,
    TRACES,
    OtlpSender,
    Post,
    as_json,
    as_protobuf,
    free_port,
    hostile,
    packed,
)
from benchmarks.sides import LASTS_S, Fault, Side, Wait

IDS_BEGIN = "5e4de40000000000"
DROPPED, AT_ONCE = 1_000, 50
"""Connections that are opened and dropped, and how many before the dashboard is let go on."""
HELD = 250
"""Connections that stay open and say nothing: more than the dashboard keeps."""
TAKEN_WITHIN = 30
PACKED_EVERY = 3
Encoding = tuple[Callable[[str, dict[str, Any]], Post], Callable[[str], str]]
"""How a document becomes a request, and how ids are written in it."""


class ReceiverSide(Side):
    """One program that sends a span and a log record each second, and again what was not taken in."""

    name = "receiver"

    def __init__(self) -> None:
        super().__init__()
        port = free_port()
        self.source = f"{HOST}:{port}"
        self.flags = ("--otlp-listen", self.source)
        self._sender = OtlpSender(port)
        self._traces = GrowingTraces("sender", IDS_BEGIN)
        self._encodings: Iterator[Encoding] = itertools.cycle([(as_json, str), (as_protobuf, base64_of)])
        self._posts = 0
        self._last: list[Post] = []
        self._waiting: list[Post] = []
        self._taken = self._unanswered = self._refused = 0

    def tick(self) -> None:
        """One more span and a log record, unless the last are still not taken in."""
        if not self._waiting:
            self._traces.grow()
            self._last = list(self._next())
            self._waiting = self._last.copy()
        while self._waiting and self._send(self._waiting[0]) == 200:
            self._waiting.pop(0)
            self.written += 1

    @property
    def faults(self) -> Mapping[str, Fault]:
        """What befalls who listens."""
        return {
            "hostile requests": self._hostile,
            "connections without end": self._connections,
            "sent again": self._sent_again,
        }

    def wrong(self, told: Mapping[str, Any]) -> list[str]:
        """Spans that are not known, or known twice, and requests that were taken or refused otherwise."""
        known = sum(size for one, size in told["traces"].items() if one.startswith(IDS_BEGIN))
        records = told["records"].get(self.source, 0)
        skipped = next((skipped for name, _, skipped, _ in told["sources"] if name == self.source), 0)
        again = self._unanswered  # what came twice at once is kept twice
        wrong = []
        if not self.written <= known <= self.written + again:
            wrong.append(f"{known} spans and log records known, not {self.written}")
        if not self._taken <= records <= self._taken + again:
            wrong.append(f"{records} records counted, {self._taken} were taken in")
        if skipped < self._refused:
            wrong.append(f"{skipped} requests said to be refused, {self._refused} were")
        return [f"{self.name}: {one}" for one in wrong]

    def close(self) -> None:
        """Let go of the connection."""
        self._sender.close()

    def _next(self) -> Iterator[Post]:
        """The newest span and a log record, each encoded in another way than the one before."""
        encode, of_id = next(self._encodings)
        *_, span = self._traces.newest.otlp(of_id, 1)
        yield self._packed_at_times(encode(TRACES, {"resourceSpans": [self._traces.resource_spans([span])]}))
        scope = {"logRecords": [_log_of(span, self._traces.newest.spans)]}
        resource = self._traces.resource_spans([])["resource"]
        group = {"resource": resource, "scopeLogs": [scope]}
        yield self._packed_at_times(encode(LOGS, {"resourceLogs": [group]}))

    def _packed_at_times(self, post: Post) -> Post:
        self._posts += 1
        return post if self._posts % PACKED_EVERY else packed(post)

    def _send(self, post: Post) -> int:
        """Send; the status of the answer, 0 without one: it may have been taken in all the same."""
        try:
            status = self._sender.send(post)
        except (OSError, http.client.HTTPException) as error:
            self._unanswered += not isinstance(error, ConnectionRefusedError)
            return 0
        self._taken += status == 200
        self._refused += status in range(400, 500)
        return status

    def _hostile(self, wait: Wait) -> None:
        asked: list[tuple[str, Callable[[], int], int]] = [
            (name, lambda post=post: self._send(post), status)  # type: ignore[misc]
            for name, post, status in hostile()
        ]
        for name, ask, expected in (*asked, ("half a body", self._sender.half, 400)):
            if (status := ask()) != expected:
                self.missed.append(f"{name} was answered {status}, not {expected}")
            wait(1.0)
        self._goes_on(wait)

    def _connections(self, wait: Wait) -> None:
        """Very many at once, one of them by a sender that sends a byte a second."""
        with ExitStack() as stack:
            slow = stack.enter_context(self._sender.opened())
            slow.sendall(b"POST ")
            for number in range(DROPPED):
                self._sender.drop(number)
                if number % AT_ONCE == 0:
                    wait(0.1)
                    with suppress(OSError):
                        slow.sendall(b"x")
            for number in range(HELD):
                with suppress(OSError):
                    stack.enter_context(self._sender.opened())
                if number % AT_ONCE == 0:
                    wait(0.1)
            self._goes_on(wait)

    def _sent_again(self, wait: Wait) -> None:
        """The answers to the last requests are lost: they are sent again when they have been read."""
        self._goes_on(wait)
        wait(LASTS_S)
        for post in self._last:
            self._send(post)
        self._goes_on(wait)

    def _goes_on(self, wait: Wait) -> None:
        """One more span and log record that are taken in, perhaps not at once."""
        before = time.monotonic()
        for _ in range(TAKEN_WITHIN):
            self.tick()
            if not self._waiting:
                return
            wait(1.0)
        self.missed.append(f"nothing was taken in for {time.monotonic() - before:.0f} s")


def _log_of(span: Mapping[str, Any], number: int) -> dict[str, Any]:
    """A log record of a span."""
    return {
        "timeUnixNano": span["endTimeUnixNano"], "severityText": "INFO", "severityNumber": 9,
        "body": {"stringValue": f"step {number} is done"}, "traceId": span["traceId"],
        "spanId": span["spanId"],
    }  # fmt: skip
