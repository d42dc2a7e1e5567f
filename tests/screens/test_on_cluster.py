"""A job on a cluster whose file system is mounted here: its id in Slurm, its files, its agent's log."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from jobtui.app import JobtuiApp
from jobtui.backends.base import Source
from jobtui.backends.logfile import LogFile
from jobtui.backends.sirepo_db import SirepoDb
from jobtui.commands.clusters import watch_clusters
from jobtui.model.clock import FixedClock
from jobtui.model.ids import JobId
from jobtui.screens.logs import LogsScreen
from jobtui.session import Session
from jobtui.widgets.agent_table import AgentTable
from tests.analysis.captured import ROOT
from tests.conftest import NOW
from tests.waiting import wait_until
from tests.widgets.stage import screen_text

CAPTURE = ROOT / "sbatch"
THERE, HERE = "/srv/sirepo/hpc/scratch", str(CAPTURE / "scratch")
JID = JobId("3pMDuIiL-e1oQ9PPU-activityAnimation")
CANCELED = JobId("3pMDuIiL-2cmdSPql-activityAnimation")


@asynccontextmanager
async def on(jid: JobId | None, mounts: dict[str, str]) -> AsyncIterator[tuple[JobtuiApp, Pilot[None]]]:
    sources: list[Source] = [SirepoDb(CAPTURE), LogFile(Path(CAPTURE / "supervisor.log"))]
    session = Session(sources, FixedClock(NOW), strict=True)
    session.mounts = mounts
    watch_clusters(session, [str(CAPTURE)])
    app = JobtuiApp(session, jid)
    async with app.run_test(size=(160, 40)) as pilot:
        yield app, pilot


def text(app: JobtuiApp) -> str:
    return "\n".join(screen_text(app))


@pytest.mark.parametrize(("jid", "words"), [(JID, "Slurm 12 completed"), (CANCELED, "Slurm 16 canceled")])
async def test_its_id_in_slurm_is_said(jid: JobId, words: str) -> None:
    async with on(jid, {THERE: HERE}) as (app, pilot):
        await wait_until(lambda: words in text(app), pilot)


async def test_its_files_are_those_on_the_cluster() -> None:
    async with on(JID, {THERE: HERE}) as (app, pilot):
        await wait_until(lambda: "Slurm 12" in text(app), pilot)
        await pilot.press("f")
        await wait_until(lambda: "sbatch_status.json" in text(app), pilot)
        assert "run.bash" in text(app)


async def test_out_of_reach_nothing_is_said_of_slurm() -> None:
    async with on(JID, {}) as (app, pilot):
        await wait_until(lambda: "3Qbr" in text(app), pilot)
        await pilot.press("f")
        await wait_until(lambda: "cannot be read here" in text(app), pilot)
        assert "Slurm" not in text(app)


async def test_the_copies_of_its_agents_log_are_read_and_open_from_the_agents() -> None:
    async with on(None, {}) as (app, pilot):
        await wait_until(lambda: any("agent-sbatch" in s.name for s in app._session.store.sources()), pilot)
        await pilot.press("3")
        await wait_until(lambda: "somG" in text(app) and "localhost" in text(app), pilot)
        table = app.screen.query_one(AgentTable)
        table.go([str(agent.agent) for agent in table._records].index("somG"))
        await pilot.press("enter")
        await wait_until(lambda: isinstance(app.screen, LogsScreen), pilot)
        await wait_until(lambda: "'agent_id': 'somG…'" in text(app), pilot)
        assert "***" in text(app)
