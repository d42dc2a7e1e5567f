"""Measures reading a big journal: the first screen beside journalctl, paging, following.

    python -m benchmarks.journal [--quick] [--json]

The journal is made once by systemd-journal-remote (two million entries take minutes) and kept in the user's
cache directory. It is read from the page cache. journalctl's time has its start in it, ours the opening of
the journal: both are what stands between a key and a screen.
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest import mock

from benchmarks.db_scan import timed_ms
from benchmarks.journal_files import CONTAINER, UNIT, export_entries, kept_journal, remote_writer
from benchmarks.rows import Row, at_most, at_most_times, main
from jobtui.backends.journal.journalctl import JournalctlReader
from jobtui.backends.journal.records import StreamNames, WantedStreams
from jobtui.backends.journal.source import maker_of
from jobtui.logs.journal import JournalPages, Selection
from jobtui.model.journal import AtCursor, Begin, Cursor, Matches, Tail
from jobtui.model.pages import query_of

ENTRIES, QUICK_ENTRIES = 2_000_000, 100_000
SCREEN = 1_000
FIRST_SCREEN_TIMES = 3.0
FOLLOW_LIMIT_MS = 450.0
"""Of the 0.6 s from written to painted. journald itself may wait for 0.25 s before it tells of an entry."""
ROUNDS, QUICK_ROUNDS = 15, 5
APPENDS, QUICK_APPENDS = 100, 20
BATCH = 1_000
SHOWN = 40
SHOWN_LIMIT_MS = 30.0
SEARCHED_S = 5.0
STEP_LIMIT_MS = 50.0
"""How long the event loop may be held up."""
NEEDLE = "this is nowhere"


def measure(quick: bool) -> Iterator[Row]:
    entries = QUICK_ENTRIES if quick else ENTRIES
    directory = kept_journal(entries)
    rounds = QUICK_ROUNDS if quick else ROUNDS
    yield from _screens(directory, entries, rounds)
    yield from _paged(directory, rounds)
    yield from asyncio.run(looked_through(directory, rounds))
    yield _followed(QUICK_APPENDS if quick else APPENDS)


def _screens(directory: Path, entries: int, rounds: int) -> Iterator[Row]:
    """The reader alone, and the whole command from its start."""
    logs = [sys.executable, "-m", "jobtui", "logs", CONTAINER, f"--journal={directory}"]
    unit, container = ("_SYSTEMD_UNIT", UNIT), ("CONTAINER_NAME", CONTAINER)
    for what, (field, value), show in (
        ("a unit", unit, lambda: asyncio.run(_screen(directory, ((unit,),)))),
        ("a container", container, lambda: asyncio.run(_screen(directory, ((container,),)))),
        ("jobtui logs CONTAINER, its first lines", container, partial(_first_lines, logs)),
    ):
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(timed_ms(show))
            theirs.append(timed_ms(partial(_journalctl, directory, f"{field}={value}")))
        name = f"journal of {entries:,}: last {SCREEN:,} entries of {what}"
        yield at_most_times(name, ours, theirs, FIRST_SCREEN_TIMES)


def _first_lines(words: Sequence[str]) -> None:
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        assert running.stdout is not None
        assert running.stdout.readline()
        running.kill()


async def _screen(directory: Path, matches: Matches) -> None:
    reader = JournalctlReader(str(directory))
    found = await reader.backward(Tail(), matches, SCREEN)
    assert found.entries
    await reader.aclose()


def _journalctl(directory: Path, *words: str) -> None:
    command = ["journalctl", f"--directory={directory}", f"--lines={SCREEN}", "--output=export", *words]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def _paged(directory: Path, rounds: int) -> Iterator[Row]:
    async def pages() -> list[tuple[float, Cursor]]:
        reader = JournalctlReader(str(directory))
        found = await reader.backward(Tail(), (), SCREEN)
        times = []
        for _ in range(rounds):
            assert found.cursor is not None
            position, began = found.cursor, time.perf_counter()
            found = await reader.backward(AtCursor(position), (), SCREEN)
            times.append((1_000 * (time.perf_counter() - began), position))
            assert len(found.entries) == SCREEN
        await reader.aclose()
        return times

    ours, positions = zip(*asyncio.run(pages()), strict=True)
    theirs = [timed_ms(partial(_journalctl, directory, "--reverse", f"--cursor={at}")) for at in positions]
    yield at_most_times(f"journal: {SCREEN:,} entries further back", ours, theirs, FIRST_SCREEN_TIMES)


def _followed(appends: int) -> Row:
    with tempfile.TemporaryDirectory() as text:
        delays = asyncio.run(_follow(Path(text), appends))
    return at_most(
        f"journal: entry written to entry given, {appends} entries, p95",
        statistics.quantiles(delays, n=20)[-1],
        "ms",
        FOLLOW_LIMIT_MS,
    )


async def _follow(directory: Path, appends: int) -> list[float]:
    """Milliseconds from handing an entry to systemd-journal-remote until a following gives it."""
    written: list[float] = []
    delays: list[float] = []
    reader = JournalctlReader(str(directory))
    following = reader.follow(Begin(), ())
    await following.take(BATCH)
    writing = threading.Thread(target=_write, args=(directory / "remote-node1.journal", appends, written))
    writing.start()
    while len(delays) < appends:
        found = await following.take(BATCH)
        now = time.perf_counter()
        for _ in found.entries:
            delays.append(1_000 * (now - written[len(delays)]))
        if found.at_edge:
            await following.changed(1.0)
    writing.join()
    await following.aclose()
    await reader.aclose()
    return delays


def _write(file: Path, appends: int, written: list[float]) -> None:
    with remote_writer(file) as process:
        assert process.stdin is not None
        for text in export_entries(appends):
            written.append(time.perf_counter())
            process.stdin.write(text)
            process.stdin.flush()
            time.sleep(0.05)
        process.stdin.close()


async def looked_through(directory: Path, rounds: int) -> list[Row]:
    """Pages as a screen asks for them, and a search for what is nowhere, beside a screen that goes on."""
    wanted = WantedStreams()
    matches = wanted.matches({"_SYSTEMD_UNIT": (UNIT,), "CONTAINER_NAME": (CONTAINER,)})
    selection = Selection(StreamNames(str(directory)), wanted, None, matches)
    pages = JournalPages(str(directory), maker_of(str(directory)), selection)
    position = (await pages.look()).end
    times = []
    for _ in range(20 * rounds):
        began = time.perf_counter()
        position = (await pages.before(position, SHOWN)).lines[0].position
        times.append(1_000 * (time.perf_counter() - began))
    query = query_of(NEEDLE)
    assert query is not None
    search = pages.search(query, position)
    with longest_step() as longest:
        running = asyncio.create_task(search.run())
        await asyncio.wait([running], timeout=SEARCHED_S)
        search.cancel()
        await running
    await pages.aclose()
    p95 = statistics.quantiles(times, n=20)[-1]
    return [
        at_most("journal: a page further back, p95", p95, "ms", SHOWN_LIMIT_MS),
        at_most("journal: searched, longest step", longest(), "ms", STEP_LIMIT_MS),
    ]


@contextmanager
def longest_step() -> Iterator[Callable[[], float]]:
    """What gives the longest that one step of the event loop has taken meanwhile, ms."""
    longest, step = 0.0, asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        nonlocal longest
        began = time.perf_counter()
        step(handle)
        longest = max(longest, 1_000 * (time.perf_counter() - began))

    with mock.patch.object(asyncio.Handle, "_run", timed):
        yield lambda: longest


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", measure))
