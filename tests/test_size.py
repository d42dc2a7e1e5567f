"""Functions, classes and files stay small enough to be read at once."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tests.modules import statements
from tests.sizes import LIMITS, measures

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


def test_no_function_or_file_is_too_long() -> None:
    offenders = [f"{path.relative_to(ROOT)}: {why}" for path in FILES for why in too_long(path.read_text())]
    assert not offenders, "\n".join(offenders)


def test_no_measure_exceeds_its_limit() -> None:
    over = [
        f"{name}: {figure} of {LIMITS[name].most}"
        for name, figure in measures().items()
        if figure > LIMITS[name].most
    ]
    assert not over
