"""A recorded Balsam server on loopback, and a login for it where Balsam's client keeps it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import httpx

from tests.loopback import QuietHandler, on_loopback

CUT_AT = "x-cut-at"
"""A header of an answer that is not sent: after so many bytes of the answer the connection ends."""


class Balsam(Protocol):
    def answer(self, request: httpx.Request) -> httpx.Response: ...


@contextmanager
def served(balsam: Balsam) -> Iterator[str]:
    class Handler(QuietHandler):
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
                if name not in ("content-length", "transfer-encoding", CUT_AT):
                    self.send_header(name, value)
            self.send_header("content-length", str(len(answer.content)))
            with suppress(OSError):  # who asked may have given up
                self.end_headers()
                cut_at = int(answer.headers.get(CUT_AT, len(answer.content)))
                self.wfile.write(answer.content[:cut_at])
                self.close_connection = cut_at < len(answer.content)

    with on_loopback(Handler) as address:
        yield address


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
