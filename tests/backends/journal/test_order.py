"""The order of entries out of their cursors is the one that journalctl gives them in."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.backends.journal.local import LocalJournalctl
from jobtui.backends.journal.order import compare, from_micros, merged, position, time_cursor
from jobtui.model.clock import Nanos
from jobtui.model.journal import Cursor
from tests.backends.journal.make import (
    BOOT,
    START_US,
    by_host,
    entry,
    make_journal,
    needs_journal_tools,
    two_hosts,
)
from tests.backends.journal.reading import all_forward


@needs_journal_tools
async def test_shuffled_entries_are_put_as_journalctl_has_them(tmp_path: Path) -> None:
    for host, text in by_host(two_hosts()).items():
        make_journal(tmp_path, [text], f"remote-{host}.journal")
    steps = [0, 10, 5, 5, 5, 30, 1]
    back = [
        entry(n, f"m{n}", at_us=START_US + step, monotonic_us=1_000 * n, boot=BOOT if n < 5 else "d" * 32)
        for n, step in enumerate(steps)
    ]
    make_journal(tmp_path, back, "system.journal")
    reader = LocalJournalctl(str(tmp_path), str(tmp_path))
    entries = await all_forward(reader, most=5_000)
    await reader.aclose()
    shuffled = [*entries, *entries[::3]]
    random.Random(1).shuffle(shuffled)
    assert merged(shuffled) == entries


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ("s=a;i=a;b=1;m=9;t=9;x=1", "s=a;i=b;b=1;m=1;t=1;x=1", -1),
        ("s=a;i=a;b=1;m=2;t=1;x=1", "s=b;i=1;b=1;m=1;t=9;x=1", 1),
        ("s=a;i=a;b=1;m=2;t=1;x=1", "s=b;i=1;b=2;m=1;t=9;x=1", -1),
        ("s=a;i=a;b=1;m=2;t=1;x=1", "s=b;i=1;b=2;m=1;t=1;x=2", -1),
        ("s=a;i=a;b=1;m=2;t=5;x=1", "t=4", 1),
        ("s=a;i=a;b=1;m=2;t=5;x=1", "t=5", 0),
        ("s=a;i=a", "s=a;i=a", 0),
    ],
)
def test_what_counts_first(one: str, other: str, wanted: int) -> None:
    found = compare(position(Cursor(one)), position(Cursor(other)))
    assert (found > 0) - (found < 0) == wanted
    back = compare(position(Cursor(other)), position(Cursor(one)))
    assert (back > 0) - (back < 0) == -wanted


@given(st.text() | st.text("sibmtx=;0af", max_size=40), st.text("sibmtx=;0af", max_size=40))
def test_any_text_is_compared(one: str, other: str) -> None:
    assert compare(position(Cursor(one)), position(Cursor(other))) in (-1, 0, 1)


@pytest.mark.parametrize(("nanos", "micros"), [(0, 0), (1, 1), (1_000, 1), (1_001, 2), (-5, 0)])
def test_a_time_is_rounded_so_that_nothing_before_it_is_given(nanos: int, micros: int) -> None:
    assert from_micros(Nanos(nanos)) == micros
    assert time_cursor(micros) == f"t={micros:x}"
