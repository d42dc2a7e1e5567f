from itertools import product

import pytest

from jobtui.analysis.timeline import BAD, folds_in, timeline_rows
from jobtui.analysis.traces.axis import TraceWindow
from jobtui.analysis.traces.failures import study_trace
from jobtui.analysis.traces.layout import ServiceMarks, lay_out
from jobtui.model.clock import Nanos
from jobtui.model.ops import Certainty, Component, Op
from jobtui.model.traces import Resource, Span, Trace
from jobtui.render import lanes
from jobtui.render.lanes import TimeStyle
from jobtui.render.spans import width_of
from jobtui.render.table import unpainted
from jobtui.render.text import width
from jobtui.render.traces import MOST_ROWS, trace_lines, waterfall_lines
from jobtui.render.waterfall import WAIT_CELLS, WaterfallView, columns_in, heading_line
from tests.builders import a_step, an_op, text_of
from tests.offenders import each
from tests.rows import ROWS
from tests.tracing import EXPECTED, a_span, a_trace, captured

MS, SECOND = 10**6, 10**9


def drawn(trace: Trace, cells: int | None = None, most: int | None = MOST_ROWS) -> list[str]:
    _, *lines = map(unpainted, waterfall_lines(study_trace(trace), cells, most))
    return lines


def work(*spans: Span) -> Trace:
    return a_trace(a_span(1, start=MS, end=99 * MS), *spans)


def events(first: int, count: int, *, bad: int | None = None, open_: int | None = None) -> list[Span]:
    return [
        a_span(n, 1, n * MS, None if n == open_ else n * MS + MS // 2, name="event", error=n == bad)
        for n in range(first, first + count)
    ]


SERVICES = [
    a_span(n, 1, n * MS, n * MS + 1, name="event", service=Resource(f"worker-{n % 3}", {}))
    for n in range(2, 10)
]
ERRORS = [
    a_span(1, start=MS, end=9 * MS, error=True), a_span(2, 1, 2 * MS, 3 * MS, error=True),
    a_span(3, 1, 4 * MS, 8 * MS), a_span(4, 3, 5 * MS, 6 * MS, error=True),
]  # fmt: skip
FAR = [
    a_span(1, start=SECOND, end=2 * SECOND), a_span(2, 1, SECOND, 2 * SECOND),
    a_span(3, 1, 90 * SECOND, 91 * SECOND),
]  # fmt: skip
DEEP = [a_span(n, n - 1 or None, n, 900 - n) for n in range(1, 101)]
INSIDE = [a_span(100 + n, n, n * MS, n * MS + 1, name="read") for n in range(2, 22)]


@pytest.mark.parametrize(
    ("trace", "row", "words"),
    [
        (work(*events(2, 20)), -1, "▸ event × 20 ━━━━━━ 10ms"),
        (work(*events(2, 20), *INSIDE), -1, "▸ event × 20 ━━━━━━ 10ms"),
        (work(*events(2, 20, bad=10)), 2, "! event 500µs"),
        (work(*events(2, 20, open_=10)), 2, "● event open"),
        (work(*SERVICES), -1, "* ▸ event × 8"),
        (a_trace(*FAR), 2, "┄┄ nothing ran ┄┄ 1m28s"),
        (a_trace(a_span(1), a_span(2, 77, 1_500, 1_600)), 1, "◌ 000000000000004d not received"),
        (a_trace(*ERRORS), 0, "↑ s1"),
        (a_trace(*ERRORS), 1, "✗ s2"),
        (a_trace(*ERRORS), 3, "! s4"),
        (work(a_span(2, 1, 2 * MS, 3 * MS, attributes={"exit_code": 2})), 1, "✗ s2"),
        (captured("jobsub-fail-condor"), -1, "✗ submit"),
        (a_trace(a_span(1, start=0, end=None)), 0, "● s1 without a time open"),
        (a_trace(a_span(1, start=5, end=5)), 0, "s1 │ 0"),
        (a_trace(*DEEP), -1, "[99] s100 700ns"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("cells", [None, 120])
def test_a_line_says_how_its_span_ended(trace: Trace, row: int, words: str, cells: int | None) -> None:
    line = drawn(trace, cells)[row]
    assert [word for word in words.split() if word not in line] == []


def test_a_large_trace_is_drawn_as_far_as_it_matters() -> None:
    found = study_trace(captured("big-5000"))
    note, _, *rows = map(unpainted, waterfall_lines(found, None, most=14))
    assert note == "14 of 28 rows, those that lead to errors or took the time; all: --plain"
    assert [sum(word in row for row in rows) for word in ("✗", "↑", "nothing ran", "× 371")] == [1, 2, 1, 1]
    assert len(rows) == 14
    assert len(list(waterfall_lines(found, None, most=None))) > 5_000


def test_a_large_trace_shows_open_spans_and_missing_parents() -> None:
    many = [a_span(n, 1, n * MS, n * MS + 1, name="ab"[n % 2]) for n in range(10, 60)]
    late = [a_span(2, 99, 2 * MS, 3 * MS, error=True), a_span(3, 1, 95 * MS, None, name="hangs")]
    _, _, *rows = map(unpainted, waterfall_lines(study_trace(work(*many, *late)), None, most=5))
    assert [sum(word in row for row in rows) for word in ("not received", "hangs")] == [1, 1]
    assert len(rows) == 5


@each(*product(EXPECTED, [20, 40, 60, 80, 120]))
def test_no_row_is_wider_than_the_terminal(name: str, cells: int) -> None:
    lines = list(map(unpainted, waterfall_lines(study_trace(captured(name)), cells, MOST_ROWS)))
    assert max(map(width, lines)) <= cells


def legend(cells: int, *services: str) -> str:
    spans = [a_span(at, service=Resource(service, {})) for at, service in enumerate(services, 1)]
    found = study_trace(a_trace(*spans))
    columns = columns_in(cells)
    axis = TraceWindow().axis(max(1, columns.bar), (), WAIT_CELLS)
    heading = heading_line(WaterfallView(found.tree, lay_out(found), axis, {}, ServiceMarks().of), columns)
    assert width_of(heading) <= cells
    return "".join(span.text for span in heading)[: columns.name].strip()


@each(*ROWS["services that a legend names"])
def test_the_legend_names_the_services_that_have_room(cells: int, services: list[str], text: str) -> None:
    assert legend(cells, *services) == text


def test_the_failed_span_comes_before_the_waterfall() -> None:
    found = study_trace(captured("job-fail"))
    lines = list(map(unpainted, trace_lines(found, ("a note",), 80)))
    assert lines[:2] == [
        "212c891717bfbac28a34dec05b616f14  ✗ hardWork.step step=7: "
        "RuntimeError: fail flag triggered at step 7 of 10",
        "note      a note",
    ]
    said = lines.index("✗ hardWork.step  tracingJob  RuntimeError: fail flag triggered at step 7 of 10")
    assert said < next(at for at, line in enumerate(lines) if line.endswith("took"))


def test_spans_at_both_ends_of_time_are_drawn() -> None:
    spans = [a_span(1, start=1, end=2), a_span(2, 1, (1 << 64) - 1, Nanos(1))]
    assert list(trace_lines(study_trace(a_trace(*spans)), (), 80))


OP = an_op(
    steps=[
        a_step("api_runSimulation", 0, component=Component.SERVER),
        a_step("request", 0),
        a_step("sent", 1, component=Component.DRIVER),
        a_step("arrived", 1, component=Component.AGENT, certainty=Certainty.ADJACENT),
        a_step("reply ok", 31, component=Component.DRIVER),
        a_step("status error", 31),
    ]
)


def lanes_drawn(op: Op, cells: int, times: TimeStyle | None = None) -> list[str]:
    rows = timeline_rows(op)
    before = [None, *rows]
    lines = [
        lanes.row_line(row, before[at], cells, times or TimeStyle(fine=lanes.is_fine(rows)))
        for at, row in enumerate(rows)
    ]
    return [text_of(line) for line in lines]


@each(*ROWS["words that somebody looks for"])
def test_bad_words_are_recognized(word: str, is_bad: bool) -> None:
    assert bool(BAD.search(word)) is is_bad


def test_times_are_as_fine_as_logs_have_them_or_left_out() -> None:
    op = an_op(steps=[a_step("a", 0), a_step("b", 0.911, component=Component.EXECUTE)])
    assert lanes_drawn(op, 40)[1].split() == ["execut", "b", "0.911"]
    assert lanes_drawn(OP, 40)[4].endswith("31s")
    assert lanes_drawn(an_op(steps=[a_step("a", 0), a_step("b", at=None)]), 40)[1].endswith("–")


def test_a_gap_and_a_silence_are_shown() -> None:
    rows = timeline_rows(OP)
    assert rows[4].is_gap
    assert text_of(lanes.wait_line(rows[3], 30.0, 100)).strip() == "┊ 30s"
    assert "◌ nothing for 1m" in text_of(lanes.wait_line(rows[5], 60.4, 100, "◌ nothing for"))
    assert "┊ 30s" in text_of(lanes.wait_line(rows[3], 30.0, 40))


def test_repeats_have_one_row_with_the_certainty_of_the_least_sure_step() -> None:
    steps = [a_step("status running", 20 + 12 * nth) for nth in range(5)]
    steps[2] = a_step("status running", 44, certainty=Certainty.ADJACENT)
    rows = timeline_rows(an_op(steps=[a_step("sent", 0), *steps]))
    (fold,) = folds_in(rows)
    row = lanes.folded(rows, fold, TimeStyle(fine=True))
    assert row.step.step == "status running × 5  20s – 1m08s  waits up to 12s"
    assert row.step.certainty is Certainty.ADJACENT
    assert (row.from_start_s, row.since_prev_s, row.is_gap) == (20.0, 20.0, True)
