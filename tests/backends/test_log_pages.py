"""Blocks and pages of a log, of one here and of one on a cluster, and searches in them."""

import asyncio
import gzip
import os
import random
import re
import subprocess
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO
from unittest.mock import Mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobtui.backends.journal.records import StreamNames, WantedStreams
from jobtui.backends.log_start import FromStart
from jobtui.formats.levels import level_of
from jobtui.logs import lists as remote_log
from jobtui.logs import search as log_search
from jobtui.logs import segments
from jobtui.logs.catalog import SessionLogs
from jobtui.logs.journal import JournalPages, Selection
from jobtui.logs.lists import GAP
from jobtui.logs.merged import MergedLog
from jobtui.logs.pages import LogPages, tail_lines
from jobtui.logs.search import FileSearch, ripgrep
from jobtui.logs.segments import LineIndex, PageReader
from jobtui.model.clock import SECOND, Nanos, latest, to_seconds
from jobtui.model.health import SourceMissing
from jobtui.model.pages import Level, Log, LogLine, LogUnreadable, Page, SearchState
from jobtui.model.secret_blocks import SecretBlocks
from jobtui.model.secrets import mask_line
from jobtui.model.tables import tables_of
from jobtui.transport import blocks as file_search
from jobtui.transport.blocks import RAW_LINE_BYTES, Block, BlockReader, Limits, Position, offset_of_time
from jobtui.transport.files import PackedBytes, open_file
from tests.analysis.captured import ROOT
from tests.backends.journal.rigs import RUNS_HERE, SshClient
from tests.backends.log_fakes import (
    END,
    KeepingParser,
    MemoryBytes,
    Parsers,
    all_before,
    all_errors,
    all_found,
    asked,
    log_file,
    searched,
)
from tests.conftest import NOW
from tests.journal_memory import MemoryJournal
from tests.polling import Reading
from tests.rows import table
from tests.waiting import LONG_S

SMALL = Limits(block=40, line=120, skip=300)


def read_all(data: bytes, limits: Limits = SMALL) -> tuple[BlockReader, list[Block]]:
    reader = BlockReader(MemoryBytes(data), "log", Position(), limits)
    blocks = []
    while (block := reader.next(release=True)) is not None or reader.more:
        if block is not None:
            blocks.append(block)
    return reader, blocks


PIECES = st.sampled_from([
    b"\0", b"\0" * 63, b"\0" * 64, b"\0" * 500, b"\n", b"ab", b"a line\n", b"x" * 119, b"x" * 121, b"x" * 400,
])  # fmt: skip


@given(st.lists(PIECES).map(b"".join))
@example(b"\0" * 1000)
@example(b"x" * 120 + b"\n")
@example(b"ab" + b"\0" * 64 + b"\ncd\n")
@settings(max_examples=200, deadline=None)
def test_every_block_is_whole_lines_that_stand_where_it_says(data: bytes) -> None:
    reader, blocks = read_all(data)
    end = 0
    for block in blocks:
        assert block.data.endswith(b"\n")
        assert max(map(len, block.data.split(b"\n"))) <= SMALL.line
        assert block.offset >= end
        there = data[block.offset : block.offset + len(block.data)]
        assert block.data[:-1] == there[: len(block.data) - 1]
        assert block.line == data.count(b"\n", 0, block.offset) + 1
        end = block.offset + len(block.data) - (there != block.data)
    assert (reader.position.offset, reader.position.line) == (len(data), data.count(b"\n") + 1)


@given(st.lists(st.sampled_from([b"\0", b"\0" * 100, b"\n", b"ab", b"a line\n"])).map(b"".join))
@settings(max_examples=200, deadline=None)
def test_only_nuls_are_left_out_of_lines_that_are_not_too_long(data: bytes) -> None:
    reader, blocks = read_all(data, Limits(block=40, line=10_000, skip=300))
    left = b"".join(block.data for block in blocks)
    assert left.translate(None, b"\0\n") == data.translate(None, b"\0\n")
    assert (reader.skip_count > 0) >= (b"\0" * file_search.HOLE_BYTES in data)


def test_nuls_wait_for_what_follows_and_work_in_one_call_is_bounded() -> None:
    for size, offset in ((100, 4), (3 << 20, 4 + (3 << 20))):
        reader = BlockReader(MemoryBytes(b"one\n" + b"\0" * size), "log", Position(), Limits())
        assert reader.next() is not None
        assert reader.next() is None
        assert reader.position.offset == offset
    reader = BlockReader(MemoryBytes(b"\0" * 100_000 + b"one\n"), "log", Position(), SMALL)
    assert reader.next() is None
    assert reader.more


def test_a_line_at_the_limit_is_whole_and_one_beyond_is_cut_and_named() -> None:
    whole = b"x" * SMALL.line + b"\n"
    assert [block.data for block in read_all(whole)[1]] == [whole]
    reader, blocks = read_all(b"one\n" + b"x" * 500 + b"\ntwo\n")
    assert [block.data for block in blocks] == [b"one\n", b"x" * 120 + b"\n", b"two\n"]
    assert (blocks[-1].line, reader.skip_count) == (3, 1)
    assert [(skip.where, skip.why) for skip in reader.skips] == [
        ("log:2 (byte 4)", "line longer than 120 bytes, its rest is left out"),
        ("log:2 (byte 484)", "380 bytes left out of this line"),
    ]


def hole(file: BinaryIO) -> None:
    file.seek(8 << 30, os.SEEK_CUR)


def pieces(piece: bytes) -> Callable[[BinaryIO], None]:
    return lambda file: file.writelines([piece * (1 << 20)] * 40)


MONSTERS = (
    (hole, ["one", "two"], "NUL bytes"),
    (pieces(b"\0"), ["one", "two"], "NUL bytes"),
    (pieces(b"x"), ["one", "x" * 100, ""], f"{39 << 20:,} bytes left out of this line"),
)


@pytest.mark.parametrize(("fill", "texts", "said"), MONSTERS, ids=["a hole", "NULs", "a line"])
async def test_many_megabytes_without_a_line_cost_no_memory(
    tmp_path: Path, fill: Callable[[BinaryIO], None], texts: list[str], said: str
) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.write(b"one\n")
        fill(file)
        file.write(b"two\n" if texts[-1] else b"\n\n")
    size = path.stat().st_size
    parsers = Parsers()
    log = log_file(path, parser_factory=parsers, start=FromStart())
    reading = Reading(log)
    tracemalloc.start()
    await reading.drain()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    await log.aclose()
    assert (reading.texts, reading.records[-1].offset) == (texts, size - len(texts[-1]) - 1)
    assert len(parsers.text) <= (1 << 20) + 10
    assert said in reading.skips[-1].why
    assert peak < 16 << 20
    path.unlink()


def test_a_file_closed_under_a_reader_is_an_error_and_not_another_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    opened = open_file(path)
    opened.close()
    with path.open("rb"), pytest.raises(OSError, match="Bad file descriptor"):
        opened.source.read(0, 4)


def position_of(data: bytes, seconds: int) -> int | None:
    time_of = partial(KeepingParser("").time_of, newest=Nanos(0))
    return offset_of_time(MemoryBytes(data), len(data), Nanos(seconds * SECOND), time_of)


FILLERS = st.sampled_from([b"", b"  no time here\n", b"\0" * 200, b"y" * 3000 + b"\n", b"z\n" * 50])


@given(st.lists(st.tuples(st.integers(0, 3), FILLERS), min_size=1, max_size=60), st.integers(0, 200))
@settings(max_examples=150, deadline=None)
def test_no_wanted_line_is_before_the_place_found(steps: list[tuple[int, bytes]], wanted: int) -> None:
    data, seconds, due = b"", 0, None
    for step, filler in steps:
        seconds += step
        if seconds >= wanted and due is None:
            due = len(data)
        data += b"@%d line\n" % seconds + filler
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_search, "PROBE_BYTES", 300)
        patch.setattr(file_search, "_WINDOW_BYTES", 64)
        found = position_of(data, wanted)
    assert found is not None
    assert found <= (len(data) if due is None else due)


def test_the_place_of_a_time_is_exact_where_lines_have_times() -> None:
    data = b"".join(b"@%d line\n  more of it\n" % (nth // 2) for nth in range(200_000))
    for wanted in (0, 1, 31_234, 99_999):
        found = position_of(data, wanted)
        assert found == data.index(b"@%d line" % wanted)
    assert position_of(data, 100_000) == len(data)
    assert position_of(b"line\n" * 1_000, 7) is None
    assert position_of(b"", 7) is None
    assert file_search.align(MemoryBytes(b"\0\0text\n"), 1, 100) == 1


def test_the_last_whole_lines_of_a_log_are_given(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\ntwo\nthree\nfour")
    assert [*tail_lines(path)] == [b"one", b"two", b"three", b"four"]
    assert ([*tail_lines(path, 12)], [*tail_lines(path, 2)]) == ([b"three", b"four"], [])
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n"))
    assert [*tail_lines(path)] == [b"one", b"two"]
    with pytest.raises(SourceMissing):
        [*tail_lines(tmp_path / "gone.log")]


def no_time(line: bytes) -> Nanos | None:
    return None


def numbered(count: int, first: int = 0) -> str:
    return "".join(f"Nov 20 20:34:{n % 60:02} 7 0 a/b.py:1:f line {n}\n" for n in range(first, first + count))


def write_bytes(pages: LogPages, data: bytes, mode: str = "wb", *, at: str = "") -> None:
    with Path(pages.name + at).open(mode) as file:
        file.write(data)


def write(pages: LogPages, text: str, mode: str = "w", *, at: str = "") -> None:
    write_bytes(pages, text.encode(), f"{mode}b", at=at)


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
        at = page[0].position - 100
    assert down == up
    assert [line.size for line in down] == [len(part) for part in data.split(b"\n")][: len(down)]
    assert sum(line.end - line.position for line in down) == size


def test_a_long_line_comes_in_pieces_without_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "PAGE_BYTES", 1_000)
    data = b"first\n" + b"x" * 3_500 + b"\nlast\n"
    reader = PageReader(MemoryBytes(data), 0, no_time)
    at, lines = len(data), list[LogLine]()
    while page := reader.before(at, len(data), 5):
        lines[:0] = page
        at = page[0].position
    assert [line.position for line in lines[1:]] == [line.end for line in lines[:-1]]
    assert (lines[0].text, lines[-1].text) == ("first", "last")
    monkeypatch.undo()
    reader = PageReader(MemoryBytes(b"y" * 100_000 + b"\n"), 0, no_time)
    (line,) = reader.after(0, 100_001, 5)
    assert (len(line.text), line.note) == (RAW_LINE_BYTES, "100,000 bytes in this line")
    reader = PageReader(MemoryBytes(b"a\n" + bytes(5_000) + b"text\n"), 0, no_time)
    line = reader.after(2, 5_007, 5)[0]
    assert (line.text, line.note) == ("text", "5,000 NUL bytes")


async def test_an_appended_line_is_seen_and_an_unfinished_one_completed(pages: LogPages) -> None:
    write(pages, numbered(3) + "unfini")
    await pages.look()
    last = (await pages.before(END, 1)).lines[0]
    write(pages, "shed\nmore\n", "a")
    await pages.look()
    page = await pages.after(last.position, 10)
    assert [line.text for line in page.lines] == ["unfinished", "more"]
    assert page.lines[0].position == last.position


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
    position = (await pages.before(after.end, 3)).lines[0].position
    assert [line.text.split()[-1] for line in (await pages.after(position, 3)).lines] == ["late", "50", "51"]


async def place_of(pages: LogPages, position: int) -> tuple[str, int, int | None]:
    """The name of the file of a line, its offset in it and its number."""
    place = await pages.file_position(position)
    assert place is not None
    return Path(place.path).name, place.offset, place.line


@pytest.fixture
def rotated_pages(pages: LogPages) -> LogPages:
    """A log of three files, the oldest packed; one minute in each, its third line an error."""
    for nth, end in enumerate((".2", ".1", "")):
        text = numbered(60, 60 * nth).replace("20:34", f"20:{34 + nth}")
        write(pages, text.replace(f"line {60 * nth + 2}\n", f"ERROR {60 * nth + 2}\n"), at=end)
        os.utime(pages.name + end, (to_seconds(NOW) + 60 * nth,) * 2)
    subprocess.run(["gzip", f"{pages.name}.2"], check=True)
    return pages


async def test_files_rotated_before_are_read_and_searched_with_the_log(rotated_pages: LogPages) -> None:
    pages = rotated_pages

    async def found(position: int | None) -> int:
        return int((await pages.after(position or 0, 1)).lines[0].text.split()[-1])

    assert (await pages.look()).begin == 0
    while await pages.work():
        pass
    assert not pages.overview().complete
    assert await found(await pages.next_error(0, forward=False)) == 62
    offset = len(numbered(9, 60).replace("line 62", "ERROR 62"))
    assert await found(position := await pages.position_of(offset, "line 69")) == 69
    assert await place_of(pages, position or 0) == ("x.log.1", offset, None)
    assert await pages.position_of(3, "line 69") is None
    assert await found(await pages.position_of_time(latest("Nov 20 20:34:05", pages.changed_at) or NOW)) == 5
    lines = await all_before(pages, 50)
    assert [int(line.text.split()[-1]) for line in lines] == [*range(180)]
    assert await pages.before(lines[0].position, 1) == Page((), at_edge=True)
    assert (await pages.after(-END, 1)).lines == (lines[0],)
    while await pages.work():
        pass
    assert (pages.overview().lines, pages.overview().complete) == (180, True)
    hits = await all_found(pages, await searched(pages, "line 7"))
    assert [int(line.split()[-1]) for line in hits] == [7, *range(70, 80)]


async def test_a_bad_rotated_file(rotated_pages: LogPages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PackedBytes, "read", Mock(side_effect=OSError("Stale file handle")))
    await rotated_pages.look()
    assert len(await all_before(rotated_pages, 50)) == 120
    assert "Stale file handle" in rotated_pages.extent.event


@pytest.mark.parametrize("text", ["new\n", numbered(20, 70)])
async def test_a_rewritten_file_begins_after_the_positions_it_had(pages: LogPages, text: str) -> None:
    write(pages, numbered(10))
    before = await pages.look()
    write(pages, text)
    after = await pages.look()
    assert after.event == "was truncated or rewritten"
    assert after.begin >= before.end
    assert [line.text for line in await all_before(pages, 7)] == text.splitlines()


async def test_a_copy_kept_by_renaming_goes_on_at_its_places(pages: LogPages) -> None:
    write(pages, numbered(20))
    before = await pages.look()
    position = (await pages.before(before.end, 1)).lines[0].position
    write(pages, numbered(25), at=".new")
    os.rename(pages.name + ".new", pages.name)
    after = await pages.look()
    assert (after.begin, after.event) == (0, "")
    assert len((await pages.after(position, 100)).lines) == 6


async def test_a_missing_file_and_a_closed_log_are_reported_and_lines_stay(pages: LogPages) -> None:
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
    assert await place_of(pages, last.position) == ("x.log", last.position, None)
    position = await pages.position_of_line(15_000)
    assert position == len(numbered(14_999))
    while await pages.work():
        pass
    assert await place_of(pages, last.position) == ("x.log", last.position, 20_000)
    assert await pages.position_of_line(15_000) == position
    assert (await place_of(pages, position))[2] == 15_000
    for number, expected in ((0, 1), (1, 1), (20_000, 20_000), (10**9, 20_000)):
        found = await pages.position_of_line(number)
        assert found is not None
        line = (await pages.after(found, 1)).lines[0]
        assert (await place_of(pages, line.position))[2] == expected


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
        assert (found := await pages.position_of_time(at)) is not None
        assert (await pages.after(found, 1)).lines[0].text == text
    assert await pages.position_of_time(pages.changed_at) is None
    while await pages.work():
        pass
    assert pages.overview().until == latest("Nov 20 20:35:50", pages.changed_at)


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
        patch.setattr(segments, "FINE_BLOCK", block)
        index = LineIndex(MemoryBytes(data), len(data), no_time)
    while index.step(len(data)):
        pass
    wanted = sum(level_of(line.decode()) is Level.ERROR for line in lines)
    assert (index.lines, len([*index.errors_in(0, len(data))])) == (len(lines), wanted)


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
    assert await log.position_of(7, page.lines[9].text) == page.lines[texts.index(texts[9])].position
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


WORDS = ("alpha", "Beta", "gamma [x]", "ε Straße", "-e", "--pre=sh", "$(touch x)", "a.c", "\x1b[31m")

MASKED = table("masked_searches")

with_and_without_ripgrep = pytest.mark.parametrize("installed", [True, False], ids=["rg", "own"])


@pytest.fixture(autouse=True)
def program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `installed` ripgrep is used for everything it can be, without it never."""
    installed = getattr(request.node, "callspec", None) and request.node.callspec.params.get("installed")
    if installed and ripgrep() is None:
        pytest.skip("ripgrep is not installed here")
    if not installed:
        monkeypatch.setattr(log_search, "ripgrep", lambda: None)


def a_log(pages: LogPages) -> list[str]:
    rng = random.Random(1)
    lines = [f"{n} {rng.choice(WORDS)} {rng.choice(WORDS)}" for n in range(200)]
    Path(pages.name).write_text("\n".join(lines))
    return lines


@with_and_without_ripgrep
@pytest.mark.parametrize("typed", ["alpha", "BETA", "-e", "$(touch", "a.c", "straße"])
@pytest.mark.parametrize("around", [1_000, 1 << 40])
async def test_a_text_is_found_as_it_stands(
    pages: LogPages, tmp_path: Path, installed: bool, typed: str, around: int
) -> None:
    lines = a_log(pages)
    fold = str.casefold if typed == typed.lower() else str
    search = await searched(pages, typed, around)
    assert search.state is SearchState.DONE
    assert await all_found(pages, search) == [line for line in lines if fold(typed) in fold(line)]
    assert os.listdir(tmp_path) == ["x.log"]


@with_and_without_ripgrep
@pytest.mark.parametrize("typed", ["~^1.*alpha", r"~\bbeta$", "~ALPHA", "~[xyz", "~a|beta"])
async def test_an_expression_is_searched_for(pages: LogPages, installed: bool, typed: str) -> None:
    lines = a_log(pages)
    search = await searched(pages, typed)
    try:
        flags = re.IGNORECASE if asked(typed).ignores_case else 0
        wanted = [line for line in lines if re.search(asked(typed).text, line, flags)]
    except re.error:
        assert search.state is SearchState.FAILED
        assert search.problem
        return
    assert await all_found(pages, search) == wanted


@with_and_without_ripgrep
@pytest.mark.parametrize("kind", ["file", "packed", "rotated", "merged", "journal"])
@pytest.mark.parametrize("typed", MASKED["found"])
async def test_search_finds_no_masked_text(tmp_path: Path, installed: bool, kind: str, typed: str) -> None:
    lines = MASKED["lines"]
    text = "".join(f"{line}\n" for line in lines).encode()
    path = tmp_path / ("x.log.gz" if kind == "packed" else "x.log")
    path.write_bytes(gzip.compress(text) if kind == "packed" else text)
    log: Log = LogPages(path)
    if kind == "rotated":
        at = text.index(b"    violet")
        path.write_bytes(text[:at])
        await log.look()
        path.rename(f"{path}.1")
        path.write_bytes(text[at:])
    if kind == "merged":
        log = MergedLog({"x": LogPages(path)})
    if kind == "journal":
        journal = MemoryJournal()
        for line in lines:
            journal.log(line)
        log = JournalPages("x", journal.reader, Selection(StreamNames("x"), WantedStreams(), None, ()))
    search = await searched(log, typed, END)
    assert search.state is SearchState.DONE
    read = list(map(SecretBlocks().hide, lines)) if kind == "merged" else lines
    found = MASKED["found"] | (MASKED["in_memory"] if kind in ("merged", "journal") else {})
    assert await all_found(log, search) == [read[at] for at in found[typed]]
    await log.aclose()


@with_and_without_ripgrep
@pytest.mark.parametrize("typed", ["violet", "~v.olet", "rose"])
async def test_a_search_finds_nothing_in_a_long_block(pages: LogPages, installed: bool, typed: str) -> None:
    block = [
        b"client_secret: |",
        *(b"  violet %d rose" % n for n in range(2000)),
        b"no rose",
        b"at 1 violet",
    ]
    write_bytes(pages, b"\n".join(block))
    search = await searched(pages, typed, END)
    assert await all_found(pages, search) == ["at 1 violet" if "v" in typed else "no rose"]


_PIECES = [
    "token", "=", "'", ":", " ", "Bearer ", "://", "u:pw@", "\x1b[1m", "\u200b", "agent", "_id",
    "srj-p-", "API-key", "sid", "_session", "csrf", "private", "é", "İ", "K",
]  # fmt: skip


@given(
    st.lists(
        st.sampled_from(_PIECES)
        | st.sampled_from(
            ["aB3" * 21, "aB3/" * 5, "x" * 32, "creDential", "\\", "--", "0123456789abcdef" * 2]
        ),
        max_size=8,
    ).map("".join)
)
@example("://://")
def test_lines_that_masking_changes_are_handed_over(line: str) -> None:
    masked = tables_of("jobtui.model", "secrets")["ripgrep"]["may_be_masked"]
    pattern = masked.replace("(?-u:[^'\\n])", "[^'\\n]")
    pattern = re.sub(r"\\x\{([0-9a-f]+)\}", lambda found: f"\\u{int(found[1], 16):04x}", pattern)
    if mask_line(line) != line:
        assert re.search(pattern, line)


@with_and_without_ripgrep
async def test_bytes_that_are_not_text_do_not_end_a_search(pages: LogPages, installed: bool) -> None:
    write_bytes(pages, b"one\n\xff\xfe needle\r\n" + bytes(200_000) + b"needle\nend")
    search = await searched(pages, "needle")
    assert len(search.hits) == 2
    assert (await pages.after(search.hits.next_after(0) or 0, 1)).lines[0].text == "\ufffd\ufffd needle"


@with_and_without_ripgrep
@pytest.mark.parametrize("typed", ["needle", "~n.edle"])
async def test_a_search_goes_on_over_appended_lines(pages: LogPages, installed: bool, typed: str) -> None:
    write_bytes(pages, b"needle 1\nplain\nnee")
    await pages.look()
    search = pages.search(asked(typed), 0)
    await search.run()
    assert len(search.hits) == 1
    write_bytes(pages, b"dle 2\nplain\nneedle 3", "ab")
    await pages.look()
    await search.extend()
    assert await all_found(pages, search) == ["needle 1", "needle 2", "needle 3"]
    await search.extend()
    assert len(search.hits) == 3
    search.cancel()


@pytest.mark.parametrize("state", [SearchState.TIMED_OUT, SearchState.CANCELED])
async def test_an_expression_that_takes_too_long_is_stopped(
    pages: LogPages, state: SearchState, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_bytes(pages, b"a" * 60 + b"b\n")
    await pages.look()
    monkeypatch.setattr(FileSearch, "limit_s", 0.3)
    search = pages.search(asked("~^(a+)+$"), 0)
    if state is SearchState.CANCELED:
        search.cancel()
    await search.run()
    assert (search.state, len(search.hits)) == (state, 0)
    search.cancel()


async def test_no_more_is_kept_than_the_limit(pages: LogPages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_search, "HITS_KEPT", 100)
    monkeypatch.setattr(log_search, "CHUNK_BYTES", 256)
    write_bytes(pages, b"hit\n" * 1_000)
    search = await searched(pages, "hit")
    assert search.state is SearchState.FULL
    assert 100 <= len(search.hits) <= 100 + 256 // 4
