"""Blocks of a log: lines without bound, places by time and by text, a sample of its end."""

import gzip
import os
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobtui.backends.log_start import FromStart
from jobtui.logs.pages import newest_time, tail_lines
from jobtui.model.clock import SECOND, Nanos, to_rfc3339, to_seconds
from jobtui.model.health import SourceDenied, SourceMissing
from jobtui.transport import blocks as file_search
from jobtui.transport.blocks import Block, BlockReader, Limits, Position, lines_from, offset_of_time
from jobtui.transport.files import open_file
from tests.backends.log_fakes import KeepingParser, MemoryBytes, Parsers, log_file
from tests.conftest import NOW
from tests.polling import Reading

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


def test_nuls_at_the_end_wait_for_what_follows_unless_they_are_very_many() -> None:
    for size, offset in ((100, 4), (3 << 20, 4 + (3 << 20))):
        reader = BlockReader(MemoryBytes(b"one\n" + b"\0" * size), "log", Position(), Limits())
        assert reader.next() is not None
        assert reader.next() is None
        assert reader.position.offset == offset


def test_a_line_at_the_limit_is_whole_and_one_beyond_is_cut_and_named() -> None:
    whole = b"x" * SMALL.line + b"\n"
    assert [block.data for block in read_all(whole)[1]] == [whole]
    reader, blocks = read_all(b"one\n" + b"x" * 500 + b"\ntwo\n")
    assert [block.data for block in blocks] == [b"one\n", b"x" * 120 + b"\n", b"two\n"]
    assert (blocks[-1].line, reader.skip_count) == (3, 1)
    assert [(skip.where, skip.why) for skip in reader.skips] == [
        ("log:2 (byte 4)", "line longer than 120 bytes, the rest of it is left out"),
        ("log:2 (byte 484)", "380 bytes left out of this line"),
    ]


def test_work_in_one_call_is_bounded() -> None:
    reader = BlockReader(MemoryBytes(b"\0" * 100_000 + b"one\n"), "log", Position(), SMALL)
    assert reader.next() is None
    assert reader.more


def hole(file: BinaryIO) -> None:
    file.seek(8 << 30, os.SEEK_CUR)


def pieces(piece: bytes) -> Callable[[BinaryIO], None]:
    return lambda file: file.writelines([piece * (1 << 20)] * 40)


MONSTERS = (
    (hole, ["one", "two"], "NUL bytes"),
    (pieces(b"\0"), ["one", "two"], "NUL bytes"),
    (pieces(b"x"), ["one", "x" * 100, ""], f"{39 << 20} bytes left out of this line"),
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


CAPTURES = Path(__file__).parent.parent / "fixtures" / "sirepo"


def place_of(data: bytes, seconds: int) -> int | None:
    time_of = partial(KeepingParser("").time_of, newest=Nanos(0))
    return offset_of_time(MemoryBytes(data), len(data), Nanos(seconds * SECOND), time_of)


FILLERS = st.sampled_from([b"", b"  no time here\n", b"\0" * 200, b"y" * 3000 + b"\n", b"z\n" * 50])


@given(st.lists(st.tuples(st.integers(0, 3), FILLERS), min_size=1, max_size=60), st.integers(0, 200))
@settings(max_examples=150, deadline=None)
def test_no_line_of_the_time_is_before_the_place_found(steps: list[tuple[int, bytes]], wanted: int) -> None:
    data, seconds, due = b"", 0, None
    for step, filler in steps:
        seconds += step
        if seconds >= wanted and due is None:
            due = len(data)
        data += b"@%d line\n" % seconds + filler
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_search, "PROBE_BYTES", 300)
        patch.setattr(file_search, "_WINDOW_BYTES", 64)
        found = place_of(data, wanted)
    assert found is not None
    assert found <= (len(data) if due is None else due)


def test_the_place_of_a_time_is_exact_where_lines_have_times() -> None:
    data = b"".join(b"@%d line\n  more of it\n" % (nth // 2) for nth in range(200_000))
    for wanted in (0, 1, 31_234, 99_999):
        found = place_of(data, wanted)
        assert found == data.index(b"@%d line" % wanted)
    assert place_of(data, 100_000) == len(data)
    assert place_of(b"line\n" * 1_000, 7) is None
    assert place_of(b"", 7) is None
    assert file_search.align(MemoryBytes(b"\0\0text\n"), 1, 100) == 1


def test_raw_lines_are_cut_decoded_and_freed_of_nuls() -> None:
    data = b"\0" * 1000 + b"bad \xff byte\r\n" + b"y" * (6 << 20)
    here, after = lines_from(MemoryBytes(data), 0, 2)
    assert (here.text, here.offset) == ("bad \ufffd byte", 1000)
    assert len(after.text) == file_search.RAW_LINE_BYTES


def test_the_last_whole_lines_are_given_of_a_packed_log_all(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\ntwo\nthree\nfour")
    assert [*tail_lines(path)] == [b"one", b"two", b"three", b"four"]
    assert ([*tail_lines(path, 12)], [*tail_lines(path, 2)]) == ([b"three", b"four"], [])
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n"))
    assert [*tail_lines(path)] == [b"one", b"two"]
    with pytest.raises(SourceMissing):
        [*tail_lines(tmp_path / "gone.log")]
    with pytest.raises((SourceDenied, SourceMissing)):
        newest_time(tmp_path / "gone.log")


def test_the_newest_time_of_a_log_is_found(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.log"
    path.write_bytes((CAPTURES / "local" / "supervisor.log").read_bytes())
    os.utime(path, (to_seconds(NOW), to_seconds(NOW)))
    newest = newest_time(path)
    assert newest is not None
    assert to_rfc3339(newest) == "2026-11-20T20:36:01Z"
    empty = tmp_path / "empty.log"
    empty.touch()
    assert newest_time(empty) is None
