"""What every program that reads journals does alike, on real journal files."""

import json
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jobtui.backends.journal.client import JournalReader
from jobtui.model.clock import Nanos
from jobtui.model.health import SourceMissing
from jobtui.model.journal import At, AtCursor, Begin, FollowStart, Matches, Tail
from tests.backends.journal.make import START_US, Writer, by_host, entry, make_journal, needs_journal_tools
from tests.backends.journal.rigs import Follower, Way, all_of, each_program, messages, of, signal_journalctl
from tests.rows import FIXTURES

pytestmark = [needs_journal_tools, each_program]


@pytest.fixture(scope="session")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("two-hosts")
    for host, text in by_host().items():
        make_journal(directory, [text], f"remote-{host}.journal")
    return directory


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


@pytest.fixture
async def reader(way: Way, directory: Path) -> AsyncIterator[JournalReader]:
    async with reading(way, directory) as made:
        yield made


@pytest.fixture
async def of_capture(way: Way, capture: Path) -> AsyncIterator[JournalReader]:
    async with reading(way, capture) as made:
        yield made


async def test_the_capture_counts_as_its_truth_says(of_capture: JournalReader) -> None:
    truth = json.loads((FIXTURES / "journal" / "truth.json").read_text())
    found: dict[str, Counter[str]] = {host: Counter() for host in truth}
    for each in await all_of(of_capture):
        count = found[each.host]
        count["total"] += 1
        count[f"unit:{each.unit or '-'}"] += 1
        count[f"priority:{each.priority}"] += 1
        if each.container:
            count[f"container:{each.container}"] += 1
    sums: Counter[str] = Counter()
    for host, counts in truth.items():
        assert found[host] == {key: n for key, n in counts.items() if ":" in key or key == "total"}
        sums.update(counts)
    fields = {"unit": "_SYSTEMD_UNIT", "container": "CONTAINER_NAME"}
    names = [key for key in sums if key.partition(":")[0] in fields and key != "unit:-"]
    containers = [key for key in names if key.startswith("container:")][:6]
    for key in [*containers, *(key for key in names if key.startswith("unit:"))]:
        kind, _, name = key.partition(":")
        part = await of_capture.forward(Begin(), of(**{fields[kind]: name}), 2_000)
        assert len(part.entries) == sums[key]
        assert part.at_edge


async def test_both_ways_give_the_same_and_everything_once(of_capture: JournalReader) -> None:
    forward = await all_of(of_capture, most=250)
    assert len({each.cursor for each in forward}) == len(forward) == 1400
    assert await all_of(of_capture, most=251, back=True) == forward
    one_unit = of(_SYSTEMD_UNIT="docker.service")
    wanted = [each for each in forward if each.unit == "docker.service"]
    assert await all_of(of_capture, one_unit, 100) == wanted
    assert await all_of(of_capture, one_unit, 101, back=True) == wanted


async def test_a_time_divides_what_is_before_from_what_is_after(of_capture: JournalReader) -> None:
    everything = await all_of(of_capture, most=2_000)
    for nth in (0, 1, 500, 1399):
        time = everything[nth].at
        before = (await of_capture.backward(At(time), (), 2_000)).entries
        after = (await of_capture.forward(At(time), (), 2_000)).entries
        assert [*before, *after] == everything
        assert all(each.at < time for each in before)
        assert all(each.at >= time for each in after)
    assert not (await of_capture.forward(At(Nanos(everything[-1].at + 1)), (), 10)).entries
    assert not (await of_capture.backward(At(Nanos(0)), (), 10)).entries


async def test_values_of_a_field_and_how_many_files_are_read(of_capture: JournalReader) -> None:
    assert sorted((await of_capture.values("_HOSTNAME"))["_HOSTNAME"]) == ["node1", "node2"]
    assert "docker.service" in (await of_capture.values("_SYSTEMD_UNIT"))["_SYSTEMD_UNIT"]
    assert tuple((await of_capture.values("NO_SUCH_FIELD"))["NO_SUCH_FIELD"]) == ()
    assert await of_capture.condition() in ((2, 0, ""), (None, 0, ""))


async def test_matches_are_groups(directory: Path, reader: JournalReader) -> None:
    rows = [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2"), ("c", "")]
    texts = [entry(n, f"{a}{b}", A_FIELD=a, B_FIELD=b) for n, (a, b) in enumerate(rows)]
    make_journal(directory, [*texts, entry(9, "both", A_FIELD=[b"a", b"b"])])

    async def found(*groups: tuple[tuple[str, str], ...]) -> list[str]:
        return messages(await all_of(reader, groups, 2))

    assert await found((("A_FIELD", "a"), ("B_FIELD", "2"))) == ["a2"]
    assert await found((("A_FIELD", "a"), ("B_FIELD", "2")), (("A_FIELD", "c"),)) == ["a2", "c"]
    assert await found((("B_FIELD", "1"),), (("B_FIELD", "2"),)) == ["a1", "a2", "b1", "b2"]
    assert await found((("A_FIELD", "a"), ("A_FIELD", "c"))) == ["a1", "a2", "c", "both"]
    assert await found((("A_FIELD", "a"), ("A_FIELD", "c"), ("B_FIELD", "2"))) == ["a2"]
    assert await found((("B_FIELD", ""),)) == ["c"]
    assert len(await found((("A_FIELD", "a"),), ())) == 6
    assert await found((("A_FIELD", "a;$(id) 'x'"),)) == []


@pytest.mark.parametrize("count", [0, 5])
async def test_nothing_wanted_is_there(directory: Path, reader: JournalReader, count: int) -> None:
    if count:
        make_journal(directory, [entry(n, f"m{n}") for n in range(count)])
    none = of(CONTAINER_NAME="srj-p-none") if count else ()
    for found in (await reader.forward(Begin(), none, 10), await reader.backward(Tail(), none, 10)):
        assert (found.entries, found.cursor, found.at_edge) == ((), None, True)


async def test_entries_beside_an_unwanted_one_are_given(directory: Path, reader: JournalReader) -> None:
    make_journal(directory, [entry(n, f"m{n}", EVEN=str(n % 2 == 0)) for n in range(7)])
    third = (await all_of(reader))[3]
    even = of(EVEN="True")
    after = await reader.forward(AtCursor(third.cursor), even, 10)
    before = await reader.backward(AtCursor(third.cursor), even, 10)
    assert messages(list(after.entries)) == ["m4", "m6"]
    assert messages(list(before.entries)) == ["m0", "m2"]
    one = await reader.forward(AtCursor(third.cursor), even, 1)
    assert (messages(list(one.entries)), one.at_edge) == (["m4"], False)


async def test_a_directory_that_is_not_there(tmp_path: Path, way: Way) -> None:
    async with reading(way, tmp_path / "none") as reader:
        with pytest.raises(SourceMissing, match="none"):
            await reader.forward(Begin(), (), 1)


CONTAINER = "srj-p-VUlhaMOD"


@asynccontextmanager
async def following(
    way: Way, directory: Path, start: FollowStart, matches: Matches = ()
) -> AsyncIterator[Follower]:
    async with reading(way, directory) as reader:
        follower = Follower(reader.follow(start, matches))
        await follower.take()
        yield follower
        await follower.end()
        await follower.following.aclose()


async def test_the_first_batch_of_what_was_not_there_before(way: Way, directory: Path) -> None:
    with Writer(directory) as journal:
        journal.write(entry(n, "other") for n in range(20))
        async with reading(way, directory) as reader:
            other = Follower(reader.follow(Begin(), ()))
            await other.until(20)
            await other.end()
        async with following(way, directory, Begin(), of(CONTAINER_NAME=CONTAINER)) as follower:
            assert follower.found == []
            journal.write(entry(n, f"m{n}", CONTAINER_NAME=CONTAINER) for n in range(100, 600))
            found = await follower.until(500)
            assert messages(found) == [f"m{n}" for n in range(100, 600)]


async def test_following_begins_at_a_time_or_beside_an_entry(way: Way, directory: Path) -> None:
    make_journal(directory, (entry(n, f"m{n}") for n in range(10)))
    time_of_5 = Nanos((START_US + 5_000_000) * 1_000)
    async with following(way, directory, At(time_of_5)) as follower:
        assert messages(await follower.until(5)) == [f"m{n}" for n in range(5, 10)]
        third = follower.found[2]
    async with following(way, directory, AtCursor(third.cursor)) as follower:
        assert messages(await follower.until(2)) == ["m8", "m9"]
        assert follower.losses == 0


async def test_a_vanished_entry_is_reported_once(way: Way, directory: Path) -> None:
    old = make_journal(directory, (entry(n, f"old{n}") for n in range(5)), "system@1.journal")
    make_journal(directory, (entry(n, f"new{n}") for n in range(10, 15)), "system.journal")
    async with reading(way, directory) as reader:
        there = (await all_of(reader))[1]
    old.unlink()
    async with following(way, directory, AtCursor(there.cursor)) as follower:
        assert messages(await follower.until(5)) == [f"new{n}" for n in range(10, 15)]
        assert follower.losses == 1


async def test_files_deleted_under_it(way: Way, directory: Path) -> None:
    old = make_journal(directory, (entry(n, f"old{n}") for n in range(50)), "system@1.journal")
    with Writer(directory, "system.journal") as journal:
        journal.write(entry(n, f"m{n}") for n in range(100, 110))
        async with following(way, directory, Begin()) as follower:
            await follower.until(60)
            old.unlink()
            journal.write(entry(n, f"m{n}") for n in range(110, 150))
            found = await follower.until(100)
            assert messages(found)[50:] == [f"m{n}" for n in range(100, 150)]


async def test_files_that_rotate_twice_while_it_sleeps(way: Way, directory: Path) -> None:
    file = make_journal(directory, [entry(0, "m0")], "system.journal")
    async with following(way, directory, Begin()) as follower:
        await follower.until(1)
        for part in range(3):
            signal_journalctl(signal.SIGSTOP)
            for nth in range(3 * part, 3 * part + 3):
                file.rename(directory / f"system@{nth}.journal")
                make_journal(
                    directory, (entry(n, f"m{n}") for n in range(nth * 100 + 1, nth * 100 + 101)), file.name
                )
            signal_journalctl(signal.SIGCONT)
            await follower.until(300 * part + 301)
        assert (messages(follower.found), follower.losses) == ([f"m{n}" for n in range(901)], 0)
