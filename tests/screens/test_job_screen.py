"""The screen of a job: its tabs, its verdict, its runs beside the last good one, its script."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from jobtui.backends.archive.source import ArchiveDirectory
from jobtui.backends.job_reader import SessionJobReader
from jobtui.model.clock import Nanos
from jobtui.model.jobs import JobStatus
from jobtui.model.ops import Component, OpStatus
from jobtui.screens import job_history
from jobtui.screens.job import JobScreen
from jobtui.screens.text import ErrorScreen, ReadingScreen
from jobtui.session import Session
from jobtui.widgets.filter_input import FilterInput
from jobtui.widgets.text_pane import SpanPane, TextPane
from jobtui.widgets.timeline import OpList, Timeline
from tests.backends.archive.captured import DAY, SUBMITTED, archive_in
from tests.builders import a_job, a_step, ago, an_op, job_id
from tests.fakes import batch
from tests.screens.captured import CAPTURE, opened
from tests.screens.scene import FAILED, THREE, Scene, ops, see, with_runs
from tests.screens.tour import settled
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text, text_of, watch


async def ready(scene: Scene, pilot: Pilot[None]) -> JobScreen:
    await wait_until(lambda: isinstance(scene.app.screen, JobScreen) and scene.is_read(), pilot)
    screen = scene.app.screen
    assert isinstance(screen, JobScreen)
    sign = "failed" if screen.job_id == FAILED else "no source"
    await wait_until(lambda: sign in "".join(screen_text(scene.app)[:3]), pilot)
    await settled(scene.app, pilot)
    return screen


async def test_clutter_is_hidden_until_asked_for_but_not_when_it_went_wrong() -> None:
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
    running = an_op(
        "run", jid=FAILED, status=OpStatus.SENT, steps=[a_step("request", 55), a_step("sent", 57)]
    )
    scene.correlation.replace(FAILED, running)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        screen = await ready(scene, pilot)
        timeline = screen.query_one(Timeline)
        painted = watch(timeline)
        more = msgspec.structs.replace(running, steps=(*running.steps, a_step("arrived", 58)))
        scene.correlation.replace(FAILED, more)
        scene.db.add(batch(a_job(id=FAILED, status=JobStatus.RUNNING)))
        await wait_until(lambda: "arrived" in "\n".join(text_of(timeline)), pilot)
        await pilot.pause()
        assert painted == [2, 3]
        assert "● running" in screen_text(scene.app)[0]


RUN_DIR = Path("user/DJouDZ9T/myapp/4F4EUZjI/heightWeightReport")


async def test_a_log_is_followed_while_it_grows(tmp_path: Path) -> None:
    shutil.copytree(CAPTURE / "supervisor-job", tmp_path / "supervisor-job")
    run_dir = tmp_path / RUN_DIR
    run_dir.mkdir(parents=True)
    (run_dir / "run.log").write_text("".join(f"step {n}\n" for n in range(100)))
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "f", until="step 99")
        with (run_dir / "run.log").open("a") as log:
            log.write("step 100 token=hunter2hunter2\n")
        await see(app, pilot, "step 100")
        assert "hunter2" not in "\n".join(screen_text(app))
        await press(pilot, "tab", "g", until="step 0")
        with (run_dir / "run.log").open("a") as log:
            log.write("step 101\n")
        pane = app.screen.query_one("FilesTab TextPane", TextPane)
        await wait_until(lambda: "step 101" in pane.text, pilot)
        assert "step 0" in "\n".join(text_of(pane))


async def test_a_run_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    shutil.copytree(CAPTURE / "supervisor-job", tmp_path / "supervisor-job")
    async with opened(tmp_path) as (app, pilot):
        await press(pilot, "f", until="cannot be read here")
        await see(app, pilot, "no run directory")
        (tmp_path / RUN_DIR).mkdir(parents=True)
        await see(app, pilot, "the run directory is empty")


async def test_the_record_as_it_is_stored_without_its_secrets() -> None:
    scene = with_runs(Scene(open_at=FAILED), *THREE, simDbToken="hunter2hunter2", note="[bold]x[/nope]")
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await see(scene.app, pilot, "run 3 of 3  ‹ ›")
        lines = await press(pilot, "r", until='"note": "[bold]x[/nope]"')
        assert " /srv/db/x" in lines
        assert "hunter2" not in "\n".join(lines)


async def test_runs_beside_the_last_good_one_and_their_ops_by_time() -> None:
    scene = with_runs(Scene(open_at=FAILED), *THREE)
    scene.correlation.put(
        FAILED, an_op("run", op="old1", jid=FAILED, created_at=ago(90_000), status=OpStatus.ENDED)
    )
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await see(scene.app, pilot, "run 3 of 3")
        ops = scene.app.screen.query_one(OpList)
        await wait_until(lambda: ops.record is not None and ops.record.op == "pb5u", pilot)
        assert "old1" not in "\n".join(screen_text(scene.app))
        lines = await press(pilot, "h", until="the last good one")
        assert any("RUN 3 ✗ failed" in line and "RUN 1 ✓ done" in line for line in lines)
        assert any(line.split()[:3] == ["1", "✓", "done"] for line in lines)
        await press(pilot, "k", until="run 2 of 3")
        await see(scene.app, pilot, "crystal2")
        await press(pilot, "o", until=lambda: ops.record is not None and ops.record.op == "old1")
        await press(pilot, "left_square_bracket", until="run 1 of 3")
        await see(scene.app, pilot, "No op of run 1 in what was read of the logs:")
        keys = ("left_square_bracket", "right_square_bracket", "right_square_bracket")
        await press(pilot, *keys, until="run 3 of 3")


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


JOB = job_id(1)
PENDING = {"status": JobStatus.PENDING, "started_at": None}


def waiting(queued_s: float) -> Scene:
    steps = [
        a_step("op created", 60 - queued_s),
        a_step("agent start", 60 - queued_s, component=Component.DRIVER, text="await=_agent_ready"),
    ]
    job = a_job(1, queued_at=ago(queued_s), **PENDING)
    scene = Scene([batch(job)], open_at=JOB)
    op = an_op(
        jid=JOB, steps=steps, status=OpStatus.CREATED, sends=0, replies=0, agent=None, sent_at=None,
        created_at=ago(queued_s),
    )  # fmt: skip
    scene.correlation.put(JOB, op)
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


async def test_time_alone_makes_a_verdict_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.screens.job_verdict.LIVE_S", 0.0)
    scene = waiting(3)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await first(scene, pilot, "is being started")
        scene.clock.advance(60)
        await first(scene, pilot, "no answer of it was read")


async def test_what_was_in_doubt_is_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.screens.job_verdict.LIVE_S", 0.0)
    scene = Scene([batch(a_job(1, status=JobStatus.FAILED, ended_at=ago(1)), more=True)], open_at=JOB)
    scene.db.hold()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await wait_until(lambda: scene.db._open._waiters, pilot)
        scene.db.go_on()
        scene.db.hold()  # the next poll waits
        await first(scene, pilot, "40 % sure")
        scene.db.go_on()
        await first(scene, pilot, "45 % sure")


async def test_steps_are_compared_and_the_first_difference_is_marked() -> None:
    scene = with_runs(Scene(open_at=FAILED), *THREE)
    steps = [
        a_step("request", -300_000),
        a_step("op created", -299_999),
        a_step("status completed", -299_990),
    ]
    begin, end = ago(300_000), ago(299_990)
    good = an_op("run", steps, jid=FAILED, created_at=begin, ended_at=end, status=OpStatus.ENDED)
    scene.correlation.put(FAILED, good)
    async with scene.app.run_test(size=(120, 30)) as pilot:
        await see(scene.app, pilot, "run 3 of 3")
        lines = await press(pilot, "h", until="first difference")
        (parts,) = (line for line in lines if "first difference" in line)
        assert parts.split()[:2] == ["server", "api_runSimulation"]
        await press(pilot, "tab", "G", until="status completed")
        about = next(pane for pane in scene.app.screen.query(TextPane) if pane.is_active)
        assert about.top > 0
        await press(pilot, "tab", "k", "k", until="run 1 of 3")


async def test_a_late_comparison_takes_no_keys_from_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr(SessionJobReader, "begins_after", lambda self, at: at < ago(200_000))
    scene = with_runs(Scene(open_at=FAILED), *THREE)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await see(scene.app, pilot, "run 3 of 3")
        await press(pilot, "h", until="No op of run 1 in what was read of the logs.")
        await see(scene.app, pilot, "reads them back to run 1")
        assert reached == []
        await press(pilot, "enter", until=lambda: reached)
        assert reached[0] < ago(300_000)


def scene_of(place: Path, native: str, **fields: object) -> Scene:
    usual = {"queued_at": SUBMITTED, "started_at": SUBMITTED, "status": JobStatus.FAILED, "mode": ""}
    job = a_job(id=f"slurm/{native}", system="slurm", **(usual | fields))
    scene = Scene([batch(job)], open_at=job.id)
    scene.session.add(ArchiveDirectory(str(place), "huppel"))
    return scene


async def test_script_environment_and_where_they_were(tmp_path: Path) -> None:
    scene = scene_of(archive_in(tmp_path, DAY), "2")
    async with scene.app.run_test(size=(120, 40)) as pilot:
        shown = "\n".join(await press(pilot, "s", until="#SBATCH --job-name=lattice-fit"))
        for words in ("lattice-2.out", "lattice-2.err", "found", "SIM_OPTS=a=b c=d", "MULTI=line1␊line2"):
            assert words in shown
        assert f"{DAY}/job.2_script" in scene.app.screen.query_one(".about", SpanPane).text


async def test_its_output_is_read_by_enter(tmp_path: Path) -> None:
    place = archive_in(tmp_path / "archive", DAY)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "beam-1.out").write_text("step 3/3\n[bold]done\x1b[31m\n")
    script = place / DAY / "job.1_script"
    script.write_text(f"#!/bin/sh\n#SBATCH -D {tmp_path / 'work'}\n#SBATCH -o beam-%j.out\n")
    os.utime(script, ns=(SUBMITTED, SUBMITTED))
    scene = scene_of(place, "1")
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "s", until="environment")
        await press(pilot, "enter", until=ReadingScreen)
        await see(scene.app, pilot, "[bold]done␛[31m")
