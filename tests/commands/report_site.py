"""A served Balsam, and the commands on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.balsam_server import TOKEN, RecordedBalsam, write_login
from tests.commands.running import Ran, Runner
from tests.loopback import served

AT = "2026-11-20T19:30:00Z"


class Site:
    """A served Balsam, and jobtui on it."""

    def __init__(self, balsam: RecordedBalsam, url: str, run: Runner) -> None:
        self.balsam, self.url, self._run = balsam, url, run

    def __call__(self, *words: str) -> Ran:
        return self._run("--at", AT, "--since", "2026-11-20T12:00:00Z", "--balsam", self.url, *words)

    def report(self, *words: str, form: str = "--json") -> Ran:
        return self._run("--at", AT, "--balsam", self.url, "report", *words, *([form] if form else []))


@pytest.fixture
def site(run: Runner, plain_environment: Path) -> Iterator[Site]:
    balsam = RecordedBalsam()
    with served(balsam) as url:
        write_login(plain_environment / ".balsam" / "client.yml", url, TOKEN)
        yield Site(balsam, url, run)
