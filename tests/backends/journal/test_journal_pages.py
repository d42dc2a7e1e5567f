"""A journal on a screen: pages both ways, positions that stay, growth, search, errors, gaps, bounds."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from jobtui.backends.journal.records import Stream, StreamKind, StreamNames, WantedStreams
from jobtui.logs import journal as journal_log
from jobtui.logs.journal import GOES_ON, JournalPages, Selection, matches_of
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.journal import position_at
from jobtui.model.pages import LogLine, LogUnreadable, SearchState
from jobtui.transport.blocks import RAW_LINE_BYTES
from tests.backends.log_fakes import END, all_after, all_before, all_errors, all_found, asked, searched
from tests.journal_memory import T0, UNIT, MemoryJournal
from tests.waiting import LONG_S

STREAM = Stream(StreamKind.UNIT, UNIT, "v3")


def filled(count: int, step_s: float = 1.0) -> MemoryJournal:
    journal = MemoryJournal()
    for n in range(count):
        journal.log(f"line {n}", n * step_s)
        journal.write(f"other {n}", n * step_s, unit="sshd.service", host="v3", pid=8)
    return journal


def pages_of(journal: MemoryJournal, *streams: Stream) -> JournalPages:
    chosen = streams or (STREAM,)
    selection = Selection(StreamNames("memory"), WantedStreams(), chosen, matches_of(chosen))
    return JournalPages("memory", journal.reader, selection)


def numbers(lines: object) -> list[int]:
    return [int(line.text.split()[-1]) for line in lines]  # type: ignore[attr-defined]


@pytest.fixture
async def journal() -> MemoryJournal:
    return filled(3_000)


@pytest.fixture
async def pages(journal: MemoryJournal) -> AsyncIterator[JournalPages]:
    made = pages_of(journal)
    yield made
    await made.aclose()


async def test_pages_go_from_the_end_to_the_beginning_and_back(pages: JournalPages) -> None:
    extent = await pages.look()
    page = await pages.before(END, 50)
    assert numbers(page.lines) == list(range(2_950, 3_000))
    assert not page.at_edge
    assert extent.end == page.lines[-1].end
    while await pages.work():
        pass
    assert (await pages.look()).begin == position_at(T0)
    seen = await all_before(pages, 170)
    assert numbers(seen) == list(range(3_000))
    positions = [line.position for line in seen]
    assert positions == sorted(set(positions))
    assert await all_after(pages, positions[0], 130) == seen


async def test_all_of_a_line_that_docker_has_split_can_be_read_from_both_sides() -> None:
    journal = MemoryJournal()
    of: dict[str, str | int] = {"container": "srj-p-x", "host": "v3", "unit": "docker.service", "priority": 3}
    whole = "".join(f"{n:>9}," for n in range(5_000))
    for n, at in enumerate(range(0, len(whole), RAW_LINE_BYTES)):
        piece = whole[at : at + RAW_LINE_BYTES]
        journal.write(piece, n, is_begun=at + len(piece) < len(whole), **of)
    pages = pages_of(journal, Stream(StreamKind.CONTAINER, "srj-p-x", "v3"))
    await pages.look()
    backward: list[LogLine] = []
    while (page := await pages.before(backward[0].position if backward else END, 1)).lines:
        backward[:0] = page.lines
    forward = (await pages.after(0, 50)).lines
    for lines in (backward, list(forward)):
        assert "".join(line.text for line in lines) == whole
        assert [GOES_ON in line.note for line in lines] == [True] * (len(lines) - 1) + [False]
    await pages.aclose()


@pytest.mark.parametrize("number", [0, 1, 499, 1_500, 2_640, 2_999])
async def test_pages_are_given_from_any_position(pages: JournalPages, number: int) -> None:
    await pages.look()
    position = position_at(Nanos(T0 + number * SECOND))
    assert numbers((await pages.after(position, 3)).lines) == list(range(number, min(3_000, number + 3)))
    assert numbers((await pages.before(position, 3)).lines) == list(range(max(0, number - 3), number))
    # between two lines
    assert numbers((await pages.after(position + 5, 1)).lines) == ([number + 1] if number < 2_999 else [])
    assert numbers((await pages.before(position + 5, 1)).lines) == [number]


async def test_pages_grow_with_the_journal(journal: MemoryJournal, pages: JournalPages) -> None:
    before = await pages.look()
    journal.log("line 3000")
    await asyncio.wait_for(pages.changed(LONG_S), LONG_S / 2)
    after = await pages.look()
    assert after.end > before.end
    assert numbers((await pages.after(before.end - 1, 9)).lines) == [2_999, 3_000]


async def test_a_journal_without_an_entry_of_the_stream_loses_none_of_the_first() -> None:
    journal = MemoryJournal()
    journal.write("other", unit="sshd.service", host="v3")
    pages = pages_of(journal)
    assert (await pages.look()).end == 0
    assert (await pages.before(END, 5)).lines == ()
    for n in range(500):
        journal.log(f"line {n}")
    await pages.look()
    assert numbers((await pages.before(END, 1_000)).lines) == list(range(500))
    await pages.aclose()


@pytest.mark.parametrize("is_set_back", [False, True], ids=["same microsecond", "clock that is set back"])
async def test_entries_have_one_place_each_in_their_order_from_both_sides(is_set_back: bool) -> None:
    journal = MemoryJournal()
    for n in range(2_000):
        at_s = n // 7 if not is_set_back else n if n < 500 else n - 300
        journal.log(f"line {n}", at_s)
    pages, fresh = pages_of(journal), pages_of(journal)
    await pages.look()
    page = await pages.before(END, 2_000)
    assert numbers(page.lines) == list(range(2_000))
    positions = [line.position for line in page.lines]
    assert positions == sorted(set(positions))
    await fresh.look()
    assert (await fresh.after(0, 2_000)).lines == page.lines
    assert (await fresh.after(page.lines[1_000].position, 1)).lines == (page.lines[1_000],)
    await pages.aclose()
    await fresh.aclose()


@pytest.mark.parametrize("typed", ["line 12", "~ne 12\\d*$"])
@pytest.mark.parametrize("around", [0, 1_200, 3_000])
async def test_search(pages: JournalPages, typed: str, around: int) -> None:
    search = await searched(pages, typed, position_at(Nanos(T0 + around * SECOND)))
    assert search.state is SearchState.DONE
    wanted = [text for n in range(3_000) if (text := f"line {n}").startswith("line 12")]
    assert await all_found(pages, search) == wanted


async def test_search_goes_on_with_what_is_written(journal: MemoryJournal, pages: JournalPages) -> None:
    extent = await pages.look()
    search = pages.search(asked("fresh"), extent.end)
    await search.run()
    assert len(search.hits) == 0
    for _ in range(2):
        journal.log("a fresh one")
        await pages.look()
        await search.extend()
    assert len(search.hits) == 2
    search.cancel()


async def test_errors_are_found_both_ways(journal: MemoryJournal, pages: JournalPages) -> None:
    for n in (3_100, 3_200):
        journal.log(f"ERROR:root:{n}", n)
    journal.log("line 3300", 3_300)
    extent = await pages.look()
    assert await all_errors(pages, extent.begin, forward=True) == ["ERROR:root:3100", "ERROR:root:3200"]
    assert await all_errors(pages, extent.end, forward=False) == ["ERROR:root:3200", "ERROR:root:3100"]


async def test_the_histogram_counts_two_hours(journal: MemoryJournal, pages: JournalPages) -> None:
    await pages.look()
    while await pages.work():
        pass
    overview = pages.overview()
    assert (overview.lines, overview.errors, overview.complete) == (3_000, 0, True)
    assert overview.until == (await pages.before(pages.extent.end, 1)).lines[0].at
    positions = [part.position for part in overview.stretches]
    assert positions == sorted(positions)
    journal.log("ERROR:root:no")
    await pages.look()
    assert (pages.overview().lines, pages.overview().errors) == (3_001, 1)
    old = pages_of(filled(3_000, step_s=60.0))
    await old.look()
    while await old.work():
        pass
    assert old.overview().lines < 3_000
    assert not old.overview().complete
    await old.aclose()


async def test_suppressed_messages_are_a_gap(journal: MemoryJournal, pages: JournalPages) -> None:
    for unit in (UNIT, "sshd.service"):
        journal.write(f"Suppressed 120 messages from {unit}", identifier="systemd-journald", host="v3", pid=1)
    journal.log("line 3000")
    await pages.look()
    lines = (await pages.before(END, 3)).lines
    assert [line.is_gap for line in lines] == [False, True, False]
    assert "dropped 120 messages" in lines[1].text


async def test_a_broken_journal_raises_and_recovers(journal: MemoryJournal, pages: JournalPages) -> None:
    journal.broken = "connection refused"
    with pytest.raises(LogUnreadable, match="connection refused"):
        await pages.look()
    journal.broken = ""
    assert (await pages.look()).end
    journal.broken = "gone"
    with pytest.raises(LogUnreadable):
        await pages.look()
    journal.log("line 3000")
    journal.broken = ""
    await pages.look()
    assert numbers((await pages.before(END, 2)).lines) == [2_999, 3_000]


async def test_the_lines_held_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_log, "PASSAGE_LINES", 1_000)
    pages = pages_of(filled(4_000))
    await pages.look()
    position = END
    for _ in range(24):
        page = await pages.before(position, 150)
        position = page.lines[0].position
    assert numbers(page.lines)[0] == 4_000 - 24 * 150
    held = [part for part in (pages._near, pages._tail) if part is not None]
    assert sum(len(part.kept) for part in held) < 2 * 1_500
    await pages.aclose()
