"""The table of jobs: its rows, their order, the cursor, and what is painted."""

from collections.abc import Generator
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot

from jobtui.model.clock import FixedClock
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from jobtui.render.columns import RowContext
from jobtui.widgets.job_rows import BULK, FIRST, FRESH_S, LAST_S, JobRows, Order, RowIndex, arranged
from jobtui.widgets.job_table import TICKED, JobTable
from jobtui.widgets.row_view import Move
from tests.builders import a_job, ago, job_id
from tests.waiting import wait_until
from tests.widgets.widget_app import WidgetApp, text_of, watch


class TableStage(WidgetApp):
    def __init__(self, clock: FixedClock) -> None:
        self.table = JobTable(lambda: RowContext(now=clock.now()))
        self.opened: list[JobId | None] = []
        super().__init__(self.table)

    def on_record_list_opened(self, message: JobTable.Opened) -> None:
        self.opened.append(self.table.cursor_id)


@pytest.fixture
def stage(clock: FixedClock) -> TableStage:
    return TableStage(clock)


def running(count: int, first: int = 0) -> list[Job]:
    return [a_job(n, started_at=ago(n + 1), percent=1.0, mode="sbatch") for n in range(first, first + count)]


async def seen(painted: list[int], pilot: Pilot[None]) -> list[int]:
    await pilot.pause()
    found = sorted(painted)
    painted.clear()
    return found


async def test_a_table_draws_only_its_visible_rows(stage: TableStage) -> None:
    async with stage.run_test(size=(120, 20)) as pilot:
        stage.table.apply(running(100_000))
        await wait_until(lambda: not stage.table.rows.is_sorting, pilot)
        await pilot.pause()
        painted = watch(stage.table)
        assert stage.table.count == 100_000
        assert len(stage.table._drawn) <= 40

        off_screen = stage.table.rows.jobs[job_id(50_000)]
        stage.table.apply([msgspec.structs.replace(off_screen, percent=77.0)])
        assert await seen(painted, pilot) == []
        on_screen = stage.table.visible_jobs[4]
        stage.table.apply([msgspec.structs.replace(on_screen, percent=77.0)])
        assert await seen(painted, pilot) == [5]
        jobs = map(stage.table.rows.jobs.__getitem__, map(job_id, range(2_000)))
        changed = [msgspec.structs.replace(job, percent=50.0) for job in jobs]
        stage.table.apply(changed)
        assert await seen(painted, pilot) == list(range(1, 20))

        stage.table.move(Move.DOWN)
        assert await seen(painted, pilot) == [1, 2]

        stage.table.apply([msgspec.structs.replace(job, percent=50.0) for job in changed])
        assert await seen(painted, pilot) == []


async def test_the_cursor_stays_on_its_job_or_on_top_while_rows_move(stage: TableStage) -> None:
    async with stage.run_test(size=(120, 12)) as pilot:
        table = stage.table
        table.apply(running(100, first=10))
        for _ in range(15):
            table.move(Move.DOWN)
        held, on_screen = table.cursor_id, table.cursor - table.top
        table.apply(running(5, first=5))
        await pilot.pause()
        assert (table.cursor_id, table.cursor, table.cursor - table.top) == (held, 20, on_screen)
        table.move(Move.TOP)
        table.apply(running(1))
        await pilot.pause()
        assert (table.cursor_id, table.cursor, table.top) == (job_id(0), 0, 0)
        table.go(9)
        for number, top in ((200, 0), (201, 1), (202, 2)):  # what is new is seen while there is room for both
            table.apply([a_job(number, status=JobStatus.FAILED, ended_at=ago(0))])
            assert (table.cursor_id, table.top) == (job_id(13), top)


async def test_the_last_row_is_the_last_of_all_filtered_rows(stage: TableStage) -> None:
    async with stage.run_test(size=(120, 12)) as pilot:
        stage.table.apply(running(20_000))
        await wait_until(lambda: not stage.table.rows.is_sorting, pilot)
        stage.table.set_filter(lambda job: job.mode == "sbatch")
        stage.table.move(Move.BOTTOM)
        await wait_until(lambda: stage.table.cursor == 19_999, pilot)


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
        assert await seen(painted, pilot) == list(range(1, 21))
        table.tick()
        assert await seen(painted, pilot) == []


async def test_the_mouse_moves_the_cursor_scrolls_and_opens(stage: TableStage) -> None:
    async with stage.run_test(size=(120, 12)) as pilot:
        table = stage.table
        table.apply(running(100))
        await pilot.pause()
        await pilot.click(JobTable, offset=(10, 4))
        assert table.cursor == 3
        await pilot.click(JobTable, offset=(10, 5), times=2)
        await pilot.pause()
        assert stage.opened == [job_id(4)]
        table.scroll_rows(10)
        assert (table.top, table.cursor) == (10, 10)
        table.scroll_rows(-100)
        assert table.top == 0
        await pilot.click(JobTable, offset=(10, 0))
        assert table.cursor == 10


async def test_a_short_reason_leaves_its_room_to_a_name_that_would_be_cut(stage: TableStage) -> None:
    async with stage.run_test(size=(120, 11)) as pilot:
        stage.table.apply([a_job(1, status=JobStatus.FAILED, error="no such breed", name="n" * 32)])
        await wait_until(lambda: "n" * 32 in text_of(stage.table)[1], pilot)


async def test_a_column_is_there_with_a_value(stage: TableStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.widgets.job_table.ROOM_S", 0.0)
    async with stage.run_test(size=(120, 11)) as pilot:
        for host in (None, "v1", None):
            stage.table.apply([a_job(1, host=host)])
            stage.table.tick()
            await wait_until(lambda host=host: ("HOST" in text_of(stage.table)[0]) is bool(host), pilot)  # type: ignore[misc]


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


class Row(NamedTuple):
    id: str
    key: int | None = None


def built(rows: list[Any], order: Order) -> RowIndex:
    found: list[RowIndex] = []

    def steps() -> Generator[RowIndex | None, None, None]:
        found.append((yield from arranged({row.id: row for row in rows}, order, None)))

    assert not any(steps())
    return found[0]


def expected(rows: list[Any], order: Order) -> list[str]:
    shown = [row for row in rows if order.keep is None or order.keep(row)]
    entries = [((row.key is None) is not order.reverse, row.key or 0, row.id) for row in shown]
    return [entry[-1] for entry in sorted(entries, reverse=order.reverse)]


ROWS = st.lists(st.builds(Row, st.integers(0, 30).map(str), st.none() | st.integers(-5, 5)), max_size=60)
ORDERS = st.builds(
    Order,
    st.sampled_from([lambda row: row.key]),
    st.booleans(),
    st.sampled_from([None, lambda row: row.key != 1, lambda row: False]),
)


@given(ROWS, ROWS, st.sets(st.integers(0, 30).map(str)), ORDERS)
def test_the_order_is_a_fresh_sort(first: list[Any], then: list[Any], gone: set[str], order: Order) -> None:
    rows = {row.id: row for row in first}
    index = built(list(rows.values()), order)
    for row in then:
        rows[row.id] = row
        index.put(row)
    for row_id in gone:
        rows.pop(row_id, None)
        index.discard(row_id)
    wanted = expected(list(rows.values()), order)
    assert index.window(0, 1000) == wanted
    assert len(index) == len(wanted)
    assert [index.position(row_id) for row_id in wanted] == list(range(len(wanted)))
    assert index.window(3, 7) == wanted[3:7]
    assert index.window(-3, 2) == wanted[0:2]
    assert index.window(7, 3) == []


def shown(rows: JobRows) -> list[JobId]:
    return list(rows.index.window(0, 10_000))


def settle(rows: JobRows) -> None:
    while rows.is_sorting:
        rows.work()


def test_jobs_that_need_attention_come_first_then_live_then_ended(clock: FixedClock) -> None:
    rows = JobRows(clock.now)
    rows.apply(
        [
            a_job(1, status=JobStatus.COMPLETED, ended_at=ago(10)),
            a_job(2, status=JobStatus.MISSING, started_at=None, queued_at=None, updated_at=None),
            a_job(3, started_at=ago(10)),
            a_job(4, status=JobStatus.PENDING, started_at=None, queued_at=ago(300)),
            a_job(5, status=JobStatus.FAILED, ended_at=ago(5)),
            a_job(6, started_at=ago(2)),
            a_job(7, status=JobStatus.FAILED, ended_at=ago(FRESH_S + 1)),
        ]
    )
    assert shown(rows) == [job_id(n) for n in (5, 4, 6, 3, 1, 7, 2)]
    assert rows.needy == {job_id(4)}
    rows.apply(a_job(n, status=JobStatus.FAILED, ended_at=ago(n)) for n in (50, 51, 52, 53))
    assert shown(rows) == [job_id(n) for n in (5, 50, 51, 4, 52, 53, 6, 3, 1, 7, 2)]
    rows.set_order(Order(rows.urgency, keep=lambda job: job.id not in map(job_id, (5, 50))))
    settle(rows)
    assert shown(rows)[:5] == [job_id(n) for n in (51, 52, 53, 4, 6)]
    rows.apply([a_job(51)], gone=[job_id(52)])
    assert shown(rows)[:2] == [job_id(n) for n in (53, 4)]
    clock.advance(FRESH_S)
    rows.sweep()
    assert shown(rows)[0] == job_id(53), "nothing newer was heard of"
    rows.apply([a_job(8, started_at=ago(-FRESH_S), updated_at=ago(-FRESH_S))])
    rows.sweep()
    assert shown(rows)[-4:] == [job_id(n) for n in (1, 53, 7, 2)]


def test_the_newest_failures_come_first_where_nothing_was_written_for_days(clock: FixedClock) -> None:
    rows = JobRows(clock.now)
    failed, done, begun = JobStatus.FAILED, JobStatus.COMPLETED, ago(9 * LAST_S)
    ended = ((JobStatus.CANCELED, 0), (failed, 9_000), (done, 9_001), (failed, LAST_S))
    for n, (status, before_s) in enumerate(ended):
        at = ago(6 * LAST_S + before_s)
        rows.apply([a_job(n, status=status, queued_at=begun, started_at=begun, ended_at=at, updated_at=at)])
    assert shown(rows) == [job_id(n) for n in (1, 0, 2, 3)]


def test_a_job_begins_to_need_a_person_by_time_alone(clock: FixedClock) -> None:
    rows = JobRows(clock.now)
    rows.apply(
        [a_job(1, status=JobStatus.PENDING, started_at=None, queued_at=ago(1)), a_job(2, started_at=ago(0))]
    )
    assert shown(rows) == [job_id(2), job_id(1)]
    assert not rows.needy
    clock.advance(60)
    assert rows.sweep()
    assert shown(rows) == [job_id(1), job_id(2)]
    assert rows.needy == {job_id(1)}
    rows.apply([a_job(1, status=JobStatus.COMPLETED, ended_at=ago(-60))])
    assert not rows.needy


def test_a_filter_on_ages_drops_jobs_as_time_passes(clock: FixedClock) -> None:
    rows = JobRows(clock.now)
    rows.apply([a_job(n, status=JobStatus.COMPLETED, ended_at=ago(10 * n)) for n in range(5)])
    rows.set_order(Order(rows.urgency, keep=lambda job: clock.now() - (job.ended_at or 0) < 35e9, ages=True))
    settle(rows)
    assert len(rows.index) == 4
    clock.advance(10)
    rows.sweep()
    assert len(rows.index) == 3


def test_the_first_rows_of_a_filter_come_before_all_were_looked_at(
    clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobtui.widgets.job_rows.FIRST_S", 60.0)
    monkeypatch.setattr("jobtui.widgets.job_rows.SLICE", 128)
    rows = JobRows(clock.now)
    rows.apply([a_job(n, status=JobStatus.COMPLETED, ended_at=ago(n)) for n in range(4 * FIRST)])
    settle(rows)
    before = shown(rows)
    some, others, few = before[::2], before[1::2], before[-9:]
    cases = (None, some), (some[-1], before), (others[-1], some), (None, few), (None, before)
    for rows.held, passing in cases:
        rows.set_order(Order(rows.urgency, keep=lambda job, known=frozenset(passing): job.id in known))  # type: ignore[misc]
        assert shown(rows) == passing[: len(rows.index)], "the first of all that pass, whatever passed before"
        assert len(rows.index) >= min(FIRST, len(passing))
        assert rows.has_more is (passing is not few)
        assert rows.held not in passing or rows.index.position(rows.held) is not None
        settle(rows)
        assert (shown(rows), rows.has_more) == (passing, False)
    rows.held = None
    for reverse, wanted in ((False, before[::-1]), (True, before)):
        rows.set_order(Order(lambda job: job.ended_at, reverse))
        assert (shown(rows), rows.has_more) == (wanted[: len(rows.index)], True)
        settle(rows)
        assert (shown(rows), rows.has_more) == (wanted, False)


def test_changes_during_a_sort_are_not_lost(clock: FixedClock) -> None:
    rows, by_name = JobRows(clock.now), attrgetter("name")
    rows.apply([a_job(n, name=f"n{n:06d}") for n in range(2 * BULK)])
    few, fewer = (lambda job, first=first: job.name > first for first in ("z45", "z54"))
    for keep in (None, lambda job: job.name < "o", lambda job: job.name > "m", few, fewer):
        rows.set_order(Order(by_name, keep=keep), narrows=keep is fewer)
        for step in range(40):
            changed = [a_job(n, name=f"{'nz'[n % 2]}{n - step}") for n in range(step, step + 300)]
            rows.apply(changed, gone=[job_id(2 * BULK - step)])
            rows.work(0.0)
        settle(rows)
        wanted = sorted(filter(keep, rows.jobs.values()), key=attrgetter("name", "id"))
        assert list(rows.index.window(0, 2 * BULK)) == [job.id for job in wanted]
