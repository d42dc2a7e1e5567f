"""The pages in docs/: every source has one, links and pictures are there, command lines can be typed."""

import re
import shlex
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from jobtui.backends.agent_copies import KIND
from jobtui.backends.registry import FACTORIES
from jobtui.cli import parse
from jobtui.grammar import COMMANDS, SETTING_BY_NAME
from tests.commands.running import Runner
from tests.excerpts import PLACES
from tests.screenshots import SHOTS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *PAGES]
SOURCES = sorted((DOCS / "sources").glob("*.md"))
README = ROOT / "README.md"
LONGEST_README = 250
PHOTOGRAPHED_ELSEWHERE = {"browser.png"}
"""Pictures that are no terminal's."""
PARTS = ("What is read", "Load", "Permissions", "What is not read", "When it fails")
"""What every page of a source tells."""

PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def named(page: Path) -> str:
    """How a test calls it."""
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """What a link into the page may name, as GitHub makes it of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", DOCUMENTS, ids=named)
def test_every_link_leads_to_a_heading_or_file(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        place = page.parent / path if path else page
        assert place.exists(), target
        assert not anchor or anchor in anchors(place), target


def test_every_picture_is_shown_and_can_be_made_again() -> None:
    shown = {
        (page.parent / target).resolve()
        for page in DOCUMENTS
        for _, target in PICTURE.findall(page.read_text())
    }
    names = {f"{shot.name}.png" for shot in SHOTS} | PHOTOGRAPHED_ELSEWHERE
    made = {(ROOT / "screenshots" / name).resolve() for name in names}
    assert {path for path in shown if path.parent == ROOT / "screenshots"} <= made
    assert {*(ROOT / "screenshots").glob("*.png")} <= made, "no shot makes them"
    assert not {path for path in shown if not path.exists()}, "scripts/screenshots NAME makes them"


def test_every_picture_says_what_it_shows() -> None:
    assert not [page for page in DOCUMENTS for words, _ in PICTURE.findall(page.read_text()) if not words]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_page_is_in_the_index(page: Path) -> None:
    index = DOCS / "README.md"
    assert page == index or f"]({page.relative_to(DOCS)})" in index.read_text()


def test_the_readme_is_for_five_minutes() -> None:
    text = README.read_text()
    assert len(text.splitlines()) <= LONGEST_README
    assert "](docs/README.md)" in text
    assert "](docs/reference.md)" in text


def test_every_source_has_a_page() -> None:
    first = {page: page.read_text().split("## ", 1)[0] for page in SOURCES}
    for setting in FACTORIES.keys() - {KIND}:
        flag = SETTING_BY_NAME[setting].flag
        pages = [named(page) for page, text in first.items() if re.search(rf"`{flag}\b", text)]
        assert pages, f"{flag} is in the introduction of no page in docs/sources"


@pytest.mark.parametrize("page", SOURCES, ids=named)
def test_a_page_of_a_source_tells_what_one_has_to_know(page: Path) -> None:
    parts = re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE)
    assert {*PARTS} <= {*parts}


def program_text() -> str:
    """The program's texts, those put together of several lines as one."""
    text = "\n".join(path.read_text() for path in sorted((ROOT / "jobtui").rglob("*.py")))
    return re.sub(r'"\s+f?"', "", text)


def test_what_a_page_says_the_program_says_is_said() -> None:
    said = program_text()
    for page in [*SOURCES, DOCS / "when-something-is-wrong.md"]:
        tables = re.findall(
            r"^\| (?:it says|you see) \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", page.read_text(), re.MULTILINE
        )
        for row in "".join(tables).splitlines():
            for quoted in re.findall(r"`([^`\d]*)`", re.sub(r"`[^`]*\d[^`]*`", "", row.split("|")[1])):
                assert quoted.partition(" (")[0].split("...")[0].strip("╌ ") in said, (page.name, quoted)


NAMES = [[command.name] for command in COMMANDS]
"""A command alone may be its name, in a sentence."""

TITLE = "jobtui PROFILE HOST"
"""What the title of a window says."""


def command_lines() -> Iterator[tuple[str, str]]:
    """Every line in which somebody is told to type jobtui: in blocks, and within sentences."""
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


@pytest.mark.parametrize(("page", "line"), sorted(set(command_lines())))
def test_every_command_line_that_is_shown_is_one(page: str, line: str) -> None:
    parse(shlex.split(line)[1:])


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_module_that_is_named_exists(page: Path) -> None:
    """By its whole path, by that below the package, or by its name alone."""
    ours = [str(path.relative_to(ROOT)) for path in [*ROOT.glob("*/**/*.py"), *ROOT.glob("jobtui/**/*.toml")]]
    modules = re.findall(r"`((?:[a-z_]+/)*[a-z_0-9]+\.(?:py|toml))`", page.read_text())
    assert not [name for name in modules if not any(f"/{path}".endswith(f"/{name}") for path in ours)]


class Drawing(ModuleType):
    """Stands in for matplotlib, and keeps what it would draw."""

    def __init__(self) -> None:
        super().__init__("matplotlib")
        self.pyplot = self
        self.steps: list[tuple[list[datetime], list[float]]] = []

    def step(self, x: list[datetime], y: list[float], *, where: str, label: str) -> None:
        """One series of the report."""
        assert (where, label) == ("post", "utilization")
        self.steps.append((x, y))

    def subplots(self) -> tuple["Drawing", "Drawing"]:
        """Figure and axes."""
        return self, self

    def plot(self, x: list[datetime], y: list[float], *, drawstyle: str) -> None:
        """The lists, as Balsam's documentation draws them."""
        assert drawstyle == "steps-post"
        self.steps.append((x, y))

    def legend(self) -> None:
        """Not kept."""

    show = legend


def test_the_recipes_for_charts_draw_what_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, drawing = Runner(capsys), Drawing()
    for name, value in PLACES["docker"](tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", drawing)
    monkeypatch.setattr("subprocess.check_output", lambda words, text=False: run(*words[1:]).out)
    page = (DOCS / "charts.md").read_text()
    whole, of_json, of_csv, lines = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(lines.splitlines()) == 2
    for program in (whole, of_json + lines, of_csv + lines):
        names: dict[str, Any] = {}
        exec(compile(whole if program is whole else whole + program, "docs/charts.md", "exec"), names)
    points = [(at, value) for at, value in zip(*drawing.steps[0], strict=True)]
    reported = run("report", "utilization", "--json").json["series"][0]
    assert points == [*zip(map(datetime.fromisoformat, reported["x"]), reported["y"], strict=True)]
    assert len(points) > 3
    assert len(drawing.steps) == 5
    assert all(step == drawing.steps[0] for step in drawing.steps)
