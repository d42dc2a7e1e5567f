"""A walk through every screen of the real program in a real terminal, by keys, reading what each shows."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_terminal import CAPTURE, SIZES, line_settings, state_of
from tests.tmux import Tmux

JID = "hZk95g40-4u2Pj0fB-heightWeightReport"
USER, MODEL = "hZk95g40", "heightWeightReport"


@pytest.fixture(params=SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def walk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tmux]:
    """The dashboard on a capture; afterwards it was left by `q`, and the terminal is as it was before."""
    (tmp_path / "supervisor-job").symlink_to(CAPTURE / "supervisor-job")
    columns, rows = request.param
    logs = [word for role in ("supervisor", "server") for word in ("--log", f"{role}={CAPTURE / role}.log")]
    with Tmux(["sh", "-c", "read line"], columns, rows) as plain:
        before, settings = state_of(plain), line_settings(plain)
    words = [sys.executable, "-m", "jobtui", "--srdb", str(tmp_path), *logs]
    with Tmux(words, columns, rows) as window:
        window.wait_text("srunit_")
        yield window
        window.keys("q")
        left = window.wait_text("[ended 0]")
        assert "Traceback" not in left
        assert "srunit_" not in left, "what it drew is still there"
        assert state_of(window) == before
        assert line_settings(window) == settings


def say(window: Tmux, sign: str, text: str) -> None:
    """Type into the line that a key opens."""
    window.keys(sign)
    window.wait_text(lambda shown: f"\n {sign} " in shown)
    window.type(text)
    window.wait_text(text[-12:])
    window.keys("Enter")


def back(window: Tmux, gone: str) -> None:
    """Press escape, and wait until this is gone: an escape with a key right behind it is another key."""
    window.keys("Escape")
    window.wait_text(lambda text: gone not in text)


def test_the_screens_of_a_job(walk: Tmux) -> None:
    say(walk, ":", f"goto {JID}")
    walk.wait_text(lambda text: USER in text and "exited 0" in text)
    for key, sign in (("l", "lines of 2 logs"), ("h", "RUN "), ("f", "director"), ("r", "written")):
        walk.keys(key)
        walk.wait_text(sign)
    walk.keys("o")
    walk.wait_text("exited 0")
    walk.keys("Tab", "G", "Enter")
    walk.wait_text("› log line")
    back(walk, "› log line")
    back(walk, "exited 0")
    walk.wait_text("srunit_")


def test_the_screens_with_numbers_and_back(walk: Tmux) -> None:
    walk.keys("2")
    walk.wait_text("following")
    say(walk, "/", "_ComputeJob(")
    walk.wait_text("/_Comp")
    walk.keys("6")
    walk.wait_text("SOURCE")
    walk.keys("3")
    walk.wait_text("AGENT")
    walk.keys("2")
    walk.wait_text("/_Comp")
    back(walk, "/_Comp")
    back(walk, "following")
    walk.wait_text("srunit_")


def test_help_columns_palette_filter_and_pause(walk: Tmux) -> None:
    walk.keys("?")
    walk.wait_text("On this screen (jobs)")
    back(walk, "On this screen")
    walk.keys("c")
    walk.wait_text("✓ state")
    back(walk, "✓ state")
    walk.keys("C-p")
    walk.wait_text("The logs, line by")
    walk.type("pause")
    walk.wait_text("Pause: every")
    walk.keys("Enter")
    walk.wait_text("paused")
    walk.keys("p")
    walk.wait_text(lambda text: "paused" not in text and "srunit_" in text)
    say(walk, "/", f"model:{MODEL}")
    walk.wait_text(f"/model:{MODEL[:8]}")
    back(walk, "/model:")
    say(walk, ":", "soruces")
    walk.wait_text("did you mean")
    back(walk, ": soruces")
