"""The real program in a real terminal: what a person sees at several sizes, from start to end."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tmux import Tmux

CAPTURE = Path(__file__).parent / "fixtures" / "sirepo" / "local"
SIZES = [(120, 40), (80, 24), (40, 10)]


@pytest.fixture
def srdb(tmp_path: Path) -> Path:
    """A database root with the records of a capture."""
    (tmp_path / "supervisor-job").symlink_to(CAPTURE / "supervisor-job")
    return tmp_path


def dashboard(*words: str, columns: int, rows: int) -> Tmux:
    return Tmux([sys.executable, "-m", "jobtui", *words], columns, rows)


@pytest.fixture(params=SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def window(request: pytest.FixtureRequest, srdb: Path) -> Iterator[Tmux]:
    columns, rows = request.param
    log = f"supervisor={CAPTURE / 'supervisor.log'}"
    with dashboard("--srdb", str(srdb), "--log", log, columns=columns, rows=rows) as running:
        running.wait_text("q quit")
        yield running


def test_from_the_table_into_a_job_and_out(window: Tmux) -> None:
    window.wait_text("srunit_")
    window.keys("Enter")
    window.wait_text("run ")
    window.keys("Escape")
    window.wait_text("srunit_")
    window.keys("?")
    window.wait_text("esc back")
    window.keys("q")
    left = window.wait_text("[ended 0]")
    assert "srunit_" not in left, "what it drew is still there"
    assert "Traceback" not in left


def test_it_lives_in_any_size_and_finds_back(window: Tmux) -> None:
    for columns, rows in ((7, 2), (200, 60), (1, 1), (40, 10), (80, 24)):
        window.resize(columns, rows)
    window.wait_text("srunit_")
    window.keys("q")
    assert "Traceback" not in window.wait_text("[ended 0]")


def test_a_job_id_opens_at_that_job(srdb: Path) -> None:
    jid = "hZk95g40-4u2Pj0fB-heightWeightReport"
    with dashboard("--srdb", str(srdb), jid, columns=120, rows=40) as window:
        window.wait_text(lambda text: jid in text and "esc back" in text)


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_sources_that_are_not_there_are_said_to_be(columns: int, rows: int) -> None:
    words = ("--srdb", "/nowhere/db", "--log", "supervisor=/nowhere/s.log")
    with dashboard(*words, columns=columns, rows=rows) as window:
        window.wait_text("q quit")
        window.wait_text("down")
        window.keys("6")
        window.wait_text("s.log")
        window.keys("q")
        window.wait_text("[ended 0]")
