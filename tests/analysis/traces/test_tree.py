from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.traces.critical_path import jaeger_path, last_ends, whole_path
from jobtui.analysis.traces.failures import deepest_errors, failures, root_causes
from jobtui.analysis.traces.findings import study_trace
from jobtui.analysis.traces.layout import LineKind, TraceLine, lay_out
from jobtui.analysis.traces.tree import SpanFlag, build_tree, end_of, flags_of_span, skew_ns
from jobtui.analysis.traces.waits import waits_of
from jobtui.model.traces import Span
from tests.tracing import a_span, a_trace, captured, span_id


def lines_of(*spans: Span) -> Sequence[TraceLine]:
    return lay_out(study_trace(a_trace(*spans))).lines


def test_a_child_whose_parent_was_not_received_stands_below_its_place() -> None:
    spans = [a_span(1), a_span(3, 9, 1_500), a_span(2, 9, 1_400), a_span(4, 2, 1_450)]
    tree = build_tree(a_trace(*spans))
    lines = [(line.depth, line.missing or (line.span and line.span.name)) for line in lines_of(*spans)]
    assert lines == [(0, "s1"), (0, span_id(9)), (1, "s2"), (2, "s4"), (1, "s3")]
    assert [span.name for span in tree.roots] == ["s1", "s2", "s3"]
    assert SpanFlag.ORPHAN in flags_of_span(tree, tree.by_id[span_id(2)])


def test_a_circle_is_cut_at_the_span_that_begins_first() -> None:
    spans = [a_span(1), a_span(2, 4, 30), a_span(3, 2, 20), a_span(4, 3, 40), a_span(5, 4, 50)]
    tree = build_tree(a_trace(*spans))
    assert [span.name for span in tree.loops] == ["s3"]
    assert [line.span and line.span.name for line in lines_of(*spans)] == ["s3", "s4", "s2", "s5", "s1"]
    assert [span.name for span in tree.roots] == ["s1"]


def test_a_span_that_is_its_own_parent_is_shown_and_no_root() -> None:
    spans = [a_span(1), a_span(2, 2)]
    tree = build_tree(a_trace(*spans))
    assert [span.name for span in tree.roots] == ["s1"]
    assert SpanFlag.LOOP in flags_of_span(tree, tree.by_id[span_id(2)])
    assert len(lines_of(*spans)) == 2


def test_of_a_span_that_came_twice_the_one_that_has_ended_is_kept() -> None:
    tree = build_tree(a_trace(a_span(1, end=None), a_span(1, end=3_000), a_span(1, end=4_000)))
    assert (len(tree.spans), tree.doubles, tree.spans[0].ended_at) == (1, 2, 3_000)
    assert flags_of_span(tree, tree.spans[0]) == (SpanFlag.TWICE,)


def test_odd_times_are_flagged_and_kept() -> None:
    tree = build_tree(
        a_trace(a_span(1, start=0), a_span(2, end=None), a_span(3, end=500), a_span(4, end=1_000), a_span(5))
    )
    flags = {span.name: flags_of_span(tree, span) for span in tree.spans}
    assert flags == {
        "s1": (SpanFlag.UNTIMED,),
        "s2": (SpanFlag.OPEN,),
        "s3": (SpanFlag.NEGATIVE,),
        "s4": (SpanFlag.INSTANT,),
        "s5": (),
    }
    assert (tree.started_at, tree.ended_at) == (1_000, 2_000)


def test_a_clock_that_is_behind_is_said_and_a_late_job_is_not() -> None:
    tree = build_tree(
        a_trace(
            a_span(1, start=50_000, end=60_000), a_span(2, 1, 20_000, 90_000), a_span(3, 1, 70_000, 80_000)
        )
    )
    assert [skew_ns(tree, span) for span in tree.spans] == [30_000, 0, 0]


def test_the_worker_of_the_broken_capture_is_twelve_seconds_early() -> None:
    tree = build_tree(captured("broken"))
    early = [span for span in tree.spans if skew_ns(tree, span)]
    assert [(span.name, skew_ns(tree, span)) for span in early] == [("analyze", 12_000_000_000)]


def test_an_exception_is_caused_where_it_was_raised() -> None:
    tree = build_tree(
        a_trace(a_span(1, error=True), a_span(2, 1, error=True), a_span(3, 2, error=True), a_span(4, 3))
    )
    (cause,) = root_causes(tree)
    assert (cause.span.name, cause.top.name) == ("s3", "s1")
    assert not cause.is_handled


def test_what_somebody_handled_comes_after_what_nobody_did() -> None:
    tree = build_tree(
        a_trace(
            a_span(1, end=10_000),
            a_span(2, 1, 1_000, 2_000, error=True),
            a_span(3, 1, 11_000, 12_000, error=True),
            a_span(4, 99, 1_500, 1_600, error=True),
        )
    )
    assert [(cause.span.name, cause.is_handled) for cause in root_causes(tree)] == [
        ("s3", False),
        ("s4", False),
        ("s2", True),
    ]


def test_the_errors_of_the_recovered_capture_were_all_handled() -> None:
    causes = root_causes(build_tree(captured("recovered-error")))
    assert [cause.is_handled for cause in causes] == [True, True, True]


def test_a_refused_submission_has_no_error_span() -> None:
    tree = build_tree(captured("jobsub-fail-condor"))
    (failure,) = failures(tree)
    assert failure.text == "submit returned None and not True"
    assert failures(build_tree(captured("jobsub-ok"))) == ()


def test_a_status_in_an_attribute_is_a_failure() -> None:
    tree = build_tree(
        a_trace(a_span(1, attributes={"process.exit.code": 2}), a_span(2, attributes={"exit_code": 0}))
    )
    assert [failure.text for failure in failures(tree)] == ["s1 ended with status 2"]


def test_an_attempt_that_was_killed_is_named_by_its_last_span() -> None:
    (failure,) = failures(build_tree(captured("queue-3h")))
    assert failure.span.span_id == "012d0ea67ff12229"
    assert not failure.is_last
    assert "killed, or still running" in failure.text


def test_the_jobs_log_records_are_those_of_the_step_that_failed() -> None:
    (cause,) = root_causes(build_tree(captured("job-fail")))
    assert cause.message == "RuntimeError: fail flag triggered at step 7 of 10"
    assert [log.body for log in cause.logs] == ["Fail flag triggered. Failing executable now."]
    assert [event.name for event in cause.span.events] == ["Doing really hard work (7 / 10)", "exception"]
    assert cause.exception is not None


def test_a_queue_is_a_wait() -> None:
    waits = waits_of(build_tree(captured("queue-3h")))
    assert [(wait.after.name, wait.before.name, round(wait.duration_ns / 1e9)) for wait in waits] == [
        ("jobsub_submit", "stage-in", 5698),
        ("step", "analyze", 11238),
    ]


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
def test_every_span_has_one_line_and_every_error_a_cause(spans: list[Span]) -> None:
    tree = build_tree(a_trace(*spans))
    own = [line.span for line in lines_of(*spans) if line.kind is LineKind.SPAN]
    shown = [span.span_id for span in own if span is not None]
    assert sorted(shown) == sorted(tree.by_id)
    assert len(tree.spans) + tree.doubles == len(spans)
    assert bool(deepest_errors(tree)) == any(span.is_error for span in tree.spans)
    assert len(root_causes(tree)) == len(deepest_errors(tree))
    failures(tree), waits_of(tree)


@given(SPANS)
@settings(max_examples=300, deadline=None)
def test_a_critical_path_leaves_out_no_moment_of_the_root(spans: list[Span]) -> None:
    tree = build_tree(a_trace(*spans))
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


def test_a_trace_as_deep_as_it_has_spans_is_no_trouble() -> None:
    count = 20_000
    spans = [a_span(n, n - 1 or None, n, 3 * count - n, error=True) for n in range(1, count + 1)]
    tree = build_tree(a_trace(*spans))
    assert len(whole_path(tree)) == 2 * count - 1
    assert [line.depth for line in lines_of(*spans)] == list(range(count))
    assert root_causes(tree)[0].top.name == "s1"


def test_many_circles_are_no_trouble() -> None:
    spans = [a_span(n, n, n) for n in range(1, 20_001)]
    tree = build_tree(a_trace(*spans))
    assert len(tree.loops) == 20_000
    assert root_causes(tree) == ()
    assert failures(tree) == ()
    assert len(lines_of(*spans)) == 20_000
