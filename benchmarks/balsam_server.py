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
    WELL = auto()
    FAILS = auto()
    HANGS = auto()
    BREAKS = auto()


class BalsamServer:
    """Serves some jobs and their events from the moment it is made until it is closed."""

    def __init__(self) -> None:
        self.mood = Mood.WELL
        self._rows = Server(JOBS)
        self._closed = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, name="balsam", daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def write_login(self, home: Path) -> None:
        path = home / ".balsam" / "client.yml"
        path.parent.mkdir(mode=0o700, parents=True)
        path.write_text(LOGIN.format(url=self.url))
        path.chmod(0o600)

    def answer(self, path: str) -> httpx.Response | None:
        """What is answered to a request now; None: the connection is broken off."""
        until = 0.0
        while self.mood is Mood.HANGS and until < HANGS_S and not self._closed.wait(0.1):
            until += 0.1
        if self.mood is Mood.FAILS:
            return httpx.Response(500, content=b"Internal Server Error")
        return None if self.mood is Mood.BREAKS else self._rows.answer(httpx.Request("GET", self.url + path))

    def close(self) -> None:
        if not self._closed.is_set():
            self._closed.set()
            self._http.shutdown()
            self._http.server_close()


def _handler_of(server: BalsamServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if (answer := server.answer(self.path)) is None:
                return
            with suppress(OSError):  # who asked may have given up
                self.send_response(answer.status_code)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    return Handler
