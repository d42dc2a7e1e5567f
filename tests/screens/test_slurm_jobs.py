"""A job of Sirepo and the Slurm job that it runs as, each on its screen with the other; on real captures."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from jobtui.app import JobtuiApp
from jobtui.backends.base import Source
from jobtui.backends.logfile import LogFile
from jobtui.backends.sirepo.source import SirepoDb
from jobtui.backends.slurm.client import Commands, slurm_faults
from jobtui.backends.slurm.source import Slurm
from jobtui.model.clock import FixedClock
from jobtui.model.ids import JobId
from jobtui.session import Session
from jobtui.transport.ssh import LocalShell
from tests.commands.running import shown
from tests.conftest import NOW
from tests.screens.captured import HERE, JID, ON_CLUSTER, THERE
from tests.slurm_stand_in import StandIn
from tests.waiting import wait_until
from tests.widgets.widget_app import press, text

RUN_DIR = f"{THERE}/jdoe/sirepo-dev/user/3pMDuIiL/myapp/{JID}"
TWELVE = {"%i": "12", "%A": "12", "%F": "12", "%T": "FAILED", "%r": "NodeFail",
          "%e": "2026-11-20T20:30:00"}  # fmt: skip


@asynccontextmanager
async def on(
    cluster: StandIn, job_id: str, mounts: dict[str, str]
) -> AsyncIterator[tuple[JobtuiApp, Pilot[None]]]:
    shell = LocalShell("local", slurm_faults(), {"PATH": cluster.search_path})
    sources: list[Source] = [
        SirepoDb(ON_CLUSTER),
        LogFile(ON_CLUSTER / "supervisor.log"),
        Slurm(Commands("local", shell), clock=FixedClock(NOW), every_s=0.2),
    ]
    session = Session(sources, FixedClock(NOW))
    session.mounts = mounts
    app = JobtuiApp(session, JobId(job_id))
    async with app.run_test(size=(200, 45)) as pilot:
        yield app, pilot


@pytest.fixture
def cluster(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path)


async def test_by_the_number_that_its_agent_noted(cluster: StandIn) -> None:
    cluster.queue({**TWELVE, "%Z": "/elsewhere"})
    async with on(cluster, JID, {THERE: HERE}) as (app, pilot):
        words = "Slurm 12 FAILED: a node of it failed (its agent noted completed)"
        await wait_until(lambda: words in text(app), pilot)
        await press(pilot, "w", until="the record says completed, Slurm says failed")


async def test_the_slurm_job_names_the_one_of_sirepo(cluster: StandIn) -> None:
    cluster.queue({**TWELVE, "%Z": RUN_DIR})
    async with on(cluster, "slurm/12", {}) as (app, pilot):
        await wait_until(lambda: f"Sirepo's {JID} completed" in text(app), pilot)


async def test_what_slurm_says_later_is_shown_too(cluster: StandIn) -> None:
    cluster.queue()
    async with on(cluster, JID, {}) as (app, pilot):
        await wait_until(lambda: JID in text(app), pilot)
        cluster.queue({**TWELVE, "%T": "COMPLETED", "%Z": RUN_DIR, "%V": "2026-11-20T20:59:00"})
        await wait_until(lambda: "Slurm 12 COMPLETED" in text(app), pilot)


@pytest.mark.parametrize("out", ["mine.out", "gone.out", "/nowhere/gone.out"])
async def test_its_files_begin_with_its_own_output(cluster: StandIn, tmp_path: Path, out: str) -> None:
    (tmp_path / "mine.out").write_text("of mine\n")
    (tmp_path / "other.out").write_text("of another\n")
    cluster.captured().show("31", shown(31, tmp_path, out))
    async with on(cluster, "slurm/31", {}) as (app, pilot):
        await pilot.press("f")
        words = "of mine" if out == "mine.out" else "gone.out: not there"
        await wait_until(lambda: words in text(app), pilot)
        assert "of another" not in text(app)


async def test_a_record_is_shown_as_slurm_has_it(cluster: StandIn) -> None:
    cluster.captured()
    async with on(cluster, "slurm/8", {}) as (app, pilot):
        await wait_until(lambda: "Its program ended with exit code 3" in text(app), pilot)
        await wait_until(lambda: "nodes" in text(app), pilot)
        assert "PENDING" in text(app)
        await press(pilot, "r", until="lattice-8.err")
        await press(pilot, "h", until="exit code 3")
