"""The real program: what starting costs, what a person sees on real terminals, and that it ends soon."""

import asyncio
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.events import Key, Paste
from textual.message import Message

from jobtui import allocator
from jobtui.model.health import Faults
from jobtui.model.patterns import regex
from jobtui.terminal.driver import TerminalDriver, TypedText
from tests.backends.journal.rigs import children_of
from tests.rows import CAPTURES, ROWS, program
from tests.terminals import PtyProgram, Tmux
from tests.waiting import LONG_S, wait_for, wait_until

CAPTURE = CAPTURES / "local"
READY = b"quit"
HANGING = program("hanging")
"""The program on a file system that does not answer, and a file that is there once it was asked."""

WORDS = ["-m", "jobtui", "--srdb", str(CAPTURE), "--log", f"supervisor={CAPTURE / 'supervisor.log'}"]
IGNORING: tuple[tuple[signal.Signals, ...], ...] = ((), (signal.SIGHUP,))


@pytest.mark.parametrize(("nth", "count"), enumerate([1, 100, 4_000]))
def test_the_dashboard_ends_when_its_terminal_disappears_at_the_start(nth: int, count: int) -> None:
    """So many bytes are written: at the start, between taking the terminal and painting, and during that."""
    with PtyProgram(WORDS, IGNORING[nth % 2]) as program:
        program.wait_seen(b"", count)
        program.hang_up()
        program.wait_end(LONG_S / 2)


@pytest.mark.parametrize(("nth", "keys"), enumerate([b"", b":"]))
def test_the_dashboard_ends_when_its_terminal_goes(nth: int, keys: bytes) -> None:
    with PtyProgram(WORDS, IGNORING[nth % 2]) as program:
        program.wait_seen(READY)
        count = len(program.seen)
        program.press(keys)
        program.wait_seen(b"", count + bool(keys))
        program.hang_up()
        assert program.wait_end(LONG_S / 2) == 128 + signal.SIGHUP


def test_a_terminal_without_a_size_is_painted_once() -> None:
    with PtyProgram(WORDS, size=(0, 0)) as program:
        program.wait_seen(b" sure")
        program.press(b"q")
        assert program.wait_end(LONG_S / 2) == 0
        assert program.seen.count(b"quit") <= 3


def test_too_little_address_space_ends_the_start() -> None:
    start = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (300 << 20,) * 2);"
        "from jobtui.cli import main; sys.exit(main())"
    )
    with PtyProgram(["-c", start, *WORDS[2:]]) as program:
        program.wait_seen(b"`ulimit -v`")
        assert program.wait_end(LONG_S) == 2
        assert program.now_settings() == program.settings


def test_a_signal_to_go_on_starts_nothing_twice() -> None:
    with PtyProgram(WORDS) as program:
        program.wait_seen(READY)
        program.wait_seen(b" sure")  # the job under the cursor was explained
        wait_for(settled(program.threads))
        before = program.threads()
        for _ in range(3):
            count = len(program.seen)
            os.kill(program.pid, signal.SIGCONT)
            program.wait_seen(b"\x1b[?1049h", count + 500)  # it paints again, as another may have painted
            wait_for(settled(program.threads))
        assert program.threads() == before
        program.press(b"q")
        assert program.wait_end(LONG_S / 2) == 0


def settled(look: Callable[[], int]) -> Callable[[], bool]:
    seen: list[int] = []

    def is_settled() -> bool:
        seen.append(look())
        return len(seen) >= 10 and len(set(seen[-10:])) == 1

    return is_settled


def test_a_signal_ends_it_although_the_terminal_takes_nothing() -> None:
    with PtyProgram(WORDS) as program:
        program.wait_seen(READY)
        assert program.now_settings() != program.settings
        program.hold()
        os.kill(program.pid, signal.SIGTERM)
        assert program.wait_end(LONG_S / 2) == 128 + signal.SIGTERM
        assert program.now_settings() == program.settings


@pytest.mark.parametrize(("module", "function", "end"), ROWS["calls that hang, and how it is ended"])
def test_a_hanging_file_system_delays_no_end(tmp_path: Path, module: str, function: str, end: str) -> None:
    begun = tmp_path / "begun"
    text = HANGING.format(module=module, function=function, begun=str(begun))
    with PtyProgram(["-c", text, *WORDS[2:]]) as program:
        program.wait_seen(READY)
        wait_for(begun.exists)
        if end == "q":
            program.press(b"q")
        elif end == "gone":
            program.hang_up()
        else:
            os.kill(program.pid, signal.SIGTERM)
        assert program.wait_end(LONG_S / 2) == {"q": 0, "SIGTERM": 143, "gone": 129}[end]


@pytest.mark.parametrize("broken", ["", "parser", "handing on"])
async def test_an_input_that_raises_costs_itself(
    broken: str, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    reader, writer = os.pipe()
    driver = TerminalDriver(App[object]())
    driver.fileno = reader
    typed: list[str] = []

    def take(message: Message) -> None:
        if isinstance(message, Key) and message.character:
            if (broken, message.character) == ("handing on", "b"):
                raise ValueError(message.character)
            typed.append(message.character)

    keys = XTermParser._sequence_to_key_events

    def read(self: XTermParser, sequence: str, *more: Any) -> Any:
        if (broken, sequence) == ("parser", "b"):
            raise ValueError(sequence)
        return keys(self, sequence, *more)

    monkeypatch.setattr(driver, "process_message", take)
    monkeypatch.setattr(XTermParser, "_sequence_to_key_events", read)
    thread = asyncio.ensure_future(asyncio.to_thread(driver.run_input_thread))
    for part in (b"ab", b"\xc3", b"\xa9", b"c"):  # the two in the middle are one letter
        os.write(writer, part)
        await wait_until(lambda: not select.select([reader], [], [], 0)[0])
    wanted = ["a", "b", "é", "c"] if not broken else ["a", "é", "c"]
    await wait_until(lambda: typed == wanted or thread.done())
    driver.exit_event.set()
    await thread
    assert typed == wanted
    stages = {"": [], "parser": ["reading what was typed"], "handing on": ["passing on what was typed"]}
    assert [fault.stage for fault in expected_faults.all()] == stages[broken]
    os.close(reader)
    os.close(writer)


def test_no_part_of_a_pasted_text_is_a_key() -> None:
    pasted = "\x1b[31mred\x1b]0;title\x07 q\n\x1bq\x1b[20"
    typed = f"a\x1b[200~{pasted}\x1b[201~b\x1b"
    for cut in range(len("a\x1b[200~"), len(typed)):
        parser, text = XTermParser(), TypedText()
        parts = typed[:cut], typed[cut:]
        first, paste, last = (one for part in parts for one in parser.feed(text.shown(part)))
        assert isinstance(paste, Paste)
        assert (paste.text, text.shown("\x1b")) == (pasted.replace("\x1b", "␛"), "\x1b")
        assert [one.character for one in (first, last) if isinstance(one, Key)] == ["a", "b"]


COLOURS = re.compile(rb"\x1b\[[0-9;]*?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[0-9;]*m")
OSC52 = re.compile(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07")

SHOWN = ("-m", "jobtui", "--srdb", str(CAPTURE), "--at", "2026-11-20T21:00:00Z")


@contextmanager
def shown(*more: str, **environ: str) -> Iterator[PtyProgram]:
    """The dashboard when the jobs are seen."""
    with PtyProgram([*SHOWN, *more], environ=environ) as program:
        program.wait_seen(b"srunit")
        program.wait_seen(READY)
        yield program


@cache
def left_by(*more: str, **environ: str) -> bytes:
    """Everything that was written when the jobs were seen and the dashboard left with `q`."""
    with shown(*more, **environ) as program:
        program.press(b"q")
        program.wait_over()
        assert b"\x1b[?1049l" in program.seen
        return program.seen


SSH = {"SSH_TTY": "/dev/pts/9"}
# Each start takes a second: some are of several settings, which have nothing to do with each other
PLAIN = partial(left_by, "--mouse", "off", NO_COLOR="1")
TITLED = partial(left_by, "--title", "on", "--mouse", "on", **SSH)
C_LOCALE = partial(left_by, LC_ALL="C", LANG="en_US.UTF-8", **SSH)
CONSOLE = partial(left_by, "--title", "on", TERM="linux", COLORTERM="")


def test_no_colour_is_sent_where_none_is_wanted() -> None:
    assert not COLOURS.search(PLAIN())
    assert COLOURS.search(left_by())


@pytest.mark.parametrize("term", ["screen", "linux"])
def test_a_terminal_of_16_colours_is_sent_its_own(term: str) -> None:
    seen = CONSOLE() if term == "linux" else left_by(TERM=term, COLORTERM="")
    assert COLOURS.search(seen)
    assert not re.search(rb"[34]8;[25];", seen), "a colour that it may not have"


@pytest.mark.parametrize("left", [C_LOCALE, partial(left_by, PYTHONIOENCODING="latin-1")])
def test_the_dashboard_is_ascii_in_other_locales(left: Callable[[], bytes]) -> None:
    seen = left()
    assert seen.isascii()
    assert b"x" in seen
    assert b"enter" in seen
    assert b"Traceback" not in seen


def test_the_console_is_sent_what_its_fonts_have() -> None:
    seen = CONSOLE().decode()
    assert "─" in seen
    assert {char for char in seen if not char.isascii()} <= {
        *"─│┌┐└┘├┤┬┴┼█▄▀▌▐░▒▓",
        *map(chr, range(0xA0, 0x100)),
    }


def test_the_title_is_set_and_restored() -> None:
    seen = TITLED()
    kept, set_to, back = (seen.index(part) for part in (b"\x1b[22;2t", b"\x1b]2;jobtui ", b"\x1b[23;2t"))
    assert kept < set_to < back < len(seen)
    assert b"\x1b]2;" not in left_by()
    assert b"\x1b]2;" not in CONSOLE()


@pytest.mark.parametrize(("words", "environ", "told"), ROWS["ways to copy"])
def test_each_way_to_copy(words: list[str], environ: dict[str, str], told: str, tmp_path: Path) -> None:
    with shown(*words, TMPDIR=str(tmp_path), **environ) as program:
        program.press(b"jy")
        program.wait_seen(told.encode())
        sent = OSC52.search(program.seen)
        files = [path.read_text() for path in tmp_path.glob("jobtui-*.txt")]
        assert (b"\x1bP\x1b]52;c;" in program.seen) is bool(environ)
    if environ:
        return  # screen is handed it in parts
    assert bool(sent) is (told == "copied")
    assert bool(files) is (told == "written")
    copied = b64decode(sent[1]).decode() if sent else "".join(files)
    assert bool(re.fullmatch(r"\w{8}-\w{8}-\w+|", copied))


def test_keys_of_the_user_hold_everywhere(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text(
        '[keys]\nquit = "F10"\nkeys = "F1"\nmove-down = ["F2", "down"]\n[keys.jobs]\nsort = "ctrl+o"\n'
        '[columns]\njobs = ["state", "id"]\nsort = "id"\n'
    )
    with Tmux([sys.executable, *SHOWN, "--config", str(config)], 100, 30) as window:
        text = window.wait_text("by id")
        assert "f10 quit" in text
        assert "MODEL" not in text
        window.keys("q")
        page = window.press("F1", until="jobtui › keys")
        assert "? " not in page.splitlines()[-1]
        window.press("Escape", until="by id")
        window.press("C-o", until="urgent first")
        window.press("F10", until="[ended 0]")


def test_colours_of_the_user_are_used(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text('theme = "ansi"\n[colors]\nstatus.failed = "black on magenta"\n')
    assert re.search(rb"\x1b\[[0-9;]*45", left_by("--config", str(config)))


def test_the_mouse_is_asked_for_only_where_it_is_wanted() -> None:
    told = (left_by(), TITLED(), PLAIN(), C_LOCALE())
    assert [b"\x1b[?1000h" in seen for seen in told] == [True, True, False, False]


def dashboard(*words: str, columns: int, rows: int) -> Tmux:
    return Tmux([sys.executable, "-m", "jobtui", *words], columns, rows)


def test_the_size_of_the_terminal_counts_not_what_variables_say() -> None:
    words = [sys.executable, "-m", "jobtui", "--srdb", str(CAPTURE)]
    with Tmux(words, 120, 40, {"COLUMNS": "50", "LINES": "12"}) as window:
        lines = window.wait_text(lambda text: "q quit" in text and "REASON" in text).splitlines()
        assert "q quit" in lines[39]
        window.resize(80, 24)
        window.wait_text(lambda text: "q quit" in text.splitlines()[23])


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
        os.kill(children_of(int(window.run("display-message", "-p", "#{pane_pid}")))[-1], number)
        left = window.wait_text(f"[ended {code}]")
        assert "srunit" not in left
        assert "Traceback" not in left
        assert (state_of(window), line_settings(window)) == before


def test_the_dashboard_stops_and_comes_back(tmp_path: Path) -> None:
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


def test_a_record_opens_in_a_pager_and_the_dashboard_returns() -> None:
    with dashboard("--srdb", str(CAPTURE), columns=80, rows=24) as window:
        window.wait_text("srunit")
        window.press("P", until=lambda text: "computeJid" in text and "q quit" not in text)
        window.press("q", until="q quit")
        window.press("j", "q", until="[ended 0]")


ROOT = Path(__file__).parents[1]


HEAVY = {
    "--version": ("textual", "rich", "msgspec", "asyncio"),
    "--help": ("textual", "rich", "msgspec", "asyncio"),
    "jobs --json": ("textual", "rich", "httpx", "mcp", "pydantic"),
    "report states --json": ("textual",),
    "doctor --json": ("textual", "rich", "httpx"),
}
"""What a command must not have loaded when it ends."""


def run_python(source: str, words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Python with this source and these words; a database of records if the words are a command's."""
    arguments = words.split()
    if arguments and not words.startswith("--"):
        (cwd / "db").mkdir()
        (cwd / "db" / "supervisor-job").symlink_to(CAPTURES / "local" / "supervisor-job")
        arguments += ["--srdb", str(cwd / "db")]
    return subprocess.run(
        [sys.executable, "-c", source, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("command", HEAVY)
def test_a_one_shot_command_leaves_the_heavy_libraries_alone(command: str, tmp_path: Path) -> None:
    ran = run_python(program("modules"), command, tmp_path)
    told = json.loads(ran.stderr.splitlines()[-1])
    assert told["code"] in (0, None), ran.stderr
    assert ran.stdout
    loaded = {name.partition(".")[0] for name in told["modules"]}
    assert not loaded & set(HEAVY[command])


@pytest.mark.parametrize("module", ["jobtui.cli", "jobtui.commands.jobs"])
def test_ctrl_c_while_it_is_imported_ends_it_quietly(module: str, tmp_path: Path) -> None:
    ran = run_python(f"MODULE = {module!r}\n{program('interrupted')}", "jobs", tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")


@pytest.mark.parametrize("command", ["explain x", "doctor"])
def test_threads_that_cannot_start_are_not_a_fault_of_jobtui(command: str, tmp_path: Path) -> None:
    ran = run_python(program("without_threads"), command, tmp_path)
    assert ran.returncode in (1, 3, 4, 5)
    assert "ulimit -u" in ran.stdout + ran.stderr
    assert "fault of jobtui" not in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr


def test_importing_writes_nothing_and_starts_nothing_and_every_pattern_compiles(tmp_path: Path) -> None:
    ran = run_python(program("imports"), "", tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == ""
    assert ran.stderr == ""
    assert not list(tmp_path.iterdir())


def test_a_pattern_that_is_compiled_when_it_is_first_used_is_as_any_other() -> None:
    lazy, eager = regex(r"(?P<n>\d+)a", re.IGNORECASE), re.compile(r"(?P<n>\d+)a", re.IGNORECASE)
    assert (lazy.pattern, lazy.flags, lazy.groupindex) == (eager.pattern, eager.flags, eager.groupindex)
    assert [found["n"] for found in lazy.finditer("1a 22A")] == ["1", "22"]


def left_kb(mode: str, cwd: Path) -> int:
    run = run_python(program("heaps").replace("{mode}", mode), "", cwd)
    if "no glibc" in run.stderr:
        pytest.skip("another C library")
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


def test_memory_freed_by_one_thread_is_used_by_the_next(tmp_path: Path) -> None:
    assert left_kb("shared", tmp_path) * 4 < left_kb("as it is", tmp_path)


def test_on_other_systems_nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    allocator._glibc.cache_clear()
    try:
        assert not allocator.share_heaps()
        assert not allocator.give_back()
    finally:
        allocator._glibc.cache_clear()
