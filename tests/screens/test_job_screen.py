"""The screen of a job: verdict, runs, script, logs; agents, and jobs of clusters and a Balsam server."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from jobtui.analysis.find import Candidate
from jobtui.analysis.paths import log_of
from jobtui.app import JobtuiApp
from jobtui.backends.job_reader import JobReader
from jobtui.backends.log_start import TailBytes
from jobtui.backends.logfile import LogFile
from jobtui.backends.sirepo import run_dir as sirepo_run_dir
from jobtui.backends.sirepo.source import SirepoDb
from jobtui.model.clock import Nanos
from jobtui.model.health import SourceMissing
from jobtui.model.ids import JobId, OpPrefix
from jobtui.model.jobs import JobStatus
from jobtui.model.logs import Reached
from jobtui.model.ops import Agent, Component, HeldOp, OpStatus
from jobtui.model.settings import ClusterAccess
from jobtui.screens import job_history
from jobtui.screens.agents import AgentsScreen, where_to_open
from jobtui.screens.job import JobScreen
from jobtui.screens.jobs import JobsScreen
from jobtui.screens.logs import LogsScreen
from jobtui.screens.text import ErrorScreen, ReadingScreen
from jobtui.session import Session
from jobtui.session.evidence import Gatherer
from jobtui.widgets.filter_input import FilterInput
from jobtui.widgets.record_list import RecordTable
from jobtui.widgets.text_pane import TextPane
from jobtui.widgets.timeline import OpList, Timeline
from tests.balsam_server import RecordedBalsam
from tests.builders import a_job, a_step, ago, an_agent, an_op, job_id, some
from tests.fakes import batch
from tests.screens import captured
from tests.screens.captured import CAPTURE, CAPTURED, JOB, app_on, opened, shown
from tests.screens.scene import FAILED, THREE, Scene, agents, ops, prompt, read, see, with_runs
from tests.screens.tour import settled
from tests.slurm_stand_in import StandIn
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text, text, text_of, watch


async def ready(scene: Scene, pilot: Pilot[None]) -> JobScreen:
    await wait_until(lambda: isinstance(scene.app.screen, JobScreen) and scene.is_read(), pilot)
    screen = scene.app.screen
    assert isinstance(screen, JobScreen)
    sign = "failed" if screen.job_id == FAILED else "no source"
    await wait_until(lambda: sign in "".join(screen_text(scene.app)[:3]), pilot)
    await settled(scene.app, pilot)
    return screen


async def test_routine_ops_are_hidden_unless_they_failed() -> None:
    scene = Scene(open_at=FAILED)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        screen = await ready(scene, pilot)
        op_list = screen.query_one(OpList)
        assert op_list.count == 3
        await pilot.press("x")
        assert op_list.count == 4
        await pilot.press("x")
        *kept, asked = ops()
        scene.correlation.replace(FAILED, *kept, msgspec.structs.replace(asked, error="no reply"))
        screen.show_all()
        assert op_list.count == 4


async def test_steps_appear_as_they_come_and_only_they_are_painted() -> None:
    scene = Scene(open_at=FAILED)
    live = an_op("run", jid=FAILED, status=OpStatus.SENT, steps=[a_step("request", 55), a_step("sent", 57)])
    scene.correlation.replace(FAILED, live)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        screen = await ready(scene, pilot)
        timeline = screen.query_one(Timeline)
        painted = watch(timeline)
        more = msgspec.structs.replace(live, steps=(*live.steps, a_step("arrived", 58)))
        scene.correlation.replace(FAILED, more)
        scene.db.add(batch(a_job(id=FAILED, status=JobStatus.RUNNING)))
        await wait_until(lambda: "arrived" in "\n".join(text_of(timeline)), pilot)
        await wait_until(lambda: len(painted) > 1 and "● running" in screen_text(scene.app)[0], pilot)
        assert painted == [2, 3]


RUN_DIR = Path("user/DJouDZ9T/myapp/4F4EUZjI/heightWeightReport")


async def test_a_log_is_followed_while_it_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.screens.job_tabs.OUTPUT_EVERY_S", 0.05)
    shutil.copytree(CAPTURE / "supervisor-job", tmp_path / "supervisor-job")
    (run_dir := tmp_path / RUN_DIR).mkdir(parents=True)
    with (run_dir / "run.log").open("a", buffering=1) as log:
        log.write("".join(f"step {n}\n" for n in range(100)))
        async with opened(tmp_path) as (app, pilot):
            await press(pilot, "f", until="step 99")
            await pilot.resize_terminal(80, 24)
            log.write("step 100 token=hunter2hunter2\n")
            assert "hunter2" not in await see(app, pilot, "step 100")
            await press(pilot, "tab", "g", until="step 0")
            log.write("step 101\n")
            await wait_until(lambda: "step 101" in app.screen.query(TextPane).last().text, pilot)
            assert "step 0" in text(app)
            await press(pilot, "l", until="run.log:102  step 101")
            with monkeypatch.context() as patched:
                patched.setattr(sirepo_run_dir, "list_files", None)  # files that are known are read by name
                log.write("step 102 token=hunter2hunter2\n")
                assert "hunter2" not in await see(app, pilot, "run.log:103  step 102")
            (run_dir / "other.log").write_text("another begins\n")
            monkeypatch.setattr("jobtui.session.outputs.LISTED_EVERY_S", 0.0)
            await see(app, pilot, "other.log:1  another begins")


async def test_a_missing_run_directory_is_reported(tmp_path: Path) -> None:
    shutil.copytree(CAPTURE / "supervisor-job", tmp_path / "supervisor-job")
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "f", until="cannot be read here")
        await see(app, pilot, "no run directory")
        (tmp_path / RUN_DIR).mkdir(parents=True)
        await see(app, pilot, "the run directory is empty")


async def test_the_whole_error_over_the_screen() -> None:
    lines = (f"  line {n} password=hunter2" for n in range(60))
    text = "\n".join(["Traceback", *lines, "[bold]the end\x1b[2J"])
    scene = Scene(open_at=FAILED, script=[batch(a_job(id=FAILED, status=JobStatus.FAILED, error=text))])
    copied: list[str] = []
    async with scene.app.run_test(size=(80, 24)) as pilot:
        await wait_until(lambda: isinstance(scene.app.screen, JobScreen), pilot)
        await see(scene.app, pilot, "✗ failed")
        await press(pilot, "e", until=ErrorScreen)
        await see(scene.app, pilot, "line 5")
        await wait_until(lambda: screen_text(scene.app)[0].startswith(" jobs ›"), pilot)
        assert not scene.app.is_opening_input(), "nothing in the sheet takes keys: none of them has to wait"
        shown = await press(pilot, "G", until="[bold]the end␛[2J")
        assert "hunter2" not in "\n".join(shown)
        scene.app.screen.copy = copied.append  # type: ignore[attr-defined]
        await press(pilot, "y", "escape", until=lambda: bool(copied))
        assert copied[0].startswith("Traceback\n  line 0")
        await wait_until(lambda: isinstance(scene.app.screen, JobScreen), pilot)


WAITING = job_id(1)
PENDING = {"status": JobStatus.PENDING, "started_at": None}


def waiting(queued_s: float) -> Scene:
    steps = [
        a_step("op created", 60 - queued_s),
        a_step("agent start", 60 - queued_s, component=Component.DRIVER, text="await=_agent_ready"),
    ]
    job = a_job(1, queued_at=ago(queued_s), **PENDING)
    scene = Scene([batch(job)], open_at=WAITING)
    op = an_op(
        jid=WAITING, steps=steps, status=OpStatus.CREATED, sends=0, replies=0, agent=None, sent_at=None,
        created_at=ago(queued_s),
    )  # fmt: skip
    scene.correlation.put(WAITING, op)
    return scene


async def first(scene: Scene, pilot: Pilot[None], words: str) -> str:
    """The second line of the screen when it says this."""
    await wait_until(lambda: words in screen_text(scene.app)[1], pilot)
    return screen_text(scene.app)[1]


async def test_the_verdict_is_on_top_and_changes_with_the_record() -> None:
    scene = waiting(3)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        line = await first(scene, pilot, "90 %")  # less before its record is read
        assert "Its agent is being started for 3s" in line
        scene.db.add(batch(a_job(1, status=JobStatus.COMPLETED, ended_at=ago(1), started_at=ago(2))))
        assert "It completed" in await first(scene, pilot, "completed")
        await press(pilot, "escape", until=lambda: "90 % sure" in text(scene.app))
        scene.db.add(SourceMissing("no such directory"))
        await see(scene.app, pilot, "40 % sure")


async def test_a_verdict_is_late_once_its_sources_are_read_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.screens.job_verdict.LIVE_S", 0.0)
    scene = waiting(3)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await first(scene, pilot, "is being started")
        await wait_until(scene.is_read, pilot)
        scene.clock.advance(60)
        for source in (scene.db, scene.log):  # a verdict is as of when they were last read
            source.add(batch())
        await first(scene, pilot, "no answer of it was read")


async def test_a_doubtful_verdict_is_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.screens.job_verdict.LIVE_S", 0.0)
    scene = Scene([batch(a_job(1, status=JobStatus.FAILED, ended_at=ago(1)), more=True)], open_at=WAITING)
    scene.db.hold()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await wait_until(lambda: scene.db._open._waiters, pilot)
        scene.db.go_on()
        scene.db.hold()  # the next poll waits
        await first(scene, pilot, "40 % sure")
        scene.db.go_on()
        await first(scene, pilot, "45 % sure")


async def test_a_late_comparison_takes_no_keys_from_an_open_line(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, compared = asyncio.Event(), job_history._compared
    gate.set()

    async def late(*about: Any) -> Any:
        await gate.wait()
        return await compared(*about)

    monkeypatch.setattr(job_history, "_compared", late)
    scene = with_runs(Scene(open_at=FAILED), *THREE)
    async with scene.app.run_test(size=(120, 30)) as pilot:
        await see(scene.app, pilot, "run 3 of 3")
        await press(pilot, "d", until=ReadingScreen)
        await press(pilot, "escape", until=JobScreen)
        gate.clear()
        await pilot.press("d", "colon", *"EP")
        gate.set()
        await wait_until(lambda: all(one.group != "compare" for one in scene.app.workers), pilot)
        await pilot.press(*"RS")
        assert scene.app.screen.query_one(FilterInput).value == "EPRS"


async def test_logs_are_read_back_to_the_good_run_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[Nanos] = []

    async def reach_back(self: Session, at: Nanos, progress: object) -> bool:
        reached.append(at)
        return True

    monkeypatch.setattr(Session, "reach_back", reach_back)
    monkeypatch.setattr(JobReader, "begins_after", lambda self, at: at < ago(200_000))
    scene = with_runs(Scene(open_at=FAILED), *THREE)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await see(scene.app, pilot, "run 3 of 3")
        await press(pilot, "h", until="No op of run 1 in the logs that were read.")
        await see(scene.app, pilot, "reads them back to run 1")
        assert reached == []
        await press(pilot, "enter", until=lambda: reached)
        assert reached[0] < ago(300_000)


def on_tail(log: Path = CAPTURED[0]) -> JobtuiApp:
    return app_on(SirepoDb(CAPTURE), LogFile(log, start=TailBytes(2_000)), at=JOB)


async def test_the_logs_are_read_back_to_the_job() -> None:
    async with shown(on_tail()) as (app, pilot):
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
async def test_a_tab_that_reads_says_so_and_can_be_left(
    left_by: str, reading: tuple[asyncio.Event, asyncio.Event]
) -> None:
    begun, ended = reading
    async with shown(on_tail()) as (app, pilot):
        await wait_until(begun.is_set, pilot)
        share = "reading the logs back to 20:24Z: 12 of 48 MB · esc stops"
        await wait_until(lambda: share in screen_text(app)[6], pilot)
        assert share[:40] in screen_text(app)[4]  # beside the tabs as much as there is room for
        assert "No op of it yet" in text(app)
        await press(pilot, left_by, until=ended.is_set)
        if left_by == "escape":
            await wait_until(lambda: "not read further back" in text(app), pilot)
            assert isinstance(app.screen, JobScreen)
            await pilot.press("escape")
        await wait_until(lambda: isinstance(app.screen, JobsScreen), pilot)


async def test_an_empty_result_says_what_was_read(tmp_path: Path) -> None:
    log = tmp_path / "supervisor.log"
    log.write_text(
        "".join(f"Nov 20 20:59:{n:02d}  9061     0 x.py:1:f nothing of matter\n" for n in range(60))
    )
    async with shown(on_tail(log)) as (app, pilot):
        await wait_until(lambda: "No op of run 1 in the logs" in text(app), pilot)
        await wait_until(lambda: "The logs were read back to 20:24Z" in text(app), pilot)
        assert "supervisor.log: starts at 2026-11-20T20:59:00" in text(app)


CANCELED = JobId("3pMDuIiL-2cmdSPql-activityAnimation")


async def test_keys_work_while_files_of_jobs_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, jobs_on_disk = asyncio.Event(), Gatherer.jobs_on_disk

    async def late(self: Gatherer, text: str) -> tuple[Candidate, ...]:
        await gate.wait()
        return await jobs_on_disk(self, text)

    monkeypatch.setattr(Gatherer, "jobs_on_disk", late)
    async with captured.shown(captured.app_on_cluster(reach=captured.REACH)) as (app, pilot):
        await wait_until(lambda: CANCELED in app._session.store.jobs, pilot)
        await prompt(pilot, "colon", "no such error anywhere")
        await press(pilot, "enter", until="reading the files of the newest jobs")
        await press(pilot, "escape", "2", until=LogsScreen)
        gate.set()
        await press(pilot, "1", "colon", *"nothing7", "enter", until="no command nothing7")
        assert isinstance(app.screen, JobsScreen)


async def test_a_later_state_of_slurm_is_shown(cluster: StandIn) -> None:
    cluster.queue()
    async with captured.shown(captured.app_on_slurm(cluster, captured.JID), (200, 45)) as (app, pilot):
        await wait_until(lambda: captured.JID in text(app), pilot)
        cluster.queue({**captured.TWELVE, "%T": "COMPLETED", "%V": "2026-11-20T20:59:00"})
        await wait_until(lambda: "Slurm 12 COMPLETED" in text(app), pilot)


async def test_a_new_event_adds_a_step() -> None:
    balsam = RecordedBalsam()
    row = next(row for row in balsam.jobs if row["state"] == "RUNNING")
    async with captured.shown(captured.app_on_balsam(balsam, JobId(f"balsam/{row['id']}"))) as (app, pilot):
        await captured.until(app, pilot, "RUNNING")
        balsam.move_on(99_999)
        await captured.until(app, pilot, "RUN_DONE")


COMMAND = 'ssh v4.example.org "journalctl --utc CONTAINER_NAME=srj-p-u8sKq2Pe CONTAINER_ID=14ebb6cea369'


async def on_row(table: RecordTable[Agent], pilot: Pilot[None], prefix: str) -> None:
    await wait_until(lambda: table.records, pilot)
    table.go([str(agent.agent) for agent in table.records].index(prefix))
    await wait_until(lambda: f"agent           {prefix}," in text(pilot.app), pilot)


@pytest.mark.parametrize("is_configured", [False, True])
async def test_enter_on_a_docker_agent_reads_its_journal_or_says_what_to_type(
    is_configured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with read(Scene(agents=agents())) as (scene, pilot):
        await press(pilot, "3", until=AgentsScreen)
        reach = ClusterAccess(hosts={"v4": "/no/such/journal"} if is_configured else {})
        scene.app._shared.reach = reach
        await on_row(scene.app.screen.query_one(RecordTable), pilot, "t7K7")
        if is_configured:
            await press(pilot, "enter", until=LogsScreen)
            found = where_to_open(scene.app._shared, agents()[1], log_of(agents()[1], reach))
            name = "/no/such/journal CONTAINER_NAME=srj-p-u8sKq2Pe CONTAINER_ID=14ebb6cea369"
            assert some(found)[:2] == (name, None), "all of it is of this container"
            await wait_until(lambda: "/no/such/journal" in text(scene.app), pilot)
            return
        await press(pilot, "enter", until="cannot be read from here")
        assert isinstance(scene.app.screen, ErrorScreen)
        assert "[hosts]" in text(scene.app)
        assert "ssh v4.example.org" in text(scene.app)
        texts = captured.copied(scene.app, monkeypatch)
        await pilot.press("y")
        await captured.until_said(scene.app, pilot, "copied ssh v4.example.org")
        assert texts[-1].startswith(COMMAND)
        await press(pilot, "escape", until=AgentsScreen)


async def test_the_log_on_the_cluster_itself_comes_before_its_copies() -> None:
    agent = an_agent("ukUt", driver="SbatchDriver", host="cori", cluster_log="/scratch/jdoe/job_agent.log")
    shared = Scene().app._shared
    shared.reach = ClusterAccess({"/scratch": "/mnt"})
    copy = msgspec.structs.replace(agent, log="/srv/db/user/EPRSqtUW/agent-sbatch/cori", log_at=7)
    for known in (agent, copy):
        assert where_to_open(shared, known, log_of(known)) == ("/mnt/jdoe/job_agent.log", None, None)
    shared.reach = ClusterAccess(hosts={"cori": "ssh://op@cori"})
    remote = ("ssh://op@cori/scratch/jdoe/job_agent.log", None, None)
    assert where_to_open(shared, copy, log_of(copy, shared.reach)) == remote
    shared.reach = ClusterAccess()
    assert where_to_open(shared, copy, log_of(copy)) == (copy.log, None, None)
    own = msgspec.structs.replace(agent, log="/mnt/other/job_agent.log", log_at=9)
    shared.reach = ClusterAccess({"/scratch": "/mnt"})
    assert where_to_open(shared, own, log_of(own)) == ("/mnt/other/job_agent.log", None, None)
    busy = msgspec.structs.replace(own, ops=(HeldOp(OpPrefix("pb5u"), "run", sent_at=ago(60)),))
    assert where_to_open(shared, busy, log_of(busy)) == (own.log, None, ago(65))
