"""LogFile on real files: what a program or a person can do to a log while it is followed."""

import asyncio
import gzip
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from jobtui.backends.base import SourceDenied, SourceError, SourceMissing
from jobtui.backends.file_blocks import Limits
from jobtui.backends.log_start import FromStart, FromTime, Start, TailBytes
from jobtui.backends.logfile import LogFile
from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, Nanos
from tests.backends.log_fakes import DEADLINE_S, Parsers, Reading

CAPTURES = Path(__file__).parent.parent / "fixtures" / "sirepo"
CAPTURED_LOGS = sorted(path for path in CAPTURES.rglob("*.log") if "user" not in path.parts)

QUICK = Limits(hold_s=0.05, retire_s=0.2, gone_s=0.05)


class Opened:
    """A LogFile on a path with a keeping parser, and its reading."""

    open: ClassVar[list["Opened"]] = []

    def __init__(self, path: Path, limits: Limits = QUICK, start: Start | None = None) -> None:
        self.parsers = Parsers()
        self.log = LogFile(path, parser_factory=self.parsers, limits=limits, start=start)
        self.reading = Reading(self.log)
        self.open.append(self)


@pytest.fixture(autouse=True)
async def _all_closed() -> AsyncIterator[None]:
    yield
    while Opened.open:
        await Opened.open.pop().log.aclose()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "supervisor.log"


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


async def test_gives_what_is_there_and_then_what_is_appended(path: Path) -> None:
    path.write_bytes(b"one\ntwo\n")
    opened = Opened(path)
    await opened.reading.drain()
    append(path, b"three\n")
    await opened.reading.drain()
    assert opened.reading.texts == ["one", "two", "three"]
    assert [record.line for record in opened.reading.records] == [1, 2, 3]
    assert [record.offset for record in opened.reading.records] == [0, 4, 8]
    assert opened.reading.note is None


async def test_an_empty_file_is_fine_and_grows(path: Path) -> None:
    path.touch()
    opened = Opened(path)
    await opened.reading.drain()
    assert opened.reading.texts == []
    append(path, b"one\n")
    await opened.reading.drain()
    assert opened.reading.texts == ["one"]


async def test_a_second_reader_from_the_beginning_gets_the_same(path: Path) -> None:
    path.write_bytes(b"one\ntwo\n")
    opened = Opened(path)
    first = await opened.log.poll(None)
    again = await opened.log.poll(None)
    assert first.records == again.records != ()


async def test_a_lost_batch_is_given_again(path: Path) -> None:
    path.write_bytes(b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    append(path, b"two\n")
    lost = await opened.log.poll(opened.reading.cursor)
    again = await opened.log.poll(opened.reading.cursor)
    assert [record.text for record in lost.records] == ["two"]
    assert again.records == lost.records


async def test_a_lost_batch_is_given_again_after_a_rotation(path: Path) -> None:
    path.write_bytes(b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    append(path, b"two\n")
    path.rename(path.with_name("supervisor.log.1"))
    path.write_bytes(b"three\n")
    await opened.log.poll(opened.reading.cursor)
    await opened.reading.drain()
    assert opened.reading.texts == ["one", "two", "three"]


async def test_a_cursor_of_someone_else_begins_anew(path: Path) -> None:
    path.write_bytes(b"one\n")
    batch = await Opened(path).log.poll("of:another:source")
    assert [record.text for record in batch.records] == ["one"]


async def test_an_unfinished_line_waits_for_its_newline(path: Path) -> None:
    path.write_bytes(b"one\ntw")
    opened = Opened(path, Limits(hold_s=3600))
    await opened.reading.drain()
    assert opened.reading.texts == ["one"]
    append(path, b"o\n")
    await opened.reading.drain()
    assert opened.reading.texts == ["one", "two"]


async def test_an_unfinished_line_is_let_go_after_a_while_and_its_newline_is_no_line(path: Path) -> None:
    path.write_bytes(b"one\ntwo")
    opened = Opened(path)
    await opened.reading.until(lambda: opened.reading.texts == ["one", "two"])
    append(path, b"\nthree\n")
    await opened.reading.drain()
    assert opened.reading.texts == ["one", "two", "three"]
    assert [record.line for record in opened.reading.records] == [1, 2, 3]


async def test_what_follows_a_line_let_go_is_given_as_its_rest(path: Path) -> None:
    path.write_bytes(b"tw")
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
    path.write_bytes(b"only this")
    os.utime(path, (time.time() - 3600,) * 2)
    opened = Opened(path, Limits())
    await opened.reading.drain()
    assert opened.reading.texts == ["only this"]


async def test_a_renamed_file_is_read_to_its_end_before_the_new_one(path: Path) -> None:
    path.write_bytes(b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    append(path, b"two\n")
    path.rename(path.with_name("supervisor.log.1"))
    append(path, b"three\n")
    await opened.reading.drain()
    assert opened.reading.texts == ["one", "two", "three"]
    assert opened.parsers.texts == [b"one\ntwo\n", b"three\n"]
    assert opened.reading.records[-1].line == 1


async def test_what_is_still_written_to_the_renamed_file_is_read(path: Path) -> None:
    path.write_bytes(b"one\n")
    opened = Opened(path, Limits(retire_s=3600))
    await opened.reading.drain()
    with path.open("ab") as writer:
        path.rename(path.with_name("supervisor.log.1"))
        append(path, b"new\n")
        await opened.reading.drain()
        writer.write(b"late\n")
    await opened.reading.drain()
    assert opened.reading.texts == ["one", "new", "late"]


async def test_the_renamed_file_is_released_in_the_end(path: Path) -> None:
    path.write_bytes(b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    old = path.stat().st_ino
    path.rename(path.with_name("supervisor.log.1"))
    path.write_bytes(b"two\n")
    await opened.reading.drain()
    assert old in open_inodes()
    await opened.reading.until(lambda: old not in open_inodes())


def open_inodes() -> set[int]:
    inodes = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            inodes.add(os.fstat(int(name)).st_ino)
        except OSError:
            continue
    return inodes


async def test_rotations_in_a_row_lose_nothing(path: Path) -> None:
    path.write_bytes(b"0\n")
    opened = Opened(path)
    await opened.reading.drain()
    for nth in range(1, 12):
        path.rename(path.with_name(f"supervisor.log.{nth}"))
        path.write_bytes(b"%d\n" % nth)
        await opened.reading.drain()
    assert opened.reading.texts == [str(nth) for nth in range(12)]
    assert opened.reading.skip_count == 0


async def test_a_truncated_file_begins_again_and_says_so(path: Path) -> None:
    path.write_bytes(b"one\ntwo\n")
    opened = Opened(path)
    await opened.reading.drain()
    os.truncate(path, 0)
    append(path, b"new\n")
    await opened.reading.drain()
    assert opened.reading.texts == ["one", "two", "new"]
    assert opened.reading.records[-1].line == 1
    assert "truncated" in (opened.reading.note or "")
    assert opened.reading.skip_count == 0


async def test_a_file_written_anew_to_a_greater_size_begins_again(path: Path) -> None:
    path.write_bytes(b"one\ntwo\n")
    opened = Opened(path)
    await opened.reading.drain()
    path.write_bytes(b"quite another text\nand more\n")
    await opened.reading.drain()
    assert opened.reading.texts[2:] == ["quite another text", "and more"]


async def test_bytes_that_a_truncation_took_before_they_were_read_are_reported(path: Path) -> None:
    path.write_bytes(b"one\nunfinished")
    opened = Opened(path, Limits(hold_s=3600))
    await opened.reading.drain()
    os.truncate(path, 0)
    await opened.reading.drain()
    assert opened.reading.skip_count == 1
    assert "10 bytes" in opened.reading.skips[0].why
    assert opened.reading.skips[0].where == f"{path}:2 (byte 4)"


async def test_a_missing_file_is_missing_at_once(path: Path) -> None:
    with pytest.raises(SourceMissing, match=r"supervisor\.log: no such file"):
        await Opened(path, Limits()).log.poll(None)


async def test_a_file_below_a_file_is_missing(path: Path) -> None:
    path.touch()
    with pytest.raises(SourceMissing):
        await Opened(path / "below").log.poll(None)


async def fails(opened: Opened, error: type[SourceError]) -> str:
    """Poll until it fails so, and give the text."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        try:
            await opened.reading.drain()
        except error as raised:
            return str(raised)
        await opened.log.changed(0.02)
    raise AssertionError(f"never failed: {opened.reading.texts}")


async def test_a_vanished_file_is_read_to_its_end_then_missing_and_read_anew_when_it_is_back(
    path: Path,
) -> None:
    path.write_bytes(b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    append(path, b"two\n")
    path.unlink()
    await fails(opened, SourceMissing)
    assert opened.reading.texts == ["one", "two"]
    path.write_bytes(b"three\n")
    await opened.reading.drain()
    assert opened.reading.texts == ["one", "two", "three"]


async def test_a_file_that_is_away_for_a_moment_is_not_missing(path: Path) -> None:
    path.write_bytes(b"one\n")
    opened = Opened(path, Limits())
    await opened.reading.drain()
    path.rename(path.with_name("supervisor.log.1"))
    await opened.reading.drain()
    path.write_bytes(b"two\n")
    await opened.reading.drain()
    assert opened.reading.texts == ["one", "two"]


async def test_a_deleted_file_is_let_go_of_and_known_again_when_it_comes_back(path: Path) -> None:
    aside = path.with_name("aside")
    path.write_bytes(b"a line long enough to be known again" * 9 + b"\n")
    opened = Opened(path)
    await opened.reading.drain()
    path.rename(aside)
    while aside.stat().st_ino in open_inodes():
        await fails(opened, SourceMissing)
    append(aside, b"two\n")
    aside.rename(path)
    await opened.reading.drain()
    assert [text[:6] for text in opened.reading.texts] == ["a line", "two"]


async def test_a_copy_that_goes_on_with_the_same_text_is_read_on(path: Path) -> None:
    text = b"".join(b"line %d of a log that is copied again and again\n" % nth for nth in range(20))
    path.write_bytes(text)
    opened = Opened(path)
    await opened.reading.drain()
    copy = path.with_name("copy")
    copy.write_bytes(text + b"news\n")
    copy.rename(path)
    await opened.reading.drain()
    assert opened.parsers.texts == [text + b"news\n"]


async def test_replaced_by_a_directory(path: Path) -> None:
    path.write_bytes(b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    append(path, b"two\n")
    path.rename(path.with_name("supervisor.log.1"))
    path.mkdir()
    assert "is a directory" in await fails(opened, SourceError)
    assert opened.reading.texts == ["one", "two"]


@pytest.fixture
def as_nobody(path: Path) -> Iterator[None]:
    """Run as a user who may not read everything, and may search the directory."""
    for parent in (path.parent, path.parent.parent, path.parent.parent.parent):
        parent.chmod(0o755)
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


async def test_an_unreadable_file_is_denied(path: Path, request: pytest.FixtureRequest) -> None:
    path.write_bytes(b"one\n")
    path.chmod(0)
    request.getfixturevalue("as_nobody")
    with pytest.raises(SourceDenied, match="permission denied"):
        await Opened(path).log.poll(None)


async def test_a_pipe_is_refused_without_blocking(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(SourceError, match="is a pipe, not a log file"):
        await asyncio.wait_for(Opened(path).log.poll(None), DEADLINE_S)


@pytest.mark.parametrize(("name", "kind"), [("/dev/zero", "a device"), ("/", "a directory")])
async def test_what_is_no_file_is_refused(name: str, kind: str) -> None:
    with pytest.raises(SourceError, match=f"is {kind}"):
        await Opened(Path(name)).log.poll(None)


async def test_a_path_that_cannot_be_is_an_error_of_the_source(tmp_path: Path) -> None:
    for name in ("a\0b", "x" * 5000):
        with pytest.raises(SourceError):
            await Opened(tmp_path / name).log.poll(None)


async def test_lines_end_in_newlines_only_and_bytes_stay_as_they_are(path: Path) -> None:
    text = b"dos\r\n\xff\xfe not utf-8\nform\x0cfeed \xe2\x80\xa8 and \x85\na\0b\n\n\n"
    path.write_bytes(text)
    opened = Opened(path)
    await opened.reading.drain()
    assert opened.parsers.text == text
    assert [record.line for record in opened.reading.records] == [1, 2, 3, 4, 5, 6]


async def test_begins_at_the_tail_of_a_large_file(path: Path) -> None:
    path.write_bytes(b"".join(b"@%d line\n" % nth for nth in range(10_000, 20_000)))
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
    path.write_bytes(b"one\ntwo\n")
    opened = Opened(path, start=TailBytes(8))
    await opened.reading.drain()
    assert opened.reading.texts == ["one", "two"]
    assert opened.reading.note is None


async def test_begins_at_a_time(path: Path) -> None:
    path.write_bytes(b"".join(b"@%d line\n" % (nth // 3) for nth in range(300_000)))
    opened = Opened(path, start=FromTime(Nanos(50_000 * SECOND)))
    await opened.reading.poll()
    assert opened.reading.texts[0] == "@50000 line"
    assert opened.reading.records[0].line == 150_001


async def test_takes_the_tail_and_says_why_when_there_are_no_times(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobtui.backends.log_start.TAIL_BYTES", 10)
    path.write_bytes(b"line\n" * 100)
    opened = Opened(path, start=FromTime(Nanos(50_000 * SECOND)))
    await opened.reading.drain()
    assert opened.reading.texts == ["line", "line"]
    assert "no times" in (opened.reading.note or "")
    assert await opened.log.offset_at(Nanos(1)) is None


async def test_begins_within_a_line_longer_than_can_be_given(path: Path) -> None:
    path.write_bytes(b"one\n" + b"x" * 5_000 + b"\ntwo\n")
    opened = Opened(path, Limits(line=1_000, block=500), TailBytes(2_000))
    await opened.reading.drain()
    assert opened.reading.texts == ["two"]
    assert opened.reading.records[0].line == 3
    assert any("left out" in skip.why for skip in opened.reading.skips)


async def test_line_numbers_of_a_very_large_file_are_settled_when_asked_for(path: Path) -> None:
    path.write_bytes(b"".join(b"%d\n" % nth for nth in range(1, 10_001)))
    opened = Opened(path, Limits(count=100), TailBytes(100))
    await opened.reading.drain()
    append(path, b"10001\n")
    await opened.reading.drain()
    lines = [record.line for record in opened.reading.records]
    assert all(line < 0 for line in lines)
    assert lines == sorted(lines)
    assert [await opened.log.line_number(line) for line in lines] == [int(t) for t in opened.reading.texts]
    assert await opened.log.line_number(7) == 7


async def test_line_numbers_are_settled_after_a_rotation(path: Path) -> None:
    path.write_bytes(b"".join(b"%d\n" % nth for nth in range(1, 10_001)))
    opened = Opened(path, Limits(count=100), TailBytes(100))
    await opened.reading.drain()
    path.rename(path.with_name("supervisor.log.1"))
    path.write_bytes(b"new\n")
    assert await opened.log.line_number(opened.reading.records[-1].line) == 10_000


async def test_line_numbers_of_a_file_that_is_no_more_are_unknown(path: Path) -> None:
    path.write_bytes(b"".join(b"%d\n" % nth for nth in range(1, 10_001)))
    opened = Opened(path, Limits(count=100), TailBytes(100))
    await opened.reading.drain()
    path.write_bytes(b"x" * 100_000)
    assert await opened.log.line_number(opened.reading.records[-1].line) is None


@pytest.mark.parametrize("name", ["supervisor.log.1.gz", "packed-without-a-name-for-it"])
async def test_a_packed_file_is_read_whole(tmp_path: Path, name: str) -> None:
    text = b"".join(b"@%d line\n" % nth for nth in range(50_000)) + b"the last"
    packed = tmp_path / name
    packed.write_bytes(gzip.compress(text))
    opened = Opened(packed, start=TailBytes(100))
    await opened.reading.drain()
    assert opened.parsers.text == text + b"\n"
    assert opened.reading.records[-1].line == 50_001
    assert opened.reading.note is None


async def test_a_packed_file_that_breaks_off_gives_what_it_has_and_says_so_once(tmp_path: Path) -> None:
    packed = tmp_path / "supervisor.log.1.gz"
    text = os.urandom(200_000).hex().encode() + b"\n"
    packed.write_bytes(gzip.compress(b"one\n" + text)[:-1000])
    opened = Opened(packed)
    for _ in range(3):
        await opened.reading.drain()
    assert opened.reading.texts[0] == "one"
    assert opened.reading.skip_count == 1
    assert "gzip breaks off" in opened.reading.skips[0].why


async def test_something_that_only_begins_like_a_packed_file(path: Path) -> None:
    path.write_bytes(b"\x1f\x8b\x08 and so on\n")
    opened = Opened(path)
    await opened.reading.drain()
    assert opened.reading.texts == []
    assert opened.reading.skip_count == 1


async def test_batches_are_bounded(path: Path) -> None:
    path.write_bytes(b"line\n" * 100_000)
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


@pytest.mark.parametrize("name", ["local", "docker-debug", "sbatch"])
async def test_the_real_parser_gives_the_same_records_whatever_the_size_of_a_batch(name: str) -> None:
    path = CAPTURES / name / "supervisor.log"
    whole = LogParser(str(path)).parse(path.read_bytes(), 0, 1, Nanos(path.stat().st_mtime_ns))
    log = LogFile(path, limits=Limits(block=300, batch=5_000))
    reading = Reading(log)
    await reading.drain()
    await log.aclose()
    assert reading.records == whole.records != []
    assert reading.polls > 1


async def test_changed_returns_early_when_something_was_written(path: Path) -> None:
    path.write_bytes(b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    started = time.monotonic()
    waiting = asyncio.create_task(opened.log.changed(DEADLINE_S))
    append(path, b"two\n")
    await waiting
    assert time.monotonic() - started < DEADLINE_S / 2


@pytest.mark.parametrize("happens", [Path.unlink, lambda path: path.rename(path.with_name("other"))])
async def test_changed_returns_early_when_the_file_is_gone(
    path: Path, happens: Callable[[Path], None]
) -> None:
    path.write_bytes(b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    happens(path)
    await asyncio.wait_for(opened.log.changed(DEADLINE_S), DEADLINE_S / 2)


async def test_changed_returns_in_time_when_nothing_was_written(path: Path) -> None:
    path.write_bytes(b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    started = time.monotonic()
    await opened.log.changed(0.2)
    assert 0.2 <= time.monotonic() - started < 5


async def test_a_cancelled_poll_loses_nothing(path: Path) -> None:
    path.write_bytes(b"".join(b"%d\n" % nth for nth in range(200_000)))
    opened = Opened(path)
    for _ in range(5):
        polling = asyncio.create_task(opened.log.poll(opened.reading.cursor))
        await asyncio.sleep(0)
        polling.cancel()
        await opened.reading.poll()
    await opened.reading.drain()
    assert opened.reading.texts == [str(nth) for nth in range(200_000)]


async def test_closing_twice_releases_all_and_a_closed_source_says_so(path: Path) -> None:
    path.write_bytes(b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    assert path.stat().st_ino in open_inodes()
    await opened.log.aclose()
    await opened.log.aclose()
    assert path.stat().st_ino not in open_inodes()
    with pytest.raises(SourceError, match="closed"):
        await opened.reading.poll()
