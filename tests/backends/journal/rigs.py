"""A real sshd, a real systemd-journal-gatewayd, and every way to read a journal, with its contract's rig.

A way is a context that is given a directory of journal files and gives what makes readers of it.
"""

import asyncio
import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from jobtui.backends.base import Source
from jobtui.backends.journal import client
from jobtui.backends.journal.client import Following, JournalReader
from jobtui.backends.journal.gatewayd import GatewayJournal
from jobtui.backends.journal.journalctl import JournalctlReader
from jobtui.backends.journal.source import Journal
from jobtui.model.clock import Nanos
from jobtui.model.journal import AtCursor, Begin, Cursor, JournalEntry, Matches, Tail
from tests.backends.journal.make import entry, make_journal, needs_journal_tools, of_systemd
from tests.backends.rigs import Rig
from tests.rows import FIXTURES
from tests.waiting import LONG_S, wait_for

SSHD = "/usr/sbin/sshd"

needs_sshd = pytest.mark.skipif(
    not Path(SSHD).exists() or shutil.which("ssh") is None,
    reason="needs sshd and ssh: apt-get install openssh-server openssh-client",
)

SSHD_CONFIG = Path(__file__).with_name("sshd_config").read_text()
# Without the files that a person's own shell reads at its start: they may take long, or hang

SSH_CONFIG = (FIXTURES / "journal" / "ssh_config").read_text()

RUNS_HERE = 'for last; do :; done; sh -c "$last"'
"""An ssh that runs its command on this machine, to be put in the place of the real one."""


def free_port(address: str = "127.0.0.1") -> int:
    with socket.socket() as listener:
        listener.bind((address, 0))
        return int(listener.getsockname()[1])


def is_open(port: int, address: str = "127.0.0.1") -> bool:
    with contextlib.suppress(OSError), socket.create_connection((address, port), 1):
        return True
    return False


@dataclass(slots=True)
class Server:
    """A program that listens. `prefix` is put before its command, to start it elsewhere."""

    address: str = field(default="127.0.0.1", kw_only=True)
    port: int = field(default_factory=free_port, kw_only=True)
    prefix: tuple[str, ...] = field(default=(), kw_only=True)
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    def run(self, command: Sequence[str], log: Path) -> int:
        """Start it in a session of its own, where it writes into `log`; its process id."""
        command, nothing = [*self.prefix, *command], subprocess.DEVNULL
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                command, stdin=nothing, stdout=file, stderr=file, start_new_session=True
            )
        return self._process.pid

    def die(self) -> None:
        """End it with every connection it has, at once: it, and what serves its connections."""
        process, self._process = self._process, None
        if process is not None:
            end_tree(process.pid)
            process.wait()

    def children(self) -> list[int]:
        return children_of(self._process.pid) if self._process is not None else []


@dataclass(slots=True)
class Sshd(Server):
    """One sshd below `root`."""

    root: Path

    @property
    def spec(self) -> str:
        return self.address_of("")

    def address_of(self, path: Path | str) -> str:
        return f"ssh://{getpass.getuser()}@{self.address}:{self.port}{quote(str(path))}"

    def prepare(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        for name in ("host_key", "user_key"):
            if not (self.root / name).exists():
                command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.root / name)]
                subprocess.run(command, check=True, timeout=60)
        settings = SSHD_CONFIG.format(port=self.port, address=self.address, root=self.root)
        (self.root / "sshd_config").write_text(settings)

    def start(self) -> None:
        self.run([SSHD, "-D", "-e", "-f", str(self.root / "sshd_config")], self.root / "sshd.log")
        wait_for(lambda: is_open(self.port, self.address))


def children_of(pid: int) -> list[int]:
    """Every process that a process has started, and those by them, the deepest first."""
    return [found for child in _started_by(pid) for found in [*children_of(child), child]]


def program_of(pid: int) -> str:
    """The name of the program that a process runs; "" once it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def signal_journalctl(number: signal.Signals) -> None:
    """Send it to every journalctl that runs here for a test."""
    for pid in children_of(os.getpid()):
        if program_of(pid) == "journalctl":
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def end_tree(pid: int) -> None:
    """End a process and all below it at once.

    Each is stopped before its children are looked up, as one that runs starts others meanwhile.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        for child in _started_by(pid):
            end_tree(child)
        os.kill(pid, signal.SIGKILL)


def _started_by(pid: int) -> list[int]:
    """The processes that a process has started and not yet been told the end of."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


@dataclass(slots=True)
class SshClient:
    """An `ssh` on the PATH with settings of its own, and a short directory for its sockets."""

    root: Path
    sockets: Path

    def settings(self, keys: Path) -> None:
        (self.root / "config").write_text(SSH_CONFIG.format(root=keys))

    def replace(self, script: str) -> None:
        """Have a script in place of ssh; `-G` still tells nothing."""
        program = self.root / "bin" / "ssh"
        guard = 'case "$1" in -G) exit 0;; esac\n'
        program.write_text(f"#!/bin/sh\n{guard}{script}\n")
        program.chmod(0o755)


@contextlib.contextmanager
def ssh_client(root: Path, patch: pytest.MonkeyPatch) -> Iterator[SshClient]:
    (root / "bin").mkdir(parents=True)
    real = shutil.which("ssh") or "/usr/bin/ssh"
    program = root / "bin" / "ssh"
    program.write_text(f'#!/bin/sh\nexec {real} -F {root}/config "$@"\n')
    program.chmod(0o755)
    patch.setenv("PATH", f"{root / 'bin'}:{os.environ['PATH']}")
    sockets = Path(tempfile.mkdtemp(prefix="jt"))
    patch.setenv("XDG_RUNTIME_DIR", str(sockets))
    try:
        yield SshClient(root, sockets)
    finally:
        for control in sockets.glob("jobtui/*"):
            command = [real, "-F", "/dev/null", "-o", f"ControlPath={control}", "-O", "exit", "any"]
            subprocess.run(command, check=False, capture_output=True, timeout=10)
        shutil.rmtree(sockets, ignore_errors=True)


@contextlib.contextmanager
def a_server() -> Iterator[Sshd]:
    """A running sshd, and an ssh before all others on the PATH that it lets in."""
    with TemporaryDirectory() as text, pytest.MonkeyPatch.context() as patch:
        server = Sshd(Path(text) / "server")
        server.prepare()
        with ssh_client(Path(text) / "client", patch) as client:
            client.settings(server.root)
            server.start()
            try:
                yield server
            finally:
                server.die()


ACTIVATE = "systemd-socket-activate"
GATEWAYD = of_systemd("systemd-journal-gatewayd")
needs_gatewayd = pytest.mark.skipif(
    not GATEWAYD or shutil.which(ACTIVATE) is None,
    reason="needs systemd-journal-gatewayd: apt-get install systemd systemd-journal-remote",
)


@dataclass(slots=True)
class Gatewayd(Server):
    """One gatewayd; `directory` instead of its host's journal."""

    directory: Path | None
    log: Path

    @property
    def spec(self) -> str:
        return f"http://{self.address}:{self.port}"

    def start(self) -> None:
        """Start it; what is asked before it runs waits in its socket."""
        command = [ACTIVATE, "-l", f"{self.address}:{self.port}", GATEWAYD]
        pid = self.run([*command, *(["-D", str(self.directory)] if self.directory else [])], self.log)
        wait_for(lambda: is_listening(self.port, pid))


def is_listening(port: int, pid: int) -> bool:
    """Whether a socket listens on a port where a process is. Connecting to it would start gatewayd."""
    return any(
        line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A"
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
    )


MakeReader = Callable[[], JournalReader]


@dataclass(slots=True)
class Host:
    """What is called for a reader of a directory. What serves it can die, and start again."""

    reader: MakeReader
    start: Callable[[], None] = lambda: None
    die: Callable[[], None] = lambda: None

    def __call__(self) -> JournalReader:
        return self.reader()


class Way(NamedTuple):
    """A way to read a directory, and what has to be there for it."""

    open: Callable[[Path], AbstractContextManager[Host]]
    needs: tuple[pytest.MarkDecorator, ...] = ()


@contextmanager
def journalctl(directory: Path) -> Iterator[Host]:
    yield Host(lambda: JournalctlReader(str(directory)))


@contextmanager
def over_ssh(directory: Path) -> Iterator[Host]:
    with a_server() as server:
        yield Host(lambda: JournalctlReader(server.address_of(directory)), server.start, server.die)


@contextmanager
def over_http(directory: Path) -> Iterator[Host]:
    with TemporaryDirectory() as text:
        server = Gatewayd(directory, Path(text) / "log")
        server.start()
        try:
            yield Host(lambda: GatewayJournal(server.spec), server.start, server.die)
        finally:
            server.die()


READERS: dict[str, Way] = {
    "journalctl": Way(journalctl),
    "ssh": Way(over_ssh, (needs_sshd,)),
    "gatewayd": Way(over_http, (needs_gatewayd,)),
}


def ways(*names: str) -> list[Any]:
    return [pytest.param(READERS[name], id=name, marks=READERS[name].needs) for name in names]


each_program = pytest.mark.parametrize("way", ways("journalctl", "gatewayd"))
"""Each program that reads journals: over ssh it is journalctl again, which costs a server and logins."""


async def all_of(
    reader: JournalReader, matches: Matches = (), most: int = 97, *, back: bool = False
) -> list[JournalEntry]:
    """All entries, slice by slice, from the first on or `back` from the last one; oldest first."""
    found: list[JournalEntry] = []
    cursor: Cursor | None = None
    while True:
        at = None if cursor is None else AtCursor(cursor)
        if back:
            part = await reader.backward(at or Tail(), matches, most)
            found[:0] = part.entries
        else:
            part = await reader.forward(at or Begin(), matches, most)
            found += part.entries
        cursor = part.cursor
        if part.at_edge or cursor is None:
            return found
        assert len(part.entries) == most


def of(**fields: str) -> Matches:
    return (tuple(fields.items()),)


def messages(entries: list[JournalEntry]) -> list[str]:
    return [entry.message for entry in entries]


AFTERWARDS_S = 0.1
"""So long it is looked whether something comes that should not."""


class Follower:
    """Takes what a following gives, until enough has come."""

    def __init__(self, following: Following) -> None:
        self.following = following
        self.found: list[JournalEntry] = []
        self.losses = 0

    async def take(self, most: int = 200) -> None:
        while True:
            part = await self.following.take(most)
            self.found += part.entries
            self.losses += part.lost
            if part.at_edge:
                return

    async def until(self, count: int) -> list[JournalEntry]:
        """All that came, once it is `count` entries and nothing more waits."""
        async with asyncio.timeout(LONG_S):
            while len(self.found) < count:
                await self.following.changed(0.3)
                await self.take()
        await self.take()
        return self.found

    async def end(self) -> None:
        """Close it. What nobody waited for may not come after all, as what came before would come twice."""
        count = len(self.found)
        await self.following.changed(AFTERWARDS_S)
        await self.take()
        assert len(self.found) == count, messages(self.found[count:])
        await self.following.aclose()


UNIT = "sirepo_job_supervisor.service"
LINE = "Nov 14 22:13:20     7     0 sirepo/job_supervisor.py:254:receive ServerReq(api_run{}, None)"
DROPPED = f"Suppressed 5 messages from {UNIT}"


class JournalRig(Rig):
    """A journal that systemd-journal-remote writes. Each record is an entry; what was dropped is skipped."""

    tells = True
    reconnects = True

    def __init__(self, way: str, folder: Path) -> None:
        super().__init__(folder)
        self._directory = folder / "journals"
        self._directory.mkdir()
        self._away = folder / "away"
        self._stack = contextlib.ExitStack()
        patch = self._stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(client, "RETRY_S", 0.05)
        patch.setattr(client, "RETRY_MOST_S", 0.1)
        self._is_served = way == "gatewayd"
        self._host = self._stack.enter_context(READERS[way].open(self._directory))

    def source(self) -> Source:
        return Journal(self._host().name, self._host, since=Nanos(0))

    def _write(self, message: str, **fields: str) -> None:
        self._written += 1
        make_journal(self._directory, [entry(self._written, message, **fields)])

    def add(self) -> str:
        key = f"api_run{self._written}"
        self._write(LINE.format(self._written), _SYSTEMD_UNIT=UNIT, _PID="7")
        return key

    def tear(self) -> None:
        self._write(DROPPED, SYSLOG_IDENTIFIER="systemd-journald")

    def go_away(self) -> None:
        """Be gone, and what serves those who follow, too."""
        if self._is_served:
            self._host.die()
            return
        self._directory.rename(self._away)
        signal_journalctl(signal.SIGKILL)

    def come_back(self) -> None:
        if self._is_served:
            self._host.start()
        else:
            self._away.rename(self._directory)

    def close(self) -> None:
        self._stack.close()


JOURNAL_RIGS = [
    pytest.param(
        partial(JournalRig, name), id=f"journal-{name}", marks=(needs_journal_tools, *READERS[name].needs)
    )
    for name in ("journalctl", "gatewayd")
]
"""A rig for each program: made from a folder of its own, and to be closed."""
