"""Every way to read a journal, for the suites that all of them have to pass.

A way is a context that is given a directory of journal files and gives what makes readers of it. A new one
is a function and a line in READERS.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest

from jobtui.backends.journal.client import JournalReader
from jobtui.backends.journal.gatewayd import GatewayJournal
from jobtui.backends.journal.journalctl import JournalctlReader
from tests.backends.journal.gateway_rig import Gatewayd, needs_gatewayd
from tests.backends.journal.ssh_rig import a_server, needs_sshd

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
