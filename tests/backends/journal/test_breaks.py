"""A host that dies in the middle and comes back: nothing lost, nothing twice, the break told."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from jobtui.backends.base import SourceUnreachable
from jobtui.backends.journal import following
from jobtui.backends.journal.contract import JournalReader
from jobtui.backends.journal.gatewayd import GatewayJournal
from jobtui.backends.journal.ssh import SshJournal
from jobtui.model.journal import Head, Matches, Tail
from tests.backends.journal.gateway_rig import Gatewayd, needs_gatewayd
from tests.backends.journal.live import Writer, writer
from tests.backends.journal.make import entry, needs_journal_tools
from tests.backends.journal.reading import Deadline, Follower, messages, of
from tests.backends.journal.ssh_rig import SshClient, Sshd, needs_sshd, ssh_client

pytestmark = [needs_journal_tools]

WANTED = of(_SYSTEMD_UNIT="wanted.service")
TWO_FIELDS: Matches = ((("_SYSTEMD_UNIT", "wanted.service"),), (("CONTAINER_NAME", "srj"),))


class Host(NamedTuple):
    """A host that can die."""

    journal: Callable[[], JournalReader]
    start: Callable[[], None]
    die: Callable[[], None]


@contextmanager
def over_ssh(root: Path, directory: Path, client: SshClient) -> Iterator[Host]:
    server = Sshd(root)
    server.prepare()
    server.start()
    with (client.root / "config").open("a") as settings:
        settings.write(f'Match originalhost 127.0.0.1 exec "test %p = {server.port}"\n')
        settings.write(f"  IdentityFile {root}/user_key\n  IdentitiesOnly yes\n")
        settings.write(f"  UserKnownHostsFile {root}/known_hosts\n  StrictHostKeyChecking accept-new\n")
    yield Host(lambda: SshJournal(f"{server.spec}{directory}"), server.start, server.die)
    server.die()


@contextmanager
def over_http(root: Path, directory: Path, client: SshClient) -> Iterator[Host]:
    root.mkdir()
    server = Gatewayd(directory, root / "log")
    server.start()
    yield Host(lambda: GatewayJournal(server.spec), server.start, server.die)
    server.die()


WAYS = [
    pytest.param(over_ssh, id="ssh", marks=needs_sshd),
    pytest.param(over_http, id="gatewayd", marks=needs_gatewayd),
]
MakeHost = Callable[[Path, Path, SshClient], contextlib.AbstractContextManager[Host]]


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshClient]:
    monkeypatch.setattr(following, "RETRY_S", 0.1)
    monkeypatch.setattr(following, "RETRY_MOST_S", 0.2)
    with ssh_client(tmp_path / "client", monkeypatch) as made:
        (made.root / "config").write_text("")
        yield made


class Numbered:
    """Writes numbered entries to a journal, every third not wanted by anybody."""

    def __init__(self, journal: Writer) -> None:
        self.journal = journal
        self.number = 0
        self.wanted: list[str] = []

    def write(self, count: int) -> None:
        numbers = range(self.number, self.number + count)
        self.number += count
        units = {n: "other.service" if n % 3 == 1 else "wanted.service" for n in numbers}
        self.journal.write(entry(n, f"m{n}", _SYSTEMD_UNIT=unit) for n, unit in units.items())
        self.wanted += [f"m{n}" for n, unit in units.items() if unit == "wanted.service"]


async def until(follower: Follower, wanted: list[str]) -> int:
    """Follow until all that is wanted has come; how often a break was told on the way."""
    deadline, breaks = Deadline(), 0
    while len(follower.found) < len(wanted):
        deadline.check(f"{len(follower.found)} of {len(wanted)} came")
        try:
            await follower.take()
        except SourceUnreachable:
            breaks += 1
        if len(follower.found) < len(wanted):
            await follower.following.changed(0.2)
    assert messages(follower.found) == wanted
    return breaks


async def take_on(follower: Follower) -> None:
    """Take what comes until a break is told."""
    deadline = Deadline()
    while True:
        deadline.check("no break was told")
        await follower.following.changed(5.0)
        await follower.take()


async def there(reader: JournalReader) -> None:
    """Wait until something has been written."""
    first = Follower(reader.follow(Head(), ()))
    await first.until(1)
    await first.following.aclose()


@pytest.mark.parametrize("matches", [WANTED, TWO_FIELDS], ids=["one field", "two fields"])
@pytest.mark.parametrize("way", WAYS)
async def test_nothing_is_lost_and_nothing_comes_twice(
    way: MakeHost, matches: Matches, tmp_path: Path, client: SshClient
) -> None:
    directory = tmp_path / "journal"
    directory.mkdir()
    with writer(directory) as journal, way(tmp_path / "host", directory, client) as host:
        numbered = Numbered(journal)
        numbered.write(100)
        reader = host.journal()
        follower = Follower(reader.follow(Head(), matches))
        await until(follower, numbered.wanted)
        for _ in range(3):
            numbered.write(200)
            await follower.take()
            host.die()
            numbered.write(300)
            with pytest.raises(SourceUnreachable):
                await take_on(follower)
            numbered.write(100)
            host.start()
            await until(follower, numbered.wanted)
            numbered.write(50)
            await until(follower, numbered.wanted)
        assert follower.losses == 0
        await follower.following.aclose()
        await reader.aclose()


@pytest.mark.parametrize("way", WAYS)
async def test_a_break_before_anything_came(way: MakeHost, tmp_path: Path, client: SshClient) -> None:
    directory = tmp_path / "journal"
    directory.mkdir()
    with writer(directory) as journal, way(tmp_path / "host", directory, client) as host:
        numbered = Numbered(journal)
        journal.write([entry(0, "before")])
        reader = host.journal()
        await there(reader)
        follower = Follower(reader.follow(Tail(), WANTED))
        await follower.take()
        host.die()
        numbered.number = 10
        numbered.write(90)
        with pytest.raises(SourceUnreachable):
            await take_on(follower)
        host.start()
        await until(follower, numbered.wanted)
        await follower.following.aclose()
        await reader.aclose()


@pytest.mark.parametrize("way", WAYS)
async def test_others_are_unaffected(way: MakeHost, tmp_path: Path, client: SshClient) -> None:
    places = [tmp_path / "journal1", tmp_path / "journal2"]
    for place in places:
        place.mkdir()
    with (
        writer(places[0]) as first_journal,
        writer(places[1]) as second_journal,
        way(tmp_path / "host1", places[0], client) as first,
        way(tmp_path / "host2", places[1], client) as second,
    ):
        one, two = Numbered(first_journal), Numbered(second_journal)
        readers = [first.journal(), second.journal()]
        followers = [Follower(reader.follow(Head(), WANTED)) for reader in readers]
        one.write(50)
        two.write(50)
        await until(followers[0], one.wanted)
        await until(followers[1], two.wanted)
        first.die()
        one.write(100)
        two.write(100)
        assert await until(followers[1], two.wanted) == 0
        first.start()
        await until(followers[0], one.wanted)
        for follower, reader in zip(followers, readers, strict=True):
            await follower.following.aclose()
            await reader.aclose()


@pytest.mark.parametrize("way", WAYS)
async def test_a_host_that_dies_while_it_gives_much(way: MakeHost, tmp_path: Path, client: SshClient) -> None:
    directory = tmp_path / "journal"
    directory.mkdir()
    with writer(directory) as journal, way(tmp_path / "host", directory, client) as host:
        numbered = Numbered(journal)
        numbered.write(12_000)
        reader = host.journal()
        await there(reader)
        follower = Follower(reader.follow(Head(), WANTED))
        while len(follower.found) < 500:
            part = await follower.following.take(100)
            follower.found += part.entries
        host.die()
        with contextlib.suppress(SourceUnreachable):
            while len(follower.found) < len(numbered.wanted):
                part = await follower.following.take(100)
                follower.found += part.entries
        host.start()
        await until(follower, numbered.wanted)
        await follower.following.aclose()
        await reader.aclose()
