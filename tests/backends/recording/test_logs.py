"""The logs of a recording: up to the time of its clock, forth and back, and never all of them in memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobtui.backends.base import Batch
from jobtui.backends.recording import logs as recorded_logs
from jobtui.backends.recording.codec import What
from jobtui.backends.recording.logs import TapeLogs
from jobtui.backends.recording.replayed import ReplayClock
from jobtui.backends.recording.tape import Tape
from jobtui.backends.recording.writing import TapeWriter
from jobtui.backends.worker import a_worker
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.logs import LogRecord
from jobtui.model.pages import Log
from tests.backends.recording.test_tape import NOW, about

LOGS = ("/var/log/a.log", "/var/log/b.log")
SECONDS = 40


def a_record(log: str, second: int) -> LogRecord:
    """A record of two lines."""
    text = f"{log[-5]}{second}\n  more of it"
    return LogRecord(log, second + 1, second, Nanos(NOW + second * SECOND), 1, "op", {}, text)


@pytest.fixture
def clock() -> ReplayClock:
    return ReplayClock(Nanos(NOW + SECONDS * SECOND))


@pytest.fixture
def logs(tmp_path: Path, clock: ReplayClock) -> Iterator[TapeLogs]:
    """Two logs, each with a record a second."""
    writer = TapeWriter(tmp_path / "r", about(), 1 << 20)
    with writer.together():
        for second in range(SECONDS):
            for log in LOGS:
                kept = Batch(cursor="", records=(a_record(log, second),))
                writer.put("logfile", log, What.BATCH, kept, Nanos(NOW + second * SECOND))
    writer.close()
    tape = Tape(tmp_path / "r")
    with a_worker("test") as worker:
        yield TapeLogs(tape, worker, clock, lambda: (1, 2))
    tape.close()


async def words(log: Log) -> list[str]:
    """The first word of each record that it shows."""
    extent = await log.look()
    page = await log.before(extent.end, 10_000)
    return [line.text for line in page.lines if not line.text.startswith(" ")]


def test_their_names_are_known_without_reading_them(logs: TapeLogs) -> None:
    assert logs.names() == LOGS


async def test_each_is_shown_up_to_the_time_of_the_clock(logs: TapeLogs, clock: ReplayClock) -> None:
    log = logs.open(LOGS[0])
    assert await words(log) == [f"a{second}" for second in range(SECONDS)]
    clock.set(Nanos(NOW + 9 * SECOND))
    before = (await log.look()).revision
    assert await words(log) == [f"a{second}" for second in range(10)]
    assert (await log.look()).revision == before
    clock.set(Nanos(NOW + 12 * SECOND))
    assert await words(log) == [f"a{second}" for second in range(13)]
    await log.aclose()


async def test_going_back_is_another_revision_so_that_screens_read_anew(
    logs: TapeLogs, clock: ReplayClock
) -> None:
    log = logs.merged()
    before = await log.look()
    clock.set(Nanos(NOW + 9 * SECOND))
    after = await log.look()
    assert after.revision != before.revision
    assert after.end < before.end


async def test_all_of_them_are_in_the_order_of_time(logs: TapeLogs) -> None:
    log = logs.merged()
    expected = [f"{name}{second}" for second in range(SECONDS) for name in "ab"]
    assert await words(log) == expected
    page = await log.before((await log.look()).end, 4)
    assert [line.origin for line in page.lines] == [LOGS[0]] * 2 + [LOGS[1]] * 2


async def test_it_waits_until_the_clock_moves(logs: TapeLogs, clock: ReplayClock) -> None:
    log = logs.merged([LOGS[0]])
    await log.look()
    assert not await log._source.is_changed()  # type: ignore[attr-defined]
    clock.set(Nanos(NOW + 3 * SECOND))
    assert await log._source.is_changed()  # type: ignore[attr-defined]


async def test_of_much_the_end_is_read_and_this_is_said(
    logs: TapeLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_logs, "ENTRIES_AT_FIRST", 10)
    log = logs.open(LOGS[1])
    extent = await log.look()
    assert extent.event == "its end only"
    assert await words(log) == [f"b{second}" for second in range(SECONDS - 10, SECONDS)]
