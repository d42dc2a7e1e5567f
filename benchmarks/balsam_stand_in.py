"""A Balsam server on loopback that can be told to fail, to hang, or to break off."""

import threading
from contextlib import suppress
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx

from benchmarks.balsam import Server

JOBS = 20
"""Fewer than a page of the table, in which the rows of the other jobs are looked for page by page."""
HANGS_S = 60.0
LOGIN = """api_root: {url}
client_class: balsam.client.requests_password.BasicAuthRequestsClient
token: x
token_expiry: 2036-11-22 19:31:57.715415
"""


class Mood(Enum):
    """How requests are answered."""

    WELL = auto()
    FAILS = auto()
    HANGS = auto()
    BREAKS = auto()


class BalsamStandIn:
    """Serves some jobs and their events from the moment it is made until it is closed."""

    def __init__(self) -> None:
        self.mood = Mood.WELL
        self._rows = Server(JOBS)
        self._closed = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="balsam")
        self._thread.start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def write_login(self, home: Path) -> None:
        """A login for it where Balsam's client keeps it."""
        path = home / ".balsam" / "client.yml"
        path.parent.mkdir(mode=0o700, parents=True)
        path.write_text(LOGIN.format(url=self.url))
        path.chmod(0o600)

    def close(self) -> None:
        """End it."""
        self._closed.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, url: str) -> httpx.Response:
        """What is said to a request, as its mood is."""
        if self.mood is Mood.FAILS:
            return httpx.Response(500, content=b"Internal Server Error")
        if self.mood is Mood.HANGS:
            self._closed.wait(HANGS_S)
        return self._rows.answer(httpx.Request("GET", url))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if stand_in.mood is Mood.BREAKS:
                    self.close_connection = True
                    return
                answer = stand_in.answer(f"{stand_in.url}{self.path}")
                with suppress(OSError):  # who asked may have given up
                    self.send_response(answer.status_code)
                    self.send_header("content-length", str(len(answer.content)))
                    self.end_headers()
                    self.wfile.write(answer.content)

            def log_message(self, format: str, *arguments: object) -> None:
                """Say nothing."""

        return Handler
