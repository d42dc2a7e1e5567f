"""What the pages show of the program is what it prints."""

import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from jobtui.backends.ad_library import directory_of_library
from tests.commands.running import Runner
from tests.excerpts import HERE, PLACES, Excerpt, excerpts, first_missing

DOCS = Path(__file__).parents[1] / "docs"
SHOWN = [one for page in sorted(DOCS.rglob("*.md")) for one in excerpts(page)]
ASKED = ("why", "who", "where", "what", "which", "how", "one")
QUESTIONS = [page for page in sorted(DOCS.glob("*-*.md")) if page.stem.split("-", 1)[0] in ASKED]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


@pytest.fixture(scope="module")
def places() -> dict[str, tuple[Path, Mapping[str, str]]]:
    """Places that were built already, with their settings."""
    return {}


@pytest.mark.parametrize("shown", SHOWN, ids=lambda one: f"{one.page.stem}: {one.command}")
def test_it_is_still_what_the_program_prints(
    shown: Excerpt,
    places: dict[str, tuple[Path, Mapping[str, str]]],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    run: Runner,
) -> None:
    if "ssh://" in shown.command and shutil.which("ssh") is None:
        pytest.skip("there is no ssh on this machine")
    if shown.place == "ads" and directory_of_library() is None:
        pytest.skip("HTCondor's library is not there")
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


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        (["a", "b", "c is long"], None),
        (["a", "b"], "c is long"),
        (["a", "..."], None),
        (["...", "c is ..."], None),
        (["a", "c is long"], "c is long"),
        (["b"], "b"),
        (["...", "b", "a"], "a"),
        (["...", "d"], "d"),
    ],
)
def test_a_line_is_missed(shown: list[str], missing: str | None) -> None:
    assert first_missing(shown, ["a", "b ", "c is long"]) == missing
