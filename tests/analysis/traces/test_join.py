"""A job's trace beside the lines of its logs, and what differs between two traces."""

from hypothesis import given
from hypothesis import strategies as st

from jobtui.analysis.traces.compare import ChangeKind, StepChange, step_changes, those_that_differ
from jobtui.analysis.traces.failures import study_trace
from jobtui.analysis.traces.filters import SPAN_FIELDS
from jobtui.analysis.traces.job_traces import MOST_STEPS, TraceLink, link_in_lines, span_of, trace_op
from jobtui.analysis.traces.layout import lay_out
from jobtui.analysis.traces.tree import Tree
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId
from jobtui.model.ops import Certainty, Component, Op, OpStatus, Unlinked
from jobtui.model.traces import Resource, SpanEvent, Trace
from jobtui.render.traces import CHANGE_COLUMNS, change_words
from tests.builders import a_step, an_op, some
from tests.offenders import each
from tests.rows import ROWS, table
from tests.tracing import EXPECTED, TRACE_ID, a_span, a_trace, captured

JOB = JobId("EPRSqtUW-IVh7w74d-heightWeightReport")
PARENT = f"TRACEPARENT=00-{TRACE_ID}-{'ab' * 8}-01"


def joined(
    trace: Trace, ops: tuple[Op, ...] = (), certainty: Certainty = Certainty.JID, *, grows: bool = False
) -> Op:
    found = study_trace(trace)
    link = TraceLink(trace.trace_id, "a test says so", certainty)
    return trace_op(found, lay_out(found), link, JOB, ops, (), grows=grows)


@each(*ROWS["lines that name a trace"])
def test_a_line_of_the_job_names_its_trace(text: str, found: str) -> None:
    op = an_op("run", jid=JOB, steps=[a_step("status running", 1, text=text, certainty=Certainty.PREFIX)])
    link = link_in_lines([op], [])
    assert (link.trace_id if link else "") == found
    assert link is None or link.certainty is Certainty.PREFIX
    loose = Unlinked(JOB, op.steps[0], "no op")
    assert (link_in_lines([], [loose]) is None) == (not found)


def test_the_surest_line_names_the_trace() -> None:
    other = PARENT.replace("0123", "9999")
    steps = [
        a_step("x", 1, text=other, certainty=Certainty.ADJACENT),
        a_step("y", 2, text=PARENT, certainty=Certainty.JID),
    ]
    link = some(link_in_lines([an_op("run", jid=JOB, steps=steps)], []))
    assert (link.trace_id, link.certainty) == (TRACE_ID, Certainty.JID)


def test_spans_stand_between_lines_by_time_each_with_its_own_certainty() -> None:
    op = an_op("run", jid=JOB, steps=[a_step(f"line {second}", second) for second in (0, 10)])
    first, last = op.steps
    begin, end = (step.at or 0 for step in op.steps)
    between = a_span(1, None, (begin + end) // 2, end - 1, name="work", error=True, message="broke")
    steps = joined(a_trace(between), (op,), Certainty.ADJACENT).steps
    span = (Component.SPAN, Certainty.ADJACENT, (TRACE_ID, between.span_id))
    told = [(step.step.partition(",")[0], step.component, step.certainty, span_of(step)) for step in steps]
    assert told == [
        (f"{first.component}: line 0", Component.LOG, first.certainty, None),
        ("work begins", *span),
        ("work failed: broke", *span),
        (f"{last.component}: line 10", Component.LOG, last.certainty, None),
    ]
    assert [steps[0].source, steps[-1].source] == [first.source, last.source]


def test_the_trace_of_a_captured_job_is_an_op_that_failed() -> None:
    op = joined(captured("job-fail"))
    assert (op.result, op.status) == ("error", OpStatus.ENDED)
    assert "fail flag triggered at step 7" in some(op.error)
    words = [step.step for step in op.steps]
    assert "hardWork.step × 6 begin" in words
    assert any(word.startswith("ERROR Fail flag triggered") for word in words)
    times = [step.at for step in op.steps if step.at is not None]
    assert times == sorted(times)
    assert op.op == EXPECTED["job-fail"]["traceID"][:4]


def test_a_trace_that_grows_is_open_and_a_large_one_has_steps_that_matter() -> None:
    spans = [a_span(1, end=10**9)]
    spans += [
        a_span(nth, nth - 1 if nth % 50 else 1, nth, nth + 1, name=f"n{chr(97 + nth % 26)}")
        for nth in range(2, 900)
    ]
    spans.append(a_span(999, 899, 899, 900, error=True, name="deep", message="deep down"))
    op = joined(a_trace(*spans))
    assert op.dropped_steps == len(spans) - MOST_STEPS
    assert any(step.step == "deep was handled after an error: deep down" for step in op.steps)
    assert joined(a_trace(a_span(1, 2)), grows=True).status.is_open


SPANS = (
    a_span(1, name="submit", service=Resource("fife", {"host.name": "gpvm"}), end=2_000),
    a_span(
        2,
        name="step",
        service=Resource("worker", {"host.name": "w03"}),
        end=1_001_000,
        error=True,
        events=(SpanEvent(Nanos(5), "exception", {"exception.type": "OSError"}),),
    ),
    a_span(3, name="cp", service=Resource("worker", {}), end=None, attributes={"returns": False}),
)


@each(*table("filters")["spans"].items())
def test_spans_pass_by_what_is_asked(text: str, names: str) -> None:
    passes = SPAN_FIELDS.parse(text)
    assert [span.name for span in SPANS if passes(span)] == names.split()


WHOLE = 1_000_000


def words(this: Tree, other: Tree) -> list[str]:
    steps = tuple(step_changes(this, other))
    by_key = {column.key: column for column in CHANGE_COLUMNS}
    keys = ("change", "step", "longer")
    return [" ".join(by_key[key].cell(step, None) for key in keys) for step in those_that_differ(steps)]


@each(*ROWS["traces compared"])
def test_captured_traces_beside_good_ones(this: str, other: str, said: list[str]) -> None:
    assert words(Tree(captured(this)), Tree(captured(other))) == said


def test_longer_steps_are_reported_when_they_matter() -> None:
    def tree(*took: int) -> Tree:
        root = a_span(1, start=0, end=WHOLE, name="root")
        steps = (a_span(n, 1, 5, 5 + length, name=f"s{'ab'[n - 2]}") for n, length in enumerate(took, 2))
        return Tree(a_trace(root, *steps))

    same = "  same root +0"
    assert words(tree(200_000, 10), tree(100_000, 1)) == [same, "▲ slower   sa +100µs"]
    assert words(tree(100_000, 1), tree(200_000)) == [same, "▼ faster   sa -100µs", "+ new   sb –"]


TWO_TREES = st.lists(st.tuples(st.integers(0, 7), st.sampled_from("abc1"), st.booleans()), max_size=12).map(
    lambda rows: Tree(
        a_trace(
            *(
                a_span(nth + 1, parent or None, nth, nth + 9, name=name, error=error)
                for nth, (parent, name, error) in enumerate(rows)
            )
        )
    )
)


@given(TWO_TREES, TWO_TREES)
def test_each_span_counts_once_and_a_trace_has_no_difference_from_itself(this: Tree, other: Tree) -> None:
    assert not words(this, this)
    steps = tuple(step_changes(this, other))
    in_both = [step for step in steps if step.change not in (ChangeKind.NEW, ChangeKind.MISSING)]
    for side, tree in (("this", this), ("other", other)):
        told = [span.span_id for step in steps for span in getattr(step, side)]
        assert len(told) == len(set(told))
        if len(in_both) == len(steps):
            assert set(told) == {span.span_id for span in tree.spans}
    kept = list(those_that_differ(steps))
    assert [step for step in steps if step.change is not ChangeKind.SAME or step in kept] == kept
    assert change_words(steps) == "no difference" or kept
    assert all(isinstance(step, StepChange) and step.span for step in kept)
