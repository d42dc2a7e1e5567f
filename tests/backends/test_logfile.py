"""LogFile on real files: where reading begins, how it goes on, and what may happen to a file meanwhile."""

import asyncio
import gzip
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from jobtui.backends.log_start import FromStart, FromTime, TailBytes
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import SourceDenied, SourceError, SourceMissing
from jobtui.transport.blocks import Limits
from tests.backends.log_fakes import Opened, append, inode, open_inodes, rename, write
from tests.fakes import Injected, fail_later
from tests.loopback import nobody
from tests.waiting import LONG_S

CAPTURES = Path(__file__).parent.parent / "fixtures" / "sirepo"
CAPTURED_LOGS = sorted(path for path in CAPTURES.rglob("*.log") if "user" not in path.parts)


@pytest.fixture(autouse=True)
async def _all_closed() -> AsyncIterator[None]:
    yield
    await Opened.close_all()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "supervisor.log"


Doing = Callable[[Path], None]


def adds(data: bytes) -> Doing:
    return lambda path: append(path, data)


def anew(data: bytes) -> Doing:
    return lambda path: write(path, data)


def aside(path: Path) -> None:
    path.rename(path.with_name(f"{path.name}-20261122-{len(os.listdir(path.parent))}"))


def renamed(name: str) -> Doing:
    return lambda path: rename(path, name)


def late(data: bytes) -> Doing:
    return lambda path: append(path.with_name("supervisor.log.1"), data)


def cut(path: Path) -> None:
    os.truncate(path, 0)


def put_away(path: Path) -> None:
    shutil.copy2(path, path.with_name(f"{path.name}-20261122-{len(os.listdir(path.parent))}"))
    os.truncate(path, 0)


def copied(data: bytes) -> Doing:

    def put(path: Path) -> None:
        write(copy := path.with_name("copy"), data)
        rename(copy, path.name)

    return put


ALIKE = b"alike\n" * 1_000
"""As where a script that is long, and always the same, is the first that is logged in each file."""
LONG = b"".join(b"line %d of a log that is copied again and again\n" % nth for nth in range(20))
STORIES: dict[str, tuple[bytes, Sequence[Doing], bytes]] = {
    "an empty file grows": (b"", [adds(b"one\n")], b"one\n"),
    "an unfinished line waits for its newline": (b"one\ntw", [adds(b"o\n")], b"one\ntwo\n"),
    "one written anew to a greater size": (
        b"one\n", [anew(b"another\nand more\n")], b"one\nanother\nand more\n"),
    "a file that is away for a moment": (b"one\n", [aside, adds(b"two\n")], b"one\ntwo\n"),
    "files that begin alike": (
        ALIKE, [aside, anew(b"between\n"), aside, anew(ALIKE + b"then\n"), aside, adds(b"last\n")],
        ALIKE + b"between\n" + ALIKE + b"then\nlast\n"),
    "copies that begin alike": (
        ALIKE, [adds(b"one\n"), put_away, adds(ALIKE + b"two\n"), put_away, adds(b"last\n")],
        ALIKE + b"one\n" + ALIKE + b"two\nlast\n"),
    "a renamed file is read to its end before the new one": (
        b"one\n", [adds(b"two\n"), renamed("supervisor.log.1"), anew(b"three\n")], b"one\ntwo\nthree\n"),
    "a line that is finished in the renamed file": (
        b"one\ntw", [renamed("supervisor.log.1"), late(b"o\n"), anew(b"three\n")], b"one\ntwo\nthree\n"),
    "a copy that goes on with the same text": (LONG, [copied(LONG + b"news\n")], LONG + b"news\n"),
}  # fmt: skip
"""What a file has at first, what happens to it, and all lines that are given of it."""


@pytest.mark.parametrize("is_watched", [False, True], ids=["at the end", "at each step"])
@pytest.mark.parametrize("story", STORIES)
async def test_every_line_is_given_whenever_it_is_read(path: Path, story: str, is_watched: bool) -> None:
    data, doings, given_text = STORIES[story]
    opened = await Opened.on(path, data, Limits(hold_s=3600))
    for doing in doings:
        doing(path)
        if is_watched and os.path.exists(path):  # noqa: ASYNC240 - nothing else goes on
            await opened.reading.drain()
    await opened.reading.drain()
    assert opened.parsers.text == given_text
    assert not opened.reading.skips
    numbers: list[tuple[int, int]] = []
    for record in opened.reading.records:  # lines are counted and placed in each file
        is_next = numbers and numbers[-1] < (record.line, record.offset)
        assert is_next or (record.line, record.offset) == (1, 0)
        numbers.append((record.line, record.offset))


def denied(path: Path) -> None:
    write(path, b"one\n")
    os.chmod(path, 0)
    for parent in (path.parent, path.parent.parent, path.parent.parent.parent):
        parent.chmod(0o755)


REFUSED: dict[str, tuple[Doing, str, type[SourceError], str]] = {
    "none there": (lambda path: None, "", SourceMissing, r"supervisor\.log: no such file"),
    "below a file": (anew(b""), "below", SourceMissing, "no such file"),
    "a pipe": (os.mkfifo, "", SourceError, "is a pipe, not a log file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "", SourceError, "is a device"),
    "a directory": (os.mkdir, "", SourceError, "is a directory"),
    "a name with NUL": (lambda path: None, "a\0b", SourceError, "."),
    "a very long name": (lambda path: None, "x" * 5000, SourceError, "."),
    "not to be read": (denied, "", SourceDenied, "permission denied"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_is_no_log_is_refused_at_once_and_in_words(path: Path, case: str) -> None:
    make, below, error, words = REFUSED[case]
    make(path)
    with nobody() if make is denied else nullcontext(), pytest.raises(error, match=words):
        await asyncio.wait_for(Opened(path / below if below else path, Limits()).log.poll(None), LONG_S)


@pytest.mark.parametrize(
    ("begun", "rest", "given_lines"),
    [
        (b"one\ntwo", b"\nthree\n", [(1, "one"), (2, "two"), (3, "three")]),
        (b"tw", b"o\nthree\n", [(1, "tw"), (1, "o"), (2, "three")]),
    ],
    ids=["its newline is no line", "what follows is its rest"],
)
async def test_an_unfinished_line_is_let_go_after_a_while(
    path: Path, begun: bytes, rest: bytes, given_lines: list[tuple[int, str]]
) -> None:
    write(path, begun)
    opened = Opened(path)
    await opened.reading.until(lambda: opened.parsers.text == begun + b"\n")
    await opened.append(rest)
    assert [(record.line, record.text) for record in opened.reading.records] == given_lines


async def test_a_file_that_is_long_finished_without_a_newline_is_read_whole_at_once(path: Path) -> None:
    write(path, b"only this")
    os.utime(path, (time.time() - 3600,) * 2)
    opened = Opened(path, Limits())
    await opened.reading.drain()
    assert opened.reading.texts == ["only this"]


async def test_lines_end_in_newlines_only_and_bytes_stay_as_they_are(path: Path) -> None:
    text = b"dos\r\n\xff\xfe not utf-8\nform\x0cfeed \xe2\x80\xa8 and \x85\na\0b\n\n\n"
    opened = await Opened.on(path, text)
    assert opened.parsers.text == text
    assert [record.line for record in opened.reading.records] == [1, 2, 3, 4, 5, 6]


async def test_begins_at_the_tail_of_a_large_file(path: Path) -> None:
    opened = await Opened.on(
        path, b"".join(b"@%d line\n" % nth for nth in range(10_000, 20_000)), start=TailBytes(1_000)
    )
    assert (opened.reading.texts[0], opened.reading.records[0].line) == ("@19917 line", 9_918)
    assert (opened.reading.records[0].offset, opened.reading.texts[-1]) == (12 * 9_917, "@19999 line")
    assert opened.log.beginning is not None
    assert opened.log.beginning.at == 19_917 * SECOND
    assert opened.reading.note == (
        "read from byte 119004 of 120000 on, 1970-01-01T05:31:57Z; what is before was not read"
    )


async def test_without_times_it_takes_the_tail(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.backends.log_start.TAIL_BYTES", 10)
    opened = await Opened.on(path, b"line\n" * 100, start=FromTime(Nanos(50_000 * SECOND)))
    assert opened.reading.texts == ["line", "line"]
    assert "no times" in (opened.reading.note or "")
    assert not opened.log.begins_after(Nanos(1))
    assert await opened.log.offset_at(Nanos(1)) is None


async def test_line_numbers_of_a_very_large_file_are_provisional(path: Path) -> None:
    text = b"".join(b"%d\n" % nth for nth in range(1, 10_001))
    opened = await Opened.on(path, text, Limits(count=100), TailBytes(100))
    await opened.append(b"10001\n")
    lines = [record.line for record in opened.reading.records]
    assert all(line < 0 for line in lines)
    assert lines == sorted(lines)


@pytest.mark.parametrize("name", ["supervisor.log.1.gz", "packed-without-a-name-for-it"])
async def test_a_packed_file_is_read_whole(tmp_path: Path, name: str) -> None:
    text = b"".join(b"@%d line\n" % nth for nth in range(50_000)) + b"the last"
    packed = tmp_path / name
    opened = await Opened.on(packed, gzip.compress(text), start=TailBytes(100))
    assert (opened.parsers.text, opened.reading.records[-1].line) == (text + b"\n", 50_001)
    assert opened.reading.note is None


async def test_something_that_only_begins_like_a_packed_file(path: Path) -> None:
    opened = await Opened.on(path, b"\x1f\x8b\x08 and so on\n")
    assert (opened.reading.texts, opened.reading.skipped) == ([], 1)


@pytest.mark.parametrize("limits", [Limits(block=64, batch=1_000), Limits(block=200, batch_records=1)])
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


async def test_a_rotated_file_that_comes_after_newer_lines_is_counted_once(path: Path) -> None:
    opened = await Opened.on(path, b"one\n")
    write(late := path.with_name("supervisor.log.3"), b"late\n")
    os.utime(late, (1, 1))
    rename(path, "supervisor.log.2")
    await opened.append(b"two\n")
    rename(path, "supervisor.log.1")
    await opened.append(b"three\n")
    assert opened.reading.texts == ["one", "two", "three"]
    assert [(one.where, "newer lines" in one.why) for one in opened.reading.skips] == [(str(late), True)]


async def test_what_a_poll_that_failed_had_read_comes_with_the_next(path: Path) -> None:
    opened = await Opened.on(path, b"one\n")
    with pytest.MonkeyPatch.context() as patch, suppress(Injected):
        patch.setattr(opened.log._worker, "run", lambda work: fail_later(work()))
        await opened.append(b"two\n")
    await opened.append(b"three\n")
    assert opened.reading.texts == ["one", "two", "three"]


async def test_the_renamed_file_is_released_in_the_end(path: Path) -> None:
    opened = await Opened.on(path, b"one\n")
    old = inode(path)
    rename(path, "supervisor.log.1")
    await opened.append(b"two\n")
    assert old in open_inodes()
    await opened.reading.until(lambda: old not in open_inodes())
    await opened.log.aclose()
    assert inode(path) not in open_inodes()


async def test_a_truncated_file_begins_again_and_what_was_not_read_of_it_is_reported(path: Path) -> None:
    opened = await Opened.on(path, b"one\ntwo\n", Limits(hold_s=3600))
    cut(path)
    await opened.append(b"new\nunfinished")
    assert opened.reading.texts == ["one", "two", "new"]
    assert (opened.reading.records[-1].line, opened.reading.skipped) == (1, 0)
    assert "truncated" in (opened.reading.note or "")
    cut(path)
    await opened.reading.drain()
    (skip,) = opened.reading.skips
    assert (skip.where, "10 bytes" in skip.why) == (f"{path}:2 (byte 4)", True)


async def test_a_deleted_file_is_let_go_of_and_known_again_when_it_comes_back(path: Path) -> None:
    aside = path.with_name("aside")
    opened = await Opened.on(path, b"a line long enough to be known again" * 9 + b"\n")
    rename(path, aside.name)
    async with asyncio.timeout(LONG_S):
        while inode(aside) in open_inodes():
            with suppress(SourceMissing):
                await opened.reading.drain()
            await opened.log.changed(0.02)
    append(aside, b"two\n")
    rename(aside, path.name)
    await opened.reading.drain()
    assert [text[:6] for text in opened.reading.texts] == ["a line", "two"]
