"""The journal of a host behind a real sshd: noise, refusals, hostile names, shells, shared connections."""

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from jobtui.backends.journal.journalctl import JournalctlReader
from jobtui.model.journal import Beside, Cursor, Head, JournalCondition, Tail
from jobtui.model.source_errors import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.transport import ssh as shell
from tests.backends.journal.make import entry, make_journal, needs_journal_tools
from tests.backends.journal.ssh_rig import SshClient, Sshd, needs_sshd
from tests.waiting import LONG_S, wait_until

pytestmark = [needs_sshd, needs_journal_tools]

Prepare = Callable[[Sshd, SshClient, Path], Awaitable[None]]
HOSTILE = "a'b\"c\\d!e $(touch owned) `touch owned`; touch owned"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("journal")
    entries = [entry(number, f"line {number}", CONTAINER_NAME="srj") for number in range(20)]
    make_journal(made, [*entries, entry(20, "hostile", CONTAINER_NAME=HOSTILE)])
    return made


async def messages(journal: JournalctlReader) -> list[str]:
    found = await journal.forward(Head(), (), 3)
    await journal.aclose()
    return [entry.message for entry in found.entries]


async def fault_of(journal: JournalctlReader) -> SourceError:
    with pytest.raises(SourceError) as raised:
        await journal.forward(Head(), (), 3)
    await journal.aclose()
    return raised.value


def restart(server: Sshd, more: str) -> None:
    server.die()
    server.prepare(more=more)
    server.start()


@pytest.mark.parametrize("shell", ["dash", "bash", "zsh", "csh", "tcsh", "fish"])
async def test_any_login_shell_will_do(server: Sshd, directory: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}: apt-get install {shell}")
    restart(server, f'ForceCommand exec {shell} -c "$SSH_ORIGINAL_COMMAND"')
    journal = JournalctlReader(f"{server.spec}{directory}")
    found = await journal.backward(Tail(), ((("CONTAINER_NAME", HOSTILE),),), 5)
    assert [(entry.message, entry.container) for entry in found.entries] == [("hostile", HOSTILE)]
    assert not list(Path.home().glob("owned"))
    again = await journal.forward(Beside(found.entries[0].cursor), (), 5)
    assert (again.entries, again.at_edge) == ((), True)
    await journal.aclose()


async def test_what_a_login_prints_is_no_entry(server: Sshd, directory: Path, tmp_path: Path) -> None:
    banner = tmp_path / "banner"
    banner.write_text("__CURSOR=no entry\n\n" * 50)
    noise = "printf '__CURSOR=no\\n\\nMESSAGE\\n'; head -c 100000 /dev/zero"
    restart(server, f'Banner {banner}\nForceCommand {noise}; eval "$SSH_ORIGINAL_COMMAND"')
    journal = JournalctlReader(f"{server.spec}{directory}")
    assert await journal.condition() == JournalCondition(files=1)
    assert sorted((await journal.values("CONTAINER_NAME"))["CONTAINER_NAME"]) == [HOSTILE, "srj"]
    assert await messages(journal) == ["line 0", "line 1", "line 2"]


async def with_another_key(server: Sshd, client: SshClient, directory: Path) -> None:
    assert await messages(JournalctlReader(f"{server.spec}{directory}"))
    server.make_key("host_key")
    restart(server, "")


async def of_nobody(server: Sshd, client: SshClient, directory: Path) -> None:
    client.settings(server.root, checking="ask")


def wanting(passwords: str) -> Prepare:
    async def prepare(server: Sshd, client: SshClient, directory: Path) -> None:
        server.die()
        server.prepare(passwords=passwords)
        (server.root / "user_key.pub").write_text("")
        server.start()

    return prepare


async def gone(server: Sshd, client: SshClient, directory: Path) -> None:
    server.die()


async def without_journalctl(server: Sshd, client: SshClient, directory: Path) -> None:
    (place := server.root / "programs").mkdir()
    (place / "env").symlink_to("/usr/bin/env")
    restart(server, f'ForceCommand export PATH={place}; eval "$SSH_ORIGINAL_COMMAND"')


FAULTS: dict[str, tuple[Prepare, type[SourceError], str]] = {
    "a host key that changed": (with_another_key, SourceDenied, "ssh-keygen -R '[127.0.0.1]:{port}'"),
    "a host key that nobody knows": (of_nobody, SourceDenied, "not known yet"),
    "a host that wants a password": (wanting("yes"), SourceDenied, "ssh-copy-id"),
    "a host that wants another key": (wanting("no"), SourceDenied, "ssh-add"),
    "a port where nobody is": (gone, SourceUnreachable, "refuses connections to port {port}"),
    "a host without journalctl": (without_journalctl, SourceMissing, "no journalctl on 127.0.0.1"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_each_fault_is_told_with_what_to_do(
    server: Sshd, directory: Path, client: SshClient, fault: str
) -> None:
    prepare, kind, words = FAULTS[fault]
    await prepare(server, client, directory)
    raised = await asyncio.wait_for(fault_of(JournalctlReader(f"{server.spec}{directory}")), LONG_S)
    assert isinstance(raised, kind)
    assert words.format(port=server.port) in str(raised)
    assert prepare is not of_nobody or not (server.root / "known_hosts").exists()


async def test_a_port_where_somebody_is_silent(client: SshClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "OPTIONS", (*shell.OPTIONS, "ConnectTimeout=1")[::-1])
    client.settings(client.root)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        fault = await fault_of(JournalctlReader(f"ssh://127.0.0.1:{silent.getsockname()[1]}"))
    assert isinstance(fault, SourceUnreachable)
    assert "does not answer" in str(fault)


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root, to become somebody else"
)
async def test_a_user_who_may_not_read_the_journal(server: Sshd) -> None:
    with tempfile.TemporaryDirectory() as text:  # others cannot reach what is below tmp_path
        place = Path(text)
        make_journal(place, [entry(0, "secret")]).chmod(0o600)
        os.chmod(place, 0o755)
        nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups"
        restart(server, f'ForceCommand exec {nobody} sh -c "$SSH_ORIGINAL_COMMAND"')
        fault = await fault_of(JournalctlReader(f"{server.spec}{place}"))
    assert isinstance(fault, SourceDenied)
    assert "may not read the journal on 127.0.0.1; as root: usermod -aG systemd-journal" in str(fault)


async def test_a_directory_that_is_not_there_or_a_cursor_that_is_none(server: Sshd, directory: Path) -> None:
    fault = await fault_of(JournalctlReader(f"{server.spec}/no/such/directory"))
    assert isinstance(fault, SourceMissing)
    assert "no /no/such/directory on 127.0.0.1" in str(fault)
    journal = JournalctlReader(f"{server.spec}{directory}")
    with pytest.raises(SourceError, match="Failed to seek to cursor"):
        await journal.forward(Beside(Cursor("nonsense")), (), 1)
    await journal.aclose()


async def test_connections_are_shared_and_the_reader_leaves_nothing_running(
    server: Sshd, directory: Path, client: SshClient
) -> None:
    journal = JournalctlReader(f"{server.spec}{directory}")
    follow = journal.follow(Head(), ())
    while not (await follow.take(100)).at_edge:
        pass
    await journal.backward(Tail(), (), 2)
    sockets = list((client.sockets / "jobtui").iterdir())
    assert len(sockets) == 1
    assert sockets[0].stat().st_mode & 0o077 == 0
    assert await messages(journal) == ["line 0", "line 1", "line 2"]
    await wait_until(lambda: "journalctl" in commands(server))
    await follow.aclose()
    await wait_until(lambda: "journalctl" not in commands(server))


def commands(server: Sshd) -> list[str]:
    """What sshd's connections run."""
    found = []
    for pid in server.children():
        try:
            found.append(Path(f"/proc/{pid}/comm").read_text().strip())
        except OSError:
            continue
    return found
