"""Running one line in a shell, here or over ssh: its output, its end, and what its errors mean.

A program has no terminal, no input and a session of its own: it can ask nobody for a password, and ctrl+c
ends only who ran it. It is read when asked to, so that a full pipe makes it wait. Before each answer comes a
mark that nobody can know, so that what a login prints is not taken for entries. Nothing blocks.

Over ssh the user's own settings hold, and nothing is ever asked for. Connections are shared and kept for a
minute, through the user's own control socket where there is one, so that a second factor works too.
"""

import asyncio
import contextlib
import getpass
import os
import re
import signal
import stat
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from ctypes import CDLL
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from jobtui.model.commands import Command, command_line
from jobtui.model.health import KINDS, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.secrets import mask_text
from jobtui.model.tables import tables_of

READ_BYTES = 64 << 10
STDERR_BYTES = 4096
"""Kept of stderr at either end: the reason is in one of them."""

STOP_S = 1.0
EXIT_POLL_S = 0.02


class Running:
    """A program that was started. Whoever starts one stops it; `stop` ends it, whatever its state."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start it, with `environment` added to this process's own. Raises OSError, ValueError for a NUL."""
        # Killed with this process: ssh would stay until there is something to print; 1 is PR_SET_PDEATHSIG
        end_too = partial(CDLL(None).prctl, 1, signal.SIGTERM)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
            start_new_session=True,
            preexec_fn=end_too,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._out: IO[bytes] = self._process.stdout
        self._errors: IO[bytes] = self._process.stderr
        self._stderr_begin = self._stderr_end = b""
        self._loop = asyncio.get_running_loop()
        for pipe in (self._out, self._errors):
            os.set_blocking(pipe.fileno(), False)
        self._loop.add_reader(self._errors.fileno(), self._hear)

    @property
    def stderr(self) -> str:
        return (self._stderr_begin + self._stderr_end).decode("utf-8", "replace")

    async def read(self) -> bytes:
        await asyncio.sleep(0)  # other tasks run even while it prints faster than it is read
        while True:
            try:
                return os.read(self._out.fileno(), READ_BYTES)
            except BlockingIOError:
                await self._readable(self._out.fileno())

    async def ended(self) -> int:
        try:
            exit_fd = os.pidfd_open(self._process.pid)
        except OSError:
            while self._process.poll() is None:  # noqa: ASYNC110 - nothing else reports its end
                await asyncio.sleep(EXIT_POLL_S)
        else:
            try:
                while self._process.poll() is None:
                    await self._readable(exit_fd)
            finally:
                os.close(exit_fd)
        while not self._errors.closed and self._hear():
            pass
        return self._process.wait()

    async def stop(self) -> None:
        """End it with all that it started, and close what it is read through. May be called twice."""
        try:
            if self._process.poll() is None:
                self._signal(signal.SIGTERM)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(STOP_S):
                        await self.ended()
        finally:
            if self._process.poll() is None:
                self._signal(signal.SIGKILL)
                self._process.wait()
            if not self._errors.closed:
                self._loop.remove_reader(self._errors.fileno())
                self._errors.close()
            self._out.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _hear(self) -> bool:
        try:
            data = os.read(self._errors.fileno(), READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._errors.fileno())
            return False
        room = STDERR_BYTES - len(self._stderr_begin)
        self._stderr_begin += data[:room]
        self._stderr_end = (self._stderr_end + data[room:])[-STDERR_BYTES:]
        return True

    async def _readable(self, fd: int) -> None:
        ready = asyncio.Event()
        self._loop.add_reader(fd, ready.set)
        try:
            await ready.wait()
        finally:
            self._loop.remove_reader(fd)


SILENCE_S = 60.0
"""journalctl searches by index: if nothing comes in this time, nothing will."""
WHOLE_S = 120.0
"""How long the whole answer to a single question may take, however slowly it comes."""
NOISE_BYTES = 2_000
ANSWER_BYTES = 64 << 20
"""Kept of an answer that another one follows."""

T = TypeVar("T")


class SshAnswers:
    """The answers to one line, in order."""

    def __init__(self, shell: "Shell", running: Running, mark: str) -> None:
        self._shell = shell
        self._running = running
        self._mark = mark
        self._number = 0
        self._rest = b""
        self._noise = b""

    async def begin(self) -> None:
        try:
            async with asyncio.timeout(self._shell.start_s):  # also for what only makes noise
                self._noise = await self._to_mark(NOISE_BYTES, None)
        except TimeoutError:
            raise self._shell.silence(self._shell.start_s) from None

    async def answer(self) -> bytes:
        """An answer that is followed by another one, at most ANSWER_BYTES of it."""
        async with self.deadline():
            return await self._to_mark(ANSWER_BYTES, SILENCE_S)

    @contextlib.asynccontextmanager
    async def deadline(self) -> AsyncIterator[None]:
        """A block in which all reading ends within `WHOLE_S`. Raises SourceError."""
        try:
            async with asyncio.timeout(WHOLE_S):
                yield
        except TimeoutError:
            raise self._shell.silence(WHOLE_S, "whole answer") from None

    async def pieces(self, silence_s: float | None) -> AsyncGenerator[bytes, None]:
        """The last answer. Raises SourceError when the program fails at its end."""
        piece, self._rest = self._rest, b""
        while True:
            if piece:
                yield piece
            piece = await self._within(silence_s, self._running.read())
            if not piece:
                break
        if await self._within(SILENCE_S, self._running.ended()):
            raise await self._fault()

    @property
    def stderr(self) -> str:
        return self._running.stderr

    async def _to_mark(self, most: int, silence_s: float | None) -> bytes:
        mark = f"{self._mark}{self._number}\n".encode()
        self._number += 1
        found = bytearray()
        while (at := self._rest.find(mark)) < 0:
            surely = max(len(self._rest) - len(mark) + 1, 0)
            found += self._rest[: min(surely, most - len(found))]
            self._rest = self._rest[surely:]
            piece = await self._within(silence_s, self._running.read())
            if not piece:
                if self._number == 1:
                    self._noise = bytes(found + self._rest)[:NOISE_BYTES]
                raise await self._fault()
            self._rest += piece
        found += self._rest[: min(at, most - len(found))]
        self._rest = self._rest[at + len(mark) :]
        return bytes(found)

    async def _fault(self) -> SourceError:
        code = await self._within(SILENCE_S, self._running.ended())
        return self._shell.fault(self.stderr, code, in_words(self._noise.decode("utf-8", "replace")))

    async def _within(self, silence_s: float | None, reading: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(silence_s):
                return await reading
        except TimeoutError:
            raise self._shell.silence(silence_s or 0.0) from None


def line_of(mark: str, commands: Sequence[Sequence[str]]) -> str:
    marked = (f"echo {mark}{number}; {command_line(command)}" for number, command in enumerate(commands))
    return "; ".join(marked)


WORDS_LIMIT = 200


class KnownFault(NamedTuple):
    """A pattern of stderr, the kind of failure, and the line to show, with names for values."""

    pattern: str
    kind: type[SourceError]
    line: str


def faults_of(
    program: str, package: str = "jobtui.transport", kinds: Mapping[str, type[SourceError]] = KINDS
) -> tuple[KnownFault, ...]:
    """What a program says when it fails, by `faults.toml` of a package, in the order in which it is tried."""
    rows = tables_of(package, "faults")[program]
    return tuple(KnownFault(text, kinds[kind], line) for text, kind, line in rows)


def known_fault(table: Sequence[KnownFault], stderr: str, values: Mapping[str, str]) -> SourceError | None:
    """The failure that a table knows for this stderr; None when it knows none.

    `values` has what the lines name: `name`, the source, always.
    """
    for fault in table:
        if found := re.search(fault.pattern, stderr, re.IGNORECASE):
            named = {**values, **{key: in_words(value) for key, value in found.groupdict().items()}}
            what = str(named.get("what", ""))
            command = Command("chmod", "600", about=[what])
            named["chmod"] = f"type: {command}" if command else "only you may be able to write it"
            return fault.kind(f"{values['name']}: {fault.line.format_map(named)}")
    return None


def in_words(text: str) -> str:
    """The last line of a program's stderr, short, without control characters and secrets."""
    lines = ["".join(char if char.isprintable() else " " for char in line) for line in text.splitlines()]
    words = [" ".join(line.split()) for line in lines if line.strip()]
    return mask_text(words[-1][:WORDS_LIMIT]) if words else ""


LOCAL_START_S = 10.0


class LocalShell:
    """A shell of this machine. `known` are the faults of what is run."""

    start_s = LOCAL_START_S

    def __init__(
        self, name: str, known: Sequence[KnownFault] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._known = known
        self._environment = environment or {}

    async def run(self, line: str) -> Running:
        """Run a line. Raises SourceError."""
        try:
            return Running(["/bin/sh", "-c", line], self._environment)
        except (OSError, ValueError) as error:
            raise SourceError(f"{self.name}: no program can be run: {error}") from error

    def fault(self, stderr: str, code: int, printed: str) -> SourceError:
        account = getpass.getuser()
        values = {
            "name": self.name,
            "host": "this machine",
            "there": "",
            "user": account,
            "usermod": Command("sudo", "usermod", "-aG", "systemd-journal", about=[account]) or "usermod",
        }
        known = known_fault(self._known or faults_of("journalctl"), stderr, values)
        words = ": ".join(filter(None, (f"the program ended with {code}", in_words(stderr) or printed)))
        return known or SourceError(f"{self.name}: {words}")

    def silence(self, seconds: float, what: str = "answer") -> SourceError:
        return SourceUnreachable(f"{self.name}: no {what} within {seconds:g} s")


CONNECT_S = 10
ALIVE_EVERY_S = 5
ALIVE_MISSES = 3
PERSIST_S = 60
START_S = 15.0
"""Until the line runs: connecting, logging in, and whatever a login does."""
SETTINGS_S = 5.0
FAILED_ITSELF = 255
"""ssh's exit code when it is ssh that failed, and not what was run."""

OPTIONS = (
    "BatchMode=yes",
    "NumberOfPasswordPrompts=0",
    f"ConnectTimeout={CONNECT_S}",
    "ConnectionAttempts=1",
    f"ServerAliveInterval={ALIVE_EVERY_S}",
    f"ServerAliveCountMax={ALIVE_MISSES}",
    "RequestTTY=no",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
    "IgnoreUnknown=RemoteCommand",  # ssh before 7.6 does not know it
    "RemoteCommand=none",
    "LogLevel=ERROR",
)
"""Trusted hosts, keys, jump hosts and everything else are as the user has set them."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:%-]*", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@$-]*", re.ASCII)


class Address(NamedTuple):
    """Where to log in. `directory` instead of the host's own journal; "" and None: as ssh has it."""

    host: str
    user: str = ""
    port: int | None = None
    directory: str = ""


def address_of(spec: str) -> Address:
    """The address that `ssh://[user@]host[:port][/directory]` names. Raises ValueError, without the spec."""
    parts = urlsplit(spec)
    if parts.scheme != "ssh" or parts.query or parts.fragment:
        raise ValueError("expected ssh://[user@]host[:port]")
    if parts.password is not None:
        raise ValueError("ssh takes no password; leave it out and give the host your key: ssh-copy-id")
    host = parts.netloc.rpartition("@")[2]
    host = unquote(host[1:].partition("]")[0]) if host.startswith("[") else host.partition(":")[0]
    user = unquote(parts.username or "")
    if not _NAME.fullmatch(host):
        raise ValueError("expected the name of a host, as in ssh://[user@]host[:port]")
    if user and not _USER.fullmatch(user):
        raise ValueError("expected the name of a user, as in ssh://[user@]host[:port]")
    directory = unquote(parts.path).rstrip("/")
    if "\0" in directory or parts.port == 0:
        raise ValueError("expected ssh://[user@]host[:port]")
    return Address(host, user, parts.port, directory)


class SshShell:
    """A shell on another host. `known` are the faults of what is run there."""

    start_s = START_S

    def __init__(self, spec: str, known: Sequence[KnownFault] = ()) -> None:
        self.name, self._wrong = mask_text(spec), ""
        self._known = known
        try:
            self._address = address_of(spec)
        except ValueError as error:
            self._address, self._wrong = Address(""), str(error)
        self.directory = self._address.directory
        self._sharing: tuple[str, ...] | None = None

    async def run(self, line: str) -> Running:
        """Run a line there. Raises SourceError when it is no address, or there is no ssh."""
        if self._wrong:
            raise SourceError(f"{self.name}: {self._wrong}")
        if self._sharing is None:
            # As the user has set it, else through sockets of our own
            if (await self._settings()).get("controlpath", "none") != "none":
                self._sharing = ()
            elif (directory := private_directory()) is None:
                self._sharing = ("ControlMaster=no", "ControlPath=none")
            else:
                path = f"ControlPath={directory}/%C"
                self._sharing = ("ControlMaster=auto", path, f"ControlPersist={PERSIST_S}")
        options = (word for option in (*OPTIONS, *self._sharing) for word in ("-o", option))
        return self._start(*options, *self._target, line)

    def fault(self, stderr: str, code: int, printed: str) -> SourceError:
        of_ssh, of_program = faults_of("ssh"), self._known or faults_of("journalctl")
        tables = (of_ssh, of_program) if code == FAILED_ITSELF else (of_program, of_ssh)
        for table in tables:
            if known := known_fault(table, stderr or printed, self._values):
                return known
        why = in_words(stderr) or printed
        if code == FAILED_ITSELF and not why:  # a shared connection that breaks says nothing
            how = f"the connection to {self._address.host} was lost, or it no longer answers"
            return SourceUnreachable(f"{self.name}: {how}; check that it is up: {self._by_hand}")
        how = f"ended with {code}" if code else "gave no answer"
        return SourceUnreachable(f"{self.name}: ssh {how}{f': {why}' if why else ''}; try: {self._by_hand}")

    def silence(self, seconds: float, what: str = "answer") -> SourceError:
        advice = f"check that the host is up: {self._by_hand}"
        return SourceUnreachable(f"{self.name}: no {what} within {seconds:g} s; {advice}")

    def _start(self, *words: str) -> Running:
        try:
            return Running(["ssh", *words], {"LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"})
        except FileNotFoundError as error:
            raise SourceMissing(
                f"{self.name}: no ssh program; install it: apt-get install openssh-client"
            ) from error
        except (OSError, ValueError) as error:
            raise SourceError(f"{self.name}: ssh could not be run: {error}") from error

    async def _settings(self) -> dict[str, str]:
        """ssh's settings for this host, none when it gives none; does not connect."""
        running = self._start("-G", *self._target)
        printed = b""
        try:
            async with asyncio.timeout(SETTINGS_S):
                while piece := await running.read():
                    printed += piece
        except TimeoutError:
            return {}
        finally:
            await running.stop()
        lines = printed.decode("utf-8", "replace").splitlines()
        return {key: value for key, _, value in (line.partition(" ") for line in lines)}

    @property
    def _login(self) -> tuple[str, ...]:
        host, user, port, _ = self._address
        return (*(("-p", str(port)) if port else ()), f"{user}@{host}" if user else host)

    @property
    def _target(self) -> tuple[str, ...]:
        host, user, port, _ = self._address
        named = (*(("-p", str(port)) if port else ()), *(("-l", user) if user else ()))
        return ("-a", "-x", "-T", "-n", *named, "--", host)

    @property
    def _by_hand(self) -> str:
        return Command("ssh", *self._login) or "ssh"

    @property
    def _values(self) -> dict[str, str]:
        host, user, port, _ = self._address
        account = user or getpass.getuser()
        return {
            "name": self.name,
            "host": host,
            "port": str(port or 22),
            "user": account,
            "there": f" on {host}",
            "usermod": Command("usermod", "-aG", "systemd-journal", about=[account]) or "usermod",
            "known_host": Command(f"[{host}]:{port}" if port and port != 22 else host) or "HOST",
            "ssh": self._by_hand,
            "ssh_copy_id": Command("ssh-copy-id", *self._login) or "ssh-copy-id",
        }


Shell = LocalShell | SshShell
"""Where a line can be run. `start_s` is how long it may take until it runs."""


class Printed(NamedTuple):
    """What a script printed; None when it never began. `noise` came before that, `is_cut`: there was more."""

    data: bytes | None
    code: int
    stderr: str
    noise: str
    is_cut: bool


async def printed_by(
    shell: Shell,
    script: str,
    words: Sequence[str],
    most_bytes: int,
    whole_s: float,
    silence: Callable[[bool], SourceError],
) -> Printed:
    """What a script prints with these words as arguments. Raises SourceError. Its output begins after a mark,
    as a login may print things of its own. If it does not end in time, `silence(began)` is raised.
    """
    mark = os.urandom(8).hex()
    line = f"{mark}\n".encode()
    running = await shell.run(command_line(["sh", "-c", f"echo {mark}; {script}", "sh", *words]))
    printed, code = bytearray(), 0
    try:
        async with asyncio.timeout(whole_s):
            while len(printed) < most_bytes and (piece := await running.read()):
                printed += piece
            code = 0 if len(printed) >= most_bytes else await running.ended()
    except TimeoutError:
        raise silence(line in printed) from None
    finally:
        await running.stop()
    at = printed.find(line)
    data = None if at < 0 else bytes(memoryview(printed)[at + len(line) :])
    noise = in_words((printed if at < 0 else printed[:at]).decode("utf-8", "replace"))
    return Printed(data, code, running.stderr, noise, len(printed) >= most_bytes)


SOCKET_PATH_BYTES = 104
"""The shortest `sun_path` of the systems there are, the ending NUL counted."""
SSH_NAME_BYTES = 1 + 40 + 17 + 1
"""ssh's name for a connection (%C), and what it adds while it makes the socket."""
_AWKWARD = frozenset("%\"'\\ \t\n")


def private_directory() -> Path | None:
    """A directory that only this user may enter, made when needed; None when there can be none.

    Below XDG_RUNTIME_DIR, else below the directory for temporary files. None that others own or may enter.
    """
    import tempfile  # costs 5 ms, and is needed over ssh only

    candidates = [Path(os.environ["XDG_RUNTIME_DIR"]) / "jobtui"] if os.environ.get("XDG_RUNTIME_DIR") else []
    candidates.append(Path(tempfile.gettempdir()) / f"jobtui-{os.getuid()}")
    for directory in candidates:
        is_short = len(os.fsencode(directory)) + SSH_NAME_BYTES <= SOCKET_PATH_BYTES
        if not (is_short and directory.is_absolute()) or _AWKWARD.intersection(str(directory)):
            continue
        try:
            directory.mkdir(mode=0o700, exist_ok=True)
            status = directory.lstat()
        except OSError:
            continue
        is_alone = stat.S_ISDIR(status.st_mode) and not stat.S_IMODE(status.st_mode) & 0o077
        if is_alone and status.st_uid == os.getuid():
            return directory
    return None
