"""Every way to read a journal, for the suites that all of them have to pass; the contract's rig of each.

A way is a context that is given a directory of journal files and gives what makes readers of it.
"""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest

from jobtui.backends.base import Source
from jobtui.backends.journal import client
from jobtui.backends.journal.client import Following, JournalReader
from jobtui.backends.journal.gatewayd import GatewayJournal
from jobtui.backends.journal.journalctl import JournalctlReader
from jobtui.backends.journal.source import Journal
from jobtui.model.clock import Nanos
from jobtui.model.journal import AtCursor, Begin, Cursor, JournalEntry, Matches, Tail
from tests.backends.journal.make import entry, make_journal, needs_journal_tools
from tests.backends.journal.rigs import Gatewayd, a_server, needs_gatewayd, needs_sshd, signal_journalctl
from tests.backends.rigs import Rig
from tests.waiting import LONG_S

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
