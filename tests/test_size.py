"""Functions, classes and files stay small enough to be read at once."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.modules import Import, statements
from tests.sizes import LIMITS, Module, circles, fragments, measures

ROOT = Path(__file__).parents[1]
FILE_LINES = 900
CLASS_LINES = 400
FUNCTION_LINES = 50

PARTS = ("jobtui", "tests", "benchmarks", "release")
FILES = sorted(path for part in PARTS for path in (ROOT / part).rglob("*.py"))


BEGINS = re.compile(r"(?:async |def |class |@|[A-Za-z_]\w* ?[:=])")
"""Begins a statement of a module, whose parts have as many lines as it at most."""


def too_long(source: str) -> Iterator[str]:
    lines = source.count("\n")
    if lines > FILE_LINES:
        yield f"the file has {lines} lines of {FILE_LINES}"
    begun = [0, *(number for number, line in enumerate(source.split("\n")) if BEGINS.match(line)), lines + 1]
    if all(end - begin <= FUNCTION_LINES for begin, end in pairwise(begun)):
        return
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            limit = FUNCTION_LINES
        elif isinstance(node, ast.ClassDef):
            limit = CLASS_LINES
        else:
            continue
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > limit:
            yield f"{node.name}, line {node.lineno}, has {lines} lines of {limit}"


def test_nothing_is_too_long() -> None:
    offenders = [f"{path.relative_to(ROOT)}: {why}" for path in FILES for why in too_long(path.read_text())]
    assert not offenders, "\n".join(offenders)


def test_the_house_is_no_bigger_than_its_limits() -> None:
    over = [
        f"{name}: {figure} of {LIMITS[name].most}"
        for name, figure in measures().items()
        if figure > LIMITS[name].most
    ]
    assert not over


def test_a_circle_and_a_fragment_are_seen() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert list(circles(graph)) == [{"a", "b", "c"}]
    used = Module(1, frozenset(), ())
    user = Module(1, frozenset(), (Import("p.x.used", 1, deferred=False),))
    assert fragments({"p.x.used": used, "p.x.user": user}) == ["p.x.used"]
    assert not fragments({"p.x.used": used, "p.x.user": user, "p.y.user": user})


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n" + "    x = 1\n" * 60,
        "class A:\n" + "    x = 1\n" * 400,
        "x = 1\n" * 901,
    ],
)
def test_what_is_too_long_is_seen(source: str) -> None:
    assert list(too_long(source))
