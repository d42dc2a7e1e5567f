"""Who may import whom. A lower layer never knows a higher one; what is not listed here may not be."""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

from jobtui.screens.shared import SCREENS

PACKAGE = Path(__file__).parents[1] / "jobtui"

BELOW_TERMINAL = frozenset(
    {
        "model",
        "formats",
        "transport",
        "backends",
        "logs",
        "recording",
        "analysis",
        "store",
        "render",
        "session",
        "config",
        "grammar",
        "views",
    }
)
TERMINAL = frozenset({"widgets", "screens", "app", "theme", "actions", "keymap", "terminal", "allocator"})
ALL = BELOW_TERMINAL | TERMINAL | {"commands", "demo"}

MAY_IMPORT: dict[str, frozenset[str]] = {
    "": frozenset(),
    "model": frozenset(),
    "formats": frozenset({"model"}),
    "transport": frozenset({"model"}),
    "backends": frozenset({"model", "formats", "transport", "config"}),
    "logs": frozenset({"model", "formats", "transport", "backends"}),
    "recording": frozenset({"model", "formats", "transport", "backends", "logs"}),
    "analysis": frozenset({"model", "formats", "backends.registry"}),
    "store": frozenset({"model", "backends.base", "backends.record_replay", "backends.registry"}),
    "render": frozenset({"model", "analysis", "backends.registry"}),
    "grammar": frozenset({"model", "backends.registry"}),
    "config": frozenset(
        {"model", "grammar", "actions", "keymap", "render", "transport", "backends.registry"}
    ),
    "views": frozenset({"model", "transport"}),
    "actions": frozenset(),
    "keymap": frozenset({"actions", "model"}),
    "theme": frozenset({"model", "render"}),
    "terminal": frozenset({"model", "render"}),
    "allocator": frozenset(),
    "session": frozenset({"model", "backends", "logs", "analysis", "store", "config"}),
    "demo": frozenset({"model", "formats"}),
    "widgets": frozenset({"model", "analysis", "render", "actions"}),
    "screens": frozenset(
        {
            "model",
            "analysis",
            "render",
            "store",
            "terminal",
            "widgets",
            "actions",
            "views",
            "session.evidence",
            "backends.registry",
        }
    ),
    "web": frozenset({"model"}),
    "commands": BELOW_TERMINAL | {"demo", "actions", "web"},
    "app": ALL - {"commands"},
    "cli": frozenset({"", "config", "grammar"}),
    "__main__": frozenset({"cli"}),
}
"""Layer (first name below jobtui, "" for the package itself) to what it may import, besides itself."""

MAY_IMPORT_LATE: dict[str, frozenset[str]] = {"cli": ALL}
"""The same for imports in functions or for types only, where that differs: the start does not pay them."""

LIBRARIES: dict[str, frozenset[str]] = {
    "textual": frozenset({"widgets", "screens", "app", "theme", "terminal", "web"}),
    "rich": frozenset({"render", "terminal", "widgets", "screens", "app", "theme", "commands"}),
    "systemd": frozenset({"backends"}),
    "h11": frozenset({"backends"}),
    "httpx": frozenset({"transport"}),
    "opentelemetry": frozenset({"formats"}),
    "google": frozenset({"formats"}),
    "plotext": frozenset({"render"}),
    "confluent_kafka": frozenset({"backends"}),
    "htcondor2": frozenset(),
    "textual_serve": frozenset({"web"}),
    "aiohttp": frozenset({"web"}),
    "aiohttp_jinja2": frozenset({"web"}),
}
"""Libraries that only some layers may know."""

MAY_IMPORT_BY_NAME = frozenset({"cli", "commands", "screens/shared.py"})
"""Layers and files that may import a module whose name is a value, so that this test cannot follow it."""


LATE = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Import(NamedTuple):
    path: str
    line: int
    deferred: bool


def imports_in(source: str) -> Iterator[Import]:
    """Every import of a module's source; `from a import b` gives `a.b`."""

    def walk(node: ast.AST, deferred: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inside = deferred or isinstance(child, LATE) or _is_for_types(child)
            if isinstance(child, ast.Import):
                yield from (Import(name.name, child.lineno, inside) for name in child.names)
            elif isinstance(child, ast.ImportFrom):
                start = "." * child.level + (child.module or "")
                yield from (Import(f"{start}.{name.name}", child.lineno, inside) for name in child.names)
            elif isinstance(child, ast.Call) and _called(child.func) in ("import_module", "__import__"):
                yield Import("<by name>", child.lineno, inside)
            yield from walk(child, inside)

    return walk(ast.parse(source), False)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def is_module(path: str) -> bool:
    """Whether `jobtui.x.y` is a module or package of this project, and not a name inside one."""
    place = PACKAGE.parent.joinpath(*path.split("."))
    return place.is_dir() or place.with_suffix(".py").is_file()


def fault_of(layer: str, found: Import) -> str | None:
    """What is wrong with this import in a module of this layer, None when nothing is."""
    if found.path == "<by name>":
        return None if layer in MAY_IMPORT_BY_NAME else "imports by a name that cannot be checked"
    top, _, below = found.path.partition(".")
    if not top:
        return "relative import"
    if top != "jobtui":
        return None if layer in LIBRARIES.get(top, {layer}) else f"may not know {top}"
    target = below if below in MAY_IMPORT or is_module(found.path) else below.rpartition(".")[0]
    allowed = MAY_IMPORT[layer]
    if found.deferred:
        allowed = MAY_IMPORT_LATE.get(layer, allowed)
    # The package itself holds the version only, which anybody may have.
    fine = target in ("", layer) or any(
        f"{target}.".startswith(f"{name}.") for name in {layer, *allowed} - {""}
    )
    return None if fine else f"may not import jobtui.{target}"


def layer_of(module: Path) -> str:
    name = module.relative_to(PACKAGE).with_suffix("").parts[0]
    return "" if name == "__init__" else name


MODULES = sorted(PACKAGE.rglob("*.py"))


def test_every_screen_that_others_open_is_where_the_table_says() -> None:
    for place, name in SCREENS.items():
        module, _, one = name.partition(".")
        assert place == getattr(import_module(f"jobtui.screens.{module}"), one).PLACE


def test_a_module_imports_only_what_its_layer_may() -> None:
    unknown = {layer_of(module) for module in MODULES} - MAY_IMPORT.keys()
    assert not unknown, f"in no layer, add them to MAY_IMPORT: {unknown}"
    faults = [
        f"{module.relative_to(PACKAGE)}:{found.line}: {fault} ({found.path})"
        for module in MODULES
        for found in imports_in(module.read_text())
        if not (found.path == "<by name>" and str(module.relative_to(PACKAGE)) in MAY_IMPORT_BY_NAME)
        if (fault := fault_of(layer_of(module), found))
    ]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("model", "from jobtui import screens"),
        ("model", "import jobtui.screens.jobs as j"),
        ("backends", "def f():\n    from jobtui.store import store"),
        ("store", "from jobtui.backends.sirepo import source"),
        ("widgets", "from jobtui.store.store import Store"),
        ("cli", "from jobtui.commands import jobs"),
        ("commands", "def f():\n    import jobtui.app"),
        ("model", "from . import ids"),
        ("render", "from textual.strip import Strip"),
        ("analysis", "if True:\n    import rich.text"),
        ("screens", "from importlib import import_module\nimport_module('jobtui.commands')"),
    ],
)
def test_a_wrong_import_is_seen(layer: str, source: str) -> None:
    assert [fault for found in imports_in(source) if (fault := fault_of(layer, found))]


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("store", "from jobtui.backends.base import Source"),
        ("store", "from jobtui.backends import base"),
        ("cli", "from jobtui import __version__, config"),
        ("cli", "def f():\n    from jobtui.app import App"),
        ("cli", "if TYPE_CHECKING:\n    from jobtui.session import Session"),
        ("screens", "from jobtui.widgets.job_table import JobTable"),
    ],
)
def test_a_right_import_passes(layer: str, source: str) -> None:
    assert not [fault for found in imports_in(source) if (fault := fault_of(layer, found))]
