"""Files and journals in one pane: order, late lines, what is missing, the past, clocks, bounds."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from jobtui.backends.journal.page_lines import Selection
from jobtui.backends.journal.pages import JournalPages
from jobtui.backends.journal.streams import StreamNames, Wanted
from jobtui.backends.log_pages import LogPages
from jobtui.backends.merged_log import MergedLog
from jobtui.backends.merged_reading import Mergeable
from jobtui.formats.times import MONTHS
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.clocks import Offset
from jobtui.model.pages import Extent, LogLine, LogUnreadable
from tests.journal_memory import T0, MemoryJournal
from tests.waiting import LONG_S

UNIT = "sirepo_job_supervisor.service"
LAST = 1 << 300


def journal_pages(journal: MemoryJournal, name: str = "v3") -> JournalPages:
    return JournalPages(name, lambda: journal.reader(name), Selection(StreamNames(name), Wanted(), None, ()))


def write(journal: MemoryJournal, second: float, text: str, host: str = "v3") -> None:
    journal.write(text, second, unit=UNIT, host=host, pid=7)


def line(second: int, text: str) -> str:
    stamp = to_rfc3339(Nanos(T0 + second * SECOND))
    month = MONTHS[int(stamp[5:7]) - 1]
    return f"{month} {stamp[8:10]} {stamp[11:19]} 7 0 a/b.py:1:f {text}\n"


Make = Callable[..., MergedLog]


class Clock:
    """A present that a test sets."""

    def __init__(self) -> None:
        self.at = T0

    def __call__(self) -> Nanos:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def merged_of(clock: Clock) -> AsyncIterator[Make]:
    made: list[MergedLog] = []

    def make(logs: Mapping[str, Mergeable], **more: Any) -> MergedLog:
        made.append(MergedLog(logs, now=clock, **more))
        return made[-1]

    yield make
    for merged in made:
        await merged.aclose()


def words(merged: MergedLog) -> list[str]:
    return [line.text.split()[-1] for line in merged.lines]


async def test_files_and_journals_in_the_order_of_time(merged_of: Make, tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    file.write_text(line(1, "f1") + line(4, "f4"))
    one, other = MemoryJournal(), MemoryJournal()
    write(one, 2, "j2")
    write(other, 3, "k3", host="v7")
    merged = merged_of({str(file): LogPages(file), "a": journal_pages(one), "b": journal_pages(other)})
    before = await merged.look()
    assert words(merged) == ["f1", "j2", "k3", "f4"]
    assert [line.origin for line in merged.lines] == [
        str(file), "sirepo_job_supervisor@v3", "sirepo_job_supervisor@v7", str(file),
    ]  # fmt: skip
    places = {line.text: line.place for line in merged.lines}
    write(other, 3.5, "k35 late", host="v7")
    await asyncio.wait_for(merged.changed(LONG_S), LONG_S / 2)
    after = await merged.look()
    assert words(merged) == ["f1", "j2", "k3", "late", "f4"]
    assert after.revision != before.revision
    assert all(places.get(line.text, line.place) == line.place for line in merged.lines)


async def test_the_past_comes_when_it_is_asked_for_and_without_holes(merged_of: Make) -> None:
    busy, quiet = MemoryJournal(), MemoryJournal()
    for n in range(6_000):
        write(busy, 10_000 + n, f"busy {n}")
    for n in range(1_600):
        write(quiet, n * 10, f"quiet {n}", host="v7")
    merged = merged_of({"busy": journal_pages(busy), "quiet": journal_pages(quiet, "v7")})
    await merged.look()
    assert words(merged)[0] == "5000"  # not the quiet one's lines from before
    seen: list[LogLine] = []
    place = LAST
    while True:
        page = await merged.before(place, 700)
        seen[:0] = page.lines
        if page.at_edge:
            break
        place = page.lines[0].place
    assert len(seen) == 7_600
    assert [line.place for line in seen] == sorted({line.place for line in seen})
    assert [line.text for line in seen if "busy" in line.text] == [f"busy {n}" for n in range(6_000)]
    ahead = await merged.after(seen[100].place, 7_600)
    assert list(ahead.lines) == seen[100:]


async def test_what_cannot_be_read_is_marked_and_keeps_nobody_waiting(merged_of: Make, clock: Clock) -> None:
    one, other = MemoryJournal(), MemoryJournal()
    write(one, 1, "j1")
    write(other, 2, "k2", host="v7")
    merged = merged_of({"a": journal_pages(one), "b": journal_pages(other)})
    clock.at = Nanos(T0 + 5 * SECOND)
    await merged.look()
    other.broken = "connection refused"
    clock.at = Nanos(T0 + 9 * SECOND)
    write(one, 8, "j8")
    await merged.look()
    assert [line.text.split()[0] for line in merged.lines] == ["j1", "k2", "not", "j8"]
    gap = merged.lines[2]
    assert gap.is_gap
    assert gap.origin == "b"
    assert gap.at == T0 + 5 * SECOND
    assert "connection refused" in gap.text
    write(other, 7, "k7", host="v7")
    other.broken = ""
    clock.at = Nanos(T0 + 20 * SECOND)
    await merged.look()
    assert [line.text.split()[0] for line in merged.lines] == ["j1", "k2", "not", "k7", "j8"]
    assert merged.lines[2].place == gap.place
    assert "until 20:37:00Z" in merged.lines[2].text
    assert "nothing missing" in merged.lines[2].text


async def test_a_log_that_hangs_does_not_hold_up_the_others(
    merged_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = MemoryJournal(), MemoryJournal()
    write(one, 1, "j1")
    write(other, 2, "k2", host="v7")
    hanging = journal_pages(other)
    go_on = asyncio.Event()
    look = hanging.look

    async def wait_and_look() -> Extent:
        await go_on.wait()
        return await look()

    monkeypatch.setattr(hanging, "look", wait_and_look)
    merged = merged_of({"a": journal_pages(one), "b": hanging})
    await asyncio.wait_for(merged.look(), LONG_S)
    assert words(merged) == ["j1"]
    go_on.set()
    await asyncio.wait_for(merged.changed(LONG_S), LONG_S / 2)
    await merged.look()
    assert words(merged) == ["j1", "k2"]


async def test_none_that_can_be_read_is_an_error(merged_of: Make) -> None:
    journal = MemoryJournal()
    journal.broken = "no permission"
    merged = merged_of({"a": journal_pages(journal)})
    with pytest.raises(LogUnreadable, match="no permission"):
        await merged.look()


async def test_order_that_clocks_cannot_prove_is_marked(merged_of: Make) -> None:
    one, other = MemoryJournal(), MemoryJournal()
    for second, text in ((1, "a"), (2, "c"), (9, "e")):
        write(one, second, text)
    for at_s, text in ((1.3, "b"), (5.0, "d")):
        write(other, at_s, text, host="v7")
    offsets = {("v3", "v7"): Offset(-0.2, 0.4, 3)}
    merged = merged_of({"a": journal_pages(one), "b": journal_pages(other)}, offsets=lambda: offsets)
    extent = await merged.look()
    page = await merged.before(LAST, 10)
    assert [(line.text, line.unproven) for line in page.lines] == [
        ("a", False), ("b", True), ("c", False), ("d", False), ("e", False),
    ]  # fmt: skip
    assert "v7 ±0.4 s" in extent.event


async def test_what_is_held_is_bounded(merged_of: Make) -> None:
    journal = MemoryJournal()
    for n in range(900):
        write(journal, n, f"line {n}")
    merged = merged_of({"a": journal_pages(journal)}, lines_kept=500)
    extent = await merged.look()
    assert words(merged) == [str(n) for n in range(400, 900)]
    assert "tails only" in extent.event
    page = await merged.before(extent.begin, 100)
    assert (page.lines, page.at_edge) == ((), True)


async def test_while_nobody_looks_little_is_held_and_nothing_is_lost(
    merged_of: Make, tmp_path: Path, clock: Clock
) -> None:
    file = tmp_path / "server.log"
    busy, quiet = MemoryJournal(), MemoryJournal()
    file.write_text("".join(line(n, f"f{n}") for n in range(0, 7_000, 7)))
    for n in range(7_000):
        write(busy, n + 0.5, f"busy {n}")
    write(quiet, 3, "quiet 3", host="v7")
    logs: dict[str, Mergeable] = {
        str(file): LogPages(file),
        "busy": journal_pages(busy),
        "quiet": journal_pages(quiet, "v7"),
    }
    merged = merged_of(logs)
    await merged.look()
    await merged.before(LAST, 9_000)
    whole = merged.lines
    assert len(whole) == 8_001
    quiet.broken = "connection refused"
    clock.at = Nanos(T0 + 9_000 * SECOND)
    await merged.look()
    quiet.broken = ""
    clock.at = Nanos(T0 + 9_100 * SECOND)
    await merged.look()
    gaps = [held for held in merged.lines if held.is_gap]
    merged.rest()
    assert len(merged._lines) < 5_100
    write(busy, 8_000, "busy 8000")
    await merged.look()
    assert words(merged)[-1] == "8000"
    seen: list[LogLine] = []
    place = LAST
    while True:
        page = await merged.before(place, 700)
        seen[:0] = page.lines
        if page.at_edge:
            break
        place = page.lines[0].place
    assert [held for held in seen if held.is_gap] == gaps
    assert [held.text for held in seen if not held.is_gap] == [held.text for held in whole] + ["busy 8000"]
    assert [held.place for held in seen] == sorted({held.place for held in seen})


async def test_it_waits_while_nothing_happens(merged_of: Make) -> None:
    journal = MemoryJournal()
    write(journal, 1, "j1")
    merged = merged_of({"a": journal_pages(journal)})
    await merged.look()
    calls = journal.calls
    await merged.changed(0.05)
    assert journal.calls == calls
