"""One log under several names, copied, or in a journal as well: its ops count once, and that is said."""

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from jobtui.analysis.correlation import correlator
from jobtui.analysis.correlation.correlator import SURE, Once
from jobtui.backends.journal.source import Journal
from jobtui.backends.logfile import LogFile
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.logs import LogRecord
from jobtui.session import Session
from tests.journal_memory import MemoryJournal

CAPTURES = Path(__file__).parent / "fixtures/sirepo"


def known_to(session: Session) -> Sequence[tuple[object, ...]]:
    ops = session.store.correlation.ops()
    return sorted(
        (op.op, op.name, op.jid or "", op.status, op.sends, op.replies, len(op.steps)) for op in ops
    )


async def ops_of(*logs: LogFile | Journal) -> tuple[Sequence[tuple[object, ...]], str]:
    async with Session(logs) as session:
        await session.catch_up()
        known = known_to(session)
        notes = " ".join(source.note or "" for source in session.store.sources())
        assert all(source.state.value == "ok" for source in session.store.sources())
    return known, notes


def half_copied(log: Path, other: Path) -> object:
    return other.write_bytes(log.read_bytes()[: log.stat().st_size // 2])


WAYS: tuple[tuple[Callable[[Path, Path], object], str], ...] = (
    (lambda log, other: other.symlink_to(log), "same file as"),
    (os.link, "same file as"),
    (shutil.copyfile, "same lines as"),
    (half_copied, "same lines as"),
)


def rotated(log: Path, other: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    log.with_name("supervisor.log.1").write_bytes(b"".join(lines[: len(lines) // 2]))
    log.write_bytes(b"".join(lines[len(lines) // 2 :]))


@pytest.mark.parametrize(("way", "said"), [*WAYS, (rotated, "rotated file of")])
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
async def test_a_hard_link_tells_nothing_ahead_of_its_log_that_is_being_rotated(
    tmp_path: Path, idle_s: float
) -> None:
    lines = (CAPTURES / "local/supervisor.log").read_bytes().splitlines(keepends=True)
    (alone := tmp_path / "alone.log").write_bytes(b"".join(lines))
    log, hard = tmp_path / "supervisor.log", tmp_path / "hard.log"
    parts = [b"".join(lines[begin : begin + 60]) for begin in range(0, len(lines), 60)]
    now = 0.0
    logs = [LogFile(path, timer=lambda: now) for path in (log, hard)]
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
        both = known_to(session)
    assert both == (await ops_of(LogFile(alone)))[0]


async def test_a_journal_and_a_file_of_the_same_lines_count_once(tmp_path: Path) -> None:
    log = CAPTURES / "local/supervisor.log"
    alone, _ = await ops_of(LogFile(log))
    memory = MemoryJournal()
    for line in log.read_text().splitlines():
        memory.write(line, unit="sirepo_job_supervisor.service", host="v3", pid=7)
    journal = Journal("local", lambda: memory.reader("local"), since=Nanos(1))
    both, notes = await ops_of(LogFile(log), journal)
    assert [op[:6] for op in both] == [op[:6] for op in alone]
    assert "they count once" in notes


def line_of(source: str, at: int = 1, text: str = "the same text") -> LogRecord:
    return LogRecord(source, 1, 0, Nanos(at), 7, "update", {}, text)


@pytest.mark.parametrize(
    ("order", "times"), [("aabb", 2), ("abab", 2), ("abba", 2), ("abb", 2), ("aab", 2), ("abbbaa", 3)]
)
def test_equal_lines_count_as_often_as_the_log_has_them_that_has_most(order: str, times: int) -> None:
    once = Once({"update"})
    assert sum(once.is_new(line_of(source)) for source in order) == times


@pytest.mark.parametrize("seed", range(12))
def test_a_line_counts_once_however_far_behind_a_copy_is(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(correlator, "LINES_KNOWN", 100)
    chance = random.Random(seed)
    lines = sorted((chance.randrange(40 * SECOND), nth, chance.choice((7, 7, 7, 8))) for nth in range(800))
    logs = {"file": (9, {7}), "copy": (1, {7}), "server": (50, {8}), "journal": (1, {7, 8})}
    read = {source: [line for line in lines if line[2] in pids] for source, (_, pids) in logs.items()}
    once, told = Once({"update"}), Counter[int]()
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
