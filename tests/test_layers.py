"""Who may import whom. A lower layer never knows a higher one; what is not listed here may not be."""

import re
from importlib import import_module
from pathlib import Path

from jobtui.backends.registry import SOURCES
from jobtui.screens.shared import SCREENS
from tests.modules import ALL, LIBRARIES, MAY_IMPORT, MODULES, PACKAGE, Import, imports_in

MAY_IMPORT_LATE: dict[str, frozenset[str]] = {"cli": ALL}
"""The same for imports in functions or for types only, where that differs: the start does not pay them."""

MAY_IMPORT_BY_NAME = frozenset(
    {"cli", "commands", "screens/shared.py", "backends/registry.py", "analysis/systems/__init__.py"}
)
"""Layers and files that may import a module whose name is a value, so that this test cannot follow it."""


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


def test_every_screen_that_others_open_is_where_the_table_says() -> None:
    for place, name in SCREENS.items():
        module, _, one = name.partition(".")
        assert place == getattr(import_module(f"jobtui.screens.{module}"), one).NAME


def test_every_source_of_a_setting_is_made_where_its_descriptor_says() -> None:
    for one in SOURCES:
        assert not one.setting or callable(import_module(one.module, "jobtui.backends").open_source)


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


def test_no_test_module_is_imported_by_another() -> None:
    paths = sorted((PACKAGE.parent / "tests").rglob("*.py"))
    said = re.compile(r"^ *(?:from|import) tests\.\S*\btest_.*$", re.MULTILINE)
    found = [f"{path.name}: {line}" for path in paths for line in said.findall(path.read_text())]
    assert not found, "put what several tests use into a module of its own"
