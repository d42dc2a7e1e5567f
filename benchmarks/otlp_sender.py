"""Sends to a receiver of OTLP/HTTP as programs do, and as nobody should."""

import gzip
import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

HOST = "127.0.0.1"
ANSWER_S = 20.0
JSON, PROTOBUF = "application/json", "application/x-protobuf"
TRACES, LOGS = "/v1/traces", "/v1/logs"
MESSAGES = {TRACES: ExportTraceServiceRequest, LOGS: ExportLogsServiceRequest}
BOMB_BYTES = 80 << 20
"""More than a body may have; packed it is a thousandth of that."""
RESET_WHEN_CLOSED = b"\1\0\0\0\0\0\0\0"
HEAD = f"POST {TRACES} HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\nContent-Length: 1000\r\n\r\n"


class Post(NamedTuple):
    """One request."""

    path: str
    body: bytes
    kind: str = JSON
    packing: str = ""


def as_json(path: str, document: dict[str, Any]) -> Post:
    """A document as JSON."""
    return Post(path, json.dumps(document).encode())


def as_protobuf(path: str, document: dict[str, Any]) -> Post:
    """A document whose ids are in base64 as protobuf."""
    return Post(path, ParseDict(document, MESSAGES[path]()).SerializeToString(), PROTOBUF)


def packed(post: Post) -> Post:
    """The same in gzip."""
    return post._replace(body=gzip.compress(post.body), packing="gzip")


def hostile() -> Iterator[tuple[str, Post, int]]:
    """Requests that make no sense or are to do harm, and with which status they must be refused."""
    yield "a gzip bomb", packed(Post(TRACES, bytes(BOMB_BYTES), PROTOBUF)), 413
    yield "protobuf that is none", Post(TRACES, b"\x0a\xff\xff\xff\xff\x0fxyz", PROTOBUF), 400
    yield "JSON that breaks off", Post(LOGS, b'{"resourceLogs": [{"scopeLogs": ['), 400
    whole = packed(Post(TRACES, b'{"resourceSpans": []}'))
    yield "gzip that breaks off", whole._replace(body=whole.body[:-9]), 400
    yield "another packing", Post(TRACES, b"{}", packing="br"), 415


class OtlpSender:
    """A program that sends to a port of this machine, over a connection that it keeps."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._kept: http.client.HTTPConnection | None = None

    def send(self, post: Post) -> int:
        """Send; the status of the answer. Raises OSError or http.client.HTTPException without one."""
        self._kept = self._kept or http.client.HTTPConnection(HOST, self._port, timeout=ANSWER_S)
        headers = {"Content-Type": post.kind, "Content-Encoding": post.packing}
        try:
            self._kept.request("POST", post.path, post.body, {key: at for key, at in headers.items() if at})
            answer = self._kept.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        return answer.status

    def half(self) -> int:
        """Send half a body and no more; the status of the answer, 0 without one."""
        with suppress(OSError), self.opened() as one:
            one.sendall(HEAD.encode() + b"{")
            one.shutdown(socket.SHUT_WR)
            words = one.recv(4096).split()
            return int(words[1]) if len(words) > 1 else 0
        return 0

    def opened(self) -> socket.socket:
        """One more connection. Raises OSError."""
        return socket.create_connection((HOST, self._port), timeout=ANSWER_S)

    def drop(self, number: int) -> None:
        """Open a connection and drop it: every third after a few words, every third by a reset."""
        with suppress(OSError), self.opened() as one:
            if number % 3 == 1:
                one.sendall(HEAD.encode() + b"{")
            elif number % 3 == 2:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_WHEN_CLOSED)

    def close(self) -> None:
        """Let go of the connection. May be called twice."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()


def free_port() -> int:
    """A port at which nobody listens now."""
    with socket.socket() as bound:
        bound.bind((HOST, 0))
        port: int = bound.getsockname()[1]
    return port
