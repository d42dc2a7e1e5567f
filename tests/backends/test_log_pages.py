"""Pages of a log, of one here and of one on a cluster."""

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.formats.levels import level_of
from jobtui.logs import lists as remote_log
from jobtui.logs import segments as line_index
from jobtui.logs import segments as page_reader
from jobtui.logs.catalog import SessionLogs
from jobtui.logs.lists import GAP
from jobtui.logs.pages import LogPages
from jobtui.logs.segments import LineIndex, PageReader
from jobtui.model.clock import Nanos, latest
from jobtui.model.pages import Level, LogLine, LogUnreadable
from jobtui.transport.blocks import RAW_LINE_BYTES
from tests.analysis.captured import ROOT
from tests.backends.journal.ssh_rig import RUNS_HERE, SshClient
from tests.backends.log_fakes import MemoryBytes
from tests.backends.log_reading import END, all_before, all_errors
from tests.waiting import LONG_S


def no_time(line: bytes) -> Nanos | None:
    return None


def numbered(count: int, first: int = 0) -> str:
    return "".join(f"Nov 20 20:34:{n % 60:02} 7 0 a/b.py:1:f line {n}\n" for n in range(first, first + count))


def write(pages: LogPages, text: str, mode: str = "w", *, at: str = "") -> None:
    with Path(pages.name + at).open(mode) as file:
        file.write(text)


@given(st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")), max_size=30), st.booleans())
def test_all_lines_are_given_once_in_both_directions(parts: list[bytes], finished: bool) -> None:
    data = b"\n".join(parts) + (b"\n" if finished and parts else b"")
    reader = PageReader(MemoryBytes(data), 100, no_time)
    size = len(data)
    down: list[LogLine] = []
    at = 0
    while page := reader.after(at, size, 3):
        down += page
        at = page[-1].end - 100
    up: list[LogLine] = []
    at = size
    while page := reader.before(at, size, 3):
        up[:0] = page
        at = page[0].place - 100
    assert down == up
    assert [line.size for line in down] == [len(part) for part in data.split(b"\n")][: len(down)]
    assert sum(line.end - line.place for line in down) == size


def test_a_long_line_comes_in_pieces_without_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_reader, "PAGE_BYTES", 1_000)
    data = b"first\n" + b"x" * 3_500 + b"\nlast\n"
    reader = PageReader(MemoryBytes(data), 0, no_time)
    at, lines = len(data), list[LogLine]()
    while page := reader.before(at, len(data), 5):
        lines[:0] = page
        at = page[0].place
    assert [line.place for line in lines[1:]] == [line.end for line in lines[:-1]]
    assert (lines[0].text, lines[-1].text) == ("first", "last")
    monkeypatch.undo()
    reader = PageReader(MemoryBytes(b"y" * 100_000 + b"\n"), 0, no_time)
    (line,) = reader.after(0, 100_001, 5)
    assert (len(line.text), line.note) == (RAW_LINE_BYTES, "100,000 bytes in this line")
    reader = PageReader(MemoryBytes(b"a\n" + bytes(5_000) + b"text\n"), 0, no_time)
    line = reader.after(2, 5_007, 5)[0]
    assert (line.text, line.note) == ("text", "5,000 NUL bytes")


async def test_what_is_written_is_seen_also_the_rest_of_a_line(pages: LogPages) -> None:
    write(pages, numbered(3) + "unfini")
    await pages.look()
    last = (await pages.before(END, 1)).lines[0]
    write(pages, "shed\nmore\n", "a")
    await pages.look()
    page = await pages.after(last.place, 10)
    assert [line.text for line in page.lines] == ["unfinished", "more"]
    assert page.lines[0].place == last.place


async def test_after_a_rotation_one_can_read_back_into_the_file_before(pages: LogPages) -> None:
    write(pages, numbered(10))
    before = await pages.look()
    os.rename(pages.name, pages.name + ".1")
    write(pages, "")
    write(pages, "written late\n", "a", at=".1")
    await pages.look()
    write(pages, numbered(2, 50), "a")
    after = await pages.look()
    assert after.event == "rotated"
    assert (after.begin, after.end > before.end) == (0, True)
    assert [line.text.split()[-1] for line in (await all_before(pages, 7))[-4:]] == ["9", "late", "50", "51"]
    place = (await pages.before(after.end, 3)).lines[0].place
    assert [line.text.split()[-1] for line in (await pages.after(place, 3)).lines] == ["late", "50", "51"]


@pytest.mark.parametrize("text", ["new\n", numbered(20, 70)])
async def test_a_file_written_anew_begins_again_behind_the_places_it_had(pages: LogPages, text: str) -> None:
    write(pages, numbered(10))
    before = await pages.look()
    write(pages, text)
    after = await pages.look()
    assert after.event == "was cut off or rewritten"
    assert after.begin >= before.end
    assert [line.text for line in await all_before(pages, 7)] == text.splitlines()


async def test_a_copy_kept_by_renaming_goes_on_at_its_places(pages: LogPages) -> None:
    write(pages, numbered(20))
    before = await pages.look()
    place = (await pages.before(before.end, 1)).lines[0].place
    write(pages, numbered(25), at=".new")
    os.rename(pages.name + ".new", pages.name)
    after = await pages.look()
    assert (after.begin, after.event) == (0, "")
    assert len((await pages.after(place, 100)).lines) == 6


async def test_a_missing_file_and_a_closed_log_are_told_and_what_was_read_stays(pages: LogPages) -> None:
    with pytest.raises(LogUnreadable, match="no such file"):
        await pages.look()
    write(pages, numbered(3))
    await pages.look()
    os.unlink(pages.name)
    with pytest.raises(LogUnreadable, match="no such file"):
        await pages.look()
    assert len((await pages.before(END, 10)).lines) == 3
    await pages.aclose()
    await pages.aclose()
    with pytest.raises(LogUnreadable, match="closed"):
        await pages.look()


async def test_lines_are_numbered_when_all_before_them_are_counted(pages: LogPages) -> None:
    write(pages, numbered(20_000))
    extent = await pages.look()
    last = (await pages.before(extent.end, 1)).lines[0]
    assert await pages.number_of(last.place) is None
    place = await pages.place_of_line(15_000)
    assert place == len(numbered(14_999))
    while await pages.work():
        pass
    assert await pages.number_of(last.place) == 20_000
    assert await pages.place_of_line(15_000) == place
    assert await pages.number_of(place) == 15_000
    for number, expected in ((0, 1), (1, 1), (20_000, 20_000), (10**9, 20_000)):
        found = await pages.place_of_line(number)
        assert found is not None
        line = (await pages.after(found, 1)).lines[0]
        assert await pages.number_of(line.place) == expected


async def test_a_time_leads_to_the_first_line_at_or_after_it_also_of_the_file_before(pages: LogPages) -> None:
    early = "".join(f"Nov 20 20:34:{n:02d} {n}\n  undated {n}\n" for n in range(0, 60, 10))
    write(pages, early)
    await pages.look()
    os.rename(pages.name, pages.name + ".1")
    write(pages, early.replace("20:34", "20:35"))
    await pages.look()
    for clock, text in (("20:00:00", "Nov 20 20:34:00 0"), ("20:34:30", "Nov 20 20:34:30 30"),
                        ("20:34:31", "Nov 20 20:34:40 40"), ("20:34:51", "Nov 20 20:35:00 0")):  # fmt: skip
        assert (at := latest(f"Nov 20 {clock}", pages.changed_at)) is not None
        assert (found := await pages.place_of_time(at)) is not None
        assert (await pages.after(found, 1)).lines[0].text == text
    assert await pages.place_of_time(pages.changed_at) is None


async def test_the_index_follows_growth_and_counts_every_line_once(pages: LogPages) -> None:
    write(pages, numbered(5_000))
    for first in range(5_000, 9_000, 1_000):
        await pages.look()
        await pages.work()
        write(pages, numbered(999, first) + "Traceback (most recent call last):\n", "a")
    await pages.look()
    while await pages.work():
        pass
    overview = pages.overview()
    assert (overview.lines, overview.errors, overview.complete) == (9_000, 4, True)
    assert sum(stretch.lines for stretch in overview.stretches) == 9_000
    assert sum(stretch.errors for stretch in overview.stretches) == 4


@given(
    st.lists(st.sampled_from([b"plain", b"ERROR bad", b"x" * 200, b"error=no", b""]), max_size=200),
    st.sampled_from([64, 256, 1_000]),
)
def test_blocks_count_what_a_plain_reading_counts(lines: list[bytes], block: int) -> None:
    data = b"".join(line + b"\n" for line in lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_index, "FINE_BLOCK", block)
        index = LineIndex(MemoryBytes(data), len(data), no_time)
    while index.step(len(data)):
        pass
    wanted = sum(level_of(line.decode()) is Level.ERROR for line in lines)
    assert (index.lines, index.errors) == (len(lines), wanted)


async def test_errors_are_found_in_both_directions_also_unfinished_ones(pages: LogPages) -> None:
    bad = [3, 700, 701, 2_999]
    texts = [f"line {n} " + ("error=no such element" if n in bad else "fine") for n in range(3_000)]
    write(pages, "\n".join(texts) + "\n")
    extent = await pages.look()
    for _ in range(2):
        back = await all_errors(pages, extent.end, forward=False)
        assert back == [texts[n] for n in reversed(bad)]
        assert await all_errors(pages, extent.begin, forward=True) == back[::-1]
        while await pages.work():
            pass
    write(pages, "fine\nERROR now")
    extent = await pages.look()
    while await pages.work():
        pass
    assert await pages.next_error(extent.begin, forward=True) == extent.begin + 5
    assert await pages.next_error(extent.end, forward=False) == extent.begin + 5


async def test_a_change_ends_the_wait_for_it(pages: LogPages) -> None:
    write(pages, numbered(3))
    await pages.look()
    waiting = asyncio.create_task(pages.changed(LONG_S))
    write(pages, "more\n", "a")
    await asyncio.wait_for(waiting, LONG_S / 2)
    await pages.look()
    assert not pages.is_changed()
    await pages.changed(0.01)
    os.unlink(pages.name)
    assert pages.is_changed()


LOG = ROOT / "sbatch" / "scratch" / "jdoe" / "sirepo-dev" / "job_agent.log"


async def test_a_log_of_a_cluster_is_read_with_its_environment_masked(client: SshClient) -> None:
    client.replace(RUNS_HERE)
    log = SessionLogs(tuple).open(f"ssh://cori{LOG}")
    extent = await log.look()
    page = await log.after(extent.begin, 10_000)
    texts = [line.text for line in page.lines]
    assert len(texts) == len(LOG.read_text().splitlines())
    assert "HOME=***" in texts
    assert not [text for text in texts if text.startswith("SIREPO_") and not text.endswith(("=", "***"))]
    assert page.lines[-1].at is not None
    await log.aclose()


async def test_gaps_are_said(client: SshClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client.replace(RUNS_HERE)
    monkeypatch.setattr(remote_log, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(remote_log, "TAIL_LINES", 3)
    path = tmp_path / "job_agent.log"
    path.write_text("one\ntwo\n")
    log = SessionLogs(tuple).open(f"ssh://cori{path}")

    async def texts() -> list[str]:
        extent = await log.look()
        return [line.text for line in (await log.after(extent.begin, 100)).lines]

    assert await texts() == ["one", "two"]
    path.write_text("one\ntwo\nthree\n")
    assert await texts() == ["one", "two", "three"]
    path.write_text("".join(f"{number}\n" for number in range(9)))
    assert await texts() == ["one", "two", "three", GAP, "6", "7", "8"]
    await log.aclose()


async def test_a_cluster_is_not_asked_more_often_than_need_be(client: SshClient, tmp_path: Path) -> None:
    client.replace(f"echo asked >> {tmp_path}/asked; {RUNS_HERE}")
    (tmp_path / "a.log").write_text("one\n")
    log = SessionLogs(tuple).open(f"ssh://cori{tmp_path}/a.log")
    for _ in range(3):
        await log.look()
    assert (tmp_path / "asked").read_text().count("asked") == 1
    await log.aclose()
