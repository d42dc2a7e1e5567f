"""A Balsam server on loopback that can be told to fail, to hang, or to break off."""

import threading
from contextlib import ExitStack
from enum import Enum, auto
from pathlib import Path

import httpx

from benchmarks.balsam import Server
from tests.balsam_server import write_login
from tests.loopback import CUT_AT, served

JOBS = 20
"""Fewer than a page of the table, in which the rows of the other jobs are looked for page by page."""
HANGS_S = 60.0


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
        self._serving = ExitStack()
        self.url = self._serving.enter_context(served(self))

    def write_login(self, home: Path) -> None:
        write_login(home / ".balsam" / "client.yml", self.url, "x")

    def answer(self, request: httpx.Request) -> httpx.Response:
        """What is answered to a request now, in a moment in which it breaks off less than that."""
        until = 0.0
        while self.mood is Mood.HANGS and until < HANGS_S and not self._closed.wait(0.1):
            until += 0.1
        if self.mood is Mood.FAILS:
            return httpx.Response(500, content=b"Internal Server Error")
        answer = self._rows.answer(request)
        if self.mood is Mood.BREAKS:
            answer.headers[CUT_AT] = "0"
        return answer

    def close(self) -> None:
        self._closed.set()
        self._serving.close()
