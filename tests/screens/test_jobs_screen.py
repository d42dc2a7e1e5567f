import pytest
from textual.pilot import Pilot

from jobtui.app import JobtuiApp
from jobtui.backends.base import Batch, SourceUnreachable
from jobtui.model.jobs import JobStatus
from jobtui.model.logs import LogRecord
from jobtui.screens.job import JobScreen
from jobtui.screens.jobs import JobsScreen
from jobtui.widgets.filter_bar import FilterBar, MistakeLine
from jobtui.widgets.header import Header
from jobtui.widgets.job_table import JobTable
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.source_strip import SourceStrip
from tests.builders import a_job, a_step, ago, an_op, job_id
from tests.conftest import NOW
from tests.fakes import batch
from tests.screens.scene import FAILED, Scene, jobs
from tests.waiting import wait_until
from tests.widgets.stage import screen_text, text_of, watch


def table_of(scene: Scene) -> JobTable:
    return scene.app.screen.query_one(JobTable)


async def ready(scene: Scene, pilot: Pilot[None]) -> JobTable:
    """The table, once it shows the scene."""
    await wait_until(lambda: scene.is_read() and table_of(scene).total == len(jobs()), pilot)
    return table_of(scene)


async def typed(pilot: Pilot[None], text: str) -> None:
    await pilot.press("slash")
    await wait_until(lambda: pilot.app.focused is not None, pilot)
    await pilot.press(*("space" if char == " " else char for char in text))


async def test_it_paints_before_any_source_has_answered() -> None:
    scene = Scene()
    for source in (scene.db, scene.log, scene.dead):
        source.hold()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        text = "\n".join(screen_text(scene.app))
        assert "STATE" in text
        assert "db starting" in text
        assert "0 running" in text
        for source in (scene.db, scene.log, scene.dead):
            source.go_on()
        await ready(scene, pilot)


async def test_all_jobs_urgent_first_and_quasi_jobs_hidden() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        table = await ready(scene, pilot)
        shown = [job.id for job in table.visible_jobs]
        assert shown[:2] == [job_id(1), job_id(2)]
        assert shown[-1] == job_id(9)
        assert job_id(10) not in shown
        await wait_until(lambda: "9 jobs, 1 hidden" in screen_text(scene.app)[38], pilot)
        await pilot.press("x")
        await wait_until(lambda: table.count == 10, pilot)


async def test_a_source_that_is_down_is_red_with_its_reason_and_the_rest_goes_on() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await ready(scene, pilot)
        strip = scene.app.screen.query_one(SourceStrip)
        await wait_until(lambda: "agent.log down: no such file" in text_of(strip)[0], pilot)
        assert [span.style for span in strip.line(0) if "down" in span.text] == ["error"]


async def test_changes_are_shown_as_they_come() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        table = await ready(scene, pilot)
        scene.db.add(
            batch(a_job(4, status=JobStatus.FAILED, error="out of memory", ended_at=ago(0)), gone=[job_id(3)])
        )
        await wait_until(lambda: "out of memory" in "\n".join(text_of(table)), pilot)
        assert table.job(job_id(3)) is None
        assert table.total == len(jobs()) - 1


async def test_nothing_is_painted_when_nothing_changed() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        table = await ready(scene, pilot)
        await pilot.pause()
        painted = [
            watch(view)
            for view in (table, *scene.app.screen.query(RuleLine), scene.app.screen.query_one(Header))
        ]
        scene.db.add(batch(*jobs()))
        polls = scene.db.polls
        await wait_until(lambda: scene.db.polls >= polls + 2, pilot)
        screen = scene.app.screen
        assert isinstance(screen, JobsScreen)
        screen.tick()
        await pilot.pause()
        assert painted == [[] for _ in painted]


async def test_a_filter_is_previewed_while_it_is_typed_and_kept() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        table = await ready(scene, pilot)
        await typed(pilot, "status:failed")
        await wait_until(lambda: table.count == 1, pilot)
        await pilot.press("enter")
        await wait_until(lambda: not scene.app.screen.query(FilterBar), pilot)
        assert table.count == 1
        assert any("/status:failed · 1 of 10 jobs" in line for line in screen_text(scene.app))
        await pilot.press("escape")
        await wait_until(lambda: table.count == 9, pilot)


def underlined(app: JobtuiApp) -> str:
    """All underlined text on the screen."""
    segments = (segment for strip in app.screen._compositor.render_strips() for segment in strip)
    return "".join(segment.text for segment in segments if segment.style and segment.style.underline)


async def test_a_mistake_is_shown_at_its_place_and_filters_nothing() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        table = await ready(scene, pilot)
        await typed(pilot, "status:faild")
        await wait_until(lambda: scene.app.screen.query_one(MistakeLine).display, pilot)
        await wait_until(lambda: table.count == 9, pilot)
        bar = scene.app.screen.query_one(FilterBar)
        assert bar.mistake is not None
        assert "status:faild"[bar.mistake.start : bar.mistake.end] == "faild"
        shown = scene.app.screen.query_one(MistakeLine)
        await wait_until(lambda: "did you mean failed?" in "".join(text_of(shown)), pilot)
        await wait_until(lambda: underlined(scene.app).startswith("faild"), pilot)
        await pilot.press("enter")
        await pilot.pause()
        assert scene.app.screen.query(FilterBar)
        await pilot.press("backspace", "e", "d")
        await wait_until(
            lambda: not scene.app.screen.query_one(MistakeLine).display or table.count == 1, pilot
        )


async def test_leaving_the_input_puts_the_old_filter_back() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        table = await ready(scene, pilot)
        await typed(pilot, "q")
        assert scene.app.is_running
        await pilot.press("escape")
        await wait_until(lambda: not scene.app.screen.query(FilterBar), pilot)
        await wait_until(lambda: table.count == 9, pilot)


async def test_sorting_by_key_goes_through_the_columns() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        table = await ready(scene, pilot)
        orders = [table.sorted_by]
        for key in "sS":
            await pilot.press(key)
            orders.append(table.sorted_by)
        assert orders == [(None, False), ("state", False), ("state", True)]
        await wait_until(lambda: any("by state, reversed" in line for line in screen_text(scene.app)), pilot)
        for _ in range(20):
            await pilot.press("s")
            if table.sorted_by == (None, False):
                return
        pytest.fail("it never came back to what is urgent")


async def test_enter_opens_the_job_and_escape_comes_back_to_the_place() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        table = await ready(scene, pilot)
        await pilot.press("j", "j", "down")
        here = table.cursor_id
        await pilot.press("enter")
        await wait_until(lambda: isinstance(scene.app.screen, JobScreen), pilot)
        assert isinstance(scene.app.screen, JobScreen)
        assert scene.app.screen.job_id == here
        scene.db.add(batch(a_job(11, started_at=ago(0), name="while away")))
        await wait_until(lambda: scene.store.job(job_id(11)) is not None, pilot)
        await pilot.press("escape")
        await wait_until(lambda: isinstance(scene.app.screen, JobsScreen), pilot)
        await wait_until(lambda: table.total == 11, pilot)
        assert table.cursor_id == here


async def test_times_of_day_instead_of_ages() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        table = await ready(scene, pilot)
        assert any("12m" in line for line in text_of(table))
        await pilot.press("t")
        await wait_until(lambda: any("20:48" in line for line in text_of(table)), pilot)


async def test_marked_jobs_are_counted_and_forgotten() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        table = await ready(scene, pilot)
        await pilot.press("space", "space")
        await wait_until(lambda: any("2 marked" in line for line in screen_text(scene.app)), pilot)
        await pilot.press("escape")
        assert table.selected == set()


async def test_copying_takes_the_id_under_the_cursor_or_all_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    copied: list[str] = []
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await ready(scene, pilot)
        monkeypatch.setattr(JobsScreen, "copy", lambda self, text: copied.append(text))
        await pilot.press("y", "space", "space", "y")
        assert copied == [job_id(1), f"{job_id(1)}\n{job_id(2)}"]


async def test_one_toast_when_a_source_goes_down_and_one_when_it_is_back() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40), notifications=True) as pilot:
        await ready(scene, pilot)
        scene.db.add(SourceUnreachable(f"{scene.db.name}: [red]no answer[/]"), batch(*jobs()))
        await wait_until(lambda: len(scene.app._notifications) == 1, pilot)
        toasts = [(toast.title, toast.message) for toast in scene.app._notifications]
        assert toasts == [("source down", f"{scene.db.name}: [red]no answer[/]")]


async def test_a_job_only_named_in_logs_does_no_harm() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        table = await ready(scene, pilot)
        record = LogRecord("/var/log/supervisor.log", 1, 0, ago(1), 1, "op", {"jid": job_id(99)}, "text")
        scene.log.add(Batch(cursor="2", records=(record,)), Batch(cursor="3"))
        polls = scene.log.polls
        await wait_until(lambda: scene.log.polls >= polls + 2, pilot)
        await pilot.press("j")
        assert table.total == len(jobs())
        assert FAILED in {job.id for job in table.visible_jobs}


async def test_a_job_about_which_sources_disagree_is_flagged() -> None:
    job = a_job(1, name="at odds", written_at=NOW)
    scene = Scene([batch(job, a_job(2, name="in peace"))])
    steps = [a_step("op created"), a_step("sent", 1), a_step("status completed", 30)]
    scene.correlation.put(job.id, an_op(jid=job.id, steps=steps))
    async with scene.app.run_test(size=(140, 30)) as pilot:
        await wait_until(lambda: "at odds" in "\n".join(screen_text(scene.app)), pilot)
        scene.clock.advance(20)
        await wait_until(lambda: "sources disagree" in "\n".join(screen_text(scene.app)), pilot)
        (line,) = (line for line in screen_text(scene.app) if "sources disagree" in line)
        assert "at odds" in line
        assert line.strip().startswith("!")
