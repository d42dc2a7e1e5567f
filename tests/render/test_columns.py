"""Columns of jobs and agents: cells, order, widths, hostile text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from jobtui.model.ids import OpPrefix
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.ops import AgentState, HeldOp
from jobtui.render.agents import AGENT_COLUMNS, RECENT_S, STATES, is_trouble, state_style, urgent_first
from jobtui.render.columns import (
    DEFAULT_COLUMNS,
    JOB_COLUMNS,
    Column,
    RowContext,
    TableColumn,
    TimeLook,
    fit_columns,
    gap_for,
    head,
    sort_records,
    table_rows,
)
from jobtui.render.memory import SEEN_COLUMNS
from jobtui.render.resources import ALLOCATION_COLUMNS, NODE_COLUMNS
from jobtui.render.spans import Piece
from jobtui.render.styles import GLYPHS, STATUS_STYLES, WORDS
from jobtui.render.text import safe, width
from jobtui.render.traces import TRACE_COLUMNS
from tests.builders import a_job, ago, an_agent
from tests.conftest import NOW
from tests.offenders import each
from tests.screens.pictures import TextFile

CONTEXT = RowContext(now=NOW)


def keys(cells: int) -> list[str]:
    return [column.key for column, _ in fit_columns(cells, DEFAULT_COLUMNS)]


STUCK = a_job(
    1, status=JobStatus.PENDING, mode="parallel", queued_at=ago(372), started_at=None, updated_at=None
)
RUNNING = a_job(2, percent=41.4, started_at=ago(720), mode="sbatch", host="v4", driver="SbatchDriver")
FAILED = a_job(3, status=JobStatus.FAILED, ended_at=ago(120), error="no such element: crystal3")
DONE = a_job(4, status=JobStatus.COMPLETED, ended_at=ago(120), alert=None)
BARE = Job(id=a_job(5).id, system="x", status=JobStatus.UNKNOWN, native_status="odd", source="y")

JOBS_TOLD = {
    "stuck": STUCK, "running": RUNNING, "failed": FAILED, "done": DONE, "bare": BARE,
    "of days": a_job(6, started_at=ago(3 * 86_400)), "of years": a_job(7, started_at=ago(800 * 86_400)),
}  # fmt: skip
AGENTS_TOLD = {
    "idle": an_agent(), "never came": an_agent(state=AgentState.NEVER_CONNECTED, kind="odd"),
    "bare": an_agent(since=None, host=None, container=None, last_message_at=None),
    "busy": an_agent(ops=(HeldOp(OpPrefix("pb5u"), "run"), HeldOp(OpPrefix("k2Wc"), "io")), messages=12_345),
    "lost": an_agent(state=AgentState.LOST, why="docker start: PASSWORD=hunter2", restarts=2),
}  # fmt: skip


def told(columns: Sequence[TableColumn[Any, Any]], records: Mapping[str, Any], *looks: Any) -> Iterator[str]:
    """Each cell of some records: what it says, and its style."""
    for name, record in records.items():
        for column in columns:
            cells = [f"{column.cell(record, look)} [{column.style(record, look)}]" for look in looks]
            yield f"{name}, {column.key}: {' or '.join(dict.fromkeys(cells))}"


def test_cells(snapshot: SnapshotAssertion) -> None:
    other = RowContext(now=NOW, relative=False, with_agent=lambda job: replace(job, host="c\x1b", driver="D"))
    lines = [*told(JOB_COLUMNS, JOBS_TOLD, CONTEXT, other)]
    lines += told(AGENT_COLUMNS, AGENTS_TOLD, TimeLook(NOW), TimeLook(NOW, relative=False))
    assert "\n".join((*lines, "")) == snapshot(name="all", extension_class=TextFile)


def test_every_status_and_every_state_of_an_agent_has_a_sign_of_one_cell() -> None:
    assert set(GLYPHS) == set(WORDS) == set(STATUS_STYLES) == set(JobStatus)
    assert len(set(GLYPHS.values())) == len(JobStatus)
    assert all(width(sign) == 1 for sign in GLYPHS.values())
    for state in AgentState:
        assert width(STATES[state][0]) == 1


TABLES = {
    "default": DEFAULT_COLUMNS, "all": JOB_COLUMNS, "last": JOB_COLUMNS[-4:], "agents": AGENT_COLUMNS,
    "nodes": NODE_COLUMNS, "traces": TRACE_COLUMNS, "seen": SEEN_COLUMNS, "allocations": ALLOCATION_COLUMNS,
}  # fmt: skip


@each(*TABLES.values())
def test_columns_fill_no_more_than_there_is(chosen: tuple[TableColumn[Any, Any], ...]) -> None:
    order = [column.key for column in chosen]
    for cells in (*range(1, 251), 1000):
        shown = fit_columns(cells, chosen, {column.key: cells % 40 for column in chosen[:: cells % 3 + 1]})
        assert shown
        assert _taken(shown, cells) <= cells
        assert all(1 <= size <= column.cells.most for column, size in shown), cells
        assert [column.key for column, _ in shown] == [k for k in order if k in {c.key for c, _ in shown}]
        assert cells < 10 or all(size >= min(column.cells.least, 6) for column, size in shown), cells


def _taken(shown: tuple[tuple[TableColumn[Any, Any], int], ...], cells: int) -> int:
    return sum(size for _, size in shown) + gap_for(cells) * (len(shown) - 1)


def test_a_narrow_table_drops_columns_in_order_and_shows_a_sign() -> None:
    assert keys(130) == [column.key for column in DEFAULT_COLUMNS]
    assert keys(117) == [column.key for column in DEFAULT_COLUMNS if column.key != "mode"]
    assert keys(77) == ["state", "age", "user", "name", "model", "percent", "reason"]
    assert keys(40) == ["state", "age", "name", "reason"]
    assert keys(20) == ["state", "age", "name"]
    assert keys(10) == ["state", "name"]
    assert keys(2) == ["state"]
    (column, cells), *_ = fit_columns(40, DEFAULT_COLUMNS)
    assert cells == 2
    assert column.cell(STUCK, CONTEXT) == "!○"
    assert column.cell(RUNNING, CONTEXT) == " ●"


def test_unused_width_of_a_column_goes_to_columns_with_cut_text() -> None:
    texts = {**dict.fromkeys((column.key for column in DEFAULT_COLUMNS), 4), "name": 16, "model": 29}
    sizes = {column.key: cells for column, cells in fit_columns(120, DEFAULT_COLUMNS, texts)}
    assert sizes.items() >= {"name": 16, "model": 29}.items()
    assert fit_columns(120, DEFAULT_COLUMNS, dict.fromkeys(texts, 90)) == fit_columns(120, DEFAULT_COLUMNS)
    usual = {column.key: column.cells.usual for column in DEFAULT_COLUMNS} | {"name": 20, "reason": 500}
    for cells in range(100, 250):
        sizes = {column.key: size for column, size in fit_columns(cells, DEFAULT_COLUMNS, usual)}
        assert sizes["name"] == 20 < 24 <= sizes["reason"] == max(sizes.values()), cells
    long = {"state": 9, "age": 6, "name": 22, "app": 7, "model": 12, "host": 11, "reason": 90}
    assert dict((one.key, size) for one, size in fit_columns(120, DEFAULT_COLUMNS, long))["host"] == 11


def test_rows_are_sorted_by_value_the_youngest_first_and_missing_values_last() -> None:
    jobs = [a_job(n, percent=value) for n, value in enumerate([9.0, None, 100.0, 41.0, None])]
    up = [job.percent for job in sort_records(jobs, JOB_COLUMNS, "percent")]
    down = [job.percent for job in sort_records(jobs, JOB_COLUMNS, "percent", reverse=True)]
    assert up == [9.0, 41.0, 100.0, None, None]
    assert down == [100.0, 41.0, 9.0, None, None]
    assert sort_records([FAILED, BARE, RUNNING, STUCK], JOB_COLUMNS, "age") == [FAILED, STUCK, RUNNING, BARE]
    assert sort_records([RUNNING, STUCK, FAILED], JOB_COLUMNS, "dur") == [FAILED, RUNNING, STUCK]


JOBS = st.builds(
    a_job,
    st.integers(0, 99),
    status=st.sampled_from(JobStatus),
    owner=st.text(max_size=5),
    percent=st.none() | st.floats(0, 100),
    **dict.fromkeys(("name", "message", "error"), st.none() | st.text(max_size=5)),
    **dict.fromkeys(("queued_at", "started_at", "ended_at"), st.none() | st.integers(0, 2**62)),
)


@settings(deadline=None, max_examples=100)
@given(st.lists(JOBS, max_size=6), st.sampled_from(JOB_COLUMNS), st.booleans())
def test_any_jobs_are_shown_and_sorted_by_any_column(jobs: list[Job], column: Column, reverse: bool) -> None:
    ordered = sort_records(jobs, JOB_COLUMNS, column.key, reverse=reverse)
    assert len(ordered) == len(jobs)
    for job in jobs:
        for relative in (True, False):
            shown = column.cell(job, RowContext(now=NOW, relative=relative))
            assert safe(shown) == shown


@each((120, "v3"), (200, "v3.radia.run"))
def test_the_whole_name_where_there_is_room(cells: int, shown: str) -> None:
    column = next(column for column, _ in fit_columns(cells, DEFAULT_COLUMNS) if column.key == "host")
    assert column.cell(a_job(host="v3.radia.run"), RowContext(now=NOW)) == shown


LOOK = TimeLook(NOW)


def test_recent_failures_come_first_and_old_ends_last() -> None:
    agents = [
        an_agent("old1", state=AgentState.LOST, since=ago(RECENT_S + 60)),
        an_agent("idle"),
        an_agent("busy", state=AgentState.CONNECTED),
        an_agent("lost", state=AgentState.LOST, since=ago(30)),
        an_agent("late", state=AgentState.KILLED, since=ago(5)),
        an_agent("come", state=AgentState.STARTING, since=ago(2)),
        an_agent("none", state=AgentState.NEVER_CONNECTED, since=ago(9)),
    ]
    order = [agent.agent for agent in urgent_first(agents, NOW)]
    assert order == ["none", "lost", "come", "busy", "idle", "late", "old1"]
    assert not is_trouble(agents[0], NOW)
    assert state_style(agents[0], LOOK) == "settled"
    assert state_style(agents[3], LOOK) == "status.failed"


@each(*[column.key for column in AGENT_COLUMNS])
def test_every_column_sorts_full_and_empty_records(key: str) -> None:
    bare = an_agent(
        "bbbb", since=None, host=None, container=None, last_message_at=None, why="", ops=(), restarts=0
    )
    agents = [an_agent("aaaa", why="x"), bare]
    for reverse in (False, True):
        assert len(sort_records(agents, AGENT_COLUMNS, key, reverse=reverse)) == 2


@each((30, ""), (55, "ValueError: "))
def test_an_error_looks_alike_in_all_rows_of_a_column(cells: int, kept: str) -> None:
    column = head("why")
    rows = [[Piece(f"ValueError: {words}")] for words in ("it is bad", "it is bad, and has no room in 30")]
    _, short, long = table_rows([column], rows, cells)
    assert short[0].text.rstrip() == f"{kept}it is bad"
    assert long[0].text.startswith(f"{kept}it is bad, and has")
