import msgspec
import pytest
from textual.pilot import Pilot

from jobtui.model.jobs import JobStatus
from jobtui.model.ops import OpStatus
from jobtui.screens.job import JobScreen
from jobtui.screens.jobs import JobsScreen
from jobtui.screens.text import ReadingScreen
from jobtui.widgets.text_pane import TextPane
from jobtui.widgets.timeline import OpList, StepDetail, Timeline
from tests.builders import a_job, a_step, an_op
from tests.fakes import batch
from tests.screens.scene import FAILED, Scene, ops
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


async def test_it_opens_at_the_job_it_was_given_with_its_ops_and_steps() -> None:
    scene = Scene(open_at=FAILED)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        screen = await ready(scene, pilot)
        lines = screen_text(scene.app)
        assert lines[0].startswith(f" jobs › {FAILED}")
        assert "run 3 of 3" in lines[0]
        assert "✗ failed 2m ago" in lines[0]
        assert lines[1].startswith(" Its program failed 3s after it started: no such element: crystal3.")
        assert lines[1].endswith("45 % sure")  # the scene leaves out steps that a real op has
        assert "OPS 3  1 hidden" in "\n".join(lines)
        assert "╰" in "\n".join(lines)
        detail = screen.query_one(StepDetail)
        await wait_until(lambda: "supervisor.log:88214" in "".join(text_of(detail)), pilot)
        assert text_of(detail)[2] == " sure: the line names the job"
        await press(pilot, "t", until="20:59:00")
        assert "✗ failed at 20:58:00Z" in screen_text(scene.app)[0]


async def test_another_op_another_timeline_and_its_line() -> None:
    scene = Scene(open_at=FAILED)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        screen = await ready(scene, pilot)
        op_list, timeline = screen.query_one(OpList), screen.query_one(Timeline)
        await press(pilot, "j", until=lambda: timeline.count == 0)
        assert op_list.record is not None
        assert op_list.record.op == "k2Wc"
        await pilot.press("k", "tab", "g")
        assert timeline.is_active
        assert timeline.step is not None
        await wait_until(lambda: "supervisor.log:100" in text_of(screen.query_one(StepDetail))[0], pilot)
        await pilot.press("tab", "G")
        assert op_list.record is not None
        assert op_list.record.op == "9QxZ"


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


async def test_the_whole_line_can_be_read_and_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(open_at=FAILED)
    copied: list[str] = []
    async with scene.app.run_test(size=(60, 20)) as pilot:
        await ready(scene, pilot)
        monkeypatch.setattr(JobScreen, "copy", lambda self, text: copied.append(text))
        await press(pilot, "y", "tab", "y", "enter", until=ReadingScreen)
        assert copied[0] == FAILED
        assert copied[1].startswith("new status=error")
        pane = scene.app.screen.query_one(TextPane)
        await wait_until(lambda: "/var/log/supervisor.log:88214" in text_of(pane)[0], pilot)
        await press(pilot, "escape", "escape", until=JobsScreen)
