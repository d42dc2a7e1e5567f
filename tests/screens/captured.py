"""The dashboard on what was captured: logs, the jobs of a small installation, traces."""

import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from jobtui.app import JobtuiApp
from jobtui.backends.logfile import LogFile
from jobtui.backends.sirepo.source import SirepoDb
from jobtui.backends.traces.files import TraceFile
from jobtui.model.clock import FixedClock, Nanos
from jobtui.model.ids import JobId, TraceId
from jobtui.screens.logs import LogsScreen
from jobtui.session import Session
from jobtui.theme import DARK
from jobtui.widgets.timeline import OpList
from tests.conftest import NOW
from tests.tracing import CAPTURES, EXPECTED, capture_file
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text, text

CAPTURE = Path(__file__).parents[1] / "fixtures" / "sirepo" / "local"
CAPTURED = tuple(CAPTURE / name for name in ("supervisor.log", "server.log"))


def app_on(paths: Sequence[Path], theme: str = DARK.name) -> JobtuiApp:
    session = Session([LogFile(path) for path in paths], FixedClock(NOW))
    return JobtuiApp(session, theme=theme)


@asynccontextmanager
async def on_logs(
    paths: Sequence[Path], *, size: tuple[int, int] = (100, 24)
) -> AsyncIterator[tuple[JobtuiApp, Pilot[None]]]:
    app = app_on(paths)
    async with app.run_test(size=size) as pilot:
        await press(pilot, "2", until=LogsScreen)
        yield app, pilot


async def until(app: JobtuiApp, pilot: Pilot[None], *words: str) -> None:
    await wait_until(lambda: all(word in text(app) for word in words), pilot)


async def until_said(app: JobtuiApp, pilot: Pilot[None], words: str) -> None:
    await wait_until(lambda: any(words in note.message for note in app._notifications), pilot)


def stamped(second: int, words: str) -> str:
    return f"Nov 20 20:34:{second:02d} 7 0 a/b.py:1:f {words}\n"


def copied(app: JobtuiApp, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []

    def write(data: str) -> None:
        if data.startswith("\x1b]52;c;"):
            found.append(base64.b64decode(data[7:-1]).decode())

    assert app._driver is not None
    monkeypatch.setattr(app._driver, "write", write)
    return found


SIZE = (120, 40)
FAILED_TRACE = TraceId(EXPECTED["job-fail"]["traceID"])
FILES = (
    capture_file("job-fail", "otlp.pb"),
    CAPTURES / "job-fail.logs.json",
    capture_file("queue-3h", "otlp.pb"),
)
SECOND = 10**9


def an_app(*files: Path) -> JobtuiApp:
    clock = FixedClock(Nanos(1_795_300_000 * SECOND))
    return JobtuiApp(Session([TraceFile(path) for path in files], clock))


def app_on_traces(theme: str = DARK.name) -> JobtuiApp:
    """The dashboard on three traces: a job that failed, one that waited for hours, a large one."""
    clock = FixedClock(Nanos(1_795_300_000 * SECOND))
    files = (*FILES, capture_file("recovered-error", "otlp.pb"))
    session = Session([TraceFile(path) for path in files], clock)
    return JobtuiApp(session, theme=theme)


async def open_failed(app: JobtuiApp, pilot: Pilot[Any]) -> None:
    await wait_until(lambda: app._session.store.traces.size(FAILED_TRACE) > 29, pilot)
    app.action_jump(FAILED_TRACE)
    await wait_until(lambda: "fail flag triggered" in text(app), pilot)


JOB = JobId("DJouDZ9T-4F4EUZjI-heightWeightReport")


@asynccontextmanager
async def opened(
    root: Path = CAPTURE, job: JobId = JOB, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[JobtuiApp, Pilot[None]]]:
    logs = [LogFile(CAPTURE / "supervisor.log"), LogFile(CAPTURE / "server.log")]
    async with Session([SirepoDb(root), *logs], FixedClock(NOW)) as session:
        app = JobtuiApp(session, job)
        async with app.run_test(size=size) as pilot:
            await wait_until(lambda: "failed" in screen_text(app)[0], pilot)
            await wait_until(lambda: app.screen.query_one(OpList).count, pilot)
            yield app, pilot


async def on(app: JobtuiApp, pilot: Pilot[None], screen: type[object]) -> None:
    await wait_until(lambda: isinstance(app.screen, screen) and app.screen.is_mounted, pilot)


ON_CLUSTER = CAPTURE.with_name("sbatch")
THERE, HERE = "/srv/sirepo/hpc/scratch", str(ON_CLUSTER / "scratch")
JID = JobId("3pMDuIiL-e1oQ9PPU-activityAnimation")
