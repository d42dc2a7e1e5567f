"""What exists is documented, and what is documented exists: the program's tables against the text."""

import re
from pathlib import Path

import pytest

from jobtui.backends.registry import FACTORIES
from jobtui.commands.exits import Exit
from jobtui.config.values import TABLES
from jobtui.grammar import COMMANDS, DASHBOARD, GENERAL_FLAGS, SETTINGS, flags_of
from jobtui.model.access_reading import KEYS
from jobtui.model.verdicts import Code
from tests.reference import renewed
from tests.test_layers import MAY_IMPORT

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
REFERENCE = (ROOT / "docs" / "reference.md").read_text()
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

FLAGS_OF_SCRIPTS = {"--write", "--quick", "--fix", "--minutes", "--ready", "--keys"}
"""Flags in the documents that belong to the programs of scripts and benchmarks."""

FLAGS_OF_OTHERS = {
    "--array", "--buildsystem", "--comment", "--job-name", "--no-deps", "--prefix", "--require-hashes",
    "--root", "--utc", "--with",
}  # fmt: skip
"""Flags of sbatch, journalctl, pip and debhelper, in what is shown."""


def known_flags() -> set[str]:
    """Every long flag of every command."""
    commands = (DASHBOARD, *COMMANDS)
    return {flag.flag for command in commands for flag in flags_of(command)} | {
        setting.flag for setting in SETTINGS
    }


def section(title: str) -> str:
    """The text below one heading of the reference."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", REFERENCE, re.MULTILINE | re.DOTALL)
    assert found, f"the reference has no section {title!r}"
    return found[1]


def test_every_command_has_its_row() -> None:
    for command in COMMANDS:
        assert re.search(rf"^\| `{command.name}\b", section("Commands"), re.MULTILINE), command.name


def test_every_flag_is_named() -> None:
    missing = {flag for flag in known_flags() if not re.search(rf"`[^`]*{flag}\b", REFERENCE)}
    assert not missing


def test_every_short_flag_is_named_with_its_long_one() -> None:
    flags = {flag for command in (DASHBOARD, *COMMANDS) for flag in flags_of(command)} | set(GENERAL_FLAGS)
    for flag in flags:
        assert flag.short is None or f"`-{flag.short}`" in REFERENCE, flag.name


def test_no_flag_is_made_up() -> None:
    for document in DOCUMENTS:
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", document.read_text()))
        assert named <= known_flags() | FLAGS_OF_SCRIPTS | FLAGS_OF_OTHERS, document.name


def test_every_setting_and_source_has_its_row() -> None:
    for setting in SETTINGS:
        title = "Sources" if setting.name in FACTORIES else "Settings"
        assert re.search(rf"^\| `{setting.flag}\b", section(title), re.MULTILINE), setting.name


def test_every_table_of_the_configuration_file_is_shown() -> None:
    shown = REFERENCE + (ROOT / "docs" / "configuration.md").read_text()
    missing = [
        name for name in (*TABLES, "profiles") if not re.search(rf"^\[.*\b{name}\b", shown, re.MULTILINE)
    ]
    missing += [key for key in KEYS if not re.search(rf"\b{key} = ", section("Settings"))]
    assert not missing


def test_the_tables_of_keys_and_fields_are_those_of_the_program() -> None:
    assert renewed(REFERENCE) == REFERENCE, "renew them: .venv/bin/python -m tests.reference"


@pytest.mark.parametrize("text", ["", REFERENCE + REFERENCE])
def test_a_table_without_its_place_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="keys"):
        renewed(text)


def test_every_exit_code_has_its_row() -> None:
    for code in Exit:
        assert re.search(rf"^\| {code.value} \|", section("Exit codes"), re.MULTILINE), code


def test_every_layer_is_explained() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    assert not {layer for layer in MAY_IMPORT if layer and f"`{layer}`" not in text}


def test_every_script_is_named() -> None:
    text = README + (ROOT / "CONTRIBUTING.md").read_text()
    assert not {path.name for path in (ROOT / "scripts").iterdir() if f"scripts/{path.name}" not in text}


def test_every_verdict_has_its_row() -> None:
    verdicts = (ROOT / "docs" / "verdicts.md").read_text()
    rows = set(re.findall(r"^\| `(\w+)` \|", verdicts, re.MULTILINE))
    assert rows == {code.value for code in Code}
