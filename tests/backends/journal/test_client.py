"""Readers of journals: order of entries, what goes wrong over HTTP or ssh, a real sshd; running programs."""

import asyncio
import contextlib
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.backends.journal import client, journalctl
from jobtui.backends.journal.client import JournalReader, compare, merged, position
from jobtui.backends.journal.gatewayd import GatewayJournal
from jobtui.backends.journal.journalctl import JournalctlReader
from jobtui.backends.journal.records import LINES_OPEN, SplitLines
from jobtui.formats.journal_export import MESSAGE_LIMIT, entry_of_export
from jobtui.model.clock import Nanos
from jobtui.model.health import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.journal import AtCursor, Begin, Cursor, JournalCondition, JournalEntry, Matches, Tail
from jobtui.transport import ssh as shell
from jobtui.transport.ssh import SSH_NAME_BYTES, STDERR_BYTES, LocalShell, Running, private_directory
from tests.backends.journal.answering import Answer, answering, raw, reply
from tests.backends.journal.make import BOOT, START_US, by_host, entry, make_journal, needs_journal_tools
from tests.backends.journal.rigs import (
    RUNS_HERE,
    Follower,
    SshClient,
    a_server,
    all_of,
    free_port,
    needs_sshd,
    of,
    program_of,
)
from tests.loopback import carried
from tests.offenders import each
from tests.rows import ROWS, table
from tests.waiting import LONG_S, has_ended, wait_until


@needs_journal_tools
async def test_shuffled_entries_are_put_as_journalctl_has_them(tmp_path: Path) -> None:
    for host, text in by_host().items():
        make_journal(tmp_path, [text], f"remote-{host}.journal")
    steps = [0, 10, 5, 5, 5, 30, 1]
    back = [
        entry(n, f"m{n}", at_us=START_US + step, monotonic_us=1_000 * n, boot=BOOT if n < 5 else "d" * 32)
        for n, step in enumerate(steps)
    ]
    make_journal(tmp_path, back, "system.journal")
    reader = JournalctlReader(str(tmp_path))
    entries = await all_of(reader, most=5_000)
    await reader.aclose()
    shuffled = [*entries, *entries[::3]]
    random.Random(1).shuffle(shuffled)
    assert merged(shuffled) == entries


@each(*ROWS["cursors in their order"])
def test_compare_orders_two_positions(one: str, other: str, wanted: int) -> None:
    found = compare(position(Cursor(one)), position(Cursor(other)))
    assert (found > 0) - (found < 0) == wanted
    back = compare(position(Cursor(other)), position(Cursor(one)))
    assert (back > 0) - (back < 0) == -wanted


@given(st.text() | st.text("sibmtx=;0af", max_size=40), st.text("sibmtx=;0af", max_size=40))
def test_any_text_is_compared(one: str, other: str) -> None:
    assert compare(position(Cursor(one)), position(Cursor(other))) in (-1, 0, 1)


@each("no field", "", "A=B", "--vacuum-size", "a")
def test_a_name_that_is_not_a_field_is_refused(field: str) -> None:
    with pytest.raises(SourceError):
        client.checked((((field, "x"),),), "here")


class NobodysShell(LocalShell):
    """A shell of a user who is in no group."""

    async def run(self, line: str) -> Running:
        user = ("--reuid=65534", "--regid=65534", "--clear-groups")
        return Running(["setpriv", *user, "/bin/sh", "-c", line], {})


@needs_journal_tools
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
async def test_a_denied_journal_is_source_denied(open_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_journal(open_path, [entry(0, "secret")], "user-0.journal").chmod(0o600)
    monkeypatch.setattr(journalctl, "LocalShell", NobodysShell)
    reader = JournalctlReader(str(open_path))
    with pytest.raises(SourceDenied, match="usermod -aG systemd-journal"):
        await all_of(reader)
    make_journal(open_path, [entry(5, "open")], "user-5.journal").chmod(0o644)
    assert [each.message for each in await all_of(reader)] == ["open"]
    condition = await reader.condition()
    assert condition.files == 1
    assert "only entries of this user are visible; join the group systemd-journal" in condition.note
    await reader.aclose()


@needs_journal_tools
async def test_a_file_of_a_journal_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journalctl, "AGAIN_S", 0.05)
    path = make_journal(tmp_path, [entry(0, "m0"), entry(1, "m1")], "one.journal")
    reader = JournalctlReader(str(path))
    follower = Follower(reader.follow(Begin(), ()))
    assert await follower.until(2) == await all_of(reader)
    make_journal(tmp_path, [entry(2, "m2")], "one.journal")
    assert [each.message for each in await follower.until(3)] == ["m0", "m1", "m2"]
    await follower.end()


@needs_journal_tools
async def test_files_that_cannot_be_read_are_counted_and_named(tmp_path: Path) -> None:
    reader = JournalctlReader(str(tmp_path))
    assert await all_of(reader) == []
    assert "no journal files" in (await reader.condition()).note
    whole = make_journal(tmp_path, [entry(0, "m0")], "system.journal").read_bytes()
    (tmp_path / "newer.journal").write_bytes(whole[:12] + b"\xff" * 4 + whole[16:])  # flags nobody knows
    (tmp_path / "noise.journal").write_bytes(random.Random(1).randbytes(9_000))
    (tmp_path / "empty.journal").touch()
    assert [each.message for each in await all_of(reader)] == ["m0"]
    condition = await reader.condition()
    assert (condition.files, condition.unreadable) == (1, 3)
    told = ("empty.journal is truncated", "newer.journal uses an unsupported", "noise.journal corrupted")
    assert condition.note.startswith("1 of 4 journal files read, not ")
    assert all(words in condition.note for words in told)
    await reader.aclose()


STDOUT, STDERR = 6, 3


def piece(nth: int, text: str, *, begun: bool, container: str = "srj-p-a", priority: int = 6) -> JournalEntry:
    return JournalEntry(
        cursor=Cursor(str(nth)), at=Nanos(1_795_300_000_000_000_000 + nth), message=text, size=len(text),
        container=container, container_id="f" * 64, priority=priority, is_begun=begun,
    )  # fmt: skip


def pieces(text: str, size: int, **of: str | int) -> list[JournalEntry]:
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    return [piece(n, part, begun=n < len(parts) - 1, **of) for n, part in enumerate(parts)]  # type: ignore[arg-type]


def test_a_field_tells_that_a_line_goes_on() -> None:
    fields = {b"__CURSOR": b"c", b"__REALTIME_TIMESTAMP": b"1", b"CONTAINER_PARTIAL_MESSAGE": b"true"}
    entry = entry_of_export(fields)
    assert entry is not None
    assert entry.is_begun


@given(st.lists(st.text("abc", min_size=2, max_size=9), max_size=6), st.integers(1, 4), st.randoms())
def test_both_outputs_and_other_containers_stand_between(texts: list[str], size: int, draw: object) -> None:
    queues = [
        pieces(text, size, container=f"srj-p-{n // 2}", priority=STDOUT if n % 2 else STDERR)
        for n, text in enumerate(texts)
    ]
    mixed: list[JournalEntry] = []
    while queues := [queue for queue in queues if queue]:
        mixed.append(draw.choice(queues).pop(0))  # type: ignore[attr-defined]
    found = list(SplitLines().joined(mixed))
    assert sorted(entry.message for entry in found) == sorted(texts)
    assert all(entry.size == len(entry.message) and not entry.is_begun for entry in found)


def test_a_message_that_never_ends_is_bounded_and_other_messages_are_kept() -> None:
    lines = SplitLines()
    endless = [piece(n, "x" * 16_384, begun=True) for n in range(100)]
    assert not list(lines.joined(endless))
    (whole,) = lines.joined([piece(100, "end", begun=False)])
    assert (len(whole.message), whole.size) == (MESSAGE_LIMIT, 100 * 16_384 + 3)
    many = [piece(n, "x", begun=True, container=f"srj-p-{n}") for n in range(LINES_OPEN + 10)]
    assert [entry.container for entry in lines.joined(many)] == [f"srj-p-{n}" for n in range(10)]
    entry = piece(0, "x", begun=True, container="")
    assert list(SplitLines().joined([entry])) == [entry]


EXPORT = "application/vnd.fdo.journal"
HEAD = f"HTTP/1.1 200 OK\r\nContent-Type: {EXPORT}\r\n".encode()


async def fault_of(journal: JournalReader) -> SourceError:
    """What reading raises; one line that begins with the source."""
    with pytest.raises(SourceError) as raised:
        await asyncio.wait_for(journal.forward(Begin(), (), 10), LONG_S)
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
    answer = lambda request: httpx.Response(407, request=request)  # noqa: E731
    journal = carried(GatewayJournal(f"http://{host}:19531"), answer)
    with pytest.raises(SourceError) as raised:
        await journal.forward(Begin(), (), 1)
    await journal.aclose()
    assert ("ssh -N" in str(raised.value)) is is_offered
    assert (f"ssh -N -L 19531:localhost:19531 {host}, then" in str(raised.value)) is is_offered


async def test_bytes_that_are_not_understood_in_the_middle_are_counted() -> None:
    body = entry(0, "m0") + b"\x00garbage\n\xff\n\n" + entry(1, "m1")

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        kind = "application/json" if b"/machine" in head else EXPORT
        await reply("200 OK", b"{}" if b"/machine" in head else body, Content_Type=kind)(head, writer)

    async with answering(answer) as spec:
        journal = GatewayJournal(spec)
        found = await journal.forward(Begin(), (), 5)
        assert [each.message for each in found.entries] == ["m0", "m1"]
        assert "could not be read" in (await journal.condition()).note
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
            await journal.forward(Begin(), ((("A", text),),), 1)
        with contextlib.suppress(SourceError):
            await journal.entry(Cursor(text))
        await journal.aclose()
    assert not [head for head in heads if b"\nX:" in head]


@pytest.mark.parametrize(
    ("limit", "heard", "matches"), [("gatewayd.IDLE_S", 0, ()), ("client.QUIET_S", 1, of(A="a"))]
)
async def test_what_following_does_not_hear_is_found_once_it_is_quiet(
    limit: str, heard: int, matches: Matches, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection may only seem alive, or libsystemd may have met an entry that was half written."""
    entries = [entry(number, f"m{number}", A="a") for number in range(heard + 2)]
    written = entries[:1]

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        if b"follow" not in head.split(b"\r\n", 1)[0]:
            await reply("200 OK", b"".join(written), Content_Type=EXPORT)(head, writer)
            return
        written[:] = entries
        text = HEAD + b"Connection: close\r\n\r\n" + b"".join(entries[1 : 1 + heard])
        await raw(text, hangs=True)(head, writer)

    async with answering(answer) as spec, asyncio.timeout(LONG_S):
        monkeypatch.setattr(f"jobtui.backends.journal.{limit}", 0.2)
        journal = GatewayJournal(spec)
        async with contextlib.aclosing(journal.listen(Begin(), matches, ())) as slices:
            messages: list[str | None] = []
            async for found in slices:
                messages += [each.message for each in found.entries]
                if len(messages) == len(entries):
                    break
        await journal.aclose()
    assert messages == ["m0", "m1", "m2"][: len(entries)]


SPEC, SECRET = "ssh://ann@node1:2222", "ssh://ann:hunter2@node1"
SAYS = table("journal/ssh_says")
CONNECTED = 'for line; do :; done; journalctl() { :; }; eval "$(echo "$line" | tr ";" "\\n" | grep echo)"; '


@pytest.mark.parametrize(("who", "name"), [(who, name) for who in SAYS for name in SAYS[who]])
async def test_an_error_of_the_command_becomes_one_line(client: SshClient, who: str, name: str) -> None:
    case = SAYS[who][name]
    (client.root / "said").write_text(f"{case['said']}\n" if case["said"] else "")
    begins = CONNECTED if who == "journalctl" else ""
    client.replace(f"{begins}cat {client.root}/said >&2; exit {case.get('code', 255)}")
    fault = await fault_of(JournalctlReader(SPEC))
    assert type(fault).__name__ == case["error"]
    assert all(part in str(fault) for part in case["parts"]), str(fault)


@pytest.mark.parametrize(("script", "said"), ROWS["hosts that run something else"])
async def test_a_host_that_runs_something_else_is_reported(client: SshClient, script: str, said: str) -> None:
    client.replace(script)
    assert said in str(await fault_of(JournalctlReader(SPEC)))


@pytest.mark.parametrize(("script", "limit", "what"), ROWS["hosts that hang"])
async def test_a_host_that_hangs_is_given_up(
    client: SshClient, script: str, limit: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (shell, journalctl, shell.SshShell):
        monkeypatch.setattr(place, limit, 0.5, raising=False)
    client.replace(script)
    fault = await asyncio.wait_for(fault_of(JournalctlReader(SPEC)), LONG_S)
    assert f"no {what} within 0.5 s" in str(fault)
    assert "ssh -p 2222 ann@node1" in str(fault)


async def test_a_user_without_watches_left_gets_a_message(client: SshClient) -> None:
    client.replace('for line; do :; done; env() { echo "Insufficient watch descriptors" >&2; }; eval "$line"')
    journal = JournalctlReader(SPEC)
    slices = journal.listen(Begin(), (), ())
    with pytest.raises(SourceUnreachable, match=r"no inotify watch is left on node1.*max_user_instances"):
        [found async for found in slices]
    await journal.aclose()


async def test_a_missing_ssh_names_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    fault = await fault_of(JournalctlReader(SPEC))
    assert isinstance(fault, SourceMissing)
    assert "apt-get install openssh-client" in str(fault)


async def test_ssh_is_called_with_fixed_options(client: SshClient) -> None:
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


@pytest.mark.parametrize(
    ("make", "spec"),
    [
        *((JournalctlReader, spec) for spec in ROWS["what is not an address of a host"]),
        *((GatewayJournal, spec) for spec in ROWS["what is not an address of gatewayd"]),
    ],
)
async def test_text_that_is_not_an_address_is_refused_before_anything_runs(
    make: Callable[[str], JournalReader], spec: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    journal = make(spec)
    with pytest.raises(SourceError) as raised:
        await journal.forward(Begin(), (), 1)
    await journal.aclose()
    assert make is GatewayJournal or not isinstance(raised.value, SourceMissing)


def test_the_directory_of_sockets_is_ours_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = Path(mkdtemp(prefix="jt", dir="/tmp"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    try:
        made = private_directory()
        assert made == short / "jobtui"
        assert made.stat().st_mode & 0o777 == 0o700
        assert len(str(made)) + SSH_NAME_BYTES <= 104
        made.chmod(0o755)
        assert private_directory() != made
        made.rmdir()
        made.symlink_to(tmp_path)
        assert private_directory() != made
        made.unlink()
        monkeypatch.setenv("XDG_RUNTIME_DIR", "/" + "long/" * 20)
        assert private_directory() != made
    finally:
        short.rmdir()


HOSTILE = "a'b\"c\\d!e $(touch owned) `touch owned`; touch owned"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("journal")
    entries = [entry(number, f"line {number}", CONTAINER_NAME="srj") for number in range(20)]
    make_journal(made, [*entries, entry(20, "hostile", CONTAINER_NAME=HOSTILE)])
    return made


async def messages(journal: JournalctlReader) -> list[str]:
    found = await journal.forward(Begin(), (), 3)
    await journal.aclose()
    return [entry.message for entry in found.entries]


@needs_journal_tools
@pytest.mark.parametrize("shell", ["dash", "zsh", "csh", "fish"])
async def test_any_login_shell_will_do(client: SshClient, directory: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}: apt-get install {shell}")
    client.replace(f'for last; do :; done; exec {shell} -c "$last"')
    journal = JournalctlReader(f"ssh://cori{directory}")
    found = await journal.backward(Tail(), ((("CONTAINER_NAME", HOSTILE),),), 5)
    assert [(entry.message, entry.container) for entry in found.entries] == [("hostile", HOSTILE)]
    assert not list(Path.home().glob("owned"))
    again = await journal.forward(AtCursor(found.entries[0].cursor), (), 5)
    assert (again.entries, again.at_edge) == ((), True)
    await journal.aclose()


@needs_journal_tools
async def test_output_of_a_login_is_not_an_entry(client: SshClient, directory: Path) -> None:
    noise = "printf '__CURSOR=no\\n\\nMESSAGE\\n'; head -c 100000 /dev/zero"
    client.replace(f"{noise}; echo Welcome >&2; {RUNS_HERE}")
    journal = JournalctlReader(f"ssh://cori{directory}")
    assert await journal.condition() == JournalCondition(files=1)
    assert sorted((await journal.values("CONTAINER_NAME"))["CONTAINER_NAME"]) == [HOSTILE, "srj"]
    assert await messages(journal) == ["line 0", "line 1", "line 2"]


@needs_journal_tools
@needs_sshd
async def test_connections_are_shared_and_ended(directory: Path) -> None:
    with a_server() as server:
        journal = JournalctlReader(f"{server.spec}{directory}")
        follow = journal.follow(Begin(), ())
        while not (await follow.take(100)).at_edge:
            pass
        await journal.backward(Tail(), (), 2)
        (control,) = os.listdir(place := f"{os.environ['XDG_RUNTIME_DIR']}/jobtui")
        assert os.stat(f"{place}/{control}").st_mode & 0o077 == 0
        assert await messages(journal) == ["line 0", "line 1", "line 2"]
        await wait_until(lambda: "journalctl" in map(program_of, server.children()))
        await follow.aclose()
        await wait_until(lambda: "journalctl" not in map(program_of, server.children()))


def a_shell(script: str) -> Running:
    return Running(["/bin/sh", "-c", script], {})


async def output_of(running: Running) -> bytes:
    pieces = []
    while piece := await running.read():
        pieces.append(piece)
    return b"".join(pieces)


async def test_a_command_gives_its_output_its_errors_and_its_exit_code() -> None:
    running = a_shell("echo out; echo bad >&2; exit 3")
    assert await output_of(running) == b"out\n"
    assert await running.ended() == 3
    assert running.stderr == "bad\n"
    await running.stop()
    await running.stop()
    running = Running(["/bin/sh", "-c", 'echo "$LC_ALL $HOME"'], {"LC_ALL": "C"})
    assert await output_of(running) == f"C {os.environ['HOME']}\n".encode()
    await running.stop()
    with pytest.raises(FileNotFoundError):
        Running(["/nowhere/program"], {})


async def test_a_command_waits_while_its_output_is_not_read(tmp_path: Path) -> None:
    done = tmp_path / "done"
    running = a_shell(f"head -c 3000000 /dev/zero; touch {done}; echo end")
    taken = len(await running.read())
    start = time.monotonic()
    await wait_until(lambda: time.monotonic() - start > 0.2)
    assert not done.exists()
    assert taken + len(await output_of(running)) == 3_000_004
    assert done.exists()
    await running.stop()


async def test_long_stderr_keeps_both_ends() -> None:
    running = a_shell("echo first >&2; head -c 1000000 /dev/zero >&2; echo last >&2")
    assert await output_of(running) == b""
    assert await running.ended() == 0
    assert running.stderr.startswith("first\n")
    assert running.stderr.endswith("last\n")
    assert len(running.stderr) <= 2 * STDERR_BYTES
    await running.stop()


async def test_stopping_ends_a_command_that_ignores_signals_and_its_children() -> None:
    running = a_shell("sleep 600 & echo $!; wait")
    child = int(await running.read())
    await running.stop()
    await wait_until(lambda: has_ended(child))
    running = a_shell("trap '' TERM; echo $$; while :; do sleep 1; done")
    pid = int(await running.read())
    await running.stop()
    assert has_ended(pid)


async def test_a_cancellation_while_it_ends_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    running = a_shell("sleep 600")

    async def ended() -> int:
        stopping.cancel()
        return 0

    monkeypatch.setattr(running, "ended", ended)
    stopping = asyncio.ensure_future(running.stop())
    with pytest.raises(asyncio.CancelledError):
        await stopping


async def test_stopping_can_be_cancelled_and_still_frees_everything() -> None:
    running = a_shell("trap '' TERM; echo $$; while :; do sleep 1; done")
    pid = int(await running.read())
    stopping = asyncio.ensure_future(running.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert has_ended(pid)
