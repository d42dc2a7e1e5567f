"""What the real program writes to real terminals: no more than they have, and nothing that stays behind."""

import os
import re
import signal
import sys
from base64 import b64decode
from pathlib import Path

import pytest

from tests.pty_program import PtyProgram
from tests.tmux import Tmux
from tests.waiting import wait_for

CAPTURE = Path(__file__).parent / "fixtures" / "sirepo" / "local"
COLOURS = re.compile(rb"\x1b\[[0-9;]*?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[0-9;]*m")
READY = b"quit"
JOB = b"DJouDZ9T-"
OSC52 = re.compile(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07")


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Words for a dashboard on the records of a capture."""
    (tmp_path / "supervisor-job").symlink_to(CAPTURE / "supervisor-job")
    return ["-m", "jobtui", "--srdb", str(tmp_path), "--at", "2026-11-20T21:00:00Z"]


def until_left(program: PtyProgram) -> bytes:
    """Everything that was written, once the jobs were seen and the dashboard left with `q`."""
    program.wait_seen(b"srunit_")
    program.wait_seen(READY)
    program.press(b"q")
    wait_for(lambda: ended(program))
    return program.seen


def ended(program: PtyProgram) -> bool:
    try:
        program._read()
    except OSError:  # the other side is closed
        return True
    return b"\x1b[?1049l" in program.seen and program.code() is not None


def test_without_colours_none_is_sent(words: list[str]) -> None:
    with PtyProgram(words, environ={"NO_COLOR": "1"}) as program:
        assert not COLOURS.search(until_left(program))
    with PtyProgram(words) as program:
        assert COLOURS.search(until_left(program))


@pytest.mark.parametrize("term", ["screen", "linux", "xterm"])
def test_a_terminal_of_16_colours_is_sent_its_own(words: list[str], term: str) -> None:
    with PtyProgram(words, environ={"TERM": term, "COLORTERM": ""}) as program:
        seen = until_left(program)
    assert COLOURS.search(seen)
    assert not re.search(rb"[34]8;[25];", seen), "a colour that it may not have"


@pytest.mark.parametrize(
    "environ",
    [
        {"LANG": "C"},
        {"LC_ALL": "C", "LANG": "en_US.UTF-8"},
        {"LC_ALL": "POSIX"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
    ids=str,
)
def test_in_other_locales_everything_is_ascii(words: list[str], environ: dict[str, str]) -> None:
    with PtyProgram(words, environ=environ) as program:
        seen = until_left(program)
    assert seen.isascii()
    assert b"x" in seen
    assert b"enter" in seen
    assert b"Traceback" not in seen


def test_commands_print_ascii_where_the_locale_has_no_more(words: list[str]) -> None:
    for environ, is_ascii in (({"LANG": "C"}, True), ({}, False)):
        with PtyProgram([*words, "jobs"], environ=environ) as program:
            wait_for(lambda program=program: ended(program))  # type: ignore[misc]
        assert program.seen.isascii() is is_ascii
        assert (b"x failed" in program.seen) is is_ascii


def test_the_console_is_sent_what_its_fonts_have(words: list[str]) -> None:
    with PtyProgram(words, environ={"TERM": "linux"}) as program:
        seen = until_left(program).decode()
    assert "─" in seen
    assert {char for char in seen if not char.isascii()} <= {
        *"─│┌┐└┘├┤┬┴┼█▄▀▌▐░▒▓",
        *map(chr, range(0xA0, 0x100)),
    }


def test_the_title_is_set_and_given_back(words: list[str]) -> None:
    with PtyProgram([*words, "--title", "on"]) as program:
        seen = until_left(program)
    kept, set_to, back = (seen.index(part) for part in (b"\x1b[22;2t", b"\x1b]2;jobtui ", b"\x1b[23;2t"))
    assert kept < set_to < back < len(seen)
    for more, environ in (([], {}), (["--title", "on"], {"TERM": "linux"})):
        with PtyProgram([*words, *more], environ=environ) as program:
            assert b"\x1b]2;" not in until_left(program)


def test_a_title_is_given_back_when_a_signal_ends_it(words: list[str]) -> None:
    with PtyProgram([*words, "--title", "on"]) as program:
        program.wait_seen(READY)
        os.kill(program.pid, signal.SIGTERM)
        wait_for(lambda: ended(program))
        assert program.seen.rindex(b"\x1b[23;2t") > program.seen.index(b"\x1b]2;jobtui ")


@pytest.mark.parametrize("way", ["osc52", "off", "file"])
def test_ways_to_copy(words: list[str], way: str, tmp_path: Path) -> None:
    with PtyProgram([*words, "--clipboard", way], environ={"TMPDIR": str(tmp_path)}) as program:
        program.wait_seen(b"srunit_")
        program.wait_seen(READY)
        program.press(b"jy")
        told = {"osc52": b"copied", "off": b"copying", "file": b"written"}[way]
        program.wait_seen(told)
        sent = OSC52.search(program.seen)
        files = [path.read_text() for path in tmp_path.glob("jobtui-*.txt")]
    assert bool(sent) is (way == "osc52")
    assert bool(files) is (way == "file")
    copied = b64decode(sent[1]).decode() if sent else "".join(files)
    assert bool(re.fullmatch(r"\w{8}-\w{8}-\w+|", copied))


def test_in_tmux_it_copies_through_tmux_which_needs_no_setting(words: list[str]) -> None:
    with Tmux([sys.executable, *words], 100, 30) as window:
        window.wait_text("srunit_")
        window.keys("j", "y")
        window.wait_text("copied")
        copied = window.run("show-buffer").strip()
        assert re.fullmatch(r"\w{8}-\w{8}-\w+", copied)
        window.keys("q")
        window.wait_text("[ended 0]")


def test_gnu_screen_is_handed_the_sequence_in_parts(words: list[str]) -> None:
    with PtyProgram(words, environ={"TERM": "screen", "STY": "1.pts-0.host"}) as program:
        program.wait_seen(b"srunit_")
        program.wait_seen(READY)
        program.press(b"jy")
        program.wait_seen(b"copied")
        assert b"\x1bP\x1b]52;c;" in program.seen


def test_keys_of_the_user_hold_everywhere(words: list[str], tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text(
        '[keys]\nquit = "F10"\nkeys = "F1"\nmove-down = ["F2", "down"]\n[keys.jobs]\nsort = "ctrl+o"\n'
        '[columns]\njobs = ["state", "id"]\nsort = "id"\n'
    )
    with Tmux([sys.executable, *words, "--config", str(config)], 100, 30) as window:
        text = window.wait_text("by id")
        assert "f10 quit" in text
        assert "MODEL" not in text
        window.keys("q")
        window.keys("F1")
        page = window.wait_text("jobtui › keys")
        assert "? " not in page.splitlines()[-1]
        window.keys("Escape")
        window.wait_text("by id")
        window.keys("C-o")
        window.wait_text("urgent first")
        window.keys("F10")
        window.wait_text("[ended 0]")


def test_colours_of_the_user_are_used(words: list[str], tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text('theme = "ansi"\n[colors]\nstatus.failed = "black on magenta"\n')
    with PtyProgram([*words, "--config", str(config)]) as program:
        assert re.search(rb"\x1b\[[0-9;]*45", until_left(program))


@pytest.mark.parametrize("environ", [{}, {"SSH_TTY": "/dev/pts/9"}])
def test_the_mouse_is_asked_for_only_where_it_is_wanted(words: list[str], environ: dict[str, str]) -> None:
    with PtyProgram(words, environ=environ) as program:
        assert (b"\x1b[?1000h" in until_left(program)) is not bool(environ)
    with PtyProgram([*words, "--mouse", "on" if environ else "off"], environ=environ) as program:
        assert (b"\x1b[?1000h" in until_left(program)) is bool(environ)
