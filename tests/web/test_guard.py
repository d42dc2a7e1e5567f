"""By which names a served dashboard goes, and how large it may be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.web.guard import Guard
from jobtui.web.sizes import LARGEST, SMALLEST, USUAL, bounded, size_of


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("127.0.0.1:8417", True),
        ("127.0.0.1", True),
        ("[::1]:8417", True),
        ("localhost:9000", True),
        ("LocalHost", True),
        ("10.1.2.3:8417", True),
        ("evil.example:8417", False),
        ("localhost.evil.example:8417", False),
        ("127.0.0.1.evil.example", False),
        ("evil.example#127.0.0.1", False),
        ("user@evil.example", False),
        ("[::1", False),
        ("[x]:1", False),
        ("", False),
    ],
)
def test_foreign_names_are_not_ours(host: str, ours: bool) -> None:
    assert Guard({"localhost", "v3.example.org"}, 8417).is_ours(host) is ours


@given(st.text(max_size=30))
def test_whatever_is_asked_for_is_ours_or_not(host: str) -> None:
    assert Guard({"localhost"}, 8417).is_ours(host) in (True, False)


def test_two_servers_have_two_tokens() -> None:
    assert Guard((), 1).token != Guard((), 1).token


@given(st.integers(), st.integers())
def test_any_size_becomes_one_that_a_screen_can_have(columns: int, lines: int) -> None:
    for least, got, most in zip(SMALLEST, bounded(columns, lines), LARGEST, strict=True):
        assert least <= got <= most


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("132x30", (132, 30)),
        ("0x0", SMALLEST),
        ("99999x99999", LARGEST),
        ("", USUAL),
        ("80", USUAL),
        ("-1x3", USUAL),
        ("²x3", USUAL),
        ("9" * 50 + "x1", USUAL),
    ],
)
def test_a_size_out_of_a_text(text: str, size: tuple[int, int]) -> None:
    assert size_of(text) == size
