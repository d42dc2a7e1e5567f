"""LogFile on real files, however they grow and are rotated: each line is given once, or said to be gone."""

import asyncio
import bz2
import gzip
import lzma
import math
import os
import random
import shutil
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing, nullcontext, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobtui.backends.log_follow import Follower
from jobtui.backends.log_start import FromStart, FromTime, Start, TailBytes
from jobtui.backends.logfile import LogFile
from jobtui.formats.parser import Parsed
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import FAULTS, Skip, SourceDenied, SourceError, SourceMissing
from jobtui.model.logs import LogRecord
from jobtui.transport import files as file_access
from jobtui.transport.blocks import Limits
from jobtui.transport.files import open_file
from jobtui.transport.log_files import rotated
from tests.backends.log_fakes import (
    QUICK,
    KeepingParser,
    Opened,
    RotatedLog,
    Steps,
    append,
    inode,
    log_file,
    open_inodes,
    rename,
    write,
)
from tests.fakes import Injected, fail_later
from tests.loopback import nobody
from tests.polling import Reading
from tests.rows import CAPTURES, ROWS
from tests.waiting import LONG_S

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


def rewritten(data: bytes) -> Doing:
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
    "one rewritten to a greater size": (
        b"one\n", [rewritten(b"another\nand more\n")], b"one\nanother\nand more\n"),
    "a file that is away for a moment": (b"one\n", [aside, adds(b"two\n")], b"one\ntwo\n"),
    "files that begin alike": (
        ALIKE, [aside, rewritten(b"between\n"), aside, rewritten(ALIKE + b"then\n"), aside, adds(b"last\n")],
        ALIKE + b"between\n" + ALIKE + b"then\nlast\n"),
    "copies that begin alike": (
        ALIKE, [adds(b"one\n"), put_away, adds(ALIKE + b"two\n"), put_away, adds(b"last\n")],
        ALIKE + b"one\n" + ALIKE + b"two\nlast\n"),
    "a renamed file is read to its end before the new one": (
        b"one\n", [adds(b"two\n"), renamed("supervisor.log.1"), rewritten(b"three\n")], b"one\ntwo\nthree\n"),
    "a line that is finished in the renamed file": (
        b"one\ntw", [renamed("supervisor.log.1"), late(b"o\n"), rewritten(b"three\n")], b"one\ntwo\nthree\n"),
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
    "below a file": (rewritten(b""), "below", SourceMissing, "no such file"),
    "a pipe": (os.mkfifo, "", SourceError, "is a pipe; name a regular file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "", SourceError, "is a device"),
    "a directory": (os.mkdir, "", SourceError, "is a directory"),
    "a name with NUL": (lambda path: None, "a\0b", SourceError, "."),
    "a very long name": (lambda path: None, "x" * 5000, SourceError, "."),
    "not to be read": (denied, "", SourceDenied, "permission denied"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_path_that_is_not_a_log_is_refused_at_once_and_in_words(path: Path, case: str) -> None:
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
async def test_an_unfinished_line_is_given_after_a_while(
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


REQUEST = "sirepo/job_supervisor.py:254:receive ServerReq(api_runSimulation, YxAwIK86-YoFNfDEE-animation)"


@pytest.mark.parametrize(
    ("file_days", "line_days"), [(20, (30, 5)), (20, (340, 20)), (170, (200, 1)), (20, (40, 360))]
)
async def test_a_file_older_than_its_lines_has_them_in_their_year(
    path: Path, file_days: int, line_days: tuple[int, ...]
) -> None:
    """The last line may be later than its file, and is not of a time to come: that is last year."""
    now = int(time.time())
    days = [now - one * 86_400 for one in line_days]
    heads = [time.strftime("%b %d %H:%M:%S", time.gmtime(one)) for one in days]
    write(path, "".join(f"{head} 30699     0 {REQUEST}\n" for head in heads).encode())
    os.utime(path, (now - file_days * 86_400,) * 2)
    for start in (FromStart(), FromTime(Nanos(days[-1] * SECOND))):
        reading = Reading(log := log_file(path, start=start))
        await reading.drain()
        assert {one.at for one in reading.records} <= {Nanos(one * SECOND) for one in days}
        assert reading.records[-1].at == days[-1] * SECOND
        await log.aclose()


async def test_lines_end_in_newlines_only_and_bytes_stay_as_they_are(path: Path) -> None:
    text = b"dos\r\n\xff\xfe not utf-8\nform\x0cfeed \xe2\x80\xa8 and \x85\na\0b\n\n\n"
    opened = await Opened.on(path, text)
    assert opened.parsers.text == text
    assert [record.line for record in opened.reading.records] == [1, 2, 3, 4, 5, 6]


async def test_a_large_file_is_read_from_its_tail_on_also_without_times(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = b"".join(b"@%d line\n" % nth for nth in range(10_000, 20_000))
    opened = await Opened.on(path, lines, start=TailBytes(1_000))
    assert (opened.reading.texts[0], opened.reading.records[0].line) == ("@19917 line", 9_918)
    assert (opened.reading.records[0].offset, opened.reading.texts[-1]) == (12 * 9_917, "@19999 line")
    assert opened.log.beginning is not None
    assert opened.log.beginning.at == 19_917 * SECOND
    assert opened.reading.note == (
        "read from byte 119004 of 120000 on, 1970-01-01T05:31:57Z; anything earlier was not read"
    )
    monkeypatch.setattr("jobtui.backends.log_start.TAIL_BYTES", 10)
    opened = await Opened.on(path, b"line\n" * 100, start=FromTime(Nanos(50_000 * SECOND)))
    assert opened.reading.texts == ["line", "line"]
    assert "no times" in (opened.reading.note or "")
    assert not opened.log.begins_after(Nanos(1))


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


@pytest.mark.parametrize("at_the_end", [False, True], ids=["while its rest is read", "when that is read"])
async def test_lines_of_a_renamed_file_count_once_when_it_is_packed(path: Path, at_the_end: bool) -> None:
    write(path, b"one\ntwo\nthree\n")
    opened = Opened(path, Limits(batch_records=1, block=8, hold_s=0.0, retire_s=1e6))
    await opened.reading.poll()
    rename(path, "supervisor.log.1")
    write(path, b"five\n")
    await (opened.reading.drain() if at_the_end else opened.reading.poll())
    append(path.with_name("supervisor.log.1"), b"four\n")
    if not at_the_end:
        await opened.reading.drain()
    old, packed = path.with_name("supervisor.log.1"), path.with_name("supervisor.log.2.gz")
    write(packed, gzip.compress(old.read_bytes()))
    shutil.copystat(old, packed)
    old.unlink()
    rename(path, "supervisor.log.1")
    write(path, b"six\n")
    await opened.reading.drain()
    assert sorted(opened.reading.texts) == sorted(("one", "two", "three", "four", "five", "six"))


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


async def test_a_rotation_that_left_no_file_is_said(path: Path) -> None:
    opened = await Opened.on(path, b"one\n")
    for name, text in (("supervisor.log.1", b"two\n"), ("elsewhere", b"three\n")):
        assert opened.reading.note is None
        rename(path, name)
        await opened.append(text)
    assert opened.reading.texts == ["one", "two", "three"]
    assert "left no file" in (opened.reading.note or "")


async def test_lines_that_a_failed_poll_had_read_come_with_the_next(path: Path) -> None:
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


async def test_a_deleted_file_is_closed_and_recognized_when_it_returns(path: Path) -> None:
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


BAD = "a line that nobody foresaw"
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": partial(lzma.compress, preset=0),
    ".bz2": bz2.compress,
}


class FailingParser(KeepingParser):
    def parse(self, block: bytes, offset: int, line: int, newest: Nanos) -> Parsed[LogRecord]:
        if BAD.encode() in block:
            raise ValueError("what nobody foresaw")
        return super().parse(block, offset, line, newest)


SEEDS = range(50)
STEP_CHANCE = 0.1
"""How often a rotation goes on while a file is asked for."""


class Rotating(RotatedLog):
    """A log that is written to and rotated.

    Rotations go on by a step between two questions to the file system, as `chance` says.
    """

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.lines: list[str] = []
        self.rotations: deque[Steps] = deque()
        self._written_at = 0
        super().__init__(folder / "x.log", chance, PACK, "-{}", 20261101)

    def write(self, count: int, *, text: str = "") -> None:
        with self.path.open("a") as file:
            for _ in range(count):
                line = f"@{len(self.lines)} line {len(self.lines)} {text}".rstrip()
                self.lines.append(line)
                file.write(f"{line}\n")

    def write_some(self, text: str = "") -> None:
        if self.path.exists():
            self.write(1 if text else self.chance.randint(1, 20), text=text)
            self.stamp()

    def stamp(self) -> None:
        """Another time than before, which for changes in quick succession a kernel does not give."""
        self._written_at = max(self._written_at + 1, time.time_ns())
        os.utime(self.path, ns=(self._written_at, self._written_at))

    def begin_rotation(self) -> None:
        self.rotations.append(self.a_rotation())

    def go_on(self, most: float = math.inf) -> None:
        """Continue the rotations, one after the other, by at most this number of steps."""
        while self.rotations and most > 0:
            most -= 1
            try:
                next(self.rotations[0])
            except StopIteration:
                self.rotations.popleft()

    def os_meanwhile(self) -> SimpleNamespace:
        """An `os` with which rotations go on before files are asked for, now and then."""

        def asked(question: Callable[..., Any]) -> Callable[..., Any]:
            def ask(*arguments: Any) -> Any:
                if self.chance.random() < STEP_CHANCE:
                    self.go_on(1)
                return question(*arguments)

            return ask

        questions = (os.stat, os.fstat, os.listdir, os.open, os.pread)
        return SimpleNamespace(**{**vars(os), **{one.__name__: asked(one) for one in questions}})


class Polled:
    """What a follower of it gives, from the last time on that it was asked for the beginning."""

    def __init__(self, follower: Follower[LogRecord]) -> None:
        self._follower = follower
        self.begin()

    def begin(self) -> None:
        self._follower.restart()
        self.got: list[str] = []
        self.skips: list[Skip] = []

    def poll(self) -> bool:
        with suppress(SourceMissing):  # it was moved away
            batch = self._follower.poll()
            self.got += [record.text for record in batch.records]
            self.skips += batch.skipped
            return batch.more
        return False


@pytest.mark.parametrize("seed", SEEDS)
def test_every_line_is_given_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance, now = random.Random(seed), [0.0]
    log = Rotating(tmp_path, chance)
    limits = Limits(
        block=chance.choice((64, 256 << 10)), line=400, batch=chance.choice((200, 4 << 20)),
        hold_s=1e9, retire_s=chance.choice((10.0, 1e9)),
    )  # fmt: skip
    follower = Follower(log.path, lambda: FailingParser("x.log"), FromStart(), limits, lambda: now[0])
    polled = Polled(follower)
    monkeypatch.setattr(file_access, "os", log.os_meanwhile())
    doings = (
        *(log.write_some, log.begin_rotation, polled.poll, polled.poll, lambda: log.go_on(1)) * 4,
        *(lambda: log.write_some(BAD), polled.begin),
    )
    for _ in range(80):
        chance.choice(doings)()
        now[0] += chance.choice((0.0, 0.1, 5.0))
    log.go_on()
    while polled.poll():
        pass
    follower.close()
    FAULTS._known.clear()  # they are provoked
    assert polled.got == [line for line in log.lines if BAD not in line]
    bad = sum(BAD in line for line in log.lines)
    assert [("fault of jobtui" in skip.why) for skip in polled.skips] == [True] * bad


@pytest.mark.parametrize(("names", "order"), ROWS["names of rotated files, the oldest first"])
def test_names_of_rotated_files(tmp_path: Path, names: list[str], order: list[str]) -> None:
    for name in ("x.log", *names):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000, 1000))
    assert [path.name for path in rotated(tmp_path / "x.log")] == order


def rotated_log(folder: Path, *, behind_s: int = 0) -> list[str]:
    """The 40 lines of a log, ten in each of four files: the oldest two packed, the newest the log itself.

    The clock that gives files their times is `behind_s` behind that of the lines.
    """
    lines = [f"@{number} line {number}" for number in range(40)]
    for nth, name in enumerate(("x.log.3.gz", "x.log.2.gz", "x.log.1", "x.log")):
        data = "".join(f"{line}\n" for line in lines[10 * nth :][:10]).encode()
        (path := folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        os.utime(path, ns=(0, (nth * 10 + 9 - behind_s) * SECOND))
    return lines


async def read_whole(path: Path, start: Start | None = None) -> Reading[LogFile]:
    source = log_file(path, parser_factory=KeepingParser, start=start)
    reading = Reading(source)
    await reading.drain()
    await source.aclose()
    return reading


STARTS = (
    (FromStart(), 0, None),
    (TailBytes(), 0, None),
    (TailBytes(120), 30, "older rotated files were not read"),
    (TailBytes(200), 24, "anything earlier was not read"),
    (FromTime(Nanos(35 * SECOND)), 35, "anything earlier was not read"),
    (FromTime(Nanos(27 * SECOND)), 27, "of x.log.1 on"),
    (FromTime(Nanos(12 * SECOND)), 10, "older rotated files were not read"),
    (FromTime(Nanos(0)), 0, None),
)


@pytest.mark.parametrize("behind_s", [0, 3_600])
@pytest.mark.parametrize(("start", "first", "said"), STARTS)
async def test_reading_begins_in_the_file_that_holds_what_is_wanted(
    tmp_path: Path, start: Start, first: int, said: str | None, behind_s: int
) -> None:
    lines = rotated_log(tmp_path, behind_s=behind_s)
    source = log_file(tmp_path / "x.log", parser_factory=KeepingParser, start=start)
    reading = Reading(source)
    await reading.drain()
    assert reading.texts == lines[first:]
    assert (reading.note is None) if said is None else (said in (reading.note or ""))
    assert source.begins_after(Nanos(0)) is (first > 0)
    await source.aclose()


async def test_a_packed_log_under_the_name_of_another_is_read(tmp_path: Path) -> None:
    lines = rotated_log(tmp_path)
    (tmp_path / "x.log.2.gz").rename(tmp_path / "x.log.1.gz")
    assert (await read_whole(tmp_path / "x.log")).texts == lines


async def test_a_missing_rotated_log_is_said(tmp_path: Path) -> None:
    lines = rotated_log(tmp_path)
    (tmp_path / "x.log.3.gz").unlink()
    reading = await read_whole(tmp_path / "x.log", start=FromTime(Nanos(5 * SECOND)))
    assert reading.texts == lines[10:]
    assert "nothing is older" in (reading.note or "")


async def test_a_copy_whose_inode_was_that_of_a_file_given_before_is_read(tmp_path: Path) -> None:
    log = Rotating(tmp_path, random.Random(0))
    every_file_begins = "what a start writes into every file\n"
    now = 0.0
    source = log_file(log.path, limits=QUICK, parser_factory=KeepingParser, timer=lambda: now)
    reading = Reading(source)
    log.path.write_text(every_file_begins)
    await reading.drain()
    deque(log.rename())
    log.path.write_text(every_file_begins)
    log.write(20)
    await reading.drain()
    now += 2 * QUICK.retire_s  # no longer kept open
    await reading.drain()
    log.write(5)
    # The first file is packed and removed; the file system gives the number of its inode to the next one.
    (name,) = {*os.listdir(tmp_path)} - {"x.log"}
    again = (tmp_path / name).rename(tmp_path / "elsewhere")
    shutil.copyfile(log.path, again)
    again.rename(tmp_path / name)
    os.truncate(log.path, 0)
    log.write(1)
    await reading.drain()
    await source.aclose()
    given = [record.text for record in reading.records if record.text.startswith("@")]
    assert given == log.lines


async def test_a_rotated_file_that_cannot_be_read_is_counted(tmp_path: Path) -> None:
    lines = rotated_log(tmp_path)
    (tmp_path / "x.log.2.gz").unlink()
    (tmp_path / "x.log.2.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))
    reading = await read_whole(tmp_path / "x.log", start=FromStart())
    assert (reading.texts, reading.skipped) == (lines[:10] + lines[20:], 1)
    assert "zstd" in reading.skips[0].why


@pytest.mark.parametrize("ending", PACK)
async def test_lines_after_a_cut_in_a_packed_log_are_left_out_and_said(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x.log.1{ending}"
    lines = [f"@{number} {number**7} line" for number in range(60_000)]
    whole = PACK[ending]("\n".join(lines).encode() + b"\n")
    path.write_bytes(whole[: len(whole) * 2 // 3])
    reading = await read_whole(path)
    assert reading.texts
    assert any("the packed data is cut off" in skip.why for skip in reading.skips)


@pytest.mark.parametrize("ending", PACK)
async def test_a_packed_bomb_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr(file_access, "UNPACKED_BYTES", 3 << 20)
    path = tmp_path / f"x.log.1{ending}"
    path.write_bytes(PACK[ending]((b"@1 the same line".ljust(99, b"x") + b"\n") * 84_000))
    (tmp_path / "x.log").write_bytes(b"@2 the present one\n")
    for log, number in ((path, 1), (tmp_path / "x.log", 4)):  # of one log or many: they share what is allowed
        reading = await read_whole(log, start=FromStart(Nanos(0)))
        most = (3 << 20) + file_access.MOST_RATIO * number * path.stat().st_size
        read = sum(len(text) + 1 for text in reading.texts)
        assert 3 << 20 < read <= most + number * file_access.CHUNK_BYTES
        assert "times its size" in reading.skips[-1].why
        for copy in range(2, 5):
            (tmp_path / f"x.log.{copy}{ending}").write_bytes(path.read_bytes())
    with closing(open_file(path)) as opened:
        assert opened.packed is not None
        begins = [(opened.packed.read(1 << 20, 9), opened.packed.read(0, 9)) for _ in range(9)]
    assert (len(set(begins)), opened.packed.broken) == (1, None)  # what is read again counts once
