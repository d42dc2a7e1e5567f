"""Trees of spans: their layout, critical path, axis and what is in each."""

from collections.abc import Sequence
from typing import cast

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.traces import layout as drawn
from jobtui.analysis.traces.axis import Axis
from jobtui.analysis.traces.critical_path import jaeger_path, last_ends, whole_path
from jobtui.analysis.traces.failures import deepest_errors, failures, root_causes, study_trace
from jobtui.analysis.traces.filters import TraceState, judged
from jobtui.analysis.traces.job_traces import TraceMatches, alone, candidates, submission_search
from jobtui.analysis.traces.tree import SpanFlag, SpanWait, Tree, end_of, flags_of_span, skew_ns, waits_of
from jobtui.model import traces as model
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import TraceId
from jobtui.model.jobs import Job
from jobtui.session.traces import SessionTraces, ways_from_job
from tests.condor import book_of, facts_of, submitted
from tests.offenders import each
from tests.tracing import EXPECTED, a_span, a_trace, captured, span_id


def lines_of(*spans: model.Span) -> Sequence[drawn.TraceLine]:
    return drawn.lay_out(study_trace(a_trace(*spans))).lines


@each(
    # A child whose parent was not received is below its place
    ([a_span(1), a_span(3, 9, 1_500), a_span(2, 9, 1_400), a_span(4, 2, 1_450)],
     [(0, "s1"), (0, span_id(9)), (1, "s2"), (2, "s4"), (1, "s3")], "s1 s2 s3", ("s2", SpanFlag.ORPHAN)),
    # A circle is cut at the span that begins first
    ([a_span(1), a_span(2, 4, 30), a_span(3, 2, 20), a_span(4, 3, 40), a_span(5, 4, 50)],
     [(0, "s3"), (1, "s4"), (2, "s2"), (2, "s5"), (0, "s1")], "s1", ("s3", SpanFlag.LOOP)),
    # A span that is its own parent is no root
    ([a_span(1), a_span(2, 2)], [(0, "s1"), (0, "s2")], "s1", ("s2", SpanFlag.LOOP)),
    # A span that was received twice is one
    ([a_span(1, end=None), a_span(1, end=3_000), a_span(1, end=4_000)], [(0, "s1")], "s1",
     ("s1", SpanFlag.TWICE)),
)  # fmt: skip
def test_odd_spans_have_a_line_each_and_say_what_is_odd(
    spans: list[model.Span], lines: list[tuple[int, str]], roots: str, flagged: tuple[str, SpanFlag]
) -> None:
    tree = Tree(a_trace(*spans))
    found = [(line.depth, line.missing or (line.span and line.span.name)) for line in lines_of(*spans)]
    assert found == lines
    assert [span.name for span in tree.roots] == roots.split()
    name, flag = flagged
    (odd,) = [span for span in tree.spans if span.name == name]
    assert flag in flags_of_span(tree, odd)


def test_odd_times_and_a_clock_that_is_behind_are_flagged_a_late_job_is_not() -> None:
    odd = {
        SpanFlag.UNTIMED: a_span(1, start=0), SpanFlag.OPEN: a_span(2, end=None), None: a_span(5),
        SpanFlag.NEGATIVE: a_span(3, end=500), SpanFlag.INSTANT: a_span(4, end=1_000),
    }  # fmt: skip
    tree = Tree(a_trace(*odd.values()))
    for flag, span in odd.items():
        assert flags_of_span(tree, span) == (() if flag is None else (flag,))
    assert (tree.started_at, tree.ended_at) == (1_000, 2_000)
    spans = (a_span(1, start=50_000, end=60_000), a_span(2, 1, 20_000, 90_000), a_span(3, 1, 70_000, 80_000))
    tree = Tree(a_trace(*spans))
    assert [skew_ns(tree, span) for span in tree.spans] == [30_000, 0, 0]


@each(
    # It is caused where it was raised
    ([a_span(1, error=True), a_span(2, 1, error=True), a_span(3, 2, error=True), a_span(4, 3)],
     [("s3", "s1", False)]),
    # What somebody handled comes after what nobody did
    ([a_span(1, end=10_000), a_span(2, 1, 1_000, 2_000, error=True),
      a_span(3, 1, 11_000, 12_000, error=True), a_span(4, 99, 1_500, 1_600, error=True)],
     [("s3", "s3", False), ("s4", "s4", False), ("s2", "s2", True)]),
)  # fmt: skip
def test_root_causes_finds_the_spans_that_caused_an_error(
    spans: list[model.Span], causes: list[tuple[str, str, bool]]
) -> None:
    found = root_causes(Tree(a_trace(*spans)))
    assert [(one.span.name, one.top.name, one.is_handled) for one in found] == causes


SPANS = st.lists(
    st.tuples(
        st.integers(1, 12),
        st.none() | st.integers(1, 15),
        st.integers(0, 50),
        st.none() | st.integers(0, 60),
        st.booleans(),
    ),
    max_size=25,
).map(lambda rows: [a_span(n, parent, start, end, error=error) for n, parent, start, end, error in rows])


@given(SPANS)
@settings(max_examples=300, deadline=None)
def test_every_span_is_shown_each_error_has_a_cause_and_a_path_no_gap(
    spans: list[model.Span],
) -> None:
    tree = Tree(a_trace(*spans))
    own = [line.own for line in lines_of(*spans)]
    assert sorted(span.span_id for span in own if span is not None) == sorted(tree.by_id)
    assert len(tree.spans) + tree.doubles == len(spans)
    assert bool(deepest_errors(tree)) == any(span.is_error for span in tree.spans)
    assert len(root_causes(tree)) == len(deepest_errors(tree))
    failures(tree), waits_of(tree)
    root, start = tree.root, tree.started_at
    if root is None or start is None or not root.started_at:
        return
    for path, end in ((jaeger_path(tree), end_of(root)), (whole_path(tree), last_ends(tree)[root.span_id])):
        edges = [root.started_at - start]
        for segment in path:
            assert segment.from_ns == edges[-1] < segment.to_ns
            edges.append(segment.to_ns)
        assert edges[-1] == end - start
    assert not any(segment.is_wait for segment in jaeger_path(tree))


def test_a_trace_as_deep_as_its_number_of_spans_is_studied() -> None:
    count = 20_000
    spans = [a_span(n, n - 1 or None, n, 3 * count - n, error=True) for n in range(1, count + 1)]
    tree = Tree(a_trace(*spans))
    assert len(whole_path(tree)) == 2 * count - 1
    assert [line.depth for line in lines_of(*spans)] == list(range(count))
    assert root_causes(tree)[0].top.name == "s1"


def laid_out(*spans: model.Span) -> drawn.TraceLayout:
    return drawn.lay_out(study_trace(a_trace(*spans)))


def names(shown: drawn.ShownLines) -> list[str]:
    """What is shown, runs as `name*count`."""
    lines = [shown.line(index) for index in range(len(shown.numbers))]
    return [
        f"{line.run.name}*{len(line.run.spans)}" if line.run else line.span.name if line.span else "missing"
        for line in lines
    ]


def steps(first: int, count: int, parent: int = 1, *, bad: int | None = None) -> list[model.Span]:
    return [
        a_span(first + nth, parent, 100 * nth, 100 * nth + 50, name=f"step {nth}", error=nth == bad)
        for nth in range(count)
    ]


ROOT = a_span(1, start=1, end=9_000)


@each(
    (steps(10, 8), ["step 0 … step 7*8"]),
    (steps(10, 12, bad=6), ["step 0 … step 5*6", *(f"step {nth}" for nth in range(6, 12))]),
    (steps(10, drawn.RUN_LENGTH - 1), [f"step {nth}" for nth in range(drawn.RUN_LENGTH - 1)]),
)
def test_like_siblings_are_a_run(siblings: list[model.Span], shown: list[str]) -> None:
    assert names(drawn.ShownLines(laid_out(ROOT, *siblings))) == ["s1", *shown]


def test_a_line_counts_what_is_below_and_a_wait_is_before_what_ended_it() -> None:
    laid = laid_out(a_span(1, end=9_000), a_span(2, 1, 2_000, 3_000), a_span(3, 2, 2_000, 12_000, error=True))
    told = [(line.spans, line.errors, line.last, line.end) for line in laid.lines]
    assert told == [(3, 1, 12_000, 3), (2, 1, 12_000, 3), (1, 0, 12_000, 3)]
    assert [*laid.above(2)] == [1, 0]
    times = ((None, 1, 2), (1, 1, 2), (1, 90, 91))
    laid = laid_out(*(a_span(n, up, at * SECOND, end * SECOND) for n, (up, at, end) in enumerate(times, 1)))
    lines = [(line.wait is not None, line.own is not None, line.depth) for line in laid.lines]
    assert lines == [(False, True, 0), (False, True, 1), (True, False, 1), (False, True, 1)]


def test_folds_stay_while_a_trace_grows_and_new_runs_are_folded() -> None:
    spans = [ROOT, a_span(2, 1, 5_000, 6_000), a_span(3, 2, 5_000, 5_500)]
    shown = drawn.ShownLines(laid_out(*spans))
    assert shown.close(1)
    shown.set_layout(laid_out(*spans, *steps(10, 7)))
    assert names(shown) == ["s1", "step 0 … step 6*7", "s2"]
    assert shown.index_of(shown.layout.lines[-1].key) == 2
    assert shown.reveal(shown.layout.lines[-1].key) == 3


tree_shapes = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 5_000), st.booleans(), st.sampled_from("abc")), max_size=40
)


@settings(max_examples=60)
@given(tree_shapes, st.lists(st.integers(0, 60), max_size=8))
def test_folds_and_filters_lose_no_line(shape: list[tuple[int, int, bool, str]], toggled: list[int]) -> None:
    spans = [
        a_span(nth + 1, parent or None, start + 1, start + 50, error=error and nth % 5 == 0, name=name)
        for nth, (parent, start, error, name) in enumerate(shape)
    ]
    layout = laid_out(*spans)
    assert sum(line.spans for line in layout.lines if line.depth == 0) == len(spans)
    shown = drawn.ShownLines(layout)
    for index in toggled:
        if index < len(shown.numbers) and not shown.open(index):
            shown.close(index)
        assert shown.numbers == drawn.shown_lines(layout, shown.is_closed)
    for line in layout.lines:
        at = shown.reveal(line.key)
        assert at is not None
        assert shown.line(at) == line
    kept, count = drawn.kept_lines(layout, lambda span: span.is_error)
    assert count == sum(span.is_error for span in spans)
    assert all(kept[above] for at, is_kept in enumerate(kept) if is_kept for above in layout.above(at))


SPAN = a_span(1)


def a_wait(start: int, end: int) -> SpanWait:
    return SpanWait(Nanos(start), Nanos(end), SPAN, SPAN)


def test_an_axis_is_to_scale_and_a_long_wait_takes_few_cells() -> None:
    axis = Axis(1_000, 2_000, 50)
    assert [axis.half(at) for at in (0, 1_000, 1_500, 1_999, 2_000, 9_000)] == [0, 0, 50, 99, 100, 100]
    assert [axis.time(half) for half in (0, 50, 100)] == [1_000, 1_500, 2_000]
    assert not list(axis.squeezed)
    axis = Axis(0, 10_200, 48, [a_wait(100, 10_100)], wait_cells=8)
    assert [tuple(one) for one in axis.squeezed] == [(20, 8, 10_000)]
    assert [axis.half(at) for at in (0, 50, 100, 10_100, 10_150, 10_200)] == [0, 20, 40, 56, 76, 96]
    short = Axis(0, 1_000, 50, [a_wait(100, 200)], wait_cells=8)
    assert not list(short.squeezed), "a wait that is short on the screen is to scale"


times = st.integers(0, 10**15)


@settings(max_examples=100)
@given(st.lists(times, min_size=2, max_size=12, unique=True), st.integers(1, 200), st.integers(1, 9))
def test_a_later_time_is_never_further_left(marks: list[int], cells: int, wait_cells: int) -> None:
    marks.sort()
    waits = [a_wait(start, end) for start, end in zip(marks[1::2], marks[2::2], strict=False)]
    axis = Axis(marks[0], marks[-1], cells, waits, wait_cells)
    halves = [axis.half(at) for at in marks]
    assert halves == sorted(halves)
    assert (halves[0], halves[-1]) == (0, 2 * axis.cells)
    back = [axis.time(half) for half in range(2 * cells + 1)]
    assert back == sorted(back)
    assert all(0 <= tick.cell < cells for tick in axis.ticks(marks[0], 10))


NAMES = ("jobsub-ok", "jobsub-fail-copy", "jobsub-fail-condor", "jobsub-fail-klist", "job-fail", "job-good")
TRACES = tuple(captured(name) for name in NAMES)
START_NS = EXPECTED["jobsub-ok"]["start_unix_nano"]


class Asked:
    """Answers out of some traces; `asked` are the searches."""

    asks_servers = True

    def __init__(self, traces: Sequence[model.Trace], notes: tuple[str, ...] = ()) -> None:
        self._traces = {trace.trace_id: trace for trace in traces}
        self._notes = notes
        self.asked: list[model.TraceSearch] = []

    async def fetch(self, trace_id: TraceId) -> model.TraceAnswer:
        return model.TraceAnswer(trace=self._traces.get(trace_id))

    async def search(self, search: model.TraceSearch) -> model.TraceList:
        self.asked.append(search)
        found = tuple(model.summary_of(one) for one in self._traces.values() if model.is_wanted(one, search))
        return model.TraceList(found, self._notes)


def a_condor_job(after_s: float = 2.0, **more: object) -> Job:
    """A job that was queued this time after a captured submission began."""
    _, news = book_of(facts_of(submitted().encode()))
    queued = Nanos(START_NS + round(after_s * SECOND))
    return msgspec.structs.replace(news.jobs[0], queued_at=queued, **more)


async def ways_of(client: Asked, job: Job) -> TraceMatches:
    return await ways_from_job(cast(SessionTraces, client), job, model.JOB_ATTRIBUTES)


async def test_a_job_without_trace_has_candidates_by_time_only() -> None:
    ways = await ways_of(Asked(TRACES, ("server x says 503",)), a_condor_job())
    assert ways.found == ()
    assert ways.candidates[0].trace_id == EXPECTED["jobsub-ok"]["traceID"]
    assert all(one.score < 1.0 and one.why for one in ways.candidates)
    assert "server x says 503" in ways.notes
    timeless = msgspec.structs.replace(a_condor_job(), queued_at=None)
    assert (await ways_of(Asked(TRACES), timeless)).candidates == ()
    assert submission_search(timeless) is None


def test_the_nearest_in_time_comes_first() -> None:
    found = candidates(TRACES[:2], a_condor_job(1.5), model.JOB_ATTRIBUTES)
    assert [one.trace_id for one in found] == [EXPECTED[name]["traceID"] for name in NAMES[:2]]
    assert "before the job was in the queue" in found[0].why[0]
    assert "after the job was in the queue" in found[1].why[0]


AT_JOB_FAIL = Nanos(EXPECTED["job-fail"]["start_unix_nano"] + 2 * SECOND)
LATE = msgspec.structs.replace(a_condor_job(), queued_at=AT_JOB_FAIL)


@each(
    ("jobsub-ok", a_condor_job(name="test_trace.sh"), "its command names test_trace.sh"),
    ("jobsub-ok", a_condor_job(name="other.sh"), "its command does not name other.sh"),
    ("jobsub-ok", a_condor_job(app="fermilab"), "its command names group fermilab"),
    ("jobsub-ok", a_condor_job(), "it was sent to jobsub02.fnal.gov"),
    ("jobsub-fail-condor", a_condor_job(8.0), "its submission was refused"),
    ("jobsub-fail-klist", a_condor_job(11.0), "nothing in it was sent to a schedd"),
    ("job-fail", LATE, "name another job, 81419552.0@jobsub02.fnal.gov"),
    *(("jobsub-ok", a_condor_job(after_s), None) for after_s in (-10.0, 100.0, 10_000.0)),
)
def test_a_candidate_says_what_speaks_for_and_against_it(name: str, job: Job, words: str | None) -> None:
    found = candidates([captured(name)], job, model.JOB_ATTRIBUTES)
    assert len(found) == (words is not None)
    assert all(words in "; ".join(one.why) for one in found if words is not None)


def test_a_span_without_a_job_is_of_the_process_above_it_or_of_its_host() -> None:
    trace = a_trace(
        a_span(1), a_span(2, 1, attributes={"job.id": "7.0"}), a_span(3, 2), a_span(4, 3),
        a_span(5, 1, attributes={"job.id": "7.1"}), a_span(6, 5), a_span(7, 1),
    )  # fmt: skip
    mine = alone(trace, "7.0@s.example.org", ("job.id",))
    assert [span.name for span in mine.trace.spans] == ["s1", "s2", "s3", "s4", "s7"]
    assert mine.others == {"7.1": 2}
    hosts = [model.Resource("work", {"host.name": f"w{number}"}) for number in range(2)]
    trace = a_trace(a_span(1), a_span(2, 1, service=hosts[0]), a_span(3, 1, service=hosts[1]))
    mine = alone(trace, "7.0", model.JOB_ATTRIBUTES, host="w1")
    assert [span.name for span in mine.trace.spans] == ["s1", "s3"]
    assert mine.why == "its host w1"
    assert alone(trace, "7.0", model.JOB_ATTRIBUTES, host="w9").others == {}
    assert alone(trace, "7.0", model.JOB_ATTRIBUTES).others == {}


@each((3, TraceState.FAILED), (0, TraceState.COMPLETE))
def test_a_failure_without_an_error_span_is_one(code: int, standing: TraceState) -> None:
    trace = a_trace(a_span(1, attributes={"process.exit.code": code}))
    assert judged(trace, Nanos(1_795_300_000 * SECOND)).standing is standing
