"""Logs and copies of them, rotated and read, also back: no op is lost, doubled or another.

Where they are read back only some ops are kept, so that those that were dropped come again. Seeds choose what
is read, and when. Logs are doubled, also by a journal that begins later than they do, or goes further back.
"""

import gzip
import os
import random
import shutil
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec
import pytest

from benchmarks.endurance import differences
from benchmarks.site import Site, held, op_of
from benchmarks.site_logs import WAYS as ROTATIONS
from jobtui.analysis.correlation import correlator
from jobtui.analysis.correlation.correlator import SURE, Correlator, RepeatFilter
from jobtui.backends.journal.source import Journal
from jobtui.backends.log_start import FromStart, FromTime, Start, TailBytes
from jobtui.backends.logfile import LogFile
from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, Nanos, SystemClock
from jobtui.model.logs import LogRecord
from jobtui.recording.recorder import Recorder, RecordingWriter
from jobtui.recording.replay import RecordingReplay
from jobtui.session import Session
from jobtui.transport.blocks import Limits
from tests.backends.log_fakes import RotatedLog, append, log_file
from tests.backends.recording.files import MB, about
from tests.journal_memory import T0, UNIT, MemoryJournal
from tests.rows import CAPTURES

LINES = {
    name: (CAPTURES / name / "supervisor.log").read_bytes().splitlines(keepends=True)
    for name in ("local", "local-debug", "sbatch")
}
SEEDS, MIXED = (*range(20), 1218, 2128, 2507, 3439, 6105, 6449, 6748), range(100, 112)
MOST_LINES, STEPS = 600, 40
DAY_S = 86_400
"""How long after the lines of the captures a journal gets them, which have no year."""
MOST_LAG = 30


class Name(RotatedLog):
    """A name of a log, written to by name, and rotated by itself in any way."""

    def __init__(self, path: Path, chance: random.Random, *, is_mixed: bool) -> None:
        self._is_mixed = is_mixed
        self._late: list[bytes] = []
        super().__init__(
            path, chance, {".gz": partial(gzip.compress, compresslevel=1)}, "-20261122-{}", 1_000
        )

    def write(self, lines: Sequence[bytes], lag: int) -> None:
        """Append, all but the last `lag` lines, which come with the next ones."""
        self._late += lines
        now, self._late = self._late[: len(self._late) - lag], self._late[len(self._late) - lag :]
        append(self.path, b"".join(now))

    def naming(self) -> Callable[[], Generator[None, None, Path]]:
        return self.mixed if self._is_mixed else super().naming()

    def mixed(self) -> Generator[None, None, Path]:
        """By number or date as it comes, of numbered ones all but the last packed."""
        if (last := self.path.with_name(f"{self.path.name}.1")).exists():
            yield from self.pack(last)
        return (yield from super().naming()())


def known(session: Session) -> Counter[tuple[object, ...]]:
    return Counter(
        (op.op, op.name, op.jid or "", op.status, op.agent, op.sends, op.replies, op.updates, len(op.steps))
        for op in session.store.correlation.ops()
    )


class Copies:
    """A log under several names, as a seed says, and maybe a journal with its lines."""

    def __init__(self, folder: Path, seed: int, *, is_mixed: bool = False) -> None:
        self.chance = chance = random.Random(seed)
        lines = LINES[chance.choice(list(LINES))]
        begin = chance.randrange(len(lines) // 2)
        self.lines = lines[begin : begin + MOST_LINES]
        (alone := folder / "alone.log").write_bytes(b"".join(self.lines))
        self.alone = alone
        places = ("one", "two", "three")[: chance.choice((1, 2, 2, 3))]
        self.names = [Name(folder / one / "supervisor.log", chance, is_mixed=is_mixed) for one in places]
        paths = [name.path for name in self.names]
        if chance.random() < 0.3:
            (link := folder / "link.log").symlink_to(paths[0])
            paths.append(link)
        chance.shuffle(paths)
        self.now = 0.0
        at = LogParser("").time_of(chance.choice(self.lines), Nanos(1_800_000_000 * 10**9)) or Nanos(1)
        self.start = chance.choice((FromStart(), TailBytes(chance.randrange(2_000, 60_000)), FromTime(at)))
        self.limits = Limits(batch_records=chance.choice((5, 50, 2_000)), hold_s=1e6, gone_s=1.0)
        self.paths = paths
        self.memory = MemoryJournal()
        self.has_journal = chance.random() < 0.3
        self.journal_at = chance.randrange(len(paths) + 1) if self.has_journal else 0
        self.eagerness = chance.random()
        how = f"{[*map(str, paths)]} {self.start}, journal {self.has_journal}"
        self.how = how.replace(str(folder), "")

    def sources(self, start: Start) -> list[LogFile | Journal]:
        logs: list[LogFile | Journal] = [
            log_file(path, start=start, limits=self.limits, timer=lambda: self.now) for path in self.paths
        ]
        if self.has_journal:
            journal = Journal("local", lambda: self.memory.reader("local"), since=Nanos(1))
            logs.insert(self.journal_at, journal)
        return logs

    def go_on(self) -> None:
        chance = self.chance
        count = chance.randint(1, 2 * MOST_LINES // STEPS)
        new, self.lines = self.lines[:count], self.lines[count:]
        for name in self.names:
            name.write(new, chance.choice((0, 0, 1, chance.randint(0, MOST_LAG))) if self.lines else 0)
        for line in new if self.has_journal else ():
            received_s = DAY_S + len(self.memory.rows)
            self.memory.log(line.decode().rstrip("\n"), received_s)
        for name in self.names:
            if chance.random() < 0.3 and name.path.stat().st_size:
                deque(name.a_rotation(), 0)
        self.now += chance.choice((0.0, 0.1, 20.0))

    async def look(self, session: Session) -> None:
        if self.chance.random() < self.eagerness:
            for poller in self.chance.choices(session._pollers, k=self.chance.randint(0, 4)):
                for _ in range(self.chance.choice((1, 1, 100))):
                    if not await poller.poll_once():
                        break


@pytest.mark.parametrize("seed", [*SEEDS, *MIXED])
async def test_copies_that_are_rotated_differently_count_once(tmp_path: Path, seed: int) -> None:
    copies = Copies(tmp_path, seed, is_mixed=seed in MIXED)
    async with Session([LogFile(copies.alone, start=FromStart())]) as session:
        await session.catch_up()
        alone = known(session)
    async with Session(copies.sources(copies.start)) as session:
        while copies.lines:
            copies.go_on()
            await copies.look(session)
            if copies.chance.random() < 0.05:
                await session.reach_back(Nanos(1))
        await session.catch_up()
        await session.reach_back(Nanos(1))
        await session.catch_up()
        skipped = [(one.name, one.last_skips) for one in session.store.sources() if one.skipped]
        both = known(session)
    assert (skipped, both - alone, alone - both) == ([], Counter(), Counter()), copies.how


@pytest.mark.parametrize("seed", range(12))
async def test_a_recorder_that_begins_again_and_again_keeps_each_line_once(tmp_path: Path, seed: int) -> None:
    copies = Copies(tmp_path, seed)
    if seed % 2:
        copies.lines = copies.lines[:200] * 3
        copies.alone.write_bytes(b"".join(copies.lines))
    lines = len(copies.lines)
    async with Session([LogFile(copies.alone, start=FromStart())]) as session:
        await session.catch_up()
        alone = Counter(op[:3] for op in known(session).elements())
    while copies.lines:
        writer = RecordingWriter(tmp_path / "r", about(), MB, goes_on=True)
        recorder = Recorder(writer, SystemClock())
        copies.chance.shuffle(copies.paths)
        async with Session(copies.sources(FromStart()), observer=recorder) as session:
            for _ in range(copies.chance.randint(1, 15)):
                copies.go_on()
                await copies.look(session)
            if not copies.lines:
                await session.catch_up()
        recorder.close()
        writer.discard()
    with closing(RecordingReplay(tmp_path / "r")) as replay:
        async with Session(copies.sources(FromStart()), replay.clock, replay=replay) as session:
            await session.catch_up()
            assert Counter(op[:3] for op in known(session).elements()) == alone, copies.how
            assert max(source.records for source in session.store.sources()) <= lines


async def ops_of(*logs: LogFile | Journal) -> tuple[Counter[tuple[object, ...]], str]:
    async with Session(logs) as session:
        await session.catch_up()
        ops = known(session)
        notes = " ".join(source.note or "" for source in session.store.sources())
        assert all(source.state.value == "ok" for source in session.store.sources())
    return ops, notes


COPIED: tuple[tuple[Callable[[Path, Path], object], str], ...] = (
    (lambda log, other: other.symlink_to(log), "same file as"),
    (os.link, "same file as"),
    (shutil.copyfile, "same lines as"),
    (lambda log, other: other.write_bytes(log.read_bytes()[: log.stat().st_size // 2]), "same lines as"),
)


def rotated(log: Path, other: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    log.with_name("supervisor.log.1").write_bytes(b"".join(lines[: len(lines) // 2]))
    log.write_bytes(b"".join(lines[len(lines) // 2 :]))


@pytest.mark.parametrize(("way", "said"), [*COPIED, (rotated, "rotated file of")])
@pytest.mark.parametrize("is_first", [True, False])
async def test_a_log_under_two_names_counts_once(
    tmp_path: Path, way: Callable[[Path, Path], object], said: str, is_first: bool
) -> None:
    log, other = tmp_path / "supervisor.log", tmp_path / "other.log"
    shutil.copyfile(CAPTURES / ("local" if way is rotated else "docker") / "supervisor.log", log)
    alone, _ = await ops_of(LogFile(log))
    way(log, other)
    if way is rotated:
        other = tmp_path / "supervisor.log.1"
    both, notes = await ops_of(*(LogFile(path) for path in ((other, log) if is_first else (log, other))))
    assert both == alone
    assert said in notes


@pytest.mark.parametrize("idle_s", [0.0, 10.0])
async def test_a_hard_link_gives_no_line_before_its_log_in_a_rotation(tmp_path: Path, idle_s: float) -> None:
    lines = (CAPTURES / "local/supervisor.log").read_bytes().splitlines(keepends=True)
    (alone := tmp_path / "alone.log").write_bytes(b"".join(lines))
    log, hard = tmp_path / "supervisor.log", tmp_path / "hard.log"
    parts = [b"".join(lines[begin : begin + 60]) for begin in range(0, len(lines), 60)]
    now = 0.0
    logs = [log_file(path, timer=lambda: now) for path in (log, hard)]
    async with Session(logs) as session:
        for number, part in enumerate(parts):
            half = len(part) // 2
            log.write_bytes(part[:half])
            hard.unlink(missing_ok=True)
            os.link(log, hard)
            if number % 2 == 0:
                await session.catch_up()
            with log.open("ab") as file:
                file.write(part[half:])
            if number < len(parts) - 1:
                log.rename(f"{log}-20261124-{1_000 + number}")
            now += idle_s
            await session._pollers[1].poll_once()
        await session.catch_up()
        both = known(session)
    assert both == (await ops_of(LogFile(alone)))[0]


async def test_a_journal_and_a_file_of_the_same_lines_count_once(tmp_path: Path) -> None:
    log = CAPTURES / "local/supervisor.log"
    alone, _ = await ops_of(LogFile(log))
    memory = MemoryJournal()
    for line in log.read_text().splitlines():
        memory.log(line)
    journal = Journal("local", lambda: memory.reader("local"), since=Nanos(1))
    both, notes = await ops_of(LogFile(log), journal)
    assert Counter(op[:7] for op in both.elements()) == Counter(op[:7] for op in alone.elements())
    assert "they count once" in notes


def line_of(source: str, at: int = 1, text: str = "the same text") -> LogRecord:
    return LogRecord(source, 1, 0, Nanos(at), 7, "update", {}, text)


@pytest.mark.parametrize(
    ("order", "times"), [("aabb", 2), ("abab", 2), ("abba", 2), ("abb", 2), ("aab", 2), ("abbbaa", 3)]
)
def test_equal_lines_count_as_often_as_in_the_log_with_the_most_of_them(order: str, times: int) -> None:
    once = RepeatFilter({"update"})
    assert sum(once.is_new(line_of(source)) for source in order) == times


@pytest.mark.parametrize("seed", range(12))
def test_a_line_counts_once_even_if_a_copy_is_far_behind(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(correlator, "LINES_KNOWN", 100)
    chance = random.Random(seed)
    lines = sorted((chance.randrange(40 * SECOND), nth, chance.choice((7, 7, 7, 8))) for nth in range(800))
    logs = {"file": (9, {7}), "copy": (1, {7}), "server": (50, {8}), "journal": (1, {7, 8})}
    read = {source: [line for line in lines if line[2] in pids] for source, (_, pids) in logs.items()}
    once, told = RepeatFilter({"update"}), Counter[int]()
    turns = [(source, 60) for source in read]  # so much tells that they are copies
    while unread := [source for source, rest in read.items() if rest]:
        source = chance.choices(unread, [logs[one][0] for one in unread])[0]
        source, count = turns.pop() if turns else (source, chance.randint(SURE, 40))
        for at, nth, pid in read[source][:count]:
            exact = at if source == "journal" else at // SECOND * SECOND
            line = msgspec.structs.replace(line_of(source, exact, f"line {nth}"), pid=pid)
            told[nth] += once.is_new(line)
        del read[source][:count]
    assert told == {nth: 1 for _, nth, _ in lines}


@pytest.mark.parametrize("lines_known", [20, correlator.LINES_KNOWN])
async def test_a_log_that_stops_being_a_copy_is_read_and_gives_no_op_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines_known: int
) -> None:
    monkeypatch.setattr(correlator, "LINES_KNOWN", lines_known)
    log, other = tmp_path / "supervisor.log", tmp_path / "other.log"
    shutil.copyfile(CAPTURES / "local/supervisor.log", log)
    shutil.copyfile(log, other)
    async with Session([LogFile(path) for path in (log, other)]) as session:
        await session.catch_up()
        before = known(session)
        assert "same lines as" in (session.store.sources()[1].note or "")
        log.rename(tmp_path / "supervisor.log.1")
        log.touch()
        await session.catch_up()
        assert known(session) == before
        assert "same lines as" not in (session.store.sources()[1].note or "")


BACK_SEEDS = range(6)
KEPT, RATE, BACK_STEPS = 60, 8.0, 14


async def reach_back(session: Session, site: Site, chance: random.Random) -> None:
    at = Nanos(1)
    if chance.random() < 0.5:
        await session.catch_up()  # what lies before that was read
        at = Nanos(site._world.kernel.now - chance.randint(0, BACK_STEPS) * SECOND)
    await session.reach_back(at)


async def check(session: Session, site: Site) -> None:
    with held(site, at_rest=True):
        await session.catch_up()
        correlation = session.store.correlation
        told = {"ops": [*map(op_of, correlation.ops())], "dropped": correlation.dropped_ops}
        assert differences(told, site) == (0, 0, ())


class JournalOfLog(MemoryJournal):
    """A journal with the lines of a site's log, of which the oldest go when the log is rotated."""

    def __init__(self, site: Site, kept: int) -> None:
        super().__init__()
        self._site = site
        self._kept = kept
        self._at = 0

    def write(self, data: bytes) -> None:  # type: ignore[override]
        for line in data.decode().splitlines():
            self._at = max(self._at + 1_000, self._site._world.kernel.now)
            identity: dict[str, str | int] = {"boot": "b", "machine": "c", "monotonic_us": self._at // 1_000}
            super().write(line, (self._at - T0) / SECOND, unit=UNIT, host="site", pid=14458, **identity)

    def rotate(self) -> None:
        self.delete_oldest(max(0, len(self.rows) - self._kept))

    def close(self) -> None:
        """There is nothing to close."""


def rotate(site: Site, chance: random.Random) -> None:
    site.rotate(chance.choice(list(ROTATIONS)))
    for log in site._logs.logs.values():
        log.path.touch()
        log.copy.touch()


def log_files(site: Site, chance: random.Random) -> list[LogFile | Journal]:
    limits = Limits(batch_records=chance.choice((20, 2_000)))
    return [
        log_file(path, start=FromStart(), limits=limits)
        for log in site._logs.logs.values()
        for path in (log.path, log.copy)
    ]


def journal_of(site: Site, chance: random.Random) -> Journal:
    """A journal that began at some time in the past of the site."""
    kept = JournalOfLog(site, chance.choice((200, 1_000, 100_000)))
    site._logs._journal = kept  # type: ignore[assignment]
    for _ in range(chance.randint(0, 6)):
        site.step(1.0)
        if chance.random() < 0.3:
            rotate(site, chance)
    kept.delete_oldest(chance.choice((0, len(kept.rows) // 2)))
    since = Nanos(site._world.kernel.now - chance.choice((1, 3, 8)) * SECOND)
    return Journal("local", lambda: kept.reader("local"), since=since)


async def live(session: Session, site: Site, chance: random.Random) -> None:
    for _ in range(BACK_STEPS):
        site.step(1.0)
        for poller in chance.choices(session._pollers, k=chance.randint(0, 3)):
            await poller.poll_once()
        if chance.random() < 0.5:
            await session.catch_up()
            rotate(site, chance)
        if chance.random() < 0.2:
            await reach_back(session, site, chance)
        if chance.random() < 0.1:
            await check(session, site)
    await reach_back(session, site, chance)
    await check(session, site)


@pytest.mark.parametrize("has_journal", [False, True], ids=["", "with a journal"])
@pytest.mark.parametrize("seed", BACK_SEEDS)
async def test_reading_back_loses_no_op_and_doubles_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, has_journal: bool
) -> None:
    monkeypatch.setattr(Correlator.__init__, "__defaults__", (KEPT, 1 << 30))
    monkeypatch.setattr(LogFile, "begins_after", lambda *_: True)
    chance = random.Random(seed)
    minute = Nanos((time.time_ns() // (60 * SECOND) - chance.choice((0, 2))) * 60 * SECOND)
    site = Site(str(tmp_path), RATE, seed, start=Nanos(minute + chance.randrange(SECOND)))
    logs = log_files(site, chance)
    if has_journal:
        logs = [
            log
            for log in logs
            if log.name == str(site._logs.logs["supervisor"].path) or chance.random() < 0.7
        ]
        logs.insert(chance.randrange(len(logs) + 1), journal_of(site, chance))
    async with Session(logs) as session:
        await session.reach_back(Nanos(1))  # in the order of time, wherever each begins
        await live(session, site, chance)
    assert site.lived().ops > 2 * KEPT


CAPTURE = CAPTURES / "local/supervisor.log"


def told(links: Correlator) -> list[tuple[object, ...]]:
    return [(op.op, op.name, op.jid, op.sends, op.replies, op.updates, len(op.steps)) for op in links.ops()]


def fed(records: Sequence[LogRecord]) -> Correlator:
    correlator = Correlator()
    correlator.feed(records)
    return correlator


def test_an_op_is_the_same_from_a_journal_with_more_exact_times() -> None:
    data = CAPTURE.read_bytes()
    parser = LogParser(str(CAPTURE))
    records = parser.parse(data, 0, 1, Nanos(CAPTURE.stat().st_mtime_ns)).records
    exact = [
        record if record.at is None else msgspec.structs.replace(record, at=Nanos(record.at + SECOND // 2))
        for record in records
    ]
    whole = fed(records)
    expected = told(whole)
    whole.take_in(fed(exact))
    assert told(whole) == expected
    rest = fed(records[len(records) // 2 :])
    rest.take_in(fed(exact[: len(exact) * 2 // 3]))
    assert told(rest) == expected
