"""A job's trace beside the lines of its logs: which one it is, and both in one order of time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.filter_syntax import FilterError
from jobtui.analysis.traces.failures import study_trace
from jobtui.analysis.traces.filters import parse_span_filter
from jobtui.analysis.traces.job_traces import MOST_STEPS, TraceLink, link_in_lines, span_of, trace_op
from jobtui.analysis.traces.layout import lay_out
from jobtui.model.ids import JobId, TraceId
from jobtui.model.ops import Certainty, Component, Op, OpStatus, Unlinked
from jobtui.model.traces import Resource, Trace
from tests.builders import a_step, an_op
from tests.tracing import EXPECTED, TRACE_ID, a_span, a_trace, captured

JOB = JobId("EPRSqtUW-IVh7w74d-heightWeightReport")
PARENT = f"TRACEPARENT=00-{TRACE_ID}-{'ab' * 8}-01"


def joined(
    trace: Trace, ops: tuple[Op, ...] = (), certainty: Certainty = Certainty.JID, *, grows: bool = False
) -> Op:
    found = study_trace(trace)
    link = TraceLink(trace.trace_id, certainty, "a test says so")
    return trace_op(found, lay_out(found), link, JOB, ops, (), grows=grows)


def an_op_at(*seconds: int) -> Op:
    """An op with a step at each of these seconds."""
    return an_op("run", jid=JOB, steps=[a_step(f"line {second}", second) for second in seconds])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"Setting traceparent: 00-{TRACE_ID}-{'ab' * 8}-01", TRACE_ID),
        (PARENT, TRACE_ID),
        (f"cmd=run --hash {TRACE_ID}", None),
        ("no trace is handed on", None),
    ],
)
def test_a_line_of_the_job_names_its_trace(text: str, found: TraceId | None) -> None:
    op = an_op("run", jid=JOB, steps=[a_step("status running", 1, text=text, certainty=Certainty.PREFIX)])
    link = link_in_lines([op], [])
    assert (link.trace_id if link else None) == found
    assert link is None or link.certainty is Certainty.PREFIX
    loose = Unlinked(JOB, op.steps[0], "no op")
    assert (link_in_lines([], [loose]) is None) == (found is None)


def test_the_surest_line_names_the_trace() -> None:
    other = PARENT.replace("0123", "9999")
    steps = [
        a_step("x", 1, text=other, certainty=Certainty.ADJACENT),
        a_step("y", 2, text=PARENT, certainty=Certainty.JID),
    ]
    link = link_in_lines([an_op("run", jid=JOB, steps=steps)], [])
    assert link is not None
    assert (link.trace_id, link.certainty) == (TRACE_ID, Certainty.JID)


def test_spans_stand_between_lines_by_time_each_with_its_own_certainty() -> None:
    op = an_op_at(0, 10)
    first, second = (step.at or 0 for step in op.steps)
    between = a_span(1, None, (first + second) // 2, second - 1, name="work", error=True, message="broke")
    steps = joined(a_trace(between), (op,), Certainty.ADJACENT).steps
    assert [(step.component, step.certainty) for step in steps] == [
        (Component.LOG, op.steps[0].certainty),
        (Component.SPAN, Certainty.ADJACENT),
        (Component.SPAN, Certainty.ADJACENT),
        (Component.LOG, op.steps[1].certainty),
    ]
    assert [step.step.partition(",")[0] for step in steps] == [
        f"{op.steps[0].component}: line 0",
        "work begins",
        "work failed: broke",
        f"{op.steps[1].component}: line 10",
    ]
    assert [span_of(step) for step in steps] == [
        None,
        (TRACE_ID, between.span_id),
        (TRACE_ID, between.span_id),
        None,
    ]
    assert [step.source for step in steps if step.component is Component.LOG] == [s.source for s in op.steps]


def test_the_trace_of_a_captured_job_is_an_op_that_failed() -> None:
    op = joined(captured("job-fail"))
    assert (op.result, op.status) == ("error", OpStatus.ENDED)
    assert op.error is not None
    assert "fail flag triggered at step 7" in op.error
    words = [step.step for step in op.steps]
    assert "hardWork.step × 6 begin" in words
    assert any(word.startswith("ERROR Fail flag triggered") for word in words)
    times = [step.at for step in op.steps if step.at is not None]
    assert times == sorted(times)
    assert op.op == EXPECTED["job-fail"]["traceID"][:4]


def test_a_trace_that_grows_is_open() -> None:
    assert joined(a_trace(a_span(1, 2)), grows=True).status.is_open


def test_of_a_large_trace_what_failed_and_what_stands_highest_are_steps() -> None:
    spans = [a_span(1, end=10**9)]
    spans += [
        a_span(nth, nth - 1 if nth % 50 else 1, nth, nth + 1, name=f"n{chr(97 + nth % 26)}")
        for nth in range(2, 900)
    ]
    spans.append(a_span(999, 899, 899, 900, error=True, name="deep", message="deep down"))
    op = joined(a_trace(*spans))
    assert op.dropped_steps == len(spans) - MOST_STEPS
    assert any(step.step == "deep was handled after an error: deep down" for step in op.steps)


SPANS = (
    a_span(1, name="submit", service=Resource("fife", {"host.name": "gpvm"}), end=2_000),
    a_span(2, name="step", service=Resource("worker", {"host.name": "w03"}), end=1_001_000, error=True),
    a_span(3, name="cp", service=Resource("worker", {}), end=None, attributes={"returns": False}),
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ["submit", "step", "cp"]),
        ("STEP", ["step"]),
        ("service:worker", ["step", "cp"]),
        ("service:worker -error:yes", ["cp"]),
        ("dur>=1ms", ["step"]),
        ("dur:1us", ["submit", "step"]),
        ("dur<1ms", ["submit"]),
        ("error:yes", ["step"]),
        ("error:no", ["submit", "cp"]),
        ("host.name:w0", ["step"]),
        ("host.name=w0", []),
        ("returns:false", ["cp"]),
        ("name=cp or name=submit", ["submit", "cp"]),
        ("false", ["cp"]),
    ],
)
def test_spans_pass_by_what_is_asked(text: str, names: list[str]) -> None:
    passes = parse_span_filter(text)
    assert [span.name for span in SPANS if passes(span)] == names


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dur>soon", "soon is no length of time; did you mean 10ms?"),
        ("servce:x", "spans have no field servce; did you mean service?"),
        ("error:maybe", "maybe is neither yes nor no; did you mean yes?"),
        ("name>3", "> cannot be asked of name; did you mean name:?"),
    ],
)
def test_a_mistake_is_told_at_its_place(text: str, words: str) -> None:
    with pytest.raises(FilterError, match=words.replace("?", r"\?")) as caught:
        parse_span_filter(text)
    assert 0 <= caught.value.start < caught.value.end <= len(text)


@settings(max_examples=100)
@given(st.text(max_size=40))
def test_any_text_is_a_filter_or_a_mistake(text: str) -> None:
    try:
        passes = parse_span_filter(text)
    except FilterError:
        return
    for span in captured("job-fail").spans:
        passes(span)
