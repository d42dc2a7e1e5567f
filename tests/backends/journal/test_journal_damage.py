"""Journal files that are damaged, cut off, empty or none: what is read, what is counted and what is said."""

import errno
import random
from pathlib import Path

import pytest

from jobtui.backends.base import SourceError
from jobtui.backends.journal import libsystemd
from jobtui.backends.journal.native import NativeJournal
from jobtui.model.journal import JournalEntry
from tests.backends.journal.make import entry, make_journal, needs_journal_tools
from tests.backends.journal.readers import needs_systemd_python
from tests.backends.journal.reading import all_backward, all_forward, messages

pytestmark = [needs_journal_tools, needs_systemd_python]


def native(directory: Path) -> NativeJournal:
    return NativeJournal(str(directory), str(directory))


async def test_files_that_are_no_journals_are_counted_and_named(tmp_path: Path) -> None:
    make_journal(tmp_path, [entry(n, f"m{n}") for n in range(3)], "system.journal")
    whole = make_journal(tmp_path, [entry(9, "x")], "system@1.journal").read_bytes()
    (tmp_path / "system@2.journal~").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "system@1.journal").rename(tmp_path / "system@3.journal~")
    (tmp_path / "empty.journal").touch()
    (tmp_path / "short.journal").write_bytes(whole[:50])
    (tmp_path / "noise.journal").write_bytes(random.Random(1).randbytes(9_000))
    (tmp_path / "notes.txt").write_text("not of the journal")
    (tmp_path / "directory.journal").mkdir()
    reader = native(tmp_path)
    assert messages(await all_forward(reader)) == ["m0", "m1", "m2", "x"]
    condition = await reader.condition()
    assert (condition.files, condition.unreadable) == (2, 4)
    assert "2 of 6 journal files read" in condition.note
    assert "empty.journal empty" in condition.note
    assert "noise.journal no journal file" in condition.note
    assert "cut off" in condition.note
    await reader.aclose()


async def test_a_file_libsystemd_does_not_accept_is_told(tmp_path: Path) -> None:
    made = make_journal(tmp_path, [entry(0, "m0")])
    damaged = bytearray(made.read_bytes())
    damaged[12:16] = b"\xff\xff\xff\xff"  # flags that no reader knows
    (tmp_path / "newer.journal").write_bytes(damaged)
    reader = native(tmp_path)
    assert messages(await all_forward(reader)) == ["m0"]
    condition = await reader.condition()
    assert (condition.files, condition.unreadable) == (1, 1)
    assert "newer.journal not accepted by libsystemd" in condition.note
    await reader.aclose()


async def test_noise_in_a_file_costs_a_part_and_raises_nothing(tmp_path: Path) -> None:
    made = make_journal(tmp_path, [entry(n, f"message {n} " + "x" * 200) for n in range(5_000)])
    with made.open("r+b") as file:
        file.seek(1_500_000)
        file.write(random.Random(2).randbytes(4_096))
    reader = native(tmp_path)
    try:
        found = await all_forward(reader, most=500)
        back = await all_backward(reader, most=500)
    except SourceError as error:
        pytest.fail(f"one damaged place is no damaged journal: {error}")
    assert len(found) + len(back) > 3_000
    assert all(message.startswith("message ") for message in messages(found))
    await reader.aclose()


class OneDamaged(libsystemd.RawHandle):
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


def test_the_public_reader_stands_on_a_damaged_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_journal(tmp_path, [entry(n, f"m{n}") for n in range(3)])
    handle = libsystemd.PublicHandle(str(tmp_path))
    handle.seek_head()
    assert handle.step()
    convert = handle._reader._convert_entry

    def damaged(stored: dict[str, bytes]) -> dict[str, bytes]:
        if stored["MESSAGE"] == b"m1":
            raise OSError(errno.EBADMSG, "Bad message")
        converted: dict[str, bytes] = convert(stored)
        return converted

    monkeypatch.setattr(handle._reader, "_convert_entry", damaged)
    assert handle.step()
    with pytest.raises(OSError, match="damaged"):
        handle.entry()
    assert handle.is_at(handle.cursor())
    assert handle.step()
    assert handle.entry().message == "m2"
    assert not handle.step()
    handle.close()
