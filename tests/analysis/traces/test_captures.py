"""Every captured trace against what is known of it, from each of its forms."""

import pytest

from jobtui.analysis.traces.critical_path import Segment, jaeger_path, whole_path
from jobtui.analysis.traces.failures import deepest_errors, error_spans
from jobtui.analysis.traces.tree import build_tree
from tests.tracing import EXPECTED, FORMATS, captured

CASES = [(name, form) for name in EXPECTED for form in FORMATS]
MICROSECOND = 1_000


def unit_of(form: str) -> int:
    """How exact the times of a form are, nanoseconds."""
    return MICROSECOND if form.startswith("jaeger") else 1


@pytest.mark.parametrize(("name", "form"), CASES)
def test_a_captured_trace_is_what_it_was(name: str, form: str) -> None:
    expected, tree = EXPECTED[name], build_tree(captured(name, form))
    assert tree.trace_id == expected["traceID"]
    assert len(tree.spans) == expected["spans"]
    assert sorted(tree.services) == expected["services"]
    assert [span.span_id for span in tree.roots] == expected["roots"]
    assert list(tree.missing) == expected["missing_parents"]
    assert [span.span_id for span in error_spans(tree)] == expected["error_spans"]
    assert [span.span_id for span in deepest_errors(tree)] == expected["deepest_errors"]
    unit = unit_of(form)
    assert (tree.started_at or 0) // unit == expected["start_unix_nano"] // unit
    assert abs(tree.duration_ns - expected["duration_ns"]) < 2 * unit


@pytest.mark.parametrize(("name", "form"), CASES)
@pytest.mark.parametrize("which", ["critical_path_jaeger", "critical_path_whole"])
def test_the_critical_paths_are_what_they_were(name: str, form: str, which: str) -> None:
    if which not in EXPECTED[name]:
        pytest.skip("not known of this one")
    tree = build_tree(captured(name, form))
    path = jaeger_path(tree) if which == "critical_path_jaeger" else whole_path(tree)
    expected = EXPECTED[name][which]
    assert [_steps(segment) for segment in path] == [
        (step["spanID"], step["name"], step.get("wait", False)) for step in expected
    ]
    for segment, step in zip(path, expected, strict=True):
        assert abs(segment.from_ns - step["from_ns"]) < 2 * unit_of(form)
        assert abs(segment.to_ns - step["to_ns"]) < 2 * unit_of(form)


def _steps(segment: Segment) -> tuple[str, str, bool]:
    return segment.span.span_id, segment.span.name, segment.is_wait
