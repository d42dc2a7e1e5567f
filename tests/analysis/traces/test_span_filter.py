import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.filter_syntax import FilterError
from jobtui.analysis.traces.span_filter import parse_span_filter
from jobtui.model.traces import Resource
from tests.tracing import a_span, captured

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
