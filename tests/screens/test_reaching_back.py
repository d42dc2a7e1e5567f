"""A job older than what was read of the logs: they are read again from where it began, in sight."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from jobtui.app import JobtuiApp
from jobtui.backends.log_start import TailBytes
from jobtui.backends.logfile import LogFile
from jobtui.backends.sirepo.source import SirepoDb
from jobtui.model.clock import FixedClock, Nanos
from jobtui.model.logs import Reached
from jobtui.screens.job import JobScreen
from jobtui.screens.jobs import JobsScreen
from jobtui.session import Session
from jobtui.widgets.timeline import OpList
from tests.conftest import NOW
from tests.screens.captured import CAPTURE, JOB
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text, text


def a_session(log: Path = CAPTURE / "supervisor.log") -> Session:
    tail = LogFile(log, start=TailBytes(2_000))
    return Session([SirepoDb(CAPTURE), tail], FixedClock(NOW))


async def test_the_logs_are_read_back_to_the_job() -> None:
    async with a_session() as session:
        app = JobtuiApp(session, JOB)
        async with app.run_test(size=(120, 40)) as pilot:
            await wait_until(lambda: isinstance(app.screen, JobScreen), pilot)
            ops = app.screen.query_one(OpList)
            await wait_until(lambda: ops.record is not None and ops.record.op == "TZoe", pilot)
            await wait_until(lambda: "reading" not in text(app), pilot)


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """Reading back goes on until it is cancelled; when it begins, and when it has ended."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def slow(self: Session, at: Nanos, progress: Callable[[Reached], None]) -> bool:
        progress(Reached(12_000_000, 48_000_000, 100))
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return True

    monkeypatch.setattr(Session, "reach_back", slow)
    return begun, ended


@pytest.mark.parametrize("left_by", ["escape", "1"])
async def test_it_says_so_meanwhile_and_can_be_left(
    left_by: str, reading: tuple[asyncio.Event, asyncio.Event]
) -> None:
    begun, ended = reading
    async with a_session() as session:
        app = JobtuiApp(session, JOB)
        async with app.run_test(size=(120, 40)) as pilot:
            await wait_until(begun.is_set, pilot)
            share = "reading the logs back to 20:24Z: 12 of 48 MB · esc stops"
            await wait_until(lambda: share in screen_text(app)[6], pilot)
            assert share[:40] in screen_text(app)[4]  # beside the tabs as much as there is room for
            assert "No op of it yet" in text(app)
            await press(pilot, left_by, until=ended.is_set)
            if left_by == "escape":
                await wait_until(lambda: "as that was stopped" in text(app), pilot)
                assert isinstance(app.screen, JobScreen)
                await pilot.press("escape")
            await wait_until(lambda: isinstance(app.screen, JobsScreen), pilot)


async def test_what_was_read_is_told_when_there_is_nothing(tmp_path: Path) -> None:
    log = tmp_path / "supervisor.log"
    log.write_text(
        "".join(f"Nov 20 20:59:{n:02d}  9061     0 x.py:1:f nothing of matter\n" for n in range(60))
    )
    async with a_session(log) as session:
        app = JobtuiApp(session, JOB)
        async with app.run_test(size=(120, 40)) as pilot:
            await wait_until(lambda: "No op of run 1 in what was read" in text(app), pilot)
            await wait_until(lambda: "They were read back to 20:24Z" in text(app), pilot)
            assert "supervisor.log: begins at 2026-11-20T20:59:00" in text(app)
