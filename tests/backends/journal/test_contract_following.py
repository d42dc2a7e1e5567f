"""Following a journal, whatever way it is read: everything in order, none lost, none twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jobtui.backends.journal.contract import JournalReader
from jobtui.model.clock import Nanos
from jobtui.model.journal import At, Beside, Head, Matches, Start, Tail
from tests.backends.journal.live import journald, needs_journald, writer
from tests.backends.journal.make import START_US, entry, make_journal, needs_journal_tools
from tests.backends.journal.readers import Way, each_way
from tests.backends.journal.reading import Follower, all_forward, messages, of
from tests.waiting import LONG_S

pytestmark = [needs_journal_tools, each_way]

CONTAINER = "srj-p-VUlhaMOD"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "journal"
    made.mkdir()
    return made


@asynccontextmanager
async def reading(way: Way, directory: Path) -> AsyncIterator[JournalReader]:
    with way.open(directory) as make:
        reader = make()
        yield reader
        await reader.aclose()


@asynccontextmanager
async def following(
    way: Way, directory: Path, start: Start, matches: Matches = ()
) -> AsyncIterator[Follower]:
    """A following that has begun."""
    async with reading(way, directory) as reader:
        follower = Follower(reader.follow(start, matches))
        await follower.take()
        yield follower
        await follower.end()
        await follower.following.aclose()


async def test_the_first_batch_of_what_was_not_there_before(way: Way, directory: Path) -> None:
    with writer(directory) as journal:
        journal.write(entry(n, "other") for n in range(20))
        async with reading(way, directory) as reader:
            other = Follower(reader.follow(Head(), ()))
            await other.until(20)
            await other.end()
        async with following(way, directory, Tail(), of(CONTAINER_NAME=CONTAINER)) as follower:
            assert follower.found == []
            journal.write(entry(n, f"m{n}", CONTAINER_NAME=CONTAINER) for n in range(100, 600))
            found = await follower.until(500)
            assert messages(found) == [f"m{n}" for n in range(100, 600)]


async def test_in_a_journal_without_any_entry(way: Way, directory: Path) -> None:
    async with following(way, directory, Tail(), of(CONTAINER_NAME=CONTAINER)) as follower:
        with writer(directory) as journal:
            journal.write(entry(n, f"m{n}", CONTAINER_NAME=CONTAINER) for n in range(300))
            assert messages(await follower.until(300)) == [f"m{n}" for n in range(300)]


async def test_from_the_head_through_the_edge(way: Way, directory: Path) -> None:
    with writer(directory) as journal:
        journal.write(entry(n, f"m{n}", EVEN=str(n % 2 == 0)) for n in range(400))
        async with following(way, directory, Head(), of(EVEN="True")) as follower:
            journal.write(entry(n, f"m{n}", EVEN=str(n % 2 == 0)) for n in range(400, 900))
            assert messages(await follower.until(450)) == [f"m{n}" for n in range(0, 900, 2)]


async def test_only_what_is_behind_the_tail(way: Way, directory: Path) -> None:
    make_journal(directory, (entry(n, f"old{n}") for n in range(10)), "system@1.journal")
    with writer(directory) as journal:
        async with following(way, directory, Tail()) as follower:
            for part in range(5):
                journal.write(entry(n, f"m{n}") for n in range(100 + part * 20, 120 + part * 20))
                await follower.until(20 * (part + 1))
            assert messages(follower.found) == [f"m{n}" for n in range(100, 200)]


async def test_from_a_time_and_beside_an_entry(way: Way, directory: Path) -> None:
    make_journal(directory, (entry(n, f"m{n}") for n in range(10)))
    time_of_5 = Nanos((START_US + 5_000_000) * 1_000)
    async with following(way, directory, At(time_of_5)) as follower:
        assert messages(await follower.until(5)) == [f"m{n}" for n in range(5, 10)]
        third = follower.found[2]
    async with following(way, directory, Beside(third.cursor)) as follower:
        assert messages(await follower.until(2)) == ["m8", "m9"]
        assert follower.losses == 0


async def test_a_vanished_entry_is_told_once(way: Way, directory: Path) -> None:
    old = make_journal(directory, (entry(n, f"old{n}") for n in range(5)), "system@1.journal")
    make_journal(directory, (entry(n, f"new{n}") for n in range(10, 15)), "system.journal")
    async with reading(way, directory) as reader:
        there = (await all_forward(reader))[1]
    old.unlink()
    async with following(way, directory, Beside(there.cursor)) as follower:
        assert messages(await follower.until(5)) == [f"new{n}" for n in range(10, 15)]
        assert follower.losses == 1


async def test_entries_of_every_boot_and_host(way: Way, directory: Path) -> None:
    with writer(directory) as journal, writer(directory, "remote-node2.journal") as other:
        journal.write([entry(0, "m0", boot="1" * 32)])
        async with following(way, directory, Head()) as follower:
            await follower.until(1)
            other.write([entry(1, "m1", boot="2" * 32, host="node2")])
            await follower.until(2)
            journal.write([entry(2, "m2", boot="3" * 32)])
            await follower.until(3)
            other.write([entry(3, "m3", boot="2" * 32, host="node2")])
            assert messages(await follower.until(4)) == ["m0", "m1", "m2", "m3"]


async def test_files_deleted_under_it(way: Way, directory: Path) -> None:
    old = make_journal(directory, (entry(n, f"old{n}") for n in range(50)), "system@1.journal")
    with writer(directory, "system.journal") as journal:
        journal.write(entry(n, f"m{n}") for n in range(100, 110))
        async with following(way, directory, Head()) as follower:
            await follower.until(60)
            old.unlink()
            journal.write(entry(n, f"m{n}") for n in range(110, 150))
            found = await follower.until(100)
            assert messages(found)[50:] == [f"m{n}" for n in range(100, 150)]


async def told(follower: Follower, count: int) -> None:
    """Wait for so many entries by what is told alone: no wait ends because its time is over."""
    async with asyncio.timeout(LONG_S / 2):
        while len(follower.found) < count:
            await follower.following.changed(LONG_S)
            await follower.take()


async def test_a_change_is_noticed_soon(way: Way, directory: Path) -> None:
    with writer(directory) as journal:
        journal.write([entry(0, "m0")])
        async with following(way, directory, Head()) as follower:
            await follower.until(1)
            journal.write([entry(1, "m1")])
            await told(follower, 2)


async def test_who_is_cancelled_loses_nothing(way: Way, directory: Path) -> None:
    make_journal(directory, (entry(n, f"m{n}") for n in range(3_000)))
    async with reading(way, directory) as reader:
        follower = Follower(reader.follow(Head(), ()))
        for _ in range(5):
            task = asyncio.create_task(follower.following.take(500))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        waiting = asyncio.create_task(follower.following.changed(60.0))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert messages(await follower.until(3_000)) == [f"m{n}" for n in range(3_000)]
        await follower.end()


@needs_journald
async def test_rotation_under_it(way: Way) -> None:
    with journald() as journal:
        async with following(way, journal.directory, Tail(), of(SYSLOG_IDENTIFIER="jobtui")) as follower:
            for part in range(4):
                for n in range(part * 250, part * 250 + 250):
                    journal.send(MESSAGE=f"m{n}", SYSLOG_IDENTIFIER="jobtui")
                    if n % 250 == 100:
                        journal.rotate()
                await follower.until(250 * part + 100)
            found = await follower.until(1_000)
            assert messages(found) == [f"m{n}" for n in range(1_000)]
            assert len({each.cursor for each in found}) == 1_000
            assert follower.losses == 0


@needs_journald
async def test_a_live_journal_is_seen_within_the_time_journald_takes(way: Way) -> None:
    with journald() as journal:
        async with following(way, journal.directory, Tail(), of(SYSLOG_IDENTIFIER="jobtui")) as follower:
            for n in range(3):
                journal.send(MESSAGE=f"m{n}", SYSLOG_IDENTIFIER="jobtui")
                await told(follower, n + 1)
