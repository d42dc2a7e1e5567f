"""What tests of several backends need: a real sshd, and an ssh that it lets in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backends.journal.ssh_rig import SshClient, Sshd, ssh_client


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
