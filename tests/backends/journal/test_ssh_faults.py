"""What goes wrong on the way to a host is one clear line that names the remedy. Here ssh is a stand-in."""

import asyncio
import time
from pathlib import Path

import pytest

from jobtui.backends.base import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.backends.journal import ssh, talk
from jobtui.backends.journal.runtime_dir import SSH_NAME_BYTES, private_directory
from jobtui.backends.journal.ssh import Address, SshJournal, address_of
from jobtui.model.journal import Cursor, Head
from tests.backends.journal.ssh_rig import SshClient
from tests.waiting import LONG_S

SPEC = "ssh://ann@node1:2222"


async def fault_of(spec: str = SPEC) -> SourceError:
    """What reading raises; one line that begins with the source."""
    journal = SshJournal(spec)
    with pytest.raises(SourceError) as raised:
        await journal.forward(Head(), (), 10)
    await journal.aclose()
    text = str(raised.value)
    assert text.startswith(f"{journal.name}: ")
    assert text.isprintable()
    return raised.value


SAYS = {
    "unknown host": (
        "ssh: Could not resolve hostname node1: Name or service not known",
        SourceUnreachable,
        ("no host is called node1", "~/.ssh/config"),
    ),
    "refused": (
        "ssh: connect to host node1 port 2222: Connection refused",
        SourceUnreachable,
        ("port 2222", "systemctl status ssh"),
    ),
    "no route": ("ssh: connect to host node1 port 22: No route to host", SourceUnreachable, ("VPN",)),
    "timed out": (
        "ssh: connect to host node1 port 22: Connection timed out",
        SourceUnreachable,
        ("does not answer", "ssh -p 2222 ann@node1"),
    ),
    "keep-alive": (
        "Timeout, server node1 not responding.",
        SourceUnreachable,
        ("does not answer any more",),
    ),
    "password": (
        "ann@node1: Permission denied (publickey,password).",
        SourceDenied,
        ("wants a password", "ssh-copy-id -p 2222 ann@node1", "ssh-add"),
    ),
    "second factor": (
        "ann@node1: Permission denied (publickey,keyboard-interactive).",
        SourceDenied,
        ("wants a password", "ssh-copy-id"),
    ),
    "key": ("ann@node1: Permission denied (publickey).", SourceDenied, ("none of your keys", "ssh-add")),
    "too many keys": (
        "Received disconnect from 1.2.3.4 port 22:2: Too many authentication failures",
        SourceDenied,
        ("IdentitiesOnly",),
    ),
    "changed host key": (
        "@@@@@@@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@@@@@\n"
        "Offending ED25519 key in /home/ann/.ssh/known_hosts:3\nHost key verification failed.",
        SourceDenied,
        ("has changed", "ssh-keygen -R '[node1]:2222'", "ssh -p 2222 ann@node1"),
    ),
    "unknown host key": (
        "No ED25519 host key is known for [node1]:2222 and you have requested strict checking.\n"
        "Host key verification failed.",
        SourceDenied,
        ("not known yet", "ssh -p 2222 ann@node1"),
    ),
    "overloaded": (
        "kex_exchange_identification: Connection closed by remote host\nConnection closed by 1.2.3.4 port 22",
        SourceUnreachable,
        ("hangs up before the login",),
    ),
    "dies": ("Connection to node1 closed by remote host.", SourceUnreachable, ("broke the connection off",)),
    "config": (
        "/home/ann/.ssh/config: line 3: Bad configuration option: foo\n"
        "/home/ann/.ssh/config: terminating, 1 bad configuration options",
        SourceError,
        ("does not understand its settings (/home/ann/.ssh/config: line 3)",),
    ),
    "owner": (
        "Bad owner or permissions on /home/ann/.ssh/config",
        SourceDenied,
        ("chmod 600 /home/ann/.ssh/config",),
    ),
    "anything else": ("something \x1b[31mnew\x07 happened", SourceUnreachable, ("ended with 255", "new")),
    "nothing": ("", SourceUnreachable, ("connection to node1 broke off", "ssh -p 2222 ann@node1")),
}


@pytest.mark.parametrize("name", SAYS)
async def test_what_ssh_says_becomes_one_line(client: SshClient, name: str) -> None:
    said, kind, parts = SAYS[name]
    (client.root / "said").write_text(f"{said}\n" if said else "")
    client.replace(f"cat {client.root}/said >&2; exit 255")
    fault = await fault_of()
    assert type(fault) is kind
    assert all(part in str(fault) for part in parts), str(fault)


THERE = {
    "no journalctl": (
        "env: 'journalctl': No such file or directory",
        127,
        SourceMissing,
        ("no journalctl on node1",),
    ),
    "not allowed": (
        "No journal files were opened due to insufficient permissions.",
        1,
        SourceDenied,
        ("ann may not read the journal on node1", "usermod -aG systemd-journal ann"),
    ),
    "no directory": (
        "Failed to open /var/x: No such file or directory",
        1,
        SourceMissing,
        ("no /var/x on node1",),
    ),
}


@pytest.mark.parametrize("name", THERE)
async def test_what_journalctl_says_there_becomes_one_line(client: SshClient, name: str) -> None:
    said, code, kind, parts = THERE[name]
    (client.root / "said").write_text(f"{said}\n")
    client.replace(
        f'for line; do :; done; journalctl() {{ :; }}; eval "$(echo "$line" | tr ";" "\\n" | grep echo)"; '
        f"cat {client.root}/said >&2; exit {code}"
    )
    fault = await fault_of()
    assert type(fault) is kind
    assert all(part in str(fault) for part in parts), str(fault)


async def test_a_host_that_runs_nothing_is_told_in_its_words(client: SshClient) -> None:
    client.replace("echo This account is currently not available.; exit 1")
    assert "lets ann log in, but run nothing" in str(await fault_of())


async def test_a_host_that_answers_something_else_is_told(client: SshClient) -> None:
    client.replace("echo Welcome to the menu; exit 0")
    assert "gave no answer: Welcome to the menu" in str(await fault_of())


@pytest.mark.parametrize("script", ["sleep 600", "echo ann@node1s password: >/dev/tty; read x; sleep 600"])
async def test_a_host_that_hangs_is_given_up(
    client: SshClient, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh.SshShell, "start_s", 0.3)
    client.replace(script)
    fault = await asyncio.wait_for(fault_of(), LONG_S)
    assert "no answer within 0.3 s" in str(fault)
    assert "ssh -p 2222 ann@node1" in str(fault)


async def test_a_host_that_hangs_in_the_middle_is_given_up(
    client: SshClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (talk, __import__("jobtui.backends.journal.journalctl", fromlist=["x"])):
        monkeypatch.setattr(module, "SILENCE_S", 0.3)
    client.replace(
        'for line; do :; done; eval "$(echo "$line" | tr ";" "\\n" | grep echo | head -1)"; sleep 600'
    )
    assert "no answer within 0.3 s" in str(await fault_of())


async def test_without_ssh_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    fault = await fault_of()
    assert isinstance(fault, SourceMissing)
    assert "apt-get install openssh-client" in str(fault)


async def test_the_user_interface_is_not_held_up_by_a_host_that_hangs(
    client: SshClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh.SshShell, "start_s", 2.0)
    monkeypatch.setattr(talk, "SILENCE_S", 2.0)
    client.replace("exec yes >&2")
    worst, last, going = 0.0, time.monotonic(), True

    async def beat() -> None:
        nonlocal worst, last
        while going:
            await asyncio.sleep(0.005)
            worst, last = max(worst, time.monotonic() - last), time.monotonic()

    beating = asyncio.ensure_future(beat())
    assert "no answer" in str(await fault_of())
    going = False
    await beating
    assert worst < 1.0


async def test_how_ssh_is_called(client: SshClient) -> None:
    client.replace(f'printf "%s\\n" "$@" >{client.root}/called; exit 255')
    await fault_of()
    *words, host, line = (client.root / "called").read_text().splitlines()
    assert host == "node1"
    assert words[-1] == "--"
    assert line.startswith("echo jobtui-")
    options = {words[at + 1] for at, word in enumerate(words) if word == "-o"}
    assert {"BatchMode=yes", "NumberOfPasswordPrompts=0", "ServerAliveInterval=5"} <= options
    assert f"ControlPath={client.sockets}/jobtui/%C" in options
    assert not [option for option in options if option.startswith("StrictHostKeyChecking")]
    assert (words[words.index("-l") + 1], words[words.index("-p") + 1]) == ("ann", "2222")


async def test_a_control_socket_of_the_users_own_is_used(client: SshClient) -> None:
    client.replace("exit 255")
    program = client.root / "bin" / "ssh"
    program.write_text(
        "#!/bin/sh\n"
        'case "$1" in -G) echo controlpath /home/ann/.ssh/mux; exit 0;; esac\n'
        f'printf "%s\\n" "$@" >{client.root}/called; exit 255\n'
    )
    await fault_of()
    assert "Control" not in (client.root / "called").read_text()


@pytest.mark.parametrize(
    ("spec", "address"),
    [
        ("ssh://node1", Address("node1")),
        ("ssh://ann@node1.lab.example:2222", Address("node1.lab.example", "ann", 2222)),
        ("ssh://[fe80::1%25eth0]:22", Address("fe80::1%eth0", "", 22)),
        ("ssh://node_1/var/log/journal/remote/", Address("node_1", "", None, "/var/log/journal/remote")),
    ],
)
def test_addresses(spec: str, address: Address) -> None:
    assert address_of(spec) == address


@pytest.mark.parametrize(
    "spec",
    [
        "ssh://",
        "ssh://-oProxyCommand=touch${IFS}x",
        "ssh://-lroot@node1",
        "ssh://a b",
        "ssh://node1;id",
        "ssh://$(id)",
        "ssh://node1:port",
        "ssh://node1:0",
        "ssh://node1:99999",
        "ssh://node1?x",
        "http://node1",
        "ssh://[::1",
        "ssh://\x1b[31m",
    ],
)
async def test_what_is_no_address_is_refused_before_anything_runs(
    spec: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    journal = SshJournal(spec)
    with pytest.raises(SourceError) as raised:
        await journal.forward(Head(), (), 1)
    assert not isinstance(raised.value, SourceMissing)


async def test_a_password_in_an_address_is_never_shown() -> None:
    journal = SshJournal("ssh://ann:hunter2@node1")
    with pytest.raises(SourceError, match="ssh-copy-id") as raised:
        await journal.forward(Head(), (), 1)
    assert "hunter2" not in f"{raised.value}{journal.name}"


def test_the_directory_of_sockets_is_ours_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = Path("/tmp") / f"jt{tmp_path.name[-6:]}{id(tmp_path) % 1000}"
    short.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    try:
        made = private_directory("jobtui")
        assert made == short / "jobtui"
        assert made.stat().st_mode & 0o777 == 0o700
        assert len(str(made)) + SSH_NAME_BYTES <= 104
        made.chmod(0o755)
        assert private_directory("jobtui") != made
        made.rmdir()
        made.symlink_to(tmp_path)
        assert private_directory("jobtui") != made
        made.unlink()
        monkeypatch.setenv("XDG_RUNTIME_DIR", "/" + "long/" * 20)
        assert private_directory("jobtui") != made
    finally:
        short.rmdir()


@pytest.mark.parametrize("text", ["\udcff", chr(0xD800), "a\nb", "\0"])
async def test_no_cursor_or_value_raises_anything_else(client: SshClient, text: str) -> None:
    client.replace("exit 255")
    journal = SshJournal(SPEC)
    with pytest.raises(SourceError):
        await journal.fields(Cursor(text))
    with pytest.raises(SourceError):
        await journal.forward(Head(), ((("A", text),),), 1)
