"""What tests of several backends need: a real sshd, and an ssh that it lets in."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from jobtui.logs.pages import LogPages
from tests.backends.journal.ssh_rig import SshClient, Sshd, ssh_client


@pytest.fixture
async def pages(tmp_path: Path) -> AsyncIterator[LogPages]:
    log = LogPages(tmp_path / "x.log")
    yield log
    await log.aclose()


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshClient]:
    with ssh_client(tmp_path / "client", monkeypatch) as made:
        yield made


@pytest.fixture
def server(tmp_path: Path, client: SshClient) -> Iterator[Sshd]:
    made = Sshd(tmp_path / "server")
    made.prepare()
    client.settings(made.root)
    made.start()
    yield made
    made.die()
