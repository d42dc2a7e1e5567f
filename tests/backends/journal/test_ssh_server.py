"""The journal of another host: noise, hostile names, login shells, and the connections of a real sshd."""

import os
import shutil
from pathlib import Path

import pytest

from jobtui.backends.journal.journalctl import JournalctlReader
from jobtui.model.journal import Beside, Head, JournalCondition, Tail
from tests.backends.journal.make import entry, make_journal, needs_journal_tools
from tests.backends.journal.ssh_rig import RUNS_HERE, SshClient, Sshd, a_server, needs_sshd
from tests.waiting import wait_until

pytestmark = needs_journal_tools

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


@pytest.mark.parametrize("shell", ["dash", "zsh", "csh", "fish"])
async def test_any_login_shell_will_do(client: SshClient, directory: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}: apt-get install {shell}")
    client.replace(f'for last; do :; done; exec {shell} -c "$last"')
    journal = JournalctlReader(f"ssh://cori{directory}")
    found = await journal.backward(Tail(), ((("CONTAINER_NAME", HOSTILE),),), 5)
    assert [(entry.message, entry.container) for entry in found.entries] == [("hostile", HOSTILE)]
    assert not list(Path.home().glob("owned"))
    again = await journal.forward(Beside(found.entries[0].cursor), (), 5)
    assert (again.entries, again.at_edge) == ((), True)
    await journal.aclose()


async def test_what_a_login_prints_is_no_entry(client: SshClient, directory: Path) -> None:
    noise = "printf '__CURSOR=no\\n\\nMESSAGE\\n'; head -c 100000 /dev/zero"
    client.replace(f"{noise}; echo Welcome >&2; {RUNS_HERE}")
    journal = JournalctlReader(f"ssh://cori{directory}")
    assert await journal.condition() == JournalCondition(files=1)
    assert sorted((await journal.values("CONTAINER_NAME"))["CONTAINER_NAME"]) == [HOSTILE, "srj"]
    assert await messages(journal) == ["line 0", "line 1", "line 2"]


@needs_sshd
async def test_connections_are_shared_and_ended(directory: Path) -> None:
    with a_server() as server:
        journal = JournalctlReader(f"{server.spec}{directory}")
        follow = journal.follow(Head(), ())
        while not (await follow.take(100)).at_edge:
            pass
        await journal.backward(Tail(), (), 2)
        (control,) = os.listdir(place := f"{os.environ['XDG_RUNTIME_DIR']}/jobtui")
        assert os.stat(f"{place}/{control}").st_mode & 0o077 == 0
        assert await messages(journal) == ["line 0", "line 1", "line 2"]
        await wait_until(lambda: "journalctl" in commands(server))
        await follow.aclose()
        await wait_until(lambda: "journalctl" not in commands(server))


def commands(server: Sshd) -> list[str]:
    found = []
    for pid in server.children():
        try:
            found.append(Path(f"/proc/{pid}/comm").read_text().strip())
        except OSError:
            continue
    return found
