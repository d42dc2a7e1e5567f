"""The dashboard on what was captured: logs, the jobs of a small installation, traces."""

import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from jobtui.app import JobtuiApp
from jobtui.backends.balsam.client import BalsamClient
from jobtui.backends.balsam.source import Balsam
from jobtui.backends.base import Source
from jobtui.backends.logfile import LogFile
from jobtui.backends.sirepo.source import SirepoDb
from jobtui.backends.slurm.client import Commands, slurm_faults
from jobtui.backends.slurm.source import Slurm
from jobtui.backends.traces.files import TraceFile
from jobtui.commands.context import of_specs
from jobtui.commands.reader import watch_clusters
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.ids import JobId, TraceId
from jobtui.model.settings import ClusterAccess
from jobtui.model.specs import LogRole, SourceSpec
from jobtui.screens.logs import LogsScreen
from jobtui.session import Session
from jobtui.theme import DARK
from jobtui.transport.ssh import LocalShell
from jobtui.widgets.timeline import OpList
from tests.balsam_server import TOKEN, RecordedBalsam, nanos
from tests.conftest import NOW
from tests.loopback import carried, timed
from tests.rows import FIXTURES
from tests.slurm_stand_in import StandIn
from tests.tracing import CAPTURES, EXPECTED, capture_file
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text, text

CAPTURE = FIXTURES / "sirepo" / "local"
CAPTURED = tuple(CAPTURE / name for name in ("supervisor.log", "server.log"))
ROLES = (LogRole.SUPERVISOR, LogRole.SERVER)
SPECS = [SourceSpec("log", str(path), role) for path, role in zip(CAPTURED, ROLES, strict=True)]
WORDS = of_specs((SourceSpec("srdb", str(CAPTURE)), *SPECS))
"""What names them on the command line."""
SIZE = (120, 40)


def app_on(
    *sources: Source | Path,
    at: JobId | None = None,
    now: Nanos = NOW,
    theme: str = DARK.name,
    words: Sequence[str] = (),
    **of_session: Any,
) -> JobtuiApp:
    """The dashboard on these sources, of which a path is that of a log; with this set of its session."""
    session = Session([LogFile(one) if isinstance(one, Path) else one for one in sources], FixedClock(now))
    for name, value in of_session.items():
        setattr(session, name, value)
    roots = tuple(one.name for one in sources if isinstance(one, SirepoDb))
    session.reach = session.reach._replace(roots=roots)
    return JobtuiApp(session, at, theme=theme, words=words)


@asynccontextmanager
async def shown(app: JobtuiApp, size: tuple[int, int] = SIZE) -> AsyncIterator[tuple[JobtuiApp, Pilot[None]]]:
    """It in a terminal of this size; its sources are closed with it."""
    async with app._session, app.run_test(size=size) as pilot:
        yield app, pilot


@asynccontextmanager
async def on_logs(
    *sources: Source | Path, size: tuple[int, int] = (100, 24), now: Nanos = NOW
) -> AsyncIterator[tuple[JobtuiApp, Pilot[None]]]:
    async with shown(app_on(*sources, now=now), size) as (app, pilot):
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


LATER = Nanos(1_795_300_000 * SECOND)
"""When all traces that were captured had been over for long."""
FAILED_TRACE = TraceId(EXPECTED["job-fail"]["traceID"])
FILES = (
    capture_file("job-fail", "otlp.pb"),
    CAPTURES / "job-fail.logs.json",
    capture_file("queue-3h", "otlp.pb"),
)
LARGE_TOO = (*FILES, capture_file("recovered-error", "otlp.pb"))


def app_on_traces(*files: Path, theme: str = DARK.name) -> JobtuiApp:
    return app_on(*map(TraceFile, files), now=LATER, theme=theme)


async def open_failed(app: JobtuiApp, pilot: Pilot[Any]) -> None:
    await wait_until(lambda: app._session.store.traces.size(FAILED_TRACE) > 29, pilot)
    app.action_jump(FAILED_TRACE)
    await wait_until(lambda: "fail flag triggered" in text(app), pilot)


JOB = JobId("DJouDZ9T-4F4EUZjI-heightWeightReport")
GOOD = JobId("hZk95g40-4u2Pj0fB-heightWeightReport")


@asynccontextmanager
async def opened(root: Path) -> AsyncIterator[tuple[JobtuiApp, Pilot[None]]]:
    """At a job that failed, whose files are below this root, when its steps are shown."""
    async with shown(app_on(SirepoDb(root), *CAPTURED, at=JOB)) as (app, pilot):
        await wait_until(lambda: "failed" in screen_text(app)[0], pilot)
        await wait_until(lambda: app.screen.query_one(OpList).count, pilot)
        yield app, pilot


ON_CLUSTER = CAPTURE.with_name("sbatch")
THERE = "/srv/sirepo/hpc/scratch"
REACH = ClusterAccess({THERE: str(ON_CLUSTER / "scratch")})
JID = JobId("3pMDuIiL-e1oQ9PPU-activityAnimation")
RUN_DIR = f"{THERE}/jdoe/sirepo-dev/user/3pMDuIiL/myapp/{JID}"
TWELVE = {"%i": "12", "%A": "12", "%F": "12", "%T": "FAILED", "%r": "NodeFail",
          "%e": "2026-11-20T20:30:00", "%Z": RUN_DIR}  # fmt: skip
"""The job of Slurm that it was."""


def app_on_cluster(at: JobId | None = None, root: Path = ON_CLUSTER, **of_session: Any) -> JobtuiApp:
    app = app_on(SirepoDb(root), root / "supervisor.log", at=at, **of_session)
    watch_clusters(app._session)
    return app


def app_on_slurm(cluster: StandIn, at: str, **of_session: Any) -> JobtuiApp:
    """The same beside its Slurm."""
    shell = LocalShell("local", slurm_faults(), {"PATH": cluster.search_path})
    slurm = timed(Slurm(Commands("local", shell)), FixedClock(NOW))
    slurm.every_s = 0.2
    return app_on(SirepoDb(ON_CLUSTER), ON_CLUSTER / "supervisor.log", slurm, at=JobId(at), **of_session)


def app_on_balsam(balsam: RecordedBalsam, at: JobId | None = None) -> JobtuiApp:
    client, now = BalsamClient("http://balsam.test", lambda: TOKEN), nanos("2026-11-20T19:30:00")
    source = timed(Balsam(carried(client, balsam.answer), owner="operator"), FixedClock(now))
    return app_on(source, at=at, now=now)
