"""Journal files that are damaged, cut off, empty or none: what is read, what is counted and what is said."""

import errno
import random
from pathlib import Path

import pytest

from jobtui.backends.journal import libsystemd, reading
from jobtui.backends.journal.native import NativeJournal
from jobtui.model.journal import Head, JournalEntry, Tail
from tests.backends.journal.make import entry, make_journal, needs_journal_tools
from tests.backends.journal.readers import needs_systemd_python
from tests.backends.journal.reading import all_forward, messages

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
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "SETTLE_S", 0.0)
    written = damaged_in_the_middle(tmp_path, seed)
    reader = native(tmp_path)
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
    await reader.aclose()


def number_of(message: str) -> int:
    return int(message.split()[1])


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
