"""Every way to read a journal, for the suites that all of them have to pass.

A way is a context that is given a directory of journal files and gives what makes readers of it. A new one
is a function and a line in READERS.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from jobtui.backends.journal.client import JournalReader
from jobtui.backends.journal.gatewayd import GatewayJournal
from jobtui.backends.journal.journalctl import LocalJournal, SshJournal
from tests.backends.journal.gateway_rig import Gatewayd, needs_gatewayd
from tests.backends.journal.ssh_rig import a_server, needs_sshd

MakeReader = Callable[[], JournalReader]


class Way(NamedTuple):
    """A way to read a directory, and what has to be there for it."""

    open: Callable[[Path], AbstractContextManager[MakeReader]]
    needs: tuple[pytest.MarkDecorator, ...] = ()


@contextmanager
def journalctl(directory: Path) -> Iterator[MakeReader]:
    yield lambda: LocalJournal(str(directory))


@contextmanager
def over_ssh(directory: Path) -> Iterator[MakeReader]:
    with a_server() as server:
        yield lambda: SshJournal(server.address_of(directory))


@contextmanager
def over_http(directory: Path) -> Iterator[MakeReader]:
    with TemporaryDirectory() as text:
        server = Gatewayd(directory, Path(text) / "log")
        server.start()
        try:
            yield lambda: GatewayJournal(server.spec)
        finally:
            server.die()


READERS: dict[str, Way] = {
    "journalctl": Way(journalctl),
    "ssh": Way(over_ssh, (needs_sshd,)),
    "gatewayd": Way(over_http, (needs_gatewayd,)),
}

each_way = pytest.mark.parametrize(
    "way", [pytest.param(way, id=name, marks=way.needs) for name, way in READERS.items()]
)
