"""An HTTP server on loopback that answers well, or as servers in trouble do: one fault, one mood."""

import threading
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

HOST = "127.0.0.1"
HANGS_S = 60.0
PAGE = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>Sign in</body></html>"


class Mood(Enum):
    """How requests are answered."""

    WELL = auto()
    FAILS = auto()
    HANGS = auto()
    BREAKS = auto()
    HALF = auto()
    DENIES = auto()
    PAGE = auto()
    REFUSES = auto()


class Question(NamedTuple):
    """One request."""

    method: str
    path: str
    body: bytes


class Reply(NamedTuple):
    """What is answered to it."""

    status: int
    body: bytes
    kind: str = "application/json"


IN_TROUBLE = {
    Mood.FAILS: Reply(500, b"Internal Server Error", "text/plain"),
    Mood.DENIES: Reply(401, b'{"error": {"type": "security_exception", "reason": "missing credentials"}}'),
    Mood.PAGE: Reply(200, PAGE, "text/html"),
}


class MoodyServer:
    """Answers requests by a function from the moment it is made until it is closed. `asked` counts them."""

    def __init__(self, answer: Callable[[Question], Reply]) -> None:
        self.asked = 0
        self._answer = answer
        self._mood = Mood.WELL
        self._closed, self._moved = threading.Event(), threading.Event()
        self._server = self._opened(0)
        self.port: int = self._server.server_address[1]

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://{HOST}:{self.port}"

    @property
    def mood(self) -> Mood:
        """How it answers from now on; what hung is answered when it changes."""
        return self._mood

    @mood.setter
    def mood(self, mood: Mood) -> None:
        if mood is self._mood:
            return
        if self._mood is Mood.REFUSES:
            self._server = self._opened(self.port)
        elif mood is Mood.REFUSES:
            self._end()
        self._mood = mood
        self._moved.set()
        self._moved = threading.Event()

    def close(self) -> None:
        """End it. May be called twice."""
        if not self._closed.is_set():
            self._closed.set()
            self._moved.set()
            if self._mood is not Mood.REFUSES:
                self._end()

    def reply(self, question: Question) -> Reply:
        """What is answered to a request, as its mood is."""
        self.asked += 1
        if self._mood is Mood.HANGS:
            self._moved.wait(HANGS_S)
        return IN_TROUBLE.get(self._mood) or self._answer(question)

    def _opened(self, port: int) -> ThreadingHTTPServer:
        server = ThreadingHTTPServer((HOST, port), _handler_of(self))
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # who asked has given up
        threading.Thread(target=server.serve_forever, name="moody server", daemon=True).start()
        return server

    def _end(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler_of(server: MoodyServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            reply = server.reply(Question(self.command, self.path, body))
            with suppress(OSError):  # who asked may have given up
                self._send(reply)

        do_POST = do_GET

        def _send(self, reply: Reply) -> None:
            # one that stays would be answered while no other is taken any more
            self.close_connection |= server.mood is not Mood.WELL
            if server.mood in (Mood.BREAKS, Mood.REFUSES):
                return
            self.send_response(reply.status)
            self.send_header("content-type", reply.kind)
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            half = len(reply.body) // 2
            self.wfile.write(reply.body[:half] if server.mood is Mood.HALF else reply.body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    return Handler
