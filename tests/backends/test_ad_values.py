"""What HTCondor's own library makes of the expressions that are handed to it: their values, and no harm."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from jobtui.backends.ad_library import NO_ANSWER, AdLibrary, directory_of_library
from jobtui.formats.ad_expressions import FUNCTIONS, MOST_CHARACTERS, Ad, Unfit, words_of
from jobtui.formats.class_ads import expressions_of
from jobtui.model.ad_values import AdAnswer, AdQuestion
from tests.condor import CONDOR

DIRECTORY = directory_of_library()
pytestmark = pytest.mark.skipif(DIRECTORY is None, reason="HTCondor's library is not there")

NOT_UNDERSTOOD = "is not understood by HTCondor's library"
NOT_EVALUATED = "could not be evaluated by HTCondor's library"
NOW = 1_795_172_400
VALUES = {
    'allCompare("<",{1,2},3)': "true",
    'anyCompare("<",{5,1},3)': "true",
    "avg({1,3})": "2",
    'bool("true")': "true",
    "ceiling(1.2)": "2",
    "floor(1.8)": "1",
    "identicalMember(1,{1})": "true",
    "ifThenElse(1 > 2,3,4)": "4",
    "int(3.9)": "3",
    "interval(3700)": '"1:01:40"',
    "isBoolean(true)": "true",
    "isError(error)": "true",
    "isInteger(1)": "true",
    "isList({})": "true",
    "isReal(1.0)": "true",
    'isString("a")': "true",
    "isUndefined(NoSuch)": "true",
    "max({1,2})": "2",
    'member("A",{"a"})': "true",
    "min({1,2})": "1",
    "pow(2,3)": "8",
    "quantize(5,4)": "8",
    'real("1.5")': "1.5",
    'regexp("^a.c$","abc")': "true",
    'regexpMember("b+",{"a","bb"})': "true",
    "round(1.5)": "2",
    'size("abc")': "3",
    'strcat("a",1)': '"a1"',
    'strcmp("a","b")': "-1",
    'stricmp("A","a")': "0",
    "string(5)": '"5"',
    'substr("abcd",1,2)': '"bc"',
    "sum({1,2})": "3",
    "time()": str(NOW),
    'toLower("\u00c9A")': '"\u00c9a"',
    'toUpper("a")': '"A"',
    'versioncmp("1.9","1.10")': "-1",
    'versionEQ("1","1")': "true",
    'versionGE("1","1")': "true",
    'versionGT("1","1")': "false",
    'versionLE("1","1")': "true",
    'versionLT("1","1")': "false",
}
"""Of each function that is let through, a call and its value."""

HOSTILE = (
    *(
        sign * (MOST_CHARACTERS // len(sign) - 4) + "true"
        for sign in ("!", "-", "~", "x?1:", "x?:", "{},", "- -")
    ),
    *(
        "1" + sign * ((MOST_CHARACTERS - 1) // len(sign))
        for sign in ("+1", "&&x", "||x", "<1", "=?=1", "?1:1", "%0")
    ),
    *(name * 63 + "1" + ")" * 63 for name in ("(", "isUndefined(", "pow(2,", "quantize({1},", "{1}&&(")),
    "{" * 63 + "}" * 63,
    "x?" * 1_000 + "1" + ":1" * 1_000,
    'regexp("(a+)+$","' + "a" * 2_000 + 'b")',
    'regexp("((a*)*)*b","' + "a" * 2_000 + '")',
    'regexp("' + "(" * 1_900 + "a" + ")" * 1_900 + '","a")',
    'regexp("(a{1,60000}){1,60000}","a")',
    'regexp("(?R)","a")',
    'regexp("a","a","iiii' + "\\377" * 500 + '")',
    "(-9223372036854775807 - 1) / -1 + (-9223372036854775807 - 1) % -1",
    "9" * 4_000,
    "1e999 - 1e999 << 99",
    "int(1e300) + floor(0.0/0.0) + pow(10,308) * quantize(1,0)",
    'substr("abc",-999999999999,999999999999)',
    "interval(9223372036854775807)",
    '"' + "\\" * 4_000 + '"',
    "size()" * 600,
    "strcat(" + ",".join(["A"] * 500) + ")",
)
LEAVES = (
    "A",
    "B",
    "target.C",
    "MY.A",
    "time()",
    '"a\\"b"',
    '"(a+)+$"',
    "1",
    "0",
    "-9",
    "2.5e300",
    "undefined",
    "error",
)
SIGNS = (
    "+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", ">>>", "&&", "||", "==", "!=", "<", ">", "<=", ">=",
    "=?=", "=!=", "is", "isnt", "?:",
)  # fmt: skip
CALLS = sorted(FUNCTIONS)


def larger(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions made of others."""
    return st.one_of(
        st.builds("({} {} {})".format, parts, st.sampled_from(SIGNS), parts),
        st.builds("({} ? {} : {})".format, parts, parts, parts),
        st.builds("{}{}".format, st.sampled_from("!-~"), parts),
        st.builds("{{{}}}".format, st.lists(parts, max_size=4).map(",".join)),
        st.builds("{}({})".format, st.sampled_from(CALLS), st.lists(parts, max_size=4).map(",".join)),
    )


EXPRESSIONS = st.recursive(st.sampled_from(LEAVES), larger, max_leaves=12)
BROKEN = st.lists(st.sampled_from((*LEAVES, *SIGNS, *"(){},?:!~.")), max_size=40).map(" ".join)


@pytest.fixture
async def library() -> AsyncIterator[AdLibrary]:
    made = AdLibrary(DIRECTORY)
    yield made
    await made.aclose()


def ask(expression: str, **others: str) -> AdQuestion:
    return Ad(others, NOW).question(words_of(expression))


async def answer(library: AdLibrary, question: AdQuestion) -> AdAnswer:
    answers = await library.answers([question])
    assert answers is not None, library.problem
    return answers[question]


def test_every_function_that_is_let_through_has_a_value_here() -> None:
    assert {call.partition("(")[0].lower() for call in VALUES} == FUNCTIONS


async def test_what_is_let_through_is_known_to_the_library(library: AdLibrary) -> None:
    assert {call: (await answer(library, ask(call))).text for call in VALUES} == VALUES


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("ifthenelse(A =!= undefined,A,(B + 1023)/1024)", AdAnswer("4", True)),
        ("B / 1024 > 4", AdAnswer("false", False)),
        ("B / 1024 >= 3.5 && target.C == A", AdAnswer("undefined", None, "target.C == 4")),
        ("A / 0", AdAnswer("error")),
        ("NoSuch", AdAnswer("undefined", None, "NoSuch")),
        ("{A}", AdAnswer("a list")),
        ("B - 4096", AdAnswer("0", False)),
        ("B * 1000.5", AdAnswer("4098048", True)),
        ("1 +", AdAnswer(failed=NOT_UNDERSTOOD)),
        ("A" + "+1" * 1_500, AdAnswer(failed=NOT_EVALUATED)),
    ],
)
async def test_values_and_what_is_left_to_know(
    expression: str, expected: AdAnswer, library: AdLibrary
) -> None:
    assert await answer(library, ask(expression, B="4096", A="B / 1024")) == expected


async def test_nothing_that_is_handed_over_ends_the_library(library: AdLibrary) -> None:
    for expression in HOSTILE:
        assert len(expression) <= MOST_CHARACTERS
        said = await answer(library, ask(expression, A='"' + "x" * 50 + '"'))
        assert said.failed in ("", NOT_UNDERSTOOD, NOT_EVALUATED), expression[:40]


async def test_what_does_end_the_library_costs_its_own_value(library: AdLibrary) -> None:
    refused = AdQuestion("1" + " + 1" * 100_000)  # it would never be handed over
    answers = await library.answers([refused, ask("1 + 1")])
    assert answers is not None
    assert answers[refused].failed in (NO_ANSWER, NOT_EVALUATED)
    assert answers[ask("1 + 1")].text == "2"


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(EXPRESSIONS | BROKEN, EXPRESSIONS, EXPRESSIONS), min_size=20, max_size=20))
def test_no_mixture_of_words_ends_the_library(mixtures: list[tuple[str, str, str]]) -> None:
    questions = []
    for expression, a, b in mixtures:
        try:
            questions.append(ask(expression, A=a, B=b))
        except Unfit:
            continue
    answers = asyncio.run(all_answers(questions))
    event(f"{sum(not said.failed for said in answers)} of {len(mixtures)} have a value")
    assert not [said for said in answers if "ended" in said.failed]


async def all_answers(questions: list[AdQuestion]) -> list[AdAnswer]:
    library = AdLibrary(DIRECTORY)
    try:
        answers = await library.answers(questions)
    finally:
        await library.aclose()
    assert answers is not None, library.problem
    return list(answers.values())


READ = """
import classad2, json, sys
for text in json.load(sys.stdin):
    ad = classad2.parseOne(text, classad2.Parser.Old)
    values = {name: ad.eval(name) for name in ad}
    print(json.dumps([ad.printJson(), values]))
"""
"""What the library itself reads of ads as `condor_q -long` prints them, and these ads as JSON."""
ADS = (
    (CONDOR / "job.ad").read_text(),
    r"""
A = regexp("a\.b", X)
X = "a.b"
B = "C:\dir\"
C = "say \"hi\" \\ x"
D = strcat("a\"b" , "c")
E = (F + 1023) / 1024
F = 4096 * 3
G = E > 2 && !H
H = false
I = -1.5
""",
)


async def test_ads_mean_the_same_here_and_to_the_library_in_both_forms(library: AdLibrary) -> None:
    for text, (as_json, values) in zip(ADS, read_by_library(ADS), strict=True):
        assert values
        for form in (text, as_json):
            ad = Ad(expressions_of(form), NOW)
            questions = {name: ad.question(ad.words(name.lower())) for name in values}
            said = {
                name: json.loads((await answer(library, question)).text)
                for name, question in questions.items()
            }
            assert said == values


def read_by_library(texts: Sequence[str]) -> list[tuple[str, dict[str, object]]]:
    """Each ad as JSON, and the values of its attributes."""
    command = [sys.executable, "-c", READ]
    environ = os.environ | {"PYTHONPATH": str(DIRECTORY)}
    ran = subprocess.run(
        command, input=json.dumps(texts), capture_output=True, text=True, env=environ, check=True
    )
    return [(as_json, values) for as_json, values in map(json.loads, ran.stdout.splitlines())]
