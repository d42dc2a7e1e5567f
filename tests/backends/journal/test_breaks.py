"""Following journals: of a host that dies and comes back, and of several hosts in one directory."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from jobtui.backends.journal import client
from jobtui.backends.journal.client import HostStarts
from jobtui.model.health import SourceUnreachable
from jobtui.model.journal import AtCursor, Begin, FollowStart, Matches
from tests.backends.journal.make import Writer, entry, make_journal, needs_journal_tools
from tests.backends.journal.rigs import Follower, MakeReader, Way, each_program, messages, of, ways
from tests.waiting import LONG_S

pytestmark = [needs_journal_tools]

TWO_FIELDS: Matches = ((("_SYSTEMD_UNIT", "wanted.service"),), (("CONTAINER_NAME", "srj"),))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("RETRY_S", 0.1), ("RETRY_MOST_S", 0.2), ("LOOK_EVERY_S", 0.1)):
        monkeypatch.setattr(client, name, seconds)


@pytest.mark.parametrize("way", ways("ssh", "gatewayd"))
async def test_nothing_is_lost_and_nothing_comes_twice(way: Way, tmp_path: Path) -> None:
    """A host that dies while it gives much, while nothing comes, and while it is written."""
    wanted: list[str] = []
    with Writer(tmp_path) as journal, way.open(tmp_path) as host:

        def write(*numbers: int) -> None:
            units = {n: "other.service" if n % 3 == 1 else "wanted.service" for n in numbers}
            journal.write(entry(n, f"m{n}", _SYSTEMD_UNIT=unit) for n, unit in units.items())
            wanted.extend(f"m{n}" for n, unit in units.items() if unit == "wanted.service")

        async def until_all_came() -> None:
            while len(follower.found) < len(wanted):
                with contextlib.suppress(SourceUnreachable):
                    await follower.take()
                if len(follower.found) < len(wanted):
                    await follower.following.changed(0.2)
            assert messages(follower.found) == wanted

        write(*range(6_000))
        reader = host.reader()
        await Follower(reader.follow(Begin(), ())).until(1)
        follower = Follower(reader.follow(Begin(), TWO_FIELDS))
        async with asyncio.timeout(LONG_S):
            while len(follower.found) < 500:
                follower.found += (await follower.following.take(100)).entries
            host.die()
            for begin in (6_000, 6_450):
                with contextlib.suppress(SourceUnreachable):
                    while True:
                        await follower.following.changed(5.0)
                        await follower.take()
                write(*range(begin, begin + 100))
                host.start()
                await until_all_came()
                write(*range(begin + 100, begin + 150))
                await until_all_came()
                host.die()
                write(*range(begin + 150, begin + 450))
        assert follower.losses == 0
        await follower.following.aclose()
        await reader.aclose()


HOSTS = ("node1", "node2", "node3")
MARKED = of(WANTED="1")


def from_host(host: str, nth: int, **fields: str) -> bytes:
    number = HOSTS.index(host) + 1
    named = {"host": host, "machine": f"{number:x}" * 32, "boot": f"{number:x}" * 32, "WANTED": "1"}
    return entry(nth, f"{host} {nth}", **{**named, **fields})


def nameless(host: str, nth: int) -> bytes:
    """An entry that does not say of which machine it is."""
    lines = from_host(host, nth).split(b"\n")
    return b"\n".join(line for line in lines if not line.startswith(b"_MACHINE_ID="))


@contextmanager
def written(way: Way, directory: Path) -> Iterator[tuple[MakeReader, list[Writer]]]:
    """What reads a directory, and what writes the journals of three hosts in it."""
    with ExitStack() as stack:
        writers = [stack.enter_context(Writer(directory, f"remote-{host}.journal")) for host in HOSTS]
        yield stack.enter_context(way.open(directory)), writers


@asynccontextmanager
async def followed(make: MakeReader, start: FollowStart | HostStarts) -> AsyncIterator[Follower]:
    reader = make()
    follower = Follower(reader.follow(start, MARKED))
    await follower.take()
    yield follower
    await follower.end()
    await reader.aclose()


def of_host(follower: Follower, host: str) -> list[str]:
    return [message.split()[1] for message in messages(follower.found) if message.startswith(host)]


def numbers(*values: int) -> list[str]:
    return [str(value) for value in values]


@each_program
async def test_later_hosts_share_lanes(way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LANES_MOST", 2)
    with written(way, tmp_path) as (make, writers):
        writers[0].write([from_host("node1", 0)])
        async with followed(make, Begin()) as follower:
            for nth, (host, one) in enumerate(zip(HOSTS[1:], writers[1:], strict=True), start=1):
                one.write([from_host(host, nth)])
                await follower.until(nth + 1)
            await follower.take()
            assert "2 of 3 hosts are followed together" in (await follower.following.take(0)).note
            writers[1].write([from_host("node2", 10)])
            await follower.until(4)  # these two share a lane, in which what comes late may be missed
            writers[2].write([from_host("node3", 11)])
            await follower.until(5)
            found = [of_host(follower, host) for host in HOSTS]
            assert (found, follower.losses) == ([numbers(0), numbers(1, 10), numbers(2, 11)], 0)


@each_program
async def test_entries_of_a_nameless_machine_are_not_lost(way: Way, tmp_path: Path) -> None:
    with written(way, tmp_path) as (make, (one, two, three)):
        one.write([from_host("node1", 0)])
        two.write([nameless("node2", 1)])
        async with followed(make, Begin()) as follower:
            await follower.until(2)
            one.write([from_host("node1", 90)])
            await follower.until(3)
            two.write([nameless("node2", n) for n in (2, 3)])
            await follower.until(5)
            three.write([nameless("node3", n) for n in (5, 4)])
            await follower.until(7)
            two.write([nameless("node2", 4)])
            await follower.until(8)
            found = [of_host(follower, host) for host in HOSTS]
            assert (found, follower.losses) == ([numbers(0, 90), numbers(1, 2, 3, 4), numbers(5, 4)], 0)


@each_program
async def test_following_goes_on_from_the_cursor_of_each_host(way: Way, tmp_path: Path) -> None:
    with written(way, tmp_path) as (make, (one, two, _)):
        two.write([from_host("node2", n) for n in (1, 2)])
        one.write([from_host("node1", n) for n in (0, 80)])
        async with followed(make, Begin()) as first:
            await first.until(4)
            stopped = first.following.next_start
        assert stopped is not None
        two.write([from_host("node2", n) for n in range(3, 9)])
        async with followed(make, stopped) as second:
            await second.until(6)
            assert (messages(second.found), second.losses) == ([f"node2 {n}" for n in range(3, 9)], 0)


@each_program
async def test_every_host_is_followed_beside_an_entry(way: Way, tmp_path: Path) -> None:
    with written(way, tmp_path) as (make, (one, two, _)):
        two.write([from_host("node2", n) for n in (1, 6)])
        one.write([from_host("node1", n) for n in (0, 5, 80)])
        async with followed(make, Begin()) as first:
            place = next(e.cursor for e in await first.until(5) if e.message == "node1 5")
        async with followed(make, AtCursor(place)) as second:
            assert messages(second.found) == ["node2 6", "node1 80"]
            two.write([from_host("node2", n) for n in (7, 8)])
            assert messages(await second.until(4))[2:] == ["node2 7", "node2 8"]
            assert second.losses == 0


@each_program
@pytest.mark.parametrize("seed", range(2))
async def test_everything_comes_once_in_any_order_of_arrival(way: Way, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    waiting = {host: [n for n in range(150) if draw.random() < 0.5] for host in HOSTS}
    everything = {host: numbers(*waiting[host]) for host in HOSTS}
    with written(way, tmp_path) as (make, writers):
        send_some(writers, waiting, draw)
        async with followed(make, Begin()) as follower:
            while any(waiting.values()):
                send_some(writers, waiting, draw)
                await follower.take(draw.choice((1, 2, 7, 200)))
            await follower.until(sum(map(len, everything.values())))
            assert {host: of_host(follower, host) for host in HOSTS} == everything
            assert follower.losses == 0


def send_some(writers: list[Writer], waiting: dict[str, list[int]], draw: random.Random) -> None:
    for one, (host, left) in zip(writers, waiting.items(), strict=True):
        count = draw.randrange(12)
        one.write(from_host(host, n) for n in left[:count])
        del left[:count]


@each_program
async def test_old_entries_of_two_hosts_come_in_order_of_time(way: Way, tmp_path: Path) -> None:
    for first, host in enumerate(HOSTS[:2]):
        entries = (from_host(host, n) for n in range(first, 400, 2))
        make_journal(tmp_path, entries, f"remote-{host}.journal")
    with way.open(tmp_path) as make:
        async with followed(make, Begin()) as follower:
            assert [each.message.split()[1] for each in follower.found] == numbers(*range(400))
            part = await follower.following.take(10)
            assert (part.entries, part.at_edge, part.lost) == ((), True, False)
