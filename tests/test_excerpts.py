"""What the pages show and tell to type is what the program prints and takes."""

import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from jobtui.commands.help import help_table
from jobtui.grammar import COMMANDS
from tests.commands.running import CAPTURES, ROOT, Runner, in_turn
from tests.excerpts import HERE, PLACES, Excerpt, excerpts, first_missing
from tests.rows import ROWS

DOCS = ROOT / "docs"
SHOWN = [one for page in sorted(DOCS.rglob("*.md")) for one in excerpts(page)]
ASKED = ("why", "who", "was", "where", "what", "which", "how", "one")
QUESTIONS = [page for page in sorted(DOCS.glob("*-*.md")) if page.stem.split("-", 1)[0] in ASKED]


@pytest.fixture(scope="module")
def places() -> dict[str, tuple[Path, Mapping[str, str]]]:
    return {}


@pytest.mark.parametrize("shown", SHOWN, ids=lambda one: f"{one.page.stem}: {one.command}")
def test_excerpts_are_still_what_the_program_prints(
    shown: Excerpt,
    places: dict[str, tuple[Path, Mapping[str, str]]],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    run: Runner,
) -> None:
    if "ssh://" in shown.command and shutil.which("ssh") is None:
        pytest.skip("there is no ssh on this machine")
    if shown.place not in places:
        place = tmp_path_factory.mktemp(shown.place)
        places[shown.place] = (place, PLACES[shown.place](place))
    place, settings = places[shown.place]
    monkeypatch.chdir(place)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    ran = run(*shlex.split(shown.command)[1:])
    printed = ran.out.replace(str(place), HERE).splitlines()
    assert shown.lines
    assert first_missing(shown.lines, printed) is None, ran.out or ran.err


@pytest.mark.parametrize("page", QUESTIONS, ids=lambda page: page.stem)
def test_every_page_of_a_question_shows_what_to_type_and_a_picture(page: Path) -> None:
    assert "](../screenshots/" in page.read_text()
    assert [*excerpts(page)]


def test_there_is_a_page_for_each_question_of_the_readme() -> None:
    asked = (DOCS.parent / "README.md").read_text().split("| question |")[1].split("\n\n")[0]
    assert {page.stem for page in QUESTIONS} == {*re.findall(r"docs/([\w-]+)\.md", asked)} - {"bundles"}
    assert len(QUESTIONS) >= 10


REFERENCE = (Path(__file__).parents[1] / "docs" / "reference.md").read_text()
EVERYWHERE = {"schema", "partial", "sources"}
PRINTED = {command: (place, words) for command, place, words in ROWS["what each command is asked, and where"]}


def documented(command: str) -> set[str]:
    rows = REFERENCE[REFERENCE.index("## JSON") :]
    found = re.search(rf"^\| `{command}` \| (.*) \|$", rows, re.MULTILINE)
    assert found, f"{command} has no row"
    return {*re.findall(r"`(\w+)`", re.sub(r"\(.*?\)|: .*", "", found[1]))}


@pytest.mark.parametrize("command", [command.name for command in COMMANDS if command.prints])
def test_the_fields_are_those_that_are_printed(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place, words = PRINTED[command]
    for name, value in PLACES[place](tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    printed = {*Runner(capsys)(command, *words, "--json").json}
    assert printed > EVERYWHERE
    assert printed - EVERYWHERE == documented(command) - {"candidates"} | printed & {"candidates"}


def test_fields_of_every_document_are_named() -> None:
    text = REFERENCE[REFERENCE.index("## JSON") : REFERENCE.index("| command | fields |")]
    assert {*re.findall(r"`(\w+)`", text)} >= EVERYWHERE


README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
INSTALLATION = ("git clone", "scripts/install", "alias jobtui=")
"""Beginnings of what is typed to have the program at all."""

DATABASE = "/srv/sirepo/db"
"""Where the README's installation has its records; its logs are where one stands."""

EXPECTED = {"jobs": 0, "explain": 1, "timeline": 1, "logs": 0, "find": 0, "doctor": 0, "status": 0}
"""Exit codes; that of a job that failed is 1, which `jobtui JOB` without a terminal gives too."""

AT = "2026-11-20T21:00:00Z"


def typed() -> list[str]:
    lines = [line[2:] for block in BLOCKS for line in block.splitlines() if line.startswith("$ ")]
    return [re.sub(r"\s+# .*", "", line) for line in lines]


def settings() -> list[str]:
    return [line for line in typed() if line.startswith("export ")]


TYPED = [line for line in typed() if line.startswith("jobtui")]


def test_every_line_is_installation_a_setting_or_a_question() -> None:
    rest = {*typed()} - {*TYPED} - {*settings()}
    assert {next((start for start in INSTALLATION if line.startswith(start)), line) for line in rest} == {
        *INSTALLATION
    }
    assert len(TYPED) >= 6
    assert settings()


def test_everything_works_as_typed(tmp_path: Path) -> None:
    capture = CAPTURES / "docker"
    (tmp_path / "db").mkdir()
    for name in ("supervisor-job", "user"):
        (tmp_path / "db" / name).symlink_to(capture / name)
    for name in ("supervisor.log", "server.log"):
        (tmp_path / name).symlink_to(capture / name)
    words = [word for line in settings() for word in shlex.split(line)[1:]]
    environ = dict(word.replace(DATABASE, str(tmp_path / "db")).split("=", 1) for word in words)
    lines = [shlex.split(line)[1:] for line in TYPED]
    for line, ran in zip(lines, in_turn(*lines, cwd=tmp_path, JOBTUI_AT=AT, **environ), strict=True):
        first = next((word for word in line if word != "demo"), "")
        assert ran.code == EXPECTED.get(first, 1 if first else 0), (line, ran.err)
        assert ran.out
        assert "Traceback" not in ran.err


def test_first_steps_of_the_help_are_possible() -> None:
    place = CAPTURES / "docker"
    names = {"DIR": str(place), "supervisor=FILE": f"supervisor={place / 'supervisor.log'}", "ID": "COebzySB"}
    lines = [[names.get(word, word) for word in line.split()[1:]] for line, _ in help_table()["first_steps"]]
    for ran in in_turn(*lines, JOBTUI_AT=AT, SIREPO_SRDB_ROOT=str(place)):
        assert ran.code in (0, 1), ran.err
        assert ran.out
