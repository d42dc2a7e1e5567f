import msgspec
import pytest
from textual.message import Message

from jobtui.model.clock import FixedClock
from jobtui.model.jobs import Job
from jobtui.render.columns import RowContext
from jobtui.widgets.job_table import TICKED, JobTable
from jobtui.widgets.row_view import Move
from tests.builders import a_job, ago, job_id
from tests.waiting import wait_until
from tests.widgets.widget_app import WidgetApp, text_of, watch


class TableStage(WidgetApp):
    def __init__(self, clock: FixedClock) -> None:
        self.table = JobTable(lambda: RowContext(now=clock.now()))
        self.said: list[Message] = []
        super().__init__(self.table)

    def on_job_table_opened(self, message: JobTable.Opened) -> None:
        self.said.append(message)


@pytest.fixture
def stage(clock: FixedClock) -> TableStage:
    return TableStage(clock)


def running(count: int, first: int = 0) -> list[Job]:
    return [a_job(n, started_at=ago(n + 1), percent=1.0, mode="sbatch") for n in range(first, first + count)]


async def test_of_many_rows_only_the_visible_ones_are_drawn(stage: TableStage) -> None:
    async with stage.run_test(size=(120, 20)) as pilot:
        stage.table.apply(running(100_000))
        await wait_until(lambda: not stage.table.is_sorting, pilot)
        await pilot.pause()
        painted = watch(stage.table)
        assert stage.table.count == 100_000
        assert len(stage.table._drawn) <= 40

        off_screen = stage.table.job(job_id(50_000))
        assert off_screen is not None
        stage.table.apply([msgspec.structs.replace(off_screen, percent=77.0)])
        await pilot.pause()
        assert painted == []

        on_screen = stage.table.visible_jobs[4]
        stage.table.apply([msgspec.structs.replace(on_screen, percent=77.0)])
        await pilot.pause()
        assert painted == [5]
        painted.clear()

        changed = [
            msgspec.structs.replace(job, percent=50.0)
            for job in map(stage.table.job, map(job_id, range(2_000)))
            if job
        ]
        stage.table.apply(changed)
        await pilot.pause()
        assert sorted(painted) == list(range(1, 20))
        painted.clear()

        stage.table.move(Move.DOWN)
        await pilot.pause()
        assert painted == [1, 2]
        painted.clear()

        stage.table.apply([msgspec.structs.replace(job, percent=50.0) for job in changed])
        await pilot.pause()
        assert painted == []


async def test_the_cursor_stays_with_its_job_while_rows_move_or_on_top(stage: TableStage) -> None:
    async with stage.run_test(size=(120, 12)) as pilot:
        table = stage.table
        table.apply(running(100, first=10))
        for _ in range(5):
            table.move(Move.DOWN)
        held, on_screen = table.cursor_id, table.cursor - table.top
        table.apply(running(5, first=5))
        await pilot.pause()
        assert (table.cursor_id, table.cursor, table.cursor - table.top) == (held, 10, on_screen)
        table.move(Move.TOP)
        table.apply(running(1))
        await pilot.pause()
        assert (table.cursor_id, table.cursor, table.top) == (job_id(0), 0, 0)


async def test_the_cursor_comes_back_to_a_job_that_was_filtered_away(stage: TableStage) -> None:
    async with stage.run_test(size=(120, 12)) as pilot:
        table = stage.table
        table.apply(running(50))
        table.go(30)
        assert table.cursor_id == job_id(30)
        table.set_filter(lambda job: job.id != job_id(30))
        await wait_until(lambda: table.count == 49, pilot)
        assert table.cursor_id != job_id(30)
        table.set_filter(None)
        await wait_until(lambda: table.count == 50, pilot)
        assert table.cursor_id == job_id(30)


async def test_a_job_that_is_gone_leaves_no_trace(stage: TableStage) -> None:
    async with stage.run_test(size=(120, 12)) as pilot:
        table = stage.table
        table.apply(running(3))
        table.toggle()
        table.go(2)
        assert table.selected == {job_id(0)}
        table.apply([], gone=[job_id(0), job_id(2)])
        await pilot.pause()
        assert [job.name for job in table.visible_jobs] == ["heights 1"]
        assert table.cursor_id == job_id(1)
        assert table.selected == set()
        table.apply([], gone=[job_id(1)])
        assert table.cursor_id is None
        table.open()
        table.toggle()
        table.move(Move.DOWN)
        await pilot.pause()
        assert text_of(table)[1] == ""


async def test_ages_go_on_a_few_rows_at_a_time(stage: TableStage, clock: FixedClock) -> None:
    async with stage.run_test(size=(120, 30)) as pilot:
        table = stage.table
        table.apply([a_job(n, started_at=ago(n + 1)) for n in range(20)])
        await pilot.pause()
        painted = watch(table)
        clock.advance(1)
        table.tick()
        await pilot.pause()
        assert len(painted) == TICKED
        for _ in range(5):
            table.tick()
        await pilot.pause()
        assert sorted(painted) == list(range(1, 21))
        painted.clear()
        table.tick()
        await pilot.pause()
        assert painted == []


async def test_the_mouse_moves_the_cursor_scrolls_and_opens(stage: TableStage) -> None:
    async with stage.run_test(size=(120, 12)) as pilot:
        table = stage.table
        table.apply(running(100))
        await pilot.pause()
        await pilot.click(JobTable, offset=(10, 4))
        assert table.cursor == 3
        await pilot.click(JobTable, offset=(10, 5), times=2)
        await pilot.pause()
        assert [m.job_id for m in stage.said if isinstance(m, JobTable.Opened)] == [job_id(4)]
        table.scroll_rows(10)
        assert (table.top, table.cursor) == (10, 10)
        table.scroll_rows(-100)
        assert table.top == 0
        await pilot.click(JobTable, offset=(10, 0))
        assert table.cursor == 10


async def test_moves_go_where_they_should(stage: TableStage) -> None:
    async with stage.run_test(size=(120, 11)) as pilot:
        table = stage.table
        table.apply(running(100))
        await pilot.pause()
        reached = []
        for name in ("page_down", "half_down", "down", "up", "half_up", "page_up", "bottom", "top"):
            table.move(Move(name))
            reached.append((table.cursor, table.top))
        assert reached == [(10, 1), (15, 6), (16, 7), (15, 7), (10, 7), (0, 0), (99, 90), (0, 0)]
