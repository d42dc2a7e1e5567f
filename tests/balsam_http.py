"""A recorded Balsam server on loopback, and a login for it where Balsam's client keeps it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx

from tests.balsam_server import RecordedBalsam


@contextmanager
def served(balsam: RecordedBalsam) -> Iterator[str]:
    """Let a recorded server answer over HTTP; its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("content-length", 0))))

        def _answer(self, body: bytes) -> None:
            request = httpx.Request(
                self.command, f"http://balsam.test{self.path}", headers=self.headers.items(), content=body
            )
            answer = balsam.answer(request)
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                if name not in ("content-length", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("content-length", str(len(answer.content)))
            with suppress(OSError):  # who asked may have given up
                self.end_headers()
                self.wfile.write(answer.content)

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def write_login(
    path: Path, url: str, token: str, expiry: str = "2036-11-22 19:31:57.715415", mode: int = 0o600
) -> Path:
    """A login as `balsam login` writes it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(
        f"api_root: {url}\nclient_class: balsam.client.requests_password.BasicAuthRequestsClient\n"
        f"connect_timeout: 6.2\nread_timeout: 120.0\nretry_count: 10\ntoken: {token}\n"
        f"token_expiry: {expiry}\n"
    )
    os.chmod(path, mode)
    return path
