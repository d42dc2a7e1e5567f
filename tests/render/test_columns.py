"""Columns of jobs and agents, tables, lines of spans and axes as text: aligned, safe, never too wide."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from jobtui.analysis.counts import MINUTES, Flow, Pace
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import OpPrefix
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.ops import AgentState, HeldOp
from jobtui.render.agents import AGENT_COLUMNS, RECENT_S, STATES, is_trouble, state_style, urgent_first
from jobtui.render.chart import axis_lines, axis_ticks
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
    table_lines,
    table_rows,
)
from jobtui.render.memory import SEEN_COLUMNS
from jobtui.render.resources import ALLOCATION_COLUMNS, NODE_COLUMNS
from jobtui.render.spans import Line, Piece, difference, fitting, pace_line, padded, spread, styled, width_of
from jobtui.render.styles import GLYPHS, STATUS_STYLES, WORDS
from jobtui.render.table import fact_lines, paint, unpainted
from jobtui.render.text import safe, width
from jobtui.render.traces import TRACE_COLUMNS
from tests.builders import HOSTILE, a_job, ago, an_agent, text_of
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


HEADS = (
    head("N", align="right"),
    head("NAME"),
    replace(head("EXTRA", 6), priority=10),
    replace(head("WHY"), priority=20),
)


def lines(rows: list[tuple[str, ...]], cells: int | None) -> list[str]:
    return list(map(unpainted, table_lines(HEADS, [[Piece(text) for text in row] for row in rows], cells)))


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert lines([("1", "表格", "", "x"), ("23", "a", "e", "")], None) == [
        " N  NAME  EXTRA  WHY",
        " 1  表格         x",
        "23  a     e",
    ]


def test_a_narrow_table_squeezes_and_then_drops() -> None:
    row = ("1", "n" * 20, "e" * 20, "w" * 20)
    assert lines([row], 60)[1] == f"1 {'n' * 17}… {'e' * 20} {'w' * 17}…"
    assert lines([row], 17)[0].split() == ["N", "NAME", "WHY"]
    assert lines([row], 8)[0].split() == ["N", "NAME"]


@given(
    rows=st.lists(st.tuples(*[st.text(max_size=30) | st.sampled_from(HOSTILE)] * 4), max_size=5),
    cells=st.integers(20, 100),
)
def test_no_line_is_too_wide_or_contains_terminal_sequences(rows: list[tuple[str, ...]], cells: int) -> None:
    for line in lines(rows, cells):
        assert width(line) <= cells
        assert line.isprintable()


def test_colour_adds_escapes_and_nothing_else() -> None:
    rows = [[Piece("1", "error"), Piece("a", "no such style"), Piece(""), Piece("x")]]
    painted = [*table_lines(HEADS, rows, None)]
    plain = lines([tuple(piece.text for piece in row) for row in rows], None)
    assert list(map(unpainted, painted)) == plain
    assert any("\x1b[31m" in line for line in painted)
    assert (paint("", "error"), paint("a ", "error")) == ("", "\x1b[31ma\x1b[0m ")


def test_facts_stand_under_each_other() -> None:
    facts = [("a", Piece("x" * 30)), ("long", Piece("")), ("evil", Piece("\x1b[2J"))]
    assert [*map(unpainted, fact_lines(facts, 20))] == [f"a     {'x' * 13}…", "long", "evil  ␛[2J"]
    assert unpainted(next(fact_lines(facts, None))) == f"a     {'x' * 30}"


LEFT = 3
MINUTE = 60 * SECOND


@each(30, 180, 1_000)
def test_the_day_is_shown(span: int) -> None:
    since = Nanos(NOW + 100 * MINUTE)
    _, (_, times) = axis_lines(since, Nanos(since + span * MINUTE), LEFT, 100, None)
    days = [word for word in times.text.split() if "-" in word]
    assert days == {30: ["11-20"], 180: ["11-20", "11-21"], 1_000: ["11-21"]}[span]


@given(st.integers(0, 10**9), st.integers(1, 10**8), st.integers(1, 200), st.integers(1, 8))
def test_times_never_overlap(since_s: int, span_s: int, columns: int, left: int) -> None:
    since, until = Nanos(since_s * SECOND), Nanos((since_s + span_s) * SECOND)
    (_, axis, *_), (_, times) = axis_lines(since, until, left, columns, None)
    assert len(axis.text) == len(times.text) == columns
    told = [words for _, words in axis_ticks(since, until, columns)]
    rest = f" {times.text} "
    for words in told:
        rest = rest.replace(f" {words} ", "  ", 1)
    assert not rest.strip(), (told, times.text)


PIECES = st.sampled_from(["", "a", "bb", "表", "ccc", "e\u0301"])
LINES = st.lists(st.builds(Piece, PIECES, st.sampled_from(["", "x"]), st.just(-1)), max_size=6).map(tuple)


def cells_of(line: Line) -> list[tuple[str, str]]:
    """Cell by cell: what is in it and in which style; the second half of a wide character is empty."""
    found: list[tuple[str, str]] = []
    for span in line:
        for char in span.text:
            size = width_of((Piece(char),))
            if size == 0:
                found[-1] = (found[-1][0] + char, span.style)
                continue
            found += [(char, span.style), *[("", span.style)] * (size - 1)]
    return found


@given(LINES, LINES)
def test_texts_are_equal_outside_the_difference(before: Line, after: Line) -> None:
    changed = difference(before, after)
    if changed is None:
        assert before == after
        return
    old, new = cells_of(before), cells_of(after)
    assert old[: changed.start] == new[: changed.start]
    assert old[changed.stop :] == new[changed.stop :]
    assert changed.stop <= max(len(old), len(new))


@given(LINES, LINES, st.integers(0, 20))
def test_two_ends_fill_the_line(left: Line, right: Line, cells: int) -> None:
    line = spread(left, right, cells)
    assert width_of(line) == cells
    assert fitting(left, cells) == line[: len(fitting(left, cells))]


def test_lines_are_padded_and_styled_and_only_changed_cells_differ() -> None:
    assert width_of(padded((Piece("表"),), 5)) == 5
    assert padded((Piece("abc"),), 2) == (Piece("abc"),)
    assert styled((Piece("b", "x"), Piece(" ", "x")), "y") == (Piece("b", "x y"), Piece(" ", "y"))
    before = (Piece("state  "), Piece("41s"), Piece("  rest"))
    after = (Piece("state  "), Piece("42s"), Piece("  rest"))
    assert difference(before, after) == range(7, 10)


def flow(*counts: int, per_minute: int = 0) -> Flow:
    return Flow((0,) * (MINUTES - len(counts)) + counts, per_minute)


def test_both_charts_have_one_scale_also_without_arrivals() -> None:
    pace = Pace(flow(0, 1, 40, 80, per_minute=1_041), flow(20, 0, per_minute=0))
    assert text_of(pace_line(pace, with_ends=True)) == "   ▁▁▁▁▁▁▁▂▅█ 1,041 in  ▁▁▁▁▁▁▁▁▃▁ 0 out/min"
    assert text_of(pace_line(pace, with_ends=False)) == "   ▁▁▁▁▁▁▁▂▅█ 1,041 in/min"
    pace = Pace(flow(), flow(5, per_minute=5))
    assert text_of(pace_line(pace, with_ends=False)) == f"   {'▁' * MINUTES} 0 in/min"
