"""What goes wrong on the way to a journal, over HTTP or ssh, is one clear line that names the remedy."""

import asyncio
import contextlib
import tomllib
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from jobtui.backends.journal import gatewayd, journalctl
from jobtui.backends.journal.client import JournalReader
from jobtui.backends.journal.gatewayd import GatewayJournal
from jobtui.backends.journal.journalctl import JournalctlReader
from jobtui.model.health import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.journal import Cursor, Head
from jobtui.transport import ssh as shell
from jobtui.transport.ssh import SSH_NAME_BYTES, private_directory
from tests.backends.journal.answering import Answer, answering, raw, reply, then_hang
from tests.backends.journal.make import FIXTURES, entry
from tests.backends.journal.ssh_rig import SshClient, free_port
from tests.carried import carried
from tests.waiting import LONG_S

EXPORT = "application/vnd.fdo.journal"
HEAD = f"HTTP/1.1 200 OK\r\nContent-Type: {EXPORT}\r\n".encode()


async def fault_of(journal: JournalReader) -> SourceError:
    """What reading raises; one line that begins with the source."""
    with pytest.raises(SourceError) as raised:
        await asyncio.wait_for(journal.forward(Head(), (), 10), LONG_S)
    await journal.aclose()
    text = str(raised.value)
    assert text.startswith(f"{journal.name}: ")
    assert text.isprintable()
    return raised.value


ODD: dict[str, tuple[Answer, type[SourceError], str]] = {
    "sent elsewhere": (
        reply("301 Moved", Location="https://ann:pw@other.example:19531/entries"),
        SourceMissing,
        "to https://other.example/entries; give that address",
    ),
    "no permission": (
        reply("500 Oops", b"Failed to open journal: Permission denied"),
        SourceDenied,
        "usermod -aG systemd-journal systemd-journal-gateway",
    ),
    "something else": (reply("200 OK", b"hello", Content_Type="text/plain"), SourceMissing, "19531"),
    "half an entry": (
        raw(HEAD + b"Connection: close\r\n\r\n" + entry(0, "m")[:-20]),
        SourceUnreachable,
        "in the middle of an entry",
    ),
}


@pytest.mark.parametrize("name", ODD)
async def test_an_odd_answer_becomes_one_line(name: str) -> None:
    answer, kind, part = ODD[name]
    async with answering(answer) as spec:
        fault = await fault_of(GatewayJournal(spec))
    assert type(fault) is kind
    assert part in str(fault), str(fault)


@pytest.mark.parametrize(
    ("host", "is_offered"), [("v3", True), ("-oproxycommand=x", False), ("v3\u200b.example", False)]
)
async def test_a_tunnel_is_offered_to_a_host_whose_name_can_be_typed(host: str, is_offered: bool) -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(407, request=request))
    journal = carried(GatewayJournal(f"http://{host}:19531"), transport)
    with pytest.raises(SourceError) as raised:
        await journal.forward(Head(), (), 1)
    await journal.aclose()
    assert ("ssh -N" in str(raised.value)) is is_offered
    assert (f"ssh -N -L 19531:localhost:19531 {host}, then" in str(raised.value)) is is_offered


async def test_what_makes_no_sense_in_the_middle_is_counted() -> None:
    body = entry(0, "m0") + b"\x00garbage\n\xff\n\n" + entry(1, "m1")

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        kind = "application/json" if b"/machine" in head else EXPORT
        await reply("200 OK", b"{}" if b"/machine" in head else body, Content_Type=kind)(head, writer)

    async with answering(answer) as spec:
        journal = GatewayJournal(spec)
        found = await journal.forward(Head(), (), 5)
        assert [each.message for each in found.entries] == ["m0", "m1"]
        assert "made no sense" in (await journal.condition()).note
        await journal.aclose()


def noted(heads: list[bytes], answer: Answer) -> Answer:
    async def note(head: bytes, writer: asyncio.StreamWriter) -> None:
        heads.append(head)
        await answer(head, writer)

    return note


async def test_credentials_are_sent_and_never_shown() -> None:
    heads: list[bytes] = []
    async with answering(noted(heads, reply("403 Forbidden", b"ann:hunter2 may not"))) as spec:
        fault = await fault_of(GatewayJournal(spec.replace("http://", "http://ann:hunter2@")))
    assert b"uthorization: Basic YW5uOmh1bnRlcjI=" in heads[0]
    assert "hunter2" not in str(fault)
    for journal in (GatewayJournal(f"http://ann:hunter2@127.0.0.1:{free_port()}"), JournalctlReader(SECRET)):
        fault = await fault_of(journal)
        assert "hunter2" not in f"{fault}{fault.__cause__}"
    assert "ssh-copy-id" in str(fault)


@pytest.mark.parametrize("text", ["\udcff", chr(0xD800), "a\r\nX: y", "\0", "ü"])
async def test_no_cursor_or_value_is_more_than_itself(text: str) -> None:
    heads: list[bytes] = []
    async with answering(noted(heads, reply("200 OK", b"", Content_Type=EXPORT))) as spec:
        journal = GatewayJournal(spec)
        with contextlib.suppress(SourceError):
            await journal.forward(Head(), ((("A", text),),), 1)
        with contextlib.suppress(SourceError):
            await journal.entry(Cursor(text))
        await journal.aclose()
    assert not [head for head in heads if b"\nX:" in head]


async def test_a_connection_that_only_seems_alive_is_made_again_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first one that follows hears nothing; an entry that came meanwhile is found anyway."""
    written = [entry(0, "m0")]
    following: list[bytes] = []

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        if b"follow" not in head.split(b"\r\n", 1)[0]:
            await reply("200 OK", b"".join(written), Content_Type=EXPORT)(head, writer)
            return
        following.append(head)
        await then_hang(HEAD + b"Connection: close\r\n\r\n")(head, writer)

    async with answering(answer) as spec, asyncio.timeout(LONG_S):
        monkeypatch.setattr(gatewayd, "IDLE_S", 0.2)
        journal = GatewayJournal(spec)
        async with contextlib.aclosing(journal.listen(Head(), (), ())) as slices:
            messages: list[str | None] = []
            async for found in slices:
                messages += [each.message for each in found.entries]
                if len(messages) == 1 and following:
                    written.append(entry(1, "m1"))
                if len(messages) == 2:
                    break
        await journal.aclose()
    assert messages[-1] == "m1"


SPEC, SECRET = "ssh://ann@node1:2222", "ssh://ann:hunter2@node1"
SAYS = tomllib.loads((FIXTURES / "ssh_says.toml").read_text())
CONNECTED = 'for line; do :; done; journalctl() { :; }; eval "$(echo "$line" | tr ";" "\\n" | grep echo)"; '


@pytest.mark.parametrize(("who", "name"), [(who, name) for who in SAYS for name in SAYS[who]])
async def test_what_is_said_there_becomes_one_line(client: SshClient, who: str, name: str) -> None:
    case = SAYS[who][name]
    (client.root / "said").write_text(f"{case['said']}\n" if case["said"] else "")
    begins = CONNECTED if who == "journalctl" else ""
    client.replace(f"{begins}cat {client.root}/said >&2; exit {case.get('code', 255)}")
    fault = await fault_of(JournalctlReader(SPEC))
    assert type(fault).__name__ == case["error"]
    assert all(part in str(fault) for part in case["parts"]), str(fault)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo This account is currently not available.; exit 1", "lets ann log in, but run nothing"),
        ("echo Welcome to the menu; exit 0", "gave no answer: Welcome to the menu"),
    ],
)
async def test_a_host_that_runs_something_else_is_told(client: SshClient, script: str, said: str) -> None:
    client.replace(script)
    assert said in str(await fault_of(JournalctlReader(SPEC)))


BEGINS = 'for line; do :; done; eval "$(echo "$line" | tr ";" "\\n" | grep echo | head -1)"; '
TRICKLES = "while :; do printf x; sleep 0.05; done"


@pytest.mark.parametrize(
    ("script", "limit", "what"),
    [
        ("sleep 600", "start_s", "answer"),
        ("echo ann@node1s password: >/dev/tty; read x; sleep 600", "start_s", "answer"),
        (TRICKLES, "start_s", "answer"),
        (f"{BEGINS}sleep 600", "SILENCE_S", "answer"),
        (f"{BEGINS}{TRICKLES}", "WHOLE_S", "whole answer"),
    ],
)
async def test_a_host_that_hangs_is_given_up(
    client: SshClient, script: str, limit: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (shell, journalctl, shell.SshShell):
        monkeypatch.setattr(place, limit, 0.5, raising=False)
    client.replace(script)
    fault = await asyncio.wait_for(fault_of(JournalctlReader(SPEC)), LONG_S)
    assert f"no {what} within 0.5 s" in str(fault)
    assert "ssh -p 2222 ann@node1" in str(fault)


async def test_who_has_no_watches_left_is_told(client: SshClient) -> None:
    client.replace('for line; do :; done; env() { echo "Insufficient watch descriptors" >&2; }; eval "$line"')
    journal = JournalctlReader(SPEC)
    slices = journal.listen(Head(), (), ())
    with pytest.raises(SourceUnreachable, match=r"no watch is left on node1.*max_user_instances"):
        [found async for found in slices]
    await journal.aclose()


async def test_without_ssh_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    fault = await fault_of(JournalctlReader(SPEC))
    assert isinstance(fault, SourceMissing)
    assert "apt-get install openssh-client" in str(fault)


async def test_how_ssh_is_called(client: SshClient) -> None:
    client.replace(f'printf "%s\\n" "$@" >{client.root}/called; exit 255')
    await fault_of(JournalctlReader(SPEC))
    *words, host, line = (client.root / "called").read_text().splitlines()
    assert (host, words[-1]) == ("node1", "--")
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
    await fault_of(JournalctlReader(SPEC))
    assert "Control" not in (client.root / "called").read_text()


NO_ADDRESSES = [
    "ssh://", "ssh://-oProxyCommand=touch${IFS}x", "ssh://-lroot@node1", "ssh://a b", "ssh://node1;id",
    "ssh://$(id)", "ssh://node1:port", "ssh://node1:0", "ssh://node1:99999", "ssh://node1?x",
    "http://node1", "ssh://[::1", "ssh://\x1b[31m",
]  # fmt: skip
NO_URLS = [
    "http://", "http://host:port", "http://host:99999", "ftp://host", "http://host/?x=1", "http://[::1",
    "http://a\x1b",
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "spec"),
    [*((JournalctlReader, spec) for spec in NO_ADDRESSES), *((GatewayJournal, spec) for spec in NO_URLS)],
)
async def test_what_is_no_address_is_refused_before_anything_runs(
    make: Callable[[str], JournalReader], spec: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    journal = make(spec)
    with pytest.raises(SourceError) as raised:
        await journal.forward(Head(), (), 1)
    await journal.aclose()
    assert make is GatewayJournal or not isinstance(raised.value, SourceMissing)


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
