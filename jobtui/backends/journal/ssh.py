"""A journal on another host: journalctl there, through the ssh program and the user's own settings of it.

Nothing is ever asked for: no password, no passphrase, no host key. Connections are shared and kept for a
minute, through the user's own control socket where there is one, so that hosts that want a second factor
work too.
"""

import asyncio
import getpass
import re
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from jobtui.backends.base import SourceError, SourceMissing, SourceUnreachable
from jobtui.backends.journal import faults
from jobtui.backends.journal.journalctl import JournalctlReader
from jobtui.backends.journal.process import Running
from jobtui.backends.journal.runtime_dir import private_directory
from jobtui.backends.journal.shell import command_line
from jobtui.model.secrets import mask_text

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
"""Whose hosts are trusted, keys, jump hosts and all else are as the user has set them."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:%-]*", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@$-]*", re.ASCII)


class Address(NamedTuple):
    """Where to log in. `directory` instead of the journal of the host itself; "" and None: as ssh is set."""

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
        raise ValueError("ssh is given no password; leave it out and give the host your key: ssh-copy-id")
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
    """A `Shell` on another host. `known` are the faults of what is run there."""

    start_s = START_S

    def __init__(self, spec: str, known: Sequence[faults.Fault] = faults.JOURNALCTL) -> None:
        self.name, self._wrong = mask_text(spec), ""
        self._known = known
        try:
            self._address = address_of(spec)
        except ValueError as error:
            self._address, self._wrong = Address(""), str(error)
        self._sharing: tuple[str, ...] | None = None

    @property
    def directory(self) -> str:
        """The directory to read there; "" for the journal of the host itself."""
        return self._address.directory

    async def run(self, line: str) -> Running:
        """Run a line there. Raises SourceError when it is no address, or there is no ssh."""
        if self._wrong:
            raise SourceError(f"{self.name}: {self._wrong}")
        if self._sharing is None:
            self._sharing = await self._find_sharing()
        return self._start(*_options(*OPTIONS, *self._sharing), *self._target, line)

    def fault(self, said: str, code: int, printed: str) -> SourceError:
        """What it means that ssh, or what was run there, ended so."""
        tables = (faults.SSH, self._known) if code == FAILED_ITSELF else (self._known, faults.SSH)
        for table in tables:
            if known := faults.known_fault(table, said or printed, self._values):
                return known
        told = faults.in_words(said) or printed
        if code == FAILED_ITSELF and not told:  # a shared connection that breaks says nothing
            how = f"the connection to {self._address.host} broke off, or it gives no answer any more"
            return SourceUnreachable(f"{self.name}: {how}; check that it is up: {self._by_hand}")
        how = f"ended with {code}" if code else "gave no answer"
        return SourceUnreachable(f"{self.name}: ssh {how}{f': {told}' if told else ''}; try: {self._by_hand}")

    def silence(self, seconds: float) -> SourceError:
        """Nothing came for so long."""
        return SourceUnreachable(
            f"{self.name}: no answer within {seconds:g} s; check that the host is up: {self._by_hand}"
        )

    def _start(self, *words: str) -> Running:
        try:
            return Running(["ssh", *words], {"LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"})
        except FileNotFoundError as error:
            raise SourceMissing(
                f"{self.name}: there is no ssh program; install it: apt-get install openssh-client"
            ) from error
        except (OSError, ValueError) as error:
            raise SourceError(f"{self.name}: ssh could not be run: {error}") from error

    async def _find_sharing(self) -> tuple[str, ...]:
        """How connections are shared: as the user has set it, else through sockets of our own."""
        settings = await self._settings()
        if settings.get("controlpath", "none") != "none":
            return ()
        place = private_directory("jobtui")
        if place is None:
            return ("ControlMaster=no", "ControlPath=none")
        return ("ControlMaster=auto", f"ControlPath={place}/%C", f"ControlPersist={PERSIST_S}")

    async def _settings(self) -> dict[str, str]:
        """ssh's settings for this host, nothing when it does not tell; connects to nobody."""
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
        port = ("-p", str(self._address.port)) if self._address.port else ()
        return (
            *port,
            f"{self._address.user}@{self._address.host}" if self._address.user else self._address.host,
        )

    @property
    def _target(self) -> tuple[str, ...]:
        port = ("-p", str(self._address.port)) if self._address.port else ()
        user = ("-l", self._address.user) if self._address.user else ()
        return ("-a", "-x", "-T", "-n", *port, *user, "--", self._address.host)

    @property
    def _by_hand(self) -> str:
        return command_line(["ssh", *self._login])

    @property
    def _values(self) -> dict[str, str]:
        host, port, user = self._address.host, self._address.port, self._address.user
        account = user or getpass.getuser()
        return {
            "name": self.name,
            "host": host,
            "port": str(port or 22),
            "user": account,
            "there": f" on {host}",
            "usermod": command_line(["usermod", "-aG", "systemd-journal", account]),
            "known_host": command_line([f"[{host}]:{port}" if port and port != 22 else host]),
            "ssh": self._by_hand,
            "ssh_copy_id": command_line(["ssh-copy-id", *self._login]),
        }


def _options(*options: str) -> tuple[str, ...]:
    return tuple(word for option in options for word in ("-o", option))


class SshJournal(JournalctlReader):
    """The journal that `ssh://[user@]host[:port][/directory]` names. Connects when it is asked something."""

    def __init__(self, spec: str) -> None:
        shell = SshShell(spec)
        super().__init__(shell, shell.directory)
