"""Numbers and times from outside: one place reads them, and nothing there raises."""

import ast
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from jobtui.analysis.times import age, duration, parse_duration
from jobtui.model import clock, numbers
from jobtui.model.clock import LATEST_S, SECOND, Nanos, to_rfc3339
from jobtui.render.text import Zone, clock_time, date_time, short_time
from tests.modules import nodes
from tests.offenders import each
from tests.rows import table

LONG = "9" * 5_000

NUMBERISH = st.one_of(
    st.text(),
    st.from_regex(r"[-+]?[0-9_.eE]{1,30}"),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from((LONG, f"-{LONG}", "1_000", "²", "٣", "1e999", "nan", "0x10", " 1", "\0", "")),
)
DOCUMENTS = st.one_of(
    NUMBERISH, st.integers(), st.floats(), st.booleans(), st.none(), st.sampled_from((10**400, -(10**400)))
)
TIMEISH = st.one_of(
    NUMBERISH,
    st.datetimes().map(str),
    st.builds(lambda day, rest: day + rest, st.dates().map(str), st.text(max_size=12)),
    st.sampled_from(
        ("9999-12-31T23:59:59.999999-23:59", "0001-01-01T00:00:00+23:59", "2026-11-20T10:00:00Z")
    ),
)


def test_a_number_may_have_a_default_and_be_in_bytes() -> None:
    assert (numbers.whole("x", 8), numbers.whole("3", 8)) == (8, 3)
    assert [numbers.whole(one) for one in (b"41", None, LONG)] == [41, None, None]


@given(NUMBERISH)
def test_any_text_is_none_or_a_number_in_range(text: str) -> None:
    number, fraction, hexadecimal = numbers.whole(text), numbers.real(text), numbers.of_base(text, 16)
    assert number is None or numbers.LEAST_INT64 <= number <= numbers.MOST_INT64
    assert fraction is None or math.isfinite(fraction)
    assert hexadecimal is None or 0 <= hexadecimal <= numbers.MOST_UNSIGNED
    assert numbers.whole(text.encode("utf-8", "replace")) == number


@given(DOCUMENTS)
def test_any_value_of_a_document_is_none_or_a_number_in_range(value: object) -> None:
    number, fraction = numbers.whole_of(value), numbers.real_of(value)
    assert number is None or (type(number) is int and numbers.LEAST_INT64 <= number <= numbers.MOST_INT64)
    assert fraction is None or (type(fraction) is float and math.isfinite(fraction))


@given(TIMEISH)
def test_any_text_is_none_or_a_time_that_can_be_shown(text: str) -> None:
    for at in (
        clock.time_of_iso(text),
        clock.time_of_iso(text, is_local=True),
        clock.time_of_mail(text),
        clock.time_of_seconds(numbers.real(text)),
    ):
        assert at is None or 0 <= at < LATEST_S * SECOND
    length = parse_duration(text)
    assert length is None or 0 <= length < LATEST_S


@given(st.integers(), st.floats())
def test_any_time_and_length_can_be_shown(number: int, length: float) -> None:
    at = Nanos(number)
    assert isinstance(clock.from_seconds(length), int)
    assert to_rfc3339(at).endswith("Z")
    for local in (True, False):
        Zone.is_local = local
        assert clock_time(at)
        assert date_time(at)
        assert short_time(at, Nanos(0))
    assert age(length)
    assert duration(length)


@each(f'{{"a": {LONG}}}', '{"a": 1e999}', '{"a": NaN}', '{"a": -Infinity}')
def test_a_number_out_of_range_is_kept_as_text_and_costs_nothing_else(text: str) -> None:
    document = numbers.read_json(text.replace("}", ', "b": 2}'))

    assert isinstance(document, dict)
    assert isinstance(document["a"], str)
    assert document["b"] == 2


@given(st.binary())
def test_bytes_that_are_not_a_document_raise_value_error(data: bytes) -> None:
    with suppress(ValueError):
        numbers.read_json(data)


ALLOWED = {"model/numbers.py", "model/clock.py"}
CONVERSIONS = frozenset({"int", "float", "complex", "Decimal", "Fraction", "datetime", "loads"})
METHODS = frozenset(
    {
        "fromisoformat", "fromtimestamp", "utcfromtimestamp", "fromordinal", "strptime", "timestamp",
        "astimezone", "mktime", "parsedate_to_datetime", "fromhex", "loads",
    }
)  # fmt: skip
OWN: Mapping[str, Sequence[str]] = table("own_numbers")
"""Numbers that the program made itself, and what is distinguished already. Nothing that somebody wrote."""


def is_conversion(node: ast.AST) -> bool:
    """Whether it is a call that makes a number, a time or a document, or that is handed `int` to do it."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    handed = [*node.args, *(keyword.value for keyword in node.keywords)]
    hands_over = any(isinstance(one, ast.Name) and one.id in ("int", "float") for one in handed)
    return name in CONVERSIONS or method in METHODS or (hands_over and name not in ("isinstance", "cast"))


def test_nothing_else_converts_what_was_written_outside() -> None:
    new = {
        (name, text)
        for name, node in nodes("")
        if is_conversion(node) and not name.startswith("demo/") and name not in ALLOWED
        if (text := ast.unparse(node)) not in OWN.get(name, ())
    }
    assert not new
