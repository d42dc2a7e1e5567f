"""Stand-ins on loopback: a server in a thread, and a user whom permissions bind."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class QuietHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def on_loopback(handler: type[QuietHandler]) -> Iterator[str]:
    """Let it answer over HTTP; the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that has heard enough
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


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
