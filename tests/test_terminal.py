"""The real program in a real terminal: what a person sees at several sizes, from start to end."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tmux import Tmux

CAPTURE = Path(__file__).parent / "fixtures" / "sirepo" / "local"


def dashboard(*words: str, columns: int, rows: int) -> Tmux:
    return Tmux([sys.executable, "-m", "jobtui", *words], columns, rows)


def test_the_size_of_the_terminal_counts_not_what_variables_say() -> None:
    words = [sys.executable, "-m", "jobtui", "--srdb", str(CAPTURE)]
    with Tmux(words, 120, 40, {"COLUMNS": "50", "LINES": "12"}) as window:
        lines = window.wait_text(lambda text: "q quit" in text and "REASON" in text).splitlines()
        assert "q quit" in lines[39]
        window.resize(80, 24)
        window.wait_text(lambda text: "q quit" in text.splitlines()[23])


def pid_of(window: Tmux) -> int:
    shell = window.run("display-message", "-p", "#{pane_pid}").strip()
    children = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
    return int(children[-1])


def state_of(window: Tmux) -> str:
    names = ("alternate_on", "mouse_any_flag", "keypad_cursor_flag", "cursor_flag", "bracketed_paste_flag")
    return window.run("display-message", "-p", " ".join(f"#{{{name}}}" for name in names))


def line_settings(window: Tmux) -> str:
    """How the terminal's line is set, as `stty` tells it."""
    tty = window.run("display-message", "-p", "#{pane_tty}").strip()
    return subprocess.run(["stty", "-a", "-F", tty], check=True, capture_output=True, text=True).stdout


def untouched() -> tuple[str, str]:
    """How a terminal of 80x24 is before any dashboard: its state, and how its line is set."""
    with Tmux(["sh", "-c", "echo ready; read line"], 80, 24) as plain:
        plain.wait_text("ready")  # tmux sets up the line after it made the window
        return state_of(plain), line_settings(plain)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["SIGTERM", "SIGHUP"]
)
def test_a_signal_ends_it_and_leaves_the_terminal_as_it_was(number: int, code: int) -> None:
    before = untouched()
    with dashboard("--srdb", str(CAPTURE), columns=80, rows=24) as window:
        window.wait_text("q quit")
        assert state_of(window) != before[0]
        os.kill(pid_of(window), number)
        left = window.wait_text(f"[ended {code}]")
        assert "srunit" not in left
        assert "Traceback" not in left
        assert (state_of(window), line_settings(window)) == before


def test_it_stops_and_comes_back(tmp_path: Path) -> None:
    program = shlex.join([sys.executable, "-m", "jobtui", "--srdb", str(CAPTURE)])
    with Tmux(["env", "PS1=ready> ", "bash", "--norc", "--noprofile", "-i"], 80, 24) as window:

        def settings(name: str) -> str:
            window.type(f"clear; stty -g > {tmp_path}/{name}; echo do''ne {name}")
            window.press("Enter", until=f"done {name}")
            return (tmp_path / name).read_text()

        window.wait_text("ready>")
        set_before, before = settings("first"), state_of(window)
        window.type(f"clear; {program}")
        window.press("Enter", until="q quit")
        window.keys("C-z")
        assert "q quit" not in window.wait_text("Stopped")
        assert settings("stopped") == set_before
        assert state_of(window) == before
        window.type("fg")
        window.press("Enter", until="q quit")
        window.press("6", until="SOURCE")
        window.press("q", until=lambda text: text.rstrip().endswith("ready>"))
        assert settings("ended") == set_before
        assert state_of(window) == before


def test_a_pager_on_a_record_and_back() -> None:
    with dashboard("--srdb", str(CAPTURE), columns=80, rows=24) as window:
        window.wait_text("srunit")
        window.press("P", until=lambda text: "computeJid" in text and "q quit" not in text)
        window.press("q", until="q quit")
        window.press("j", "q", until="[ended 0]")
