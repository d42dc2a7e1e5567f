"""Entries in the order of their cursors, and what journalctl is asked for."""

import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.backends.journal import client, journalctl
from jobtui.backends.journal.client import compare, merged, position
from jobtui.backends.journal.journalctl import JournalctlReader
from jobtui.backends.journal.records import LINES_OPEN, SplitLines
from jobtui.formats.journal_export import MESSAGE_LIMIT, entry_of_export
from jobtui.model.clock import Nanos
from jobtui.model.health import SourceDenied, SourceError
from jobtui.model.journal import Cursor, JournalEntry
from jobtui.transport.ssh import LocalShell, Running
from tests.backends.journal.make import BOOT, START_US, by_host, entry, make_journal, needs_journal_tools
from tests.backends.journal.reading import all_forward
from tests.rows import ROWS


@needs_journal_tools
async def test_shuffled_entries_are_put_as_journalctl_has_them(tmp_path: Path) -> None:
    for host, text in by_host().items():
        make_journal(tmp_path, [text], f"remote-{host}.journal")
    steps = [0, 10, 5, 5, 5, 30, 1]
    back = [
        entry(n, f"m{n}", at_us=START_US + step, monotonic_us=1_000 * n, boot=BOOT if n < 5 else "d" * 32)
        for n, step in enumerate(steps)
    ]
    make_journal(tmp_path, back, "system.journal")
    reader = JournalctlReader(str(tmp_path))
    entries = await all_forward(reader, most=5_000)
    await reader.aclose()
    shuffled = [*entries, *entries[::3]]
    random.Random(1).shuffle(shuffled)
    assert merged(shuffled) == entries


@pytest.mark.parametrize(("one", "other", "wanted"), ROWS["cursors in their order"])
def test_what_counts_first(one: str, other: str, wanted: int) -> None:
    found = compare(position(Cursor(one)), position(Cursor(other)))
    assert (found > 0) - (found < 0) == wanted
    back = compare(position(Cursor(other)), position(Cursor(one)))
    assert (back > 0) - (back < 0) == -wanted


@given(st.text() | st.text("sibmtx=;0af", max_size=40), st.text("sibmtx=;0af", max_size=40))
def test_any_text_is_compared(one: str, other: str) -> None:
    assert compare(position(Cursor(one)), position(Cursor(other))) in (-1, 0, 1)


@pytest.mark.parametrize("field", ["no field", "", "A=B", "--vacuum-size", "a"])
def test_what_is_no_field_is_refused(field: str) -> None:
    with pytest.raises(SourceError):
        client.checked((((field, "x"),),), "here")


class NobodysShell(LocalShell):
    """A shell of a user who is in no group."""

    async def run(self, line: str) -> Running:
        user = ("--reuid=65534", "--regid=65534", "--clear-groups")
        return Running(["setpriv", *user, "/bin/sh", "-c", line], {})


@needs_journal_tools
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
async def test_what_may_not_be_read_is_said(open_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_journal(open_path, [entry(0, "secret")], "user-0.journal").chmod(0o600)
    monkeypatch.setattr(journalctl, "LocalShell", NobodysShell)
    reader = JournalctlReader(str(open_path))
    with pytest.raises(SourceDenied, match="usermod -aG systemd-journal"):
        await all_forward(reader)
    make_journal(open_path, [entry(5, "open")], "user-5.journal").chmod(0o644)
    assert [each.message for each in await all_forward(reader)] == ["open"]
    condition = await reader.condition()
    assert condition.files == 1
    assert "only entries of this user are visible; join the group systemd-journal" in condition.note
    await reader.aclose()


@needs_journal_tools
async def test_files_that_cannot_be_read_are_counted_and_named(tmp_path: Path) -> None:
    reader = JournalctlReader(str(tmp_path))
    assert await all_forward(reader) == []
    assert "no journal files" in (await reader.condition()).note
    whole = make_journal(tmp_path, [entry(0, "m0")], "system.journal").read_bytes()
    (tmp_path / "newer.journal").write_bytes(whole[:12] + b"\xff" * 4 + whole[16:])  # flags nobody knows
    (tmp_path / "noise.journal").write_bytes(random.Random(1).randbytes(9_000))
    (tmp_path / "empty.journal").touch()
    assert [each.message for each in await all_forward(reader)] == ["m0"]
    condition = await reader.condition()
    assert (condition.files, condition.unreadable) == (1, 3)
    told = ("empty.journal is truncated", "newer.journal uses an unsupported", "noise.journal corrupted")
    assert condition.note.startswith("1 of 4 journal files read, not ")
    assert all(words in condition.note for words in told)
    await reader.aclose()


STDOUT, STDERR = 6, 3


def piece(nth: int, text: str, *, begun: bool, container: str = "srj-p-a", priority: int = 6) -> JournalEntry:
    return JournalEntry(
        cursor=Cursor(str(nth)), at=Nanos(1_795_300_000_000_000_000 + nth), message=text, size=len(text),
        container=container, container_id="f" * 64, priority=priority, is_begun=begun,
    )  # fmt: skip


def pieces(text: str, size: int, **of: str | int) -> list[JournalEntry]:
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    return [piece(n, part, begun=n < len(parts) - 1, **of) for n, part in enumerate(parts)]  # type: ignore[arg-type]


def test_a_field_tells_that_a_line_goes_on() -> None:
    fields = {b"__CURSOR": b"c", b"__REALTIME_TIMESTAMP": b"1", b"CONTAINER_PARTIAL_MESSAGE": b"true"}
    entry = entry_of_export(fields)
    assert entry is not None
    assert entry.is_begun


@given(st.lists(st.text("abc", min_size=2, max_size=9), max_size=6), st.integers(1, 4), st.randoms())
def test_both_outputs_and_other_containers_stand_between(texts: list[str], size: int, draw: object) -> None:
    queues = [
        pieces(text, size, container=f"srj-p-{n // 2}", priority=STDOUT if n % 2 else STDERR)
        for n, text in enumerate(texts)
    ]
    mixed: list[JournalEntry] = []
    while queues := [queue for queue in queues if queue]:
        mixed.append(draw.choice(queues).pop(0))  # type: ignore[attr-defined]
    found = list(SplitLines().joined(mixed))
    assert sorted(entry.message for entry in found) == sorted(texts)
    assert all(entry.size == len(entry.message) and not entry.is_begun for entry in found)


def test_what_never_ends_is_bounded_and_what_is_no_container_left_alone() -> None:
    lines = SplitLines()
    endless = [piece(n, "x" * 16_384, begun=True) for n in range(100)]
    assert not list(lines.joined(endless))
    (whole,) = lines.joined([piece(100, "end", begun=False)])
    assert (len(whole.message), whole.size) == (MESSAGE_LIMIT, 100 * 16_384 + 3)
    many = [piece(n, "x", begun=True, container=f"srj-p-{n}") for n in range(LINES_OPEN + 10)]
    assert [entry.container for entry in lines.joined(many)] == [f"srj-p-{n}" for n in range(10)]
    entry = piece(0, "x", begun=True, container="")
    assert list(SplitLines().joined([entry])) == [entry]
