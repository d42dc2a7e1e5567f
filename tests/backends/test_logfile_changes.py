"""LogFile on real files: what a program or a person can do to a log while it is followed."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from jobtui.backends.base import SourceDenied, SourceError, SourceMissing
from jobtui.backends.file_blocks import Limits
from jobtui.backends.log_start import TailBytes
from tests.backends.log_fakes import Opened, append, inode, open_inodes, rename, write
from tests.waiting import LONG_S


@pytest.fixture(autouse=True)
async def _all_closed() -> AsyncIterator[None]:
    yield
    await Opened.close_all()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "supervisor.log"


def remove(path: Path) -> None:
    path.unlink()


def make_directory(path: Path) -> None:
    path.mkdir()


def forbid(path: Path) -> None:
    path.chmod(0)


async def fails(opened: Opened, error: type[SourceError]) -> str:
    """Poll until it fails so, and give the text."""
    end = time.monotonic() + LONG_S
    while time.monotonic() < end:
        try:
            await opened.reading.drain()
        except error as raised:
            return str(raised)
        await opened.log.changed(0.02)
    raise AssertionError(f"never failed: {opened.reading.texts}")


async def test_a_lost_batch_is_given_again_after_a_rotation(path: Path) -> None:
    write(path, b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    append(path, b"two\n")
    rename(path, "supervisor.log.1")
    write(path, b"three\n")
    await opened.log.poll(opened.reading.cursor)
    await opened.reading.drain()
    assert opened.reading.texts == ["one", "two", "three"]


async def test_a_renamed_file_is_read_to_its_end_before_the_new_one(path: Path) -> None:
    write(path, b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    append(path, b"two\n")
    rename(path, "supervisor.log.1")
    append(path, b"three\n")
    await opened.reading.drain()
    assert opened.reading.texts == ["one", "two", "three"]
    assert opened.parsers.texts == [b"one\ntwo\n", b"three\n"]
    assert opened.reading.records[-1].line == 1


async def test_what_is_still_written_to_the_renamed_file_is_read(path: Path) -> None:
    write(path, b"one\n")
    opened = Opened(path, Limits(retire_s=3600))
    await opened.reading.drain()
    with path.open("ab") as writer:
        rename(path, "supervisor.log.1")
        append(path, b"new\n")
        await opened.reading.drain()
        writer.write(b"late\n")
    await opened.reading.drain()
    assert opened.reading.texts == ["one", "new", "late"]


async def test_the_renamed_file_is_released_in_the_end(path: Path) -> None:
    write(path, b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    old = inode(path)
    rename(path, "supervisor.log.1")
    write(path, b"two\n")
    await opened.reading.drain()
    assert old in open_inodes()
    await opened.reading.until(lambda: old not in open_inodes())


async def test_rotations_in_a_row_lose_nothing(path: Path) -> None:
    write(path, b"0\n")
    opened = Opened(path)
    await opened.reading.drain()
    for nth in range(1, 12):
        rename(path, f"supervisor.log.{nth}")
        write(path, b"%d\n" % nth)
        await opened.reading.drain()
    assert opened.reading.texts == [str(nth) for nth in range(12)]
    assert opened.reading.skip_count == 0


async def test_a_truncated_file_begins_again_and_says_so(path: Path) -> None:
    write(path, b"one\ntwo\n")
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
    write(path, b"one\ntwo\n")
    opened = Opened(path)
    await opened.reading.drain()
    write(path, b"quite another text\nand more\n")
    await opened.reading.drain()
    assert opened.reading.texts[2:] == ["quite another text", "and more"]


async def test_bytes_that_a_truncation_took_before_they_were_read_are_reported(path: Path) -> None:
    write(path, b"one\nunfinished")
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
    write(path, b"")
    with pytest.raises(SourceMissing):
        await Opened(path / "below").log.poll(None)


async def test_a_vanished_file_is_read_to_its_end_then_missing_and_read_anew_when_it_is_back(
    path: Path,
) -> None:
    write(path, b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    append(path, b"two\n")
    remove(path)
    await fails(opened, SourceMissing)
    assert opened.reading.texts == ["one", "two"]
    write(path, b"three\n")
    await opened.reading.drain()
    assert opened.reading.texts == ["one", "two", "three"]


async def test_a_file_that_is_away_for_a_moment_is_not_missing(path: Path) -> None:
    write(path, b"one\n")
    opened = Opened(path, Limits())
    await opened.reading.drain()
    rename(path, "supervisor.log.1")
    await opened.reading.drain()
    write(path, b"two\n")
    await opened.reading.drain()
    assert opened.reading.texts == ["one", "two"]


async def test_a_deleted_file_is_let_go_of_and_known_again_when_it_comes_back(path: Path) -> None:
    aside = path.with_name("aside")
    write(path, b"a line long enough to be known again" * 9 + b"\n")
    opened = Opened(path)
    await opened.reading.drain()
    rename(path, aside.name)
    while inode(aside) in open_inodes():
        await fails(opened, SourceMissing)
    append(aside, b"two\n")
    rename(aside, path.name)
    await opened.reading.drain()
    assert [text[:6] for text in opened.reading.texts] == ["a line", "two"]


async def test_a_copy_that_goes_on_with_the_same_text_is_read_on(path: Path) -> None:
    text = b"".join(b"line %d of a log that is copied again and again\n" % nth for nth in range(20))
    write(path, text)
    opened = Opened(path)
    await opened.reading.drain()
    copy = path.with_name("copy")
    write(copy, text + b"news\n")
    rename(copy, path.name)
    await opened.reading.drain()
    assert opened.parsers.texts == [text + b"news\n"]


async def test_replaced_by_a_directory(path: Path) -> None:
    write(path, b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    append(path, b"two\n")
    rename(path, "supervisor.log.1")
    make_directory(path)
    assert "is a directory" in await fails(opened, SourceError)
    assert opened.reading.texts == ["one", "two"]


async def test_a_pipe_is_refused_without_blocking(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(SourceError, match="is a pipe, not a log file"):
        await asyncio.wait_for(Opened(path).log.poll(None), LONG_S)


@pytest.mark.parametrize(("name", "kind"), [("/dev/zero", "a device"), ("/", "a directory")])
async def test_what_is_no_file_is_refused(name: str, kind: str) -> None:
    with pytest.raises(SourceError, match=f"is {kind}"):
        await Opened(Path(name)).log.poll(None)


async def test_a_path_that_cannot_be_is_an_error_of_the_source(tmp_path: Path) -> None:
    for name in ("a\0b", "x" * 5000):
        with pytest.raises(SourceError):
            await Opened(tmp_path / name).log.poll(None)


async def test_line_numbers_are_settled_after_a_rotation(path: Path) -> None:
    write(path, b"".join(b"%d\n" % nth for nth in range(1, 10_001)))
    opened = Opened(path, Limits(count=100), TailBytes(100))
    await opened.reading.drain()
    rename(path, "supervisor.log.1")
    write(path, b"new\n")
    assert await opened.log.line_number(opened.reading.records[-1].line) == 10_000


async def test_changed_returns_early_when_something_was_written(path: Path) -> None:
    write(path, b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    waiting = asyncio.create_task(opened.log.changed(LONG_S))
    append(path, b"two\n")
    await asyncio.wait_for(waiting, LONG_S / 2)


@pytest.mark.parametrize("happens", [remove, lambda path: rename(path, "other")])
async def test_changed_returns_early_when_the_file_is_gone(
    path: Path, happens: Callable[[Path], None]
) -> None:
    write(path, b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    happens(path)
    await asyncio.wait_for(opened.log.changed(LONG_S), LONG_S / 2)


async def test_changed_returns_in_time_when_nothing_was_written(path: Path) -> None:
    write(path, b"one\n")
    opened = Opened(path)
    await opened.reading.drain()
    started = time.monotonic()
    await opened.log.changed(0.2)
    assert 0.19 <= time.monotonic() - started < LONG_S


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
    write(path, b"one\n")
    forbid(path)
    request.getfixturevalue("as_nobody")
    with pytest.raises(SourceDenied, match="permission denied"):
        await Opened(path).log.poll(None)
