"""Measures reading a big journal: the first screen beside journalctl, paging, following; ten hosts at once.

    python -m benchmarks.journal [--quick] [--json] [--entries N]

The journal is made once by systemd-journal-remote (two million entries take minutes) and kept in the user's
cache directory. It is read from the page cache. journalctl's time has its start in it, ours the opening of
the journal: both are what stands between a key and a screen.
"""

import argparse
import asyncio
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.journal_files import CONTAINER, UNIT, export_entries, kept_journal, remote_writer
from benchmarks.journal_hosts import ten_hosts
from benchmarks.journal_pages import looked_through
from benchmarks.rows import Row, at_least, at_most, at_most_times, report
from jobtui.backends.journal import libsystemd
from jobtui.backends.journal.local import LocalJournalctl, local_journal
from jobtui.formats.journal_export import ExportParser
from jobtui.formats.journal_fields import entry_of_export
from jobtui.model.journal import Beside, Cursor, Head, Matches, Tail

ENTRIES, QUICK_ENTRIES = 2_000_000, 100_000
SCREEN = 1_000
FIRST_SCREEN_TIMES = 3.0
JOURNALCTL_SCREEN_TIMES = 5.0
"""journalctl is asked twice then: for the entries, and for where the journal ends."""
PAGE_LIMIT_MS = 50.0
FOLLOW_LIMIT_MS = 450.0
"""Of the 0.6 s from written to painted. journald itself may wait for 0.25 s before it tells of an entry."""
PARSE_LIMIT = 100_000.0
ROUNDS, QUICK_ROUNDS = 15, 5
APPENDS, QUICK_APPENDS = 100, 20
READ_ENTRIES = 200_000
BATCH = 1_000
CHUNK = 64 << 10


def measure(entries: int, quick: bool) -> Iterator[Row]:
    """Every figure, on a journal of so many entries."""
    directory = kept_journal(entries)
    rounds = QUICK_ROUNDS if quick else ROUNDS
    if libsystemd.is_installed():
        yield from _screens(directory, entries, rounds)
        yield _unique(directory, rounds)
        yield from _paged(directory, rounds)
        yield _forward(directory)
    yield from asyncio.run(looked_through(directory, rounds))
    yield _through_journalctl(directory, rounds)
    yield from _parsed()
    yield _followed(QUICK_APPENDS if quick else APPENDS)
    yield from ten_hosts(directory, entries, quick)


def _screens(directory: Path, entries: int, rounds: int) -> Iterator[Row]:
    for what, field, value in (
        ("a unit", "_SYSTEMD_UNIT", UNIT),
        ("a container", "CONTAINER_NAME", CONTAINER),
    ):
        matches: Matches = (((field, value),),)
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(_timed_ms(partial(_show, directory, matches)))
            theirs.append(_timed_ms(partial(_journalctl, directory, f"{field}={value}")))
        yield at_most_times(
            f"journal of {entries:,}: last {SCREEN:,} entries of {what}",
            statistics.median(ours),
            "ms",
            reference=statistics.median(theirs),
            limit=FIRST_SCREEN_TIMES,
        )


def _show(directory: Path, matches: Matches) -> None:
    asyncio.run(_screen(directory, matches))


async def _screen(directory: Path, matches: Matches) -> None:
    reader = local_journal(str(directory))
    found = await reader.backward(Tail(), matches, SCREEN)
    assert found.entries
    await reader.aclose()


def _journalctl(directory: Path, *words: str) -> None:
    command = ["journalctl", f"--directory={directory}", f"--lines={SCREEN}", "--output=export", *words]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def _unique(directory: Path, rounds: int) -> Row:
    async def ask() -> float:
        reader = local_journal(str(directory))
        await reader.values("_SYSTEMD_UNIT")
        began = time.perf_counter()
        assert await reader.values("CONTAINER_NAME")
        took_ms = 1_000 * (time.perf_counter() - began)
        await reader.aclose()
        return took_ms

    took = statistics.median(asyncio.run(ask()) for _ in range(rounds))
    return at_most("journal: all container names", took, "ms", PAGE_LIMIT_MS)


def _paged(directory: Path, rounds: int) -> Iterator[Row]:
    async def pages() -> list[tuple[float, float, Cursor]]:
        reader = local_journal(str(directory))
        found = await reader.backward(Tail(), (), SCREEN)
        times = []
        for _ in range(rounds):
            assert found.cursor is not None
            place, began, began_cpu = found.cursor, time.perf_counter(), time.process_time()
            found = await reader.backward(Beside(place), (), SCREEN)
            took = 1_000 * (time.perf_counter() - began), 1_000 * (time.process_time() - began_cpu)
            times.append((*took, place))
            assert len(found.entries) == SCREEN
        await reader.aclose()
        return times

    ours, cpu, places = zip(*asyncio.run(pages()), strict=True)
    theirs = [_timed_ms(partial(_journalctl, directory, "--reverse", f"--cursor={at}")) for at in places]
    what = f"journal: {SCREEN:,} entries further back"
    yield at_most_times(
        what, statistics.median(ours), "ms", reference=statistics.median(theirs), limit=FIRST_SCREEN_TIMES
    )
    yield at_most(f"{what}, of CPU time", statistics.median(cpu), "ms", PAGE_LIMIT_MS)


def _forward(directory: Path) -> Row:
    async def read() -> float:
        reader = local_journal(str(directory))
        following = reader.follow(Head(), ())
        count, began = 0, time.perf_counter()
        while count < READ_ENTRIES:
            found = await following.take(BATCH)
            count += len(found.entries)
            if found.at_edge:
                break
        rate = count / (time.perf_counter() - began)
        await following.aclose()
        await reader.aclose()
        return rate

    return Row(
        what=f"journal: read forward in slices of {BATCH:,}", measured=asyncio.run(read()), unit="entries/s"
    )


def _through_journalctl(directory: Path, rounds: int) -> Row:
    async def screen() -> None:
        reader = LocalJournalctl(str(directory), str(directory))
        found = await reader.backward(Tail(), ((("_SYSTEMD_UNIT", UNIT),),), SCREEN)
        assert found.entries
        await reader.aclose()

    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(_timed_ms(lambda: asyncio.run(screen())))
        theirs.append(_timed_ms(lambda: _journalctl(directory, f"_SYSTEMD_UNIT={UNIT}")))
    return at_most_times(
        f"journal without systemd-python: last {SCREEN:,} entries of a unit",
        statistics.median(ours),
        "ms",
        reference=statistics.median(theirs),
        limit=JOURNALCTL_SCREEN_TIMES,
    )


def _parsed() -> Iterator[Row]:
    text = b"".join(export_entries(20_000))
    chunks = [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)]

    def take_apart() -> None:
        parser = ExportParser()
        assert sum(len(parser.feed(chunk)) for chunk in chunks) == 20_000

    def make_records() -> None:
        parser = ExportParser()
        records = [entry_of_export(raw) for chunk in chunks for raw in parser.feed(chunk)]
        assert None not in records

    for what, run in (("fields", take_apart), ("records", make_records)):
        best_s = min(_cpu_s(run) for _ in range(9))
        yield at_least(f"export format to {what}, of CPU time", 20_000 / best_s, "entries/s", PARSE_LIMIT)


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
    reader = local_journal(str(directory))
    following = reader.follow(Head(), ())
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


def _cpu_s(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def _timed_ms(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return 1_000 * (time.perf_counter() - began)


def main() -> int:
    """The command line: that of every benchmark, and how many entries the journal has."""
    parser = argparse.ArgumentParser(description="Reading a big journal.")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument(
        "--quick", action="store_true", help="fewer repeats and less data, for a rough figure"
    )
    parser.add_argument("--entries", type=int, metavar="N", help="how many entries the journal has")
    options = parser.parse_args()
    entries = options.entries or (QUICK_ENTRIES if options.quick else ENTRIES)
    return report(measure(entries, options.quick), options.json)


if __name__ == "__main__":
    raise SystemExit(main())
