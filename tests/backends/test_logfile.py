"""LogFile on real files: where reading begins, how it goes on, and what a batch holds."""

import asyncio
import gzip
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobtui.backends.base import SourceError
from jobtui.backends.file_blocks import Limits
from jobtui.backends.log_start import FromStart, FromTime, TailBytes
from jobtui.backends.logfile import LogFile
from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, Nanos
from tests.backends.log_fakes import Opened, Reading, append, inode, open_inodes, write

CAPTURES = Path(__file__).parent.parent / "fixtures" / "sirepo"
CAPTURED_LOGS = sorted(path for path in CAPTURES.rglob("*.log") if "user" not in path.parts)


@pytest.fixture(autouse=True)
async def _all_closed() -> AsyncIterator[None]:
    yield
    await Opened.close_all()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "supervisor.log"


async def test_gives_what_is_there_and_then_what_is_appended(path: Path) -> None:
    write(path, b"one\ntwo\n")
    opened = Opened(path)
    await opened.reading.drain()
    append(path, b"three\n")
    await opened.reading.drain()
    assert opened.reading.texts == ["one", "two", "three"]
    assert [record.line for record in opened.reading.records] == [1, 2, 3]
    assert [record.offset for record in opened.reading.records] == [0, 4, 8]
    assert opened.reading.note is None


async def test_an_empty_file_is_fine_and_grows(path: Path) -> None:
    write(path, b"")
    opened = Opened(path)
    await opened.reading.drain()
    assert opened.reading.texts == []
    append(path, b"one\n")
    await opened.reading.drain()
    assert opened.reading.texts == ["one"]


async def test_a_second_reader_from_the_beginning_gets_the_same(path: Path) -> None:
    write(path, b"one\ntwo\n")
    opened = Opened(path)
    first = await opened.log.poll(None)
    again = await opened.log.poll(None)
    assert first.records == again.records != ()


async def test_a_lost_batch_is_given_again(path: Path) -> None:
    write(path, b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    append(path, b"two\n")
    lost = await opened.log.poll(opened.reading.cursor)
    again = await opened.log.poll(opened.reading.cursor)
    assert [record.text for record in lost.records] == ["two"]
    assert again.records == lost.records


async def test_a_cursor_of_someone_else_begins_anew(path: Path) -> None:
    write(path, b"one\n")
    batch = await Opened(path).log.poll("of:another:source")
    assert [record.text for record in batch.records] == ["one"]


async def test_an_unfinished_line_waits_for_its_newline(path: Path) -> None:
    write(path, b"one\ntw")
    opened = Opened(path, Limits(hold_s=3600))
    await opened.reading.drain()
    assert opened.reading.texts == ["one"]
    append(path, b"o\n")
    await opened.reading.drain()
    assert opened.reading.texts == ["one", "two"]


async def test_an_unfinished_line_is_let_go_after_a_while_and_its_newline_is_no_line(path: Path) -> None:
    write(path, b"one\ntwo")
    opened = Opened(path)
    await opened.reading.until(lambda: opened.reading.texts == ["one", "two"])
    append(path, b"\nthree\n")
    await opened.reading.drain()
    assert opened.reading.texts == ["one", "two", "three"]
    assert [record.line for record in opened.reading.records] == [1, 2, 3]


async def test_what_follows_a_line_let_go_is_given_as_its_rest(path: Path) -> None:
    write(path, b"tw")
    opened = Opened(path)
    await opened.reading.until(lambda: opened.reading.texts == ["tw"])
    append(path, b"o\nthree\n")
    await opened.reading.drain()
    assert [(record.line, record.text) for record in opened.reading.records] == [
        (1, "tw"),
        (1, "o"),
        (2, "three"),
    ]


async def test_a_file_that_is_long_finished_without_a_newline_is_read_whole_at_once(path: Path) -> None:
    write(path, b"only this")
    os.utime(path, (time.time() - 3600,) * 2)
    opened = Opened(path, Limits())
    await opened.reading.drain()
    assert opened.reading.texts == ["only this"]


async def test_lines_end_in_newlines_only_and_bytes_stay_as_they_are(path: Path) -> None:
    text = b"dos\r\n\xff\xfe not utf-8\nform\x0cfeed \xe2\x80\xa8 and \x85\na\0b\n\n\n"
    write(path, text)
    opened = Opened(path)
    await opened.reading.drain()
    assert opened.parsers.text == text
    assert [record.line for record in opened.reading.records] == [1, 2, 3, 4, 5, 6]


async def test_begins_at_the_tail_of_a_large_file(path: Path) -> None:
    write(path, b"".join(b"@%d line\n" % nth for nth in range(10_000, 20_000)))
    opened = Opened(path, start=TailBytes(1_000))
    await opened.reading.drain()
    assert opened.reading.texts[0] == "@19917 line"
    assert opened.reading.records[0].line == 9_918
    assert opened.reading.records[0].offset == 12 * 9_917
    assert opened.reading.texts[-1] == "@19999 line"
    assert opened.log.beginning is not None
    assert opened.log.beginning.at == 19_917 * SECOND
    assert opened.reading.note == (
        "read from byte 119004 of 120000 on, 1970-01-01T05:31:57Z; what is before was not read"
    )


async def test_the_tail_of_a_small_file_is_all_of_it(path: Path) -> None:
    write(path, b"one\ntwo\n")
    opened = Opened(path, start=TailBytes(8))
    await opened.reading.drain()
    assert opened.reading.texts == ["one", "two"]
    assert opened.reading.note is None


async def test_begins_at_a_time(path: Path) -> None:
    write(path, b"".join(b"@%d line\n" % (nth // 3) for nth in range(300_000)))
    opened = Opened(path, start=FromTime(Nanos(50_000 * SECOND)))
    await opened.reading.poll()
    assert opened.reading.texts[0] == "@50000 line"
    assert opened.reading.records[0].line == 150_001


async def test_takes_the_tail_and_says_why_when_there_are_no_times(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobtui.backends.log_start.TAIL_BYTES", 10)
    write(path, b"line\n" * 100)
    opened = Opened(path, start=FromTime(Nanos(50_000 * SECOND)))
    await opened.reading.drain()
    assert opened.reading.texts == ["line", "line"]
    assert "no times" in (opened.reading.note or "")
    assert not opened.log.begins_after(Nanos(1))
    assert await opened.log.offset_at(Nanos(1)) is None


async def test_begins_within_a_line_longer_than_can_be_given(path: Path) -> None:
    write(path, b"one\n" + b"x" * 5_000 + b"\ntwo\n")
    opened = Opened(path, Limits(line=1_000, block=500), TailBytes(2_000))
    await opened.reading.drain()
    assert opened.reading.texts == ["two"]
    assert opened.reading.records[0].line == 3
    assert any("left out" in skip.why for skip in opened.reading.skips)


async def test_line_numbers_of_a_very_large_file_are_settled_when_asked_for(path: Path) -> None:
    write(path, b"".join(b"%d\n" % nth for nth in range(1, 10_001)))
    opened = Opened(path, Limits(count=100), TailBytes(100))
    await opened.reading.drain()
    append(path, b"10001\n")
    await opened.reading.drain()
    lines = [record.line for record in opened.reading.records]
    assert all(line < 0 for line in lines)
    assert lines == sorted(lines)
    assert [await opened.log.line_number(line) for line in lines] == [int(t) for t in opened.reading.texts]
    assert await opened.log.line_number(7) == 7


async def test_line_numbers_of_a_file_that_is_no_more_are_unknown(path: Path) -> None:
    write(path, b"".join(b"%d\n" % nth for nth in range(1, 10_001)))
    opened = Opened(path, Limits(count=100), TailBytes(100))
    await opened.reading.drain()
    write(path, b"x" * 100_000)
    assert await opened.log.line_number(opened.reading.records[-1].line) is None


@pytest.mark.parametrize("name", ["supervisor.log.1.gz", "packed-without-a-name-for-it"])
async def test_a_packed_file_is_read_whole(tmp_path: Path, name: str) -> None:
    text = b"".join(b"@%d line\n" % nth for nth in range(50_000)) + b"the last"
    packed = tmp_path / name
    write(packed, gzip.compress(text))
    opened = Opened(packed, start=TailBytes(100))
    await opened.reading.drain()
    assert opened.parsers.text == text + b"\n"
    assert opened.reading.records[-1].line == 50_001
    assert opened.reading.note is None


async def test_a_packed_file_that_breaks_off_gives_what_it_has_and_says_so_once(tmp_path: Path) -> None:
    packed = tmp_path / "supervisor.log.1.gz"
    text = os.urandom(200_000).hex().encode() + b"\n"
    write(packed, gzip.compress(b"one\n" + text)[:-1000])
    opened = Opened(packed)
    for _ in range(3):
        await opened.reading.drain()
    assert opened.reading.texts[0] == "one"
    assert opened.reading.skip_count == 1
    assert "gzip breaks off" in opened.reading.skips[0].why


async def test_something_that_only_begins_like_a_packed_file(path: Path) -> None:
    write(path, b"\x1f\x8b\x08 and so on\n")
    opened = Opened(path)
    await opened.reading.drain()
    assert opened.reading.texts == []
    assert opened.reading.skip_count == 1


async def test_batches_are_bounded(path: Path) -> None:
    write(path, b"line\n" * 100_000)
    opened = Opened(path, Limits(block=4096, batch_records=2_000))
    assert await opened.reading.poll()
    assert 2_000 <= len(opened.reading.records) < 3_000
    await opened.reading.drain()
    assert len(opened.reading.records) == 100_000


@pytest.mark.parametrize(
    "limits", [Limits(), Limits(block=64, batch=1_000), Limits(block=200, batch_records=1)]
)
async def test_every_captured_line_is_given_once_whatever_the_size_of_a_batch(limits: Limits) -> None:
    assert len(CAPTURED_LOGS) > 10
    for path in CAPTURED_LOGS:
        opened = Opened(path, limits, FromStart())
        await opened.reading.drain()
        text = path.read_bytes()
        assert opened.parsers.text == (text if text.endswith(b"\n") or not text else text + b"\n")
        assert [record.line for record in opened.reading.records] == list(range(1, text.count(b"\n") + 1))
        for record in opened.reading.records:
            assert text[record.offset :].startswith(record.text.encode()[:20])


@pytest.mark.parametrize("name", ["local", "docker", "docker-debug", "sbatch", "legacy-2020"])
async def test_the_real_parser_gives_the_same_records_whatever_the_size_of_a_batch(name: str) -> None:
    path = CAPTURES / name / "supervisor.log"
    whole = LogParser(str(path)).parse(path.read_bytes(), 0, 1, Nanos(path.stat().st_mtime_ns))
    log = LogFile(path, limits=Limits(block=300, batch=5_000))
    reading = Reading(log)
    await reading.drain()
    await log.aclose()
    assert reading.records == whole.records != []
    assert reading.polls > 1


async def test_a_cancelled_poll_loses_nothing(path: Path) -> None:
    write(path, b"".join(b"%d\n" % nth for nth in range(200_000)))
    opened = Opened(path)
    for _ in range(5):
        polling = asyncio.create_task(opened.log.poll(opened.reading.cursor))
        await asyncio.sleep(0)
        polling.cancel()
        await opened.reading.poll()
    await opened.reading.drain()
    assert opened.reading.texts == [str(nth) for nth in range(200_000)]


async def test_closing_twice_releases_all_and_a_closed_source_says_so(path: Path) -> None:
    write(path, b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    assert inode(path) in open_inodes()
    await opened.log.aclose()
    await opened.log.aclose()
    assert inode(path) not in open_inodes()
    with pytest.raises(SourceError, match="closed"):
        await opened.reading.poll()
