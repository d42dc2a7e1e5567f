"""Attributes and environments as HTCondor writes them."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.formats.class_ads import (
    MOST_CHARACTERS,
    attribute,
    environment,
    expressions_of,
    texts_of,
    texts_of_xml,
    trace_of,
)

TRACE = "212c891717bfbac28a34dec05b616f14"
PARENT = f"00-{TRACE}-ff9c35a8f8c0b21f-01"


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("A=1;B=x y;C=", {"A": "1", "B": "x y", "C": ""}),
        ("\"A=1 B='x y' C='it''s' D=say\"\"hi\"\"\"", {"A": "1", "B": "x y", "C": "it's", "D": 'say"hi"'}),
        ("A=1 B='x y'", {"A": "1", "B": "x y"}),
        ("A=1", {"A": "1"}),
        ("A=a=b;;=x; ;", {"A": "a=b"}),
        ("", {}),
    ],
)
def test_both_ways_to_write_an_environment_are_read(text: str, variables: dict[str, str]) -> None:
    assert environment(text) == variables


@pytest.mark.parametrize(
    "values",
    [
        {"TraceParent": PARENT},
        {"TRACEPARENT": PARENT, "TraceParent": "$(TRACEPARENT)"},
        {"Environment": f"CLUSTER=1 TRACEPARENT={PARENT} X='a b'"},
        {"Env": f"CLUSTER=1;TRACEPARENT={PARENT};X=a b"},
        {"environment": f'"CLUSTER=1 TRACEPARENT={PARENT.upper()}"'},
        {"environment": f"A=b;TRACEPARENT={PARENT};"},
    ],
)
def test_the_trace_of_a_job_is_in_its_attribute_or_environment(values: dict[str, str]) -> None:
    ref = trace_of(values)
    assert ref is not None
    assert ref.trace_id == TRACE


def test_no_other_variable_is_taken_for_it() -> None:
    assert trace_of({"Environment": f"X=1 MY_TRACEPARENT={PARENT}"}) is None


@pytest.mark.parametrize(
    ("line", "pair"),
    [
        ('Owner = "me"', ("Owner", "me")),
        (r'A = "a \"b\" \\ c"', ("A", r'a "b" \ c')),
        ("+JobsubCmd = \"x.sh\"", ("JobsubCmd", "x.sh")),
        ("N = 4", ("N", "4")),
        ("R = a == b && c", ("R", "a == b && c")),
        ("no attribute", None),
        ("= 3", None),
    ],
)  # fmt: skip
def test_an_attribute_is_a_name_and_a_value(line: str, pair: tuple[str, str] | None) -> None:
    assert attribute(line) == pair


def test_the_types_of_xml_are_texts() -> None:
    text = (
        '<a n="A"><s>x &lt;1&gt; &amp;</s></a><a n="B"><i>-3</i></a>'
        '<a n="C"><b v="t"/></a><a n="D"><e>1+</e></a>'
    )
    assert texts_of_xml(text) == {"A": "x <1> &", "B": "-3", "C": "true", "D": "1+"}


@given(st.text(alphabet="AB='\"; \\\n|<a>", max_size=60))
def test_no_text_makes_them_raise(text: str) -> None:
    environment(text)
    attribute(text)
    texts_of_xml(text)
    trace_of({"Env": text, "TraceParent": text})


def test_a_long_run_of_blanks_in_a_value_is_read_at_once() -> None:
    line = "A = x" + " " * 60_000 + "y"
    begin = process_time()
    assert attribute(line) == ("A", line[4:])
    assert process_time() - begin < 1  # were every blank looked at from every other: 20


SAME = {"S": r'"a\"b\\.c"', "N": "-5", "T": "true", "E": 'regexp("a\\\\.b",S) && N < 3', "U": "undefined"}
"""An ad as expressions; each of its forms gives these."""


@pytest.mark.parametrize(
    "text",
    [
        'S = "a\\"b\\.c"\nN = -5\nT = true\n+E = regexp("a\\.b",S) && N < 3 \r\nU = undefined\nno\n',
        r"""{"S": "a\"b\\.c", "N": -5, "T": true, "E": "\/Expr(regexp(\"a\\\\.b\",S) && N < 3)\/",
            "U": null}""",
        r"""<c> <a n="S"><s>a"b\.c</s></a> <a n="N"><i>-5</i></a> <a n="T"><b v="t"/></a>
        <a n="E"><e>regexp("a\\.b",S) &amp;&amp; N &lt; 3</e></a> <a n="U"><e>undefined</e></a></c>""",
    ],
    ids=["long", "json", "xml"],
)
def test_the_expressions_of_an_ad_are_the_same_in_each_of_its_forms(text: str) -> None:
    assert expressions_of(text) == SAME


@pytest.mark.parametrize(
    ("text", "expressions"),
    [
        (r'P = "C:\dir\"' + "\n", {"P": r'"C:\\dir\\"'}),
        ('{"L": [1], "C": {"a": 1}, "I": NaN}', {"L": "[]", "C": "[]", "I": "undefined"}),
        ('<c><a n="L"><l><i>1</i></l></a><a n="E"><s/></a></c>', {"L": "[]", "E": '""'}),
        ("{", {}),
        ("[1]", {}),
        ("A = 1\n" * MOST_CHARACTERS, {}),
    ],
    ids=["backslash", "nested", "nested xml", "broken", "no ad", "cut"],
)
def test_what_cannot_be_said_in_an_expression_is_not_made_up(text: str, expressions: dict[str, str]) -> None:
    assert expressions_of(text) == expressions


@given(st.text())
def test_any_text_has_expressions_or_none(text: str) -> None:
    assert all(isinstance(value, str) for value in expressions_of(text).values())


def test_an_expression_in_json_is_shown_as_it_is_written() -> None:
    assert texts_of({"A": "/Expr(B + 1)/", "B": "x/Expr(y)/"}) == {"A": "B + 1", "B": "x/Expr(y)/"}
