"""Expressions in job ads: their words and clauses, and what of them is handed to HTCondor's library."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.formats.ad_expressions import (
    DEEPEST,
    FUNCTIONS,
    MOST_CHARACTERS,
    MOST_WRITTEN_OUT,
    Ad,
    Unfit,
    clauses_of,
    is_plain,
    words_of,
)
from jobtui.model.ad_values import AdQuestion

NOW = 1_795_172_400
PIECES = (
    "A",
    "B",
    "target.",
    "MY.",
    "time()",
    "regexp(",
    '"a\\"b"',
    "(",
    ")",
    "{",
    "}",
    ",",
    "&&",
    "||",
    "?",
    ":",
)
EXPRESSIONS = st.lists(
    st.sampled_from((*PIECES, "1", "2.5e3", "=?=", "!", "-", ".", "userHome(", "\\", "[", " "))
)


def ask(expression: str, **others: str) -> AdQuestion:
    """The question for an expression of an ad."""
    ad = Ad({"It": expression, **others}, NOW)
    return ad.question(ad.words("it"))


def refusal(expression: str, **others: str) -> str:
    """Why an expression is not handed over."""
    with pytest.raises(Unfit) as refused:
        ask(expression, **others)
    return str(refused.value)


def test_an_expression_takes_along_what_it_refers_to_and_nothing_else() -> None:
    others = {"Used": "Size / 1024", "Size": "4096", "Unused": "userHome()", "Memory": "1"}
    asked = ask("ifThenElse(my.USED =!= undefined, used, 1) + TARGET.Memory", **others)
    assert asked == AdQuestion(
        "ifThenElse ( my . USED =!= undefined , used , 1 ) + TARGET . Memory",
        (("size", "4096"), ("used", "Size / 1024")),
    )


def test_words_of_the_language_are_no_names() -> None:
    asked = ask("A is (undefined) || true", A="1", Is="2", True_="3", **{"true": "userHome()"})
    assert asked == AdQuestion("A is ( undefined ) || true", (("a", "1"),))


def test_the_time_is_that_of_the_clock() -> None:
    asked = ask("time() - Since > CurrentTime", Since="TIME ( ) - 5")
    assert asked == AdQuestion(f"{NOW} - Since > {NOW}", (("since", f"{NOW} - 5"),))


def test_strings_stay_as_they_are() -> None:
    assert ask(r'A=="a \" && time() \\"').expression == r'A == "a \" && time() \\"'


@pytest.mark.parametrize(
    ("expression", "others", "why"),
    [
        ("userHome(\"root\")", {}, "calls userHome"),
        ("B", {"B": "eval(C)"}, "refers to b, which calls eval"),
        ("B", {"B": "C + 1", "C": "b"}, "refers to b, which refers to itself"),
        ("It", {}, "refers to it, which refers to itself"),
        ("1" * (MOST_CHARACTERS + 1), {}, "is longer than 4,096 characters"),
        ("(" * (DEEPEST + 1) + ")" * (DEEPEST + 1), {}, "more than 64 parentheses"),
        ("A0", {f"A{at}": f"A{at + 1}" for at in range(99)}, "more than 64 names that stand for names"),
        ("A0", {f"A{at}": f"A{at + 1} + A{at + 1}" for at in range(30)}, "is longer than 32,768"),
        ("strcat(A,A)", {"A": "strcat(B,B,B,B,B)", "B": '"' + "x" * 4_000 + '"'}, "is longer than 32,768"),
        ("A[0]", {}, "is not understood at its character 2"),
        ("[ a = 1 ]", {}, "is not understood at its character 1"),
        ("a = 1", {}, "is not understood at its character 3"),
        ("1; 2", {}, "is not understood at its character 2"),
        ("'A'", {}, "is not understood"),
        ('"a', {}, "is not understood"),
        ('"\0"', {}, "is not understood"),
        ('"\ud800"', {}, "has characters that are none"),
        ("10M", {}, "is not understood at its character 1"),
        ("A.B", {}, "looks into an ad"),
        (".B", {}, "looks into an ad"),
        ("substr(ENVIRONMENT, 5)", {"Environment": '"A=b"'}, "refers to ENVIRONMENT, which may hold secrets"),
        ("B", {"B": "MY.ApiToken", "ApiToken": "1"}, "refers to b, which refers to ApiToken, which"),
        ("size(self)", {}, "takes an ad as a whole"),
    ],
)  # fmt: skip
def test_what_may_do_harm_is_not_handed_over(expression: str, others: dict[str, str], why: str) -> None:
    assert why in refusal(expression, **others)


def test_no_function_looks_outside_or_evaluates_text() -> None:
    outside = {
        "eval",
        "unparse",
        "debug",
        "userhome",
        "usermap",
        "random",
        "envv1tov2",
        "splitusername",
        "evalineachcontext",
    }
    repeating = {"replace", "replaceall", "regexps", "join", "formattime"}
    assert not FUNCTIONS & (outside | repeating)


@pytest.mark.parametrize(
    ("expression", "plain"),
    [("5", True), ("-5", True), ('"a b"', True), ("TRUE", True), ("undefined", True), ("1.5E+20", True),
     ("A", False), ("- A", False), ("1 + 2", False), ("", False), ("[", False), ("{1}", False)],
)  # fmt: skip
def test_a_value_needs_nobody(expression: str, plain: bool) -> None:
    assert is_plain(expression) is plain


@pytest.mark.parametrize(
    ("expression", "sign", "clauses"),
    [
        ("A && B", "&&", ["A", "B"]),
        (
            "((A) && (B || C)) && ifThenElse(D && E, 1, 2)",
            "&&",
            ["A", "B || C", "ifThenElse ( D && E , 1 , 2 )"],
        ),
        ("(A) && (B)", "&&", ["A", "B"]),
        ("A && B || C", "&&", ["A && B || C"]),
        ("A && B || C", "||", ["A && B", "C"]),
        ("A || B ? C : D", "||", ["A || B ? C : D"]),
        ("(A || B)", "||", ["A", "B"]),
        ("A", "||", ["A"]),
        ("&&", "&&", ["", ""]),
        ("", "&&", [""]),
    ],
)
def test_clauses_are_what_stands_between_signs_that_bind_weakest(
    expression: str, sign: str, clauses: list[str]
) -> None:
    found = clauses_of(words_of(expression), sign)
    assert [" ".join(word.text for word in clause) for clause in found] == clauses


@given(st.dictionaries(st.sampled_from("AB"), EXPRESSIONS.map("".join)), EXPRESSIONS.map("".join))
def test_whatever_is_handed_over_is_short_and_calls_only_what_is_known(
    others: dict[str, str], expression: str
) -> None:
    try:
        asked = ask(expression, **others)
    except Unfit:
        return
    texts = [asked.expression, *(text for _, text in asked.scope)]
    assert sum(map(len, texts)) <= MOST_WRITTEN_OUT
    for text in texts:
        words = words_of(text)  # it is understood in the same way again
        called = {a.text.lower() for a, b in pairwise(words) if (a.kind, b.text) == ("name", "(")}
        assert called <= FUNCTIONS
        assert not {"[", ";", "\\"} & {word.text for word in words}


@given(st.text(max_size=200), st.sampled_from(["&&", "||"]))
def test_any_text_has_clauses_or_is_refused(text: str, sign: str) -> None:
    try:
        words = words_of(text)
    except Unfit:
        return
    assert all(set(clause) <= set(words) for clause in clauses_of(words, sign))
