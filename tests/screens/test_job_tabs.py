"""The tabs of the job screen, on a recorded system and on what no system should ever write."""

import shutil
from pathlib import Path

from jobtui.model.jobs import JobStatus
from jobtui.model.ops import OpStatus
from jobtui.screens.job import JobScreen
from jobtui.screens.logs import LogsScreen
from jobtui.screens.text import ErrorScreen, ReadingScreen
from jobtui.widgets.record_list import FileList, JobLog
from jobtui.widgets.text_pane import TextPane
from jobtui.widgets.timeline import OpList, StepDetail
from tests.builders import a_job, ago, an_op
from tests.fakes import batch
from tests.screens.captured import CAPTURE, opened
from tests.screens.scene import FAILED, THREE, Scene, see, with_runs
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text, text_of

RUN_DIR = Path("user/DJouDZ9T/myapp/4F4EUZjI/heightWeightReport")


async def test_the_lines_of_a_job_in_time_and_the_record_and_log_of_one() -> None:
    async with opened() as (app, pilot):
        lines = await press(pilot, "l", until="14 lines of 2 logs")
        assert "20:34:36 server.log     TZoe api=api_runSimulation" in "\n".join(lines)
        log = app.screen.query_one(JobLog)
        await press(pilot, "enter", until=LogsScreen)
        await see(app, pilot, "line 257")
        await press(pilot, "escape", until=JobScreen)
        assert "14 lines of 2 logs" in "\n".join(screen_text(app))
        await pilot.press("g", *"jjjjjjj")
        assert log.record is not None
        assert log.record.text.startswith("cmd=('/bin/bash'")
        panes = app.screen.query(StepDetail)
        detail = next(pane for pane in panes if pane.display and pane.step and "cmd=" in pane.step.text)
        await wait_until(lambda: "set -e" in "\n".join(detail.more), pilot)
        await see(app, pilot, "mkdir -p")


async def test_the_files_of_a_job_and_what_is_in_them() -> None:
    async with opened() as (app, pilot):
        lines = await press(pilot, "f", until="RuntimeError: error exit(1)")
        names = [file.name for file in app.screen.query_one(FileList).records]
        assert names == ["run.log", "in.json", "parameters.py"]
        assert str(CAPTURE)[:30] in lines[4]
        await press(pilot, "j", until='"simulationType": "myapp"')
        await press(pilot, "j", until="subprocess")
        await press(pilot, "enter", until=ReadingScreen)
        assert "parameters.py" in screen_text(app)[0]


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


async def test_a_job_without_a_record() -> None:
    scene = Scene(open_at=FAILED)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await see(scene.app, pilot, "✗ failed")
        for key in ("h", "r"):
            await press(pilot, key, until="no source has a record of this job")
        await press(pilot, "f", until="The run directory cannot be read here")


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
