"""The modules of jobtui, what each imports, and what its layer may import."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.rows import table

PACKAGE = Path(__file__).parents[1] / "jobtui"

_LAYERS = table("layers")
GROUPS = {name: frozenset(names) for name, names in _LAYERS["groups"].items()}
ALL = frozenset[str]().union(*GROUPS.values()) - {""}
MAY_IMPORT: dict[str, frozenset[str]] = {
    layer: frozenset[str]().union(*(GROUPS.get(word, {word}) for word in words.split()))
    for layer, words in _LAYERS["may_import"].items()
}
"""Layer (first name below jobtui, "" for the package itself) to what it may import, besides itself."""
LIBRARIES = {name: frozenset(words.split()) for name, words in _LAYERS["libraries"].items()}
LATE = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Import(NamedTuple):
    path: str
    line: int
    deferred: bool


def parts(node: ast.AST) -> Iterator[ast.AST]:
    """The statements right below a statement, and the handlers and cases that hold others."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        found = getattr(node, name, ())
        yield from found if isinstance(found, list) else ()


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All of them below, at any depth; expressions are most of a tree, and not looked through."""
    for child in parts(node):
        yield child
        yield from statements(child)


def imports_in(source: str, tree: ast.Module | None = None) -> Iterator[Import]:
    """Every import of a module's source, which may be parsed; `from a import b` gives `a.b`."""
    below = ast.iter_child_nodes if "import_module" in source or "__import__" in source else parts

    def walk(node: ast.AST, deferred: bool) -> Iterator[Import]:
        for child in below(node):
            inside = deferred or isinstance(child, LATE) or _is_for_types(child)
            if isinstance(child, ast.Import):
                yield from (Import(name.name, child.lineno, inside) for name in child.names)
            elif isinstance(child, ast.ImportFrom):
                start = "." * child.level + (child.module or "")
                yield from (Import(f"{start}.{name.name}", child.lineno, inside) for name in child.names)
            elif isinstance(child, ast.Call) and called_name(child.func) in ("import_module", "__import__"):
                yield Import("<by name>", child.lineno, inside)
            yield from walk(child, inside)

    return walk(tree or ast.parse(source), False)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def called_name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


MODULES = sorted(PACKAGE.rglob("*.py"))


def nodes(*words: str) -> Iterator[tuple[str, ast.AST]]:
    """All nodes of the modules in which one of these words stands, each with the path of its module."""
    for path in MODULES:
        source = path.read_text()
        if any(word in source for word in words):
            name = path.relative_to(PACKAGE).as_posix()
            yield from ((name, node) for node in ast.walk(ast.parse(source)))
