"""Servers and clients of tests on loopback and in this process, and a user whom permissions bind."""

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Protocol, TypeVar

import httpx

from jobtui.backends.base import PolledSource
from jobtui.backends.engine import Engine
from jobtui.model.clock import Clock
from jobtui.transport.http import HttpClient, HttpLimits

CUT_AT = "x-cut-at"
"""A header of an answer that is not sent: after this number of bytes the connection ends."""
NOT_SENT = ("content-length", "transfer-encoding", CUT_AT)


class Answers(Protocol):
    """A stand-in for a server. One that has a `base` is served at that path."""

    def answer(self, request: httpx.Request) -> httpx.Response: ...


def response(status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> httpx.Response:
    """An answer with these bytes as they are, also where they are packed."""
    return httpx.Response(status, headers=dict(headers or {}), stream=httpx.ByteStream(body))


@contextmanager
def served(server: Answers) -> Iterator[str]:
    """Let it answer over HTTP; the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            url = f"http://stand-in.test{self.path}"
            said = server.answer(httpx.Request(self.command, url, headers=self.headers.items(), content=body))
            assert isinstance(said.stream, httpx.ByteStream)
            data = b"".join(said.stream)
            self.send_response(said.status_code)
            for name, value in said.headers.items():
                if name not in NOT_SENT:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            with suppress(OSError):  # who asked may have given up
                self.end_headers()
                cut_at = int(said.headers.get(CUT_AT, len(data)))
                self.wfile.write(data[:cut_at])
                self.close_connection = cut_at < len(data)

        do_POST = do_GET

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    listening.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that has heard enough
    thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_address[1]}{getattr(server, 'base', '')}"
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


@contextmanager
def nobody() -> Iterator[None]:
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65_534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


class Timer:
    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


Client = TypeVar("Client")
Timed = TypeVar("Timed", bound=PolledSource | Engine)


def timed(whose: Timed, clock: Clock) -> Timed:
    """The same source or engine, which goes by this clock."""
    whose.clock = clock
    return whose


Answering = Callable[[httpx.Request], httpx.Response] | Callable[[httpx.Request], Awaitable[httpx.Response]]


def carried(client: Client, answer: Answering | None = None, limits: HttpLimits | None = None) -> Client:
    """The same client, whose requests this answers, within these limits."""
    whose: Any = client
    http: HttpClient = whose if isinstance(client, HttpClient) else whose._http
    http.transport = None if answer is None else httpx.MockTransport(answer)  # type: ignore[arg-type]
    http.limits = limits or http.limits
    return client
