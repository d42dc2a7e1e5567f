import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.filter import complete, token_span
from jobtui.analysis.filter_fields import FIELDS
from tests.analysis.filter_texts import ANY_FILTER_TEXT


@pytest.mark.parametrize(
    ("text", "completions"),
    [
        ("sta", ["status:", "state:", "started:"]),
        ("app:srw sou", ["source:"]),
        ("-mod", ["model:", "mode:"]),
        ("(us", ["user:"]),
        ("status:pe", ["status:pending"]),
        ("status:failed,pe", ["status:failed,pending"]),
        ("flag:no", ["flag:no_progress"]),
        ("quasi:", ["quasi:yes", "quasi:true", "quasi:no", "quasi:false"]),
        ("app:", ["app:srw", "app:warp"]),
        ("name:", ['name:"fel scan"']),
        ("nothing:", []),
        ("zzz", []),
    ],
)
def test_completion(text: str, completions: list[str]) -> None:
    known = {"app": ["srw", "warp"], "name": ["fel scan"]}
    assert complete(text, len(text), known) == completions


def test_an_empty_text_completes_to_every_field() -> None:
    assert len(complete("", 0)) == sum(len(field.names) for field in FIELDS)


def test_completion_looks_at_the_cursor() -> None:
    assert complete("sou app:srw", 3) == ["source:"]
    assert token_span("a -sou app:srw", 6) == (3, 6)


@settings(deadline=None, max_examples=200)
@given(ANY_FILTER_TEXT, st.integers(-3, 60))
def test_completion_never_raises(text: str, cursor: int) -> None:
    start, end = token_span(text, cursor)
    assert 0 <= start <= end <= len(text)
    for completion in complete(text, cursor):
        assert completion
