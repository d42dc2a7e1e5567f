"""The program ends soon, whatever becomes of its terminal, and whatever it waits for."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pty_program import PtyProgram
from tests.waiting import LONG_S, wait_for

CAPTURE = Path(__file__).parent / "fixtures" / "sirepo" / "local"
READY = b"quit"
HANGING = """
import pathlib, sys, threading
from jobtui.backends import {module}
def hang(*_, **__):
    pathlib.Path({begun!r}).touch()
    threading.Event().wait()
{module}.{function} = hang
from jobtui.cli import main
sys.exit(main())
"""
"""The program on a file system that does not answer, and a file that is there once it was asked."""


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Words for a dashboard on the records and a log of a capture."""
    (tmp_path / "supervisor-job").symlink_to(CAPTURE / "supervisor-job")
    return ["-m", "jobtui", "--srdb", str(tmp_path), "--log", f"supervisor={CAPTURE / 'supervisor.log'}"]


# So many bytes are written: at the start, between taking the terminal and the first paint, and during that.
@pytest.mark.parametrize("count", [1, 20, 100, 1_000, 4_000])
@pytest.mark.parametrize("ignoring", [(), (signal.SIGHUP,)], ids=["SIGHUP", "no SIGHUP"])
def test_it_ends_when_its_terminal_goes_while_it_starts(
    words: list[str], count: int, ignoring: tuple[signal.Signals, ...]
) -> None:
    with PtyProgram(words, ignoring) as program:
        program.wait_seen(b"", count)
        program.hang_up()
        program.wait_end(LONG_S / 2)


@pytest.mark.parametrize("keys", [b"", b"p", b"?", b":", b"\r"], ids=["jobs", "paused", "help", "bar", "job"])
@pytest.mark.parametrize("ignoring", [(), (signal.SIGHUP,)], ids=["SIGHUP", "no SIGHUP"])
def test_it_ends_when_its_terminal_goes(
    words: list[str], keys: bytes, ignoring: tuple[signal.Signals, ...]
) -> None:
    with PtyProgram(words, ignoring) as program:
        program.wait_seen(READY)
        if keys:
            count = len(program.seen)
            program.press(keys)
            program.wait_seen(b"", count + 1)
        program.hang_up()
        assert program.wait_end(LONG_S / 2) == 128 + signal.SIGHUP


def test_a_signal_to_go_on_starts_nothing_twice(words: list[str]) -> None:
    with PtyProgram(words) as program:
        program.wait_seen(READY)
        wait_for(settled(program.threads))
        before = program.threads()
        for _ in range(3):
            count = len(program.seen)
            os.kill(program.pid, signal.SIGCONT)
            program.wait_seen(b"\x1b[?1049h", count + 500)  # it paints anew, as another may have painted
            wait_for(settled(program.threads))
        assert program.threads() == before
        program.press(b"q")
        assert program.wait_end(LONG_S / 2) == 0


def settled(look: Callable[[], int]) -> Callable[[], bool]:
    """Whether ten looks in a row gave the same."""
    seen: list[int] = []

    def is_settled() -> bool:
        seen.append(look())
        return len(seen) >= 10 and len(set(seen[-10:])) == 1

    return is_settled


def test_a_signal_ends_it_although_the_terminal_takes_nothing(words: list[str]) -> None:
    with PtyProgram(words) as program:
        program.wait_seen(READY)
        assert program.now_settings() != program.settings
        program.hold()
        os.kill(program.pid, signal.SIGTERM)
        assert program.wait_end(LONG_S / 2) == 128 + signal.SIGTERM
        assert program.now_settings() == program.settings


@pytest.mark.parametrize(
    ("module", "function"),
    [
        ("logfile", "look"),
        ("log_follow", "open_file"),
        ("sirepo_files", "listed"),
        ("sirepo_files", "read_job"),
    ],
)
@pytest.mark.parametrize("end", ["q", "SIGTERM", "gone"])
def test_it_ends_although_a_file_system_hangs(
    words: list[str], tmp_path: Path, module: str, function: str, end: str
) -> None:
    begun = tmp_path / "begun"
    text = HANGING.format(module=module, function=function, begun=str(begun))
    with PtyProgram(["-c", text, *words[2:]]) as program:
        program.wait_seen(READY)
        wait_for(begun.exists)
        if end == "q":
            program.press(b"q")
        elif end == "gone":
            program.hang_up()
        else:
            os.kill(program.pid, signal.SIGTERM)
        assert program.wait_end(LONG_S / 2) == {"q": 0, "SIGTERM": 143, "gone": 129}[end]
