"""Functions, classes and files stay small enough to be read at once."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILE_LINES = 400
CLASS_LINES = 250
FUNCTION_LINES = 60

PARTS = ("jobtui", "tests", "benchmarks", "release")
FILES = sorted(path for part in PARTS for path in (ROOT / part).rglob("*.py"))


def too_long(source: str) -> Iterator[str]:
    """Whatever of a file's source is over a limit, in words."""
    lines = source.count("\n")
    if lines > FILE_LINES:
        yield f"the file has {lines} lines of {FILE_LINES}"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            limit = FUNCTION_LINES
        elif isinstance(node, ast.ClassDef):
            limit = CLASS_LINES
        else:
            continue
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > limit:
            yield f"{node.name}, line {node.lineno}, has {lines} lines of {limit}"


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_nothing_is_too_long(path: Path) -> None:
    assert not list(too_long(path.read_text()))


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n" + "    x = 1\n" * 60,
        "class A:\n" + "    x = 1\n" * 250,
        "x = 1\n" * 401,
    ],
)
def test_what_is_too_long_is_seen(source: str) -> None:
    assert list(too_long(source))
