"""What is particular to reading journal files oneself: permission, changes, forks, a missing package."""

import asyncio
import errno
import os
import random
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from jobtui.backends.journal import local
from jobtui.backends.journal.journalctl import JournalctlReader, LocalJournalctl
from jobtui.backends.journal.local import NativeJournal, local_journal, opened_here
from jobtui.model.journal import Beside, Head, JournalEntry, Tail
from jobtui.model.source_errors import SourceDenied, SourceError
from jobtui.transport.ssh import LocalShell, Running
from tests.backends.journal.live import writer
from tests.backends.journal.make import entry, make_journal, needs_journal_tools
from tests.backends.journal.readers import needs_systemd_python
from tests.backends.journal.reading import Follower, all_forward, messages
from tests.loopback import nobody
from tests.waiting import LONG_S, wait_until

NOBODY = 65_534

pytestmark = [needs_journal_tools, needs_systemd_python]


def native(directory: Path) -> NativeJournal:
    return NativeJournal(str(directory), str(directory))


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[NativeJournal]:
    made = native(tmp_path)
    yield made
    await made.aclose()


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A directory that every user may enter, as pytest's own are not."""
    with tempfile.TemporaryDirectory() as text:
        Path(text).chmod(0o755)
        yield Path(text)


class NobodysShell(LocalShell):
    """A shell of a user who is in no group."""

    async def run(self, line: str) -> Running:
        user = f"--reuid={NOBODY}"
        return Running(["setpriv", user, f"--regid={NOBODY}", "--clear-groups", "/bin/sh", "-c", line], {})


def forbidden_journal(directory: Path, count: int = 1) -> list[Path]:
    made = []
    for n in range(count):
        made.append(make_journal(directory, [entry(n, f"secret{n}")], f"user-{n}.journal"))
        made[-1].chmod(0o000 if os.geteuid() else 0o600)
    return made


async def test_without_permission_it_is_said_with_the_remedy(open_to_all: Path) -> None:
    forbidden_journal(open_to_all, 2)
    reader = native(open_to_all)
    with nobody():
        for _ in range(2):
            with pytest.raises(SourceDenied, match=r"permission.*sudo usermod -aG systemd-journal \S+"):
                await reader.forward(Head(), (), 10)
    await reader.aclose()


async def test_when_permission_is_given_it_is_read(open_to_all: Path) -> None:
    (made,) = forbidden_journal(open_to_all)
    reader = native(open_to_all)
    with nobody(), pytest.raises(SourceDenied):
        await reader.forward(Head(), (), 10)
    made.chmod(0o644)
    with nobody():
        assert messages(await all_forward(reader)) == ["secret0"]
    await reader.aclose()


async def test_one_file_without_permission_is_counted(open_to_all: Path) -> None:
    forbidden_journal(open_to_all)
    make_journal(open_to_all, [entry(5, "open")], "user-5.journal").chmod(0o644)
    reader = native(open_to_all)
    with nobody():
        assert messages(await all_forward(reader)) == ["open"]
        condition = await reader.condition()
    assert (condition.files, condition.unreadable) == (1, 1)
    assert "1 of 2 journal files read: user-0.journal not readable for you" in condition.note
    assert "usermod -aG systemd-journal" in condition.note
    await reader.aclose()


async def test_a_directory_without_permission(open_to_all: Path) -> None:
    forbidden_journal(open_to_all)
    os.chmod(open_to_all, 0o700 if os.geteuid() == 0 else 0o000)
    reader = native(open_to_all)
    with nobody(), pytest.raises(SourceDenied, match="usermod"):
        await reader.forward(Head(), (), 10)
    await reader.aclose()
    os.chmod(open_to_all, 0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
async def test_journalctl_without_permission(open_to_all: Path) -> None:
    forbidden_journal(open_to_all)
    reader = JournalctlReader(NobodysShell(str(open_to_all)), str(open_to_all))
    with pytest.raises(SourceDenied, match="usermod -aG systemd-journal"):
        await reader.forward(Head(), (), 10)
    await reader.aclose()


class NothingTold(local.Handle):
    """A handle on a file system that tells of no change."""

    def __init__(self, directory: str | None) -> None:
        super().__init__(directory)
        self._silent, self._other_end = os.pipe()

    def fileno(self) -> int:
        """What never becomes readable."""
        return self._silent

    def process(self) -> None:
        """Tells nothing, whatever there is."""

    def is_reliable(self) -> bool:
        """It is not."""
        return False

    def close(self) -> None:
        super().close()
        os.close(self._silent)
        os.close(self._other_end)


async def test_entries_nothing_tells_of_are_found(tmp_path: Path) -> None:
    with writer(tmp_path) as journal:
        journal.write([entry(0, "m0")])
        reader = native(tmp_path)
        known = Follower(reader.follow(Head(), ()))
        await known.until(1)
        await known.following.aclose()
        following = NativeJournal("it", str(tmp_path), NothingTold).follow(Head(), ())
        follower = Follower(following)
        await follower.take()
        journal.write([entry(1, "m1")])
        async with asyncio.timeout(LONG_S / 2):
            while len(follower.found) < 2:
                await following.changed(LONG_S)
                await follower.take()
        await following.aclose()
        await reader.aclose()


async def test_what_is_watched_is_that_of_the_files_opened_last(tmp_path: Path) -> None:
    make_journal(tmp_path, [entry(0, "m0")])
    following = native(tmp_path).follow(Head(), ())
    assert messages([*(await following.take(10)).entries]) == ["m0"]
    thread = following._lanes[0].following._thread  # type: ignore[attr-defined]
    others: list[int] = []

    def open_again(reading: local.Reading) -> None:
        """As a question does when files have come: meanwhile the number is that of a file like any other."""
        before = reading.fd
        reading.close()
        while before not in others:
            others.append(os.open(__file__, os.O_RDONLY))
        reading.last()

    try:
        await thread.run(open_again)
        await following.changed(0.01)
    finally:
        await following.aclose()
        for other in others:
            os.close(other)


async def test_nothing_stays_open(tmp_path: Path) -> None:
    made = make_journal(tmp_path, [entry(0, "m0")])
    for _ in range(20):
        reader = native(tmp_path)
        following = reader.follow(Head(), ())
        await asyncio.gather(following.take(1), reader.forward(Head(), (), 1))
        assert made in (opened_here() or {made})
        await following.aclose()
        await reader.aclose()
    await wait_until(lambda: made not in (opened_here() or ()))
    await wait_until(lambda: not any(str(tmp_path) in thread.name for thread in threading.enumerate()))


async def test_files_below_a_machine_id(tmp_path: Path, reader: NativeJournal) -> None:
    make_journal(tmp_path / ("e" * 32), [entry(0, "below")], "system.journal")
    make_journal(tmp_path / "archive", [entry(1, "not looked at")], "system.journal")
    assert messages(await all_forward(reader)) == ["below"]
    assert await reader.condition() == (1, 0, "")


async def test_no_files_yet_is_said_and_a_new_file_is_read(tmp_path: Path, reader: NativeJournal) -> None:
    assert await all_forward(reader) == []
    assert "no journal files" in (await reader.condition()).note
    make_journal(tmp_path, [entry(0, "m0")])
    assert messages(await all_forward(reader)) == ["m0"]
    assert (await reader.condition()).files == 1


async def test_a_directory_that_is_replaced_is_read_anew(tmp_path: Path) -> None:
    place = tmp_path / "journal"
    make_journal(place, [entry(0, "before")])
    reader = native(place)
    following = reader.follow(Head(), ())
    assert messages([*(await following.take(10)).entries]) == ["before"]
    place.rename(tmp_path / "away")
    with pytest.raises(SourceError, match="no such directory"):
        await following.take(10)
    await following.changed(0.01)
    make_journal(place, [entry(5, "after")])
    found = await following.take(10)
    assert (messages([*found.entries]), found.lost) == (["after"], True)
    await following.aclose()
    await reader.aclose()


async def test_a_file_for_a_directory(tmp_path: Path) -> None:
    made = make_journal(tmp_path, [entry(0, "m0")])
    reader = native(made)
    with pytest.raises(SourceError, match="not a directory"):
        await reader.forward(Head(), (), 1)
    await reader.aclose()


async def test_a_cursor_that_is_none(tmp_path: Path, reader: NativeJournal) -> None:
    make_journal(tmp_path, [entry(0, "m0")])
    with pytest.raises(SourceError):
        await reader.forward(Beside("nonsense"), (), 1)  # type: ignore[arg-type]
    assert messages(await all_forward(reader)) == ["m0"]


async def test_after_a_fork_it_is_refused(
    tmp_path: Path, reader: NativeJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_journal(tmp_path, [entry(0, "m0")])
    await all_forward(reader)
    own = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: own + 1)
    with pytest.raises(SourceError, match="another process"):
        await reader.forward(Head(), (), 1)
    monkeypatch.undo()
    assert messages(await all_forward(reader)) == ["m0"]


def test_a_handle_of_a_parent_process_fails_and_does_not_hang(tmp_path: Path) -> None:
    make_journal(tmp_path, [entry(0, "m0")])
    handle = local.Handle(str(tmp_path))
    child = os.fork()
    if child == 0:
        try:
            handle.seek_head()
            handle.step()
        except OSError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    handle.close()


async def test_without_the_package_journalctl_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_journal(tmp_path, [entry(0, "m0")])
    assert isinstance(local_journal(str(tmp_path)), NativeJournal)
    monkeypatch.setitem(sys.modules, "systemd", None)
    reader = local_journal(str(tmp_path))
    assert isinstance(reader, LocalJournalctl)
    assert messages(await all_forward(reader)) == ["m0"]
    await reader.aclose()


async def test_the_journal_of_this_machine_answers() -> None:
    for reader in (local_journal("local"), LocalJournalctl("local", None)):
        found = await reader.backward(Tail(), (), 5)
        assert len(found.entries) <= 5
        assert (await reader.condition()).unreadable >= 0
        await reader.aclose()


async def test_without_watches_what_is_written_is_found_by_looking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where other programs of the user have used up fs.inotify.max_user_instances."""

    def refuse(handle: local.Handle) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(local.Handle, "fileno", refuse)
    monkeypatch.setattr(local, "SETTLE_S", 0.2)
    with writer(tmp_path, "remote-node1.journal") as one:
        one.write([entry(0, "first")])
        journal = native(tmp_path)
        follower = Follower(journal.follow(Head(), ()))
        await follower.until(1)
        one.write([entry(1, "second")])
        await follower.until(2)
        with writer(tmp_path, "remote-node2.journal") as two:
            two.write([entry(2, "in a new file")])
            await follower.until(3)
        assert messages(follower.found) == ["first", "second", "in a new file"]
        await follower.following.aclose()
        await journal.aclose()


async def test_files_that_are_no_journals_are_counted_and_named(
    tmp_path: Path, reader: NativeJournal
) -> None:
    make_journal(tmp_path, [entry(n, f"m{n}") for n in range(3)], "system.journal")
    whole = make_journal(tmp_path, [entry(9, "x")], "system@1.journal").read_bytes()
    (tmp_path / "system@2.journal~").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "system@1.journal").rename(tmp_path / "system@3.journal~")
    (tmp_path / "empty.journal").touch()
    (tmp_path / "short.journal").write_bytes(whole[:50])
    (tmp_path / "noise.journal").write_bytes(random.Random(1).randbytes(9_000))
    (tmp_path / "notes.txt").write_text("not of the journal")
    (tmp_path / "directory.journal").mkdir()
    assert messages(await all_forward(reader)) == ["m0", "m1", "m2", "x"]
    condition = await reader.condition()
    assert (condition.files, condition.unreadable) == (2, 4)
    assert "2 of 6 journal files read" in condition.note
    assert "empty.journal empty" in condition.note
    assert "noise.journal no journal file" in condition.note
    assert "cut off" in condition.note


async def test_a_file_libsystemd_does_not_accept_is_told(tmp_path: Path, reader: NativeJournal) -> None:
    made = make_journal(tmp_path, [entry(0, "m0")])
    damaged = bytearray(made.read_bytes())
    damaged[12:16] = b"\xff\xff\xff\xff"  # flags that no reader knows
    (tmp_path / "newer.journal").write_bytes(damaged)
    assert messages(await all_forward(reader)) == ["m0"]
    condition = await reader.condition()
    assert (condition.files, condition.unreadable) == (1, 1)
    assert "newer.journal not accepted by libsystemd" in condition.note


def damaged_in_the_middle(directory: Path, seed: int) -> set[str]:
    """A journal of 5,000 entries with a page of noise amid them, and their messages."""
    texts = [f"message {n} " + "x" * 200 for n in range(5_000)]
    made = make_journal(directory, [entry(n, text) for n, text in enumerate(texts)])
    data = made.read_bytes()
    middle = data.index(texts[2_500].encode())
    with made.open("r+b") as file:
        file.seek(middle & ~4_095)
        file.write(random.Random(seed).randbytes(4_096))
    return set(texts)


@pytest.mark.parametrize("seed", [2, 3])
async def test_noise_in_a_file_costs_a_part_and_raises_nothing(
    tmp_path: Path, reader: NativeJournal, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "SETTLE_S", 0.0)
    written = damaged_in_the_middle(tmp_path, seed)
    before = messages([*(await reader.forward(Head(), (), 2_000)).entries])
    behind = messages([*(await reader.backward(Tail(), (), 2_000)).entries])
    assert [number_of(text) for text in before] == list(range(2_000))
    assert [number_of(text) for text in behind] == list(range(3_000, 5_000))
    # Who reads across the noise is given what is before it; libsystemd then lets go of the file
    found = messages(await all_forward(reader, most=500))
    assert len(written & set(found)) >= 2_490
    assert len(found) == len(set(found))
    assert "a file is damaged inside" in (await reader.condition()).note
    # ... and has it again, once it was opened anew
    behind = messages([*(await reader.backward(Tail(), (), 2_000)).entries])
    assert [number_of(text) for text in behind] == list(range(3_000, 5_000))


def number_of(message: str) -> int:
    return int(message.split()[1])


class OneDamaged(local.Handle):
    """A handle that cannot make out one entry."""

    def entry(self) -> JournalEntry:
        """The entry stood on, unless it is the damaged one."""
        found = super().entry()
        if found.message == "m3":
            raise OSError(errno.EBADMSG, "Bad message")
        return found


async def test_a_damaged_entry_costs_itself_and_is_counted_once(tmp_path: Path) -> None:
    make_journal(tmp_path, [entry(n, f"m{n}") for n in range(6)])
    reader = NativeJournal("it", str(tmp_path), OneDamaged)
    for _ in range(2):
        assert messages(await all_forward(reader, most=2)) == ["m0", "m1", "m2", "m4", "m5"]
    assert "1 damaged entries left out; see: journalctl --verify" in (await reader.condition()).note
    await reader.aclose()
