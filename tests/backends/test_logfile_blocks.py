"""Lines out of bytes: holes of NULs, lines without bound, bounds on memory and on work."""

import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobtui.backends.file_access import open_file
from jobtui.backends.file_blocks import HOLE_BYTES, Block, BlockReader, Limits, Position, align
from jobtui.backends.log_start import FromStart, TailBytes
from jobtui.backends.logfile import LogFile
from tests.backends.log_fakes import Parsers, Reading

SMALL = Limits(block=40, line=120, skip=300)


class MemoryBytes:
    """Bytes held in memory, as a ByteSource."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.largest = 0

    def read(self, offset: int, size: int) -> bytes:
        self.largest = max(self.largest, size)
        return self.data[offset : offset + size]

    def next_data(self, offset: int) -> int:
        return offset


def read_all(data: bytes, limits: Limits = SMALL) -> tuple[BlockReader, list[Block]]:
    reader = BlockReader(MemoryBytes(data), "log", Position(), limits)
    blocks = []
    while (block := reader.next(release=True)) is not None or reader.more:
        if block is not None:
            blocks.append(block)
    return reader, blocks


def given_text(data: bytes, limits: Limits = SMALL) -> bytes:
    return b"".join(block.data for block in read_all(data, limits)[1])


PIECES = st.sampled_from(
    [
        b"\0",
        b"\0" * 63,
        b"\0" * 64,
        b"\0" * 500,
        b"\n",
        b"ab",
        b"a line\n",
        b"x" * 119,
        b"x" * 121,
        b"x" * 400,
    ]
)


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
    assert reader.position.offset == len(data)
    assert reader.position.line == data.count(b"\n") + 1


@given(st.lists(st.sampled_from([b"\0", b"\0" * 100, b"\n", b"ab", b"a line\n"])).map(b"".join))
@settings(max_examples=200, deadline=None)
def test_only_nuls_are_left_out_of_lines_that_are_not_too_long(data: bytes) -> None:
    reader, blocks = read_all(data, Limits(block=40, line=10_000, skip=300))
    left = b"".join(block.data for block in blocks)
    assert left.translate(None, b"\0\n") == data.translate(None, b"\0\n")
    assert (reader.skip_count > 0) >= (b"\0" * HOLE_BYTES in data)


def test_nuls_before_a_line_are_no_part_of_it() -> None:
    assert given_text(b"one\n" + b"\0" * 3 + b"two\n") == b"one\ntwo\n"


def test_few_nuls_within_a_line_stay() -> None:
    assert given_text(b"on\0e\n") == b"on\0e\n"


def test_many_nuls_within_a_line_end_it_and_the_line_number_stays() -> None:
    reader, blocks = read_all(b"zero\non" + b"\0" * 1000 + b"e\ntwo\n")
    assert [(block.line, block.offset, block.data) for block in blocks] == [
        (1, 0, b"zero\n"),
        (2, 5, b"on\n"),
        (2, 1007, b"e\ntwo\n"),
    ]
    assert reader.skips[0].where == "log:2 (byte 7)"
    assert "NUL bytes" in reader.skips[0].why


def test_nuls_at_the_end_wait_for_what_follows_unless_they_are_very_many() -> None:
    for size, offset in ((100, 4), (3 << 20, 4 + (3 << 20))):
        reader = BlockReader(MemoryBytes(b"one\n" + b"\0" * size), "log", Position(), Limits())
        assert reader.next() is not None
        assert reader.next() is None
        assert reader.position.offset == offset


def test_a_line_at_the_limit_is_whole_and_one_beyond_is_cut_and_named() -> None:
    whole = b"x" * SMALL.line + b"\n"
    assert given_text(whole) == whole
    reader, blocks = read_all(b"one\n" + b"x" * 500 + b"\ntwo\n")
    assert [block.data for block in blocks] == [b"one\n", b"x" * 120 + b"\n", b"two\n"]
    assert blocks[-1].line == 3
    assert reader.skip_count == 1
    assert [(skip.where, skip.why) for skip in reader.skips] == [
        ("log:2 (byte 4)", "line longer than 120 bytes, the rest of it is left out"),
        ("log:2 (byte 484)", "380 bytes left out of this line"),
    ]


def test_work_in_one_call_is_bounded() -> None:
    reader = BlockReader(MemoryBytes(b"\0" * 100_000 + b"one\n"), "log", Position(), SMALL)
    assert reader.next() is None
    assert reader.more


def test_skips_are_counted_however_many_and_few_are_kept_by_name() -> None:
    reader, _ = read_all(b"\0x\n" * 1_000)
    assert reader.skip_count == 1_000
    assert len(reader.skips) == 20


def test_holes_in_every_line_do_not_make_large_blocks_be_read_for_each() -> None:
    source = MemoryBytes(b"\0x\n" * 3_000)
    reader = BlockReader(source, "log", Position(), Limits())
    reader.next()
    source.largest = 0
    for _ in range(100):
        reader.next()
    assert source.largest <= 16 << 10


@pytest.mark.parametrize(
    ("data", "offset", "aligned"),
    [
        (b"one\ntwo\n", 0, 0),
        (b"one\ntwo\n", 1, 4),
        (b"one\ntwo\n", 4, 4),
        (b"one\ntwo\n", 5, 8),
        (b"one\ntwo\n", 8, 8),
        (b"one\ntwo", 5, None),
        (b"one\ntwo", 7, None),
        (b"x" * 1000, 10, None),
        (b"one" + b"\0" * 100 + b"two\n", 1, 3),
        (b"one" + b"\0" * 100 + b"two\n", 50, 50),
        (b"one" + b"\0" * 100 + b"two\n", 103, 103),
    ],
)
def test_where_a_line_begins(data: bytes, offset: int, aligned: int | None) -> None:
    assert align(MemoryBytes(data), offset, 500) == aligned


async def read_file(path: Path) -> tuple[Reading, Parsers, int]:
    """Read the whole file; what was read, and the most memory held meanwhile."""
    parsers = Parsers()
    log = LogFile(path, parser_factory=parsers, start=FromStart())
    reading = Reading(log)
    tracemalloc.start()
    await reading.drain()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    await log.aclose()
    return reading, parsers, peak


async def test_a_hole_of_gigabytes_costs_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "log"
    size = 8 << 30
    with path.open("wb") as file:
        file.write(b"one\n")
        file.seek(size - 4)
        file.write(b"two\n")
    reading, _, peak = await read_file(path)
    assert reading.texts == ["one", "two"]
    assert reading.records[-1].offset == size - 4
    assert reading.skip_count >= 1
    assert peak < 16 << 20


async def test_nuls_that_are_really_written_cost_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.write(b"one\n")
        for _ in range(300):
            file.write(bytes(1 << 20))
        file.write(b"two\n")
    reading, _, peak = await read_file(path)
    assert reading.texts == ["one", "two"]
    assert peak < 16 << 20
    path.unlink()


async def test_a_line_of_hundreds_of_megabytes_costs_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.write(b"one\n")
        for _ in range(300):
            file.write(b"x" * (1 << 20))
        file.write(b"\nthree\n")
    reading, parsers, peak = await read_file(path)
    assert [text[:5] for text in reading.texts] == ["one", "xxxxx", "three"]
    assert [record.line for record in reading.records] == [1, 2, 3]
    assert len(parsers.text) == 4 + (1 << 20) + 1 + 6
    assert reading.skips[-1].why == f"{299 << 20} bytes left out of this line"
    assert peak < 16 << 20
    path.unlink()


async def test_an_orphan_that_writes_on_at_its_old_place_leaves_a_hole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = LogFile(path, parser_factory=Parsers(), start=TailBytes())
    reading = Reading(log)
    with path.open("wb") as orphan:
        orphan.write(b"before the truncation\n" * 50_000)
        orphan.flush()
        await reading.drain()
        os.truncate(path, 0)
        orphan.write(b"after it\n")
        orphan.flush()
        await reading.drain()
    assert reading.texts[-1] == "after it"
    assert len(reading.texts) == 50_001
    assert "truncated" in (reading.note or "")
    assert "NUL" in reading.skips[-1].why
    await log.aclose()


def test_a_file_closed_under_a_reader_is_an_error_and_not_another_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    opened = open_file(path)
    opened.close()
    with path.open("rb"), pytest.raises(OSError, match="Bad file descriptor"):
        opened.source.read(0, 4)
