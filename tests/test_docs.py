"""What exists is documented, and what is documented exists: tables, bounds, links and pictures."""

import ast
import re
import shlex
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

from jobtui.backends.registry import SOURCES as KINDS
from jobtui.backends.registry import of_setting
from jobtui.cli import parse
from jobtui.commands.streams import Exit
from jobtui.config.access import KEYS
from jobtui.config.settings import TABLES
from jobtui.grammar import COMMANDS, DASHBOARD, GENERAL_FLAGS, SETTING_BY_NAME, SETTINGS, flags_of
from jobtui.model.verdicts import Code
from tests.modules import MAY_IMPORT
from tests.offenders import check_all
from tests.reference import TABLES as RENEWED
from tests.reference import renewed
from tests.rows import ROWS as TESTED
from tests.screenshots import SHOTS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
REFERENCE = (ROOT / "docs" / "reference.md").read_text()
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

FLAGS_OF_OTHERS = {
    "--write", "--quick", "--fix", "--minutes", "--ready", "--keys", "--array", "--buildsystem", "--comment",
    "--job-name", "--no-deps", "--prefix", "--require-hashes", "--root", "--utc", "--with",
}  # fmt: skip
"""Flags in the documents of scripts and benchmarks, of sbatch, journalctl, pip and debhelper."""


def known_flags() -> set[str]:
    commands = (DASHBOARD, *COMMANDS)
    return {flag.flag for command in commands for flag in flags_of(command)} | {
        setting.flag for setting in SETTINGS
    }


def section(title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", REFERENCE, re.MULTILINE | re.DOTALL)
    assert found, f"the reference has no section {title!r}"
    return found[1]


def rows_are_there(title: str, beginnings: Iterable[object]) -> None:
    text = section(title)
    missing = [one for one in beginnings if not re.search(rf"^\| {one}", text, re.MULTILINE)]
    assert not missing, title


def test_commands_settings_sources_and_exit_codes_have_their_rows() -> None:
    rows_are_there("Commands", (rf"`{command.name}\b" for command in COMMANDS))
    rows_are_there("Exit codes", (rf"{code.value} \|" for code in Exit))
    for title, is_source in (("Sources", True), ("Settings", False)):
        settings = (one for one in SETTINGS if bool(of_setting(one.name).module) is is_source)
        rows_are_there(title, (rf"`{setting.flag}\b" for setting in settings))


def test_every_flag_is_named_a_short_one_too() -> None:
    assert not {flag for flag in known_flags() if not re.search(rf"`[^`]*{flag}\b", REFERENCE)}
    flags = {flag for command in (DASHBOARD, *COMMANDS) for flag in flags_of(command)} | set(GENERAL_FLAGS)
    assert not [flag.name for flag in flags if flag.short is not None and f"`-{flag.short}`" not in REFERENCE]


def test_no_flag_is_made_up() -> None:
    for document in DOCUMENTS:
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", document.read_text()))
        assert named <= known_flags() | FLAGS_OF_OTHERS, document.name


def test_every_table_of_the_configuration_file_is_shown() -> None:
    shown = REFERENCE + (ROOT / "docs" / "configuration.md").read_text()
    missing = [
        name for name in (*TABLES, "profiles") if not re.search(rf"^\[.*\b{name}\b", shown, re.MULTILINE)
    ]
    missing += [key for key in KEYS if not re.search(rf"\b{key} = ", section("Settings"))]
    assert not missing


@pytest.mark.parametrize("page", RENEWED, ids=lambda page: page.name)
def test_tables_are_those_of_the_program(page: Path) -> None:
    text = page.read_text()
    assert renewed(page, text) == text, "renew them: .venv/bin/python -m tests.reference"


def test_every_layer_script_and_verdict_is_explained() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    assert not {layer for layer in MAY_IMPORT if layer and f"`{layer}`" not in text}
    text = README + (ROOT / "CONTRIBUTING.md").read_text()
    assert not {path.name for path in (ROOT / "scripts").iterdir() if f"scripts/{path.name}" not in text}
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "verdicts.md").read_text(), re.MULTILINE)
    assert {*rows} == {code.value for code in Code}


DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
SOURCES = sorted((DOCS / "sources").glob("*.md"))
PHOTOGRAPHED_ELSEWHERE = {"browser.png"}
"""Pictures that are no terminal's."""
PARTS = ("What is read", "Load", "Permissions", "What is not read", "When it fails")
"""What every page of a source tells."""

PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_leads_to_a_heading_or_file() -> None:
    def check(page: Path) -> None:
        for target in LINK.findall(page.read_text()):
            if "://" in target:
                continue
            path, _, anchor = target.partition("#")
            place = page.parent / path if path else page
            assert place.exists(), target
            assert not anchor or anchor in anchors(place), target

    check_all(check, DOCUMENTS)


def test_every_picture_is_shown_and_can_be_made_again() -> None:
    shown = {
        (page.parent / target).resolve()
        for page in DOCUMENTS
        for _, target in PICTURE.findall(page.read_text())
    }
    names = {f"{name}.png" for name in SHOTS} | PHOTOGRAPHED_ELSEWHERE
    made = {(ROOT / "screenshots" / name).resolve() for name in names}
    assert {path for path in shown if path.parent == ROOT / "screenshots"} <= made
    assert {*(ROOT / "screenshots").glob("*.png")} <= made, "no shot makes them"
    assert not {path for path in shown if not path.exists()}, "scripts/screenshots NAME makes them"


def test_every_picture_says_what_it_shows_and_every_page_is_in_the_index() -> None:
    assert not [page for page in DOCUMENTS for words, _ in PICTURE.findall(page.read_text()) if not words]
    index = (DOCS / "README.md").read_text()
    assert [page for page in PAGES if f"]({page.relative_to(DOCS)})" not in index] == [DOCS / "README.md"]


def test_the_readme_is_for_five_minutes() -> None:
    assert len(README.splitlines()) <= 250
    assert all(f"](docs/{page}.md)" in README for page in ("README", "reference"))


def test_every_source_has_a_page_that_tells_what_one_has_to_know() -> None:
    first = {page: page.read_text().split("## ", 1)[0] for page in SOURCES}
    for setting in {one.setting for one in KINDS} - {""}:
        flag = SETTING_BY_NAME[setting].flag
        pages = [named(page) for page, text in first.items() if re.search(rf"`{flag}\b", text)]
        assert pages, f"{flag} is in the introduction of no page in docs/sources"
    headings = {page: {*re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE)} for page in SOURCES}
    assert {page: {*PARTS} - found for page, found in headings.items() if {*PARTS} - found} == {}


def program_text() -> str:
    files = (path for kind in ("py", "toml") for path in sorted((ROOT / "jobtui").rglob(f"*.{kind}")))
    text = "\n".join(path.read_text() for path in files)
    return re.sub(r'"\s+f?"', "", text)


def test_messages_quoted_in_the_pages_are_in_the_program() -> None:
    said = program_text()
    for page in [*SOURCES, DOCS / "when-something-is-wrong.md"]:
        tables = re.findall(
            r"^\| (?:it says|you see) \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", page.read_text(), re.MULTILINE
        )
        for row in "".join(tables).splitlines():
            for quoted in re.findall(r"`([^`\d]*)`", re.sub(r"`[^`]*\d[^`]*`", "", row.split("|")[1])):
                assert quoted.partition(" (")[0].split("...")[0].strip("╌ ") in said, (page.name, quoted)


def test_every_string_is_in_plain_words() -> None:
    pattern = re.compile("|".join(TESTED["what no string that users see may have"]), re.IGNORECASE)

    def check(path: Path) -> None:
        lines: Iterable[object] = re.sub(r"(^|\s)# .*", "", path.read_text()).splitlines()
        if path.suffix == ".py":
            nodes = [*ast.walk(ast.parse(path.read_text()))]
            docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
            lines = (one.value for one in nodes if isinstance(one, ast.Constant) and id(one) not in docs)
        assert not [line for line in lines if isinstance(line, str) and pattern.search(line)]

    program = [path for path in (ROOT / "jobtui").rglob("*.*") if path.suffix in {".py", ".toml", ".json"}]
    texts_of_others = {"causes.toml", "cause_weights.toml", "CHANGELOG.md", "CONTRIBUTING.md"}
    check_all(check, (path for path in [*program, *DOCUMENTS] if path.name not in texts_of_others))


NAMES = [[command.name] for command in COMMANDS]
"""A command alone may be its name, in a sentence."""

TITLE = "jobtui PROFILE HOST"
"""What the title of a window says."""


def command_lines() -> Iterator[tuple[str, str]]:
    for page in DOCUMENTS:
        text = page.read_text()
        if page.name == "CHANGELOG.md":
            continue
        blocks = re.findall(r"^```(?:console|sh)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        rest = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
        for line in [*lines, *re.findall(r"`([^`\n]+)`", rest)]:
            if line.startswith("jobtui ") and line.split()[1:] not in NAMES and line != TITLE:
                yield named(page), re.sub(r"\s+# .*", "", line)


def test_every_command_line_that_is_shown_is_one() -> None:
    check_all(lambda shown: parse(shlex.split(shown[1])[1:]), sorted(set(command_lines())))


def test_every_module_that_is_named_exists() -> None:
    parts = [ROOT / name for name in ("jobtui", "tests", "benchmarks", "release")]
    ours = [str(path.relative_to(ROOT)) for part in parts for path in part.rglob("*.py")]
    ours += [str(path.relative_to(ROOT)) for path in ROOT.glob("jobtui/**/*.toml")]

    def check(page: Path) -> None:
        modules = re.findall(r"`((?:[a-z_]+/)*[a-z_0-9]+\.(?:py|toml))`", page.read_text())
        assert not [name for name in modules if not any(f"/{path}".endswith(f"/{name}") for path in ours)]

    check_all(check, PAGES)


PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
ROW = re.compile(r"\| (?P<said>[\d,]+)(?P<unit> MB)? \| `(?P<module>[\w.]+)\.(?P<name>[A-Z_]+)` \|")
ROWS = list(ROW.finditer(PAGE.read_text()))


def test_the_limits_on_the_page_are_those_of_the_program() -> None:
    def check(row: re.Match[str]) -> None:
        value = getattr(import_module(f"jobtui.{row['module']}"), row["name"])
        assert f"{value >> 20 if row['unit'] else value:,}" == row["said"]

    assert len(ROWS) > 10
    check_all(check, ROWS)
