"""The real dashboard on a hostile site: what it writes to its terminal, screen by screen, key by key."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.painted import Painted
from benchmarks.startup import isolated
from benchmarks.terminal import Program, Terminal
from benchmarks.tour import ENTER, ESCAPE, sent_for, way_to
from jobtui.actions import ScreenName, actions_at
from tests.hostile.site import HostileSite
from tests.hostile.texts import FEW, TEXTS, faults_in
from tests.waiting import LONG_S

LARGE, SMALL = (110, 32), (40, 10)
QUIET_S, ESCAPE_S, ENDING_S = 0.04, 0.08, 1.0
TABS = "owlhfrT"
PLACEHOLDER = "jobs, sources"
"""What stands in the empty line for commands."""
OPENING = frozenset(
    {"command", "filter", "search", "line", "app.command_palette", "app.keys", "open", "error"}
)
LEFT_OUT = frozenset({"app.quit", "app.suspend_process", "app.page", "app.edit"})
"""Actions that leave the dashboard, or give the terminal to another program."""


class Screen:
    def __init__(self, terminal: Terminal, columns: int, rows: int) -> None:
        self.painted = Painted(columns, rows)
        self.terminal = terminal
        self.has_ended = False

    def read(self, seconds: float) -> bool:
        """Take in what comes; False when nothing does for this time, or at the end."""
        data = self.terminal.read(seconds)
        self.has_ended |= data == b""
        if data:
            self.painted.feed(data)
        return bool(data)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.terminal.write(key.encode("utf-8", "surrogatepass"))
            while self.read(ESCAPE_S if key.endswith(ESCAPE) else QUIET_S):
                pass

    def wait(self, shows: Callable[[str], object], *keys: str) -> None:
        """Until that is shown, with keys that are pressed again as long as it is not."""
        deadline = time.monotonic() + LONG_S
        while not shows(self.painted.text()):
            assert time.monotonic() < deadline, self.painted.text()
            self.press(*keys)
            shows(self.painted.text()) or self.read(ENDING_S)

    def say(self, words: str) -> None:
        """Type into the line for commands; a jump asked for before may lead away from it once more.

        It is opened even where one is shown: that may be an earlier one, which keys not taken yet will end.
        """
        self.press(ESCAPE, "1", ":")
        self.wait(lambda text: PLACEHOLDER in text, ESCAPE, "1", ":")
        self.press(words)

    def leave(self) -> None:
        """Quit. On a busy machine a key may come so soon after escape that both are taken for one.

        Keys that come when it has just ended are echoed by the terminal; nothing else is left there.
        """
        deadline = time.monotonic() + LONG_S
        while not self.has_ended:
            assert time.monotonic() < deadline, self.painted.text()
            self.press(ESCAPE, "q")
            while self.read(ENDING_S):
                pass
        assert set(self.painted.text()) <= set("^[q \n")

    def check(self) -> None:
        """Nothing raw has come through so far, and nothing is on the screen that should not be."""
        assert not self.painted.strays
        for line in self.painted.lines():
            assert not faults_in(line), ascii(line)
        assert not faults_in("".join(sorted(self.painted.characters - {"\u0301", "\u0302", "\u0303"})))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> HostileSite:
    return HostileSite(tmp_path_factory.mktemp("hostile"))


@pytest.fixture
def size() -> tuple[int, int]:
    return LARGE


@pytest.fixture
def screen(size: tuple[int, int], site: HostileSite, tmp_path: Path) -> Iterator[Screen]:
    columns, rows = size
    argv = [sys.executable, "-m", "jobtui", *site.flags]
    environ = isolated(tmp_path)
    program = Program(argv=argv, ready="", environ=environ, columns=columns, rows=rows)
    with Terminal(program) as terminal:
        shown = Screen(terminal, columns, rows)
        shown.wait(lambda text: "failed" in text or "✗" in text)
        yield shown
        shown.check()
        shown.leave()
        assert terminal.exit_code() == 0


@pytest.mark.parametrize("size", [SMALL], ids=str)
def test_every_job_in_every_tab(screen: Screen, site: HostileSite) -> None:
    for name in FEW:
        screen.say(f"goto {site.jobs[name]}{ENTER}")
        screen.press(*TABS)
        screen.check()


@pytest.mark.parametrize("name", [name for name in ScreenName if name is not ScreenName.CHOOSING])
def test_every_key_of_every_screen(screen: Screen, name: ScreenName) -> None:
    screen.press(ESCAPE, *way_to(name))
    for action in actions_at(name):
        if action.call not in LEFT_OUT and not action.call.startswith("app.go("):
            screen.press(sent_for(action.keys[0]))
            if action.call in OPENING:
                screen.press(ESCAPE)
    screen.check()


def test_pasted_text_breaks_no_screen(screen: Screen) -> None:
    for name in FEW:
        screen.say(f"\x1b[200~{TEXTS[name].replace(ESCAPE, '')[:300]}\x1b[201~")
        screen.wait(lambda text: "\n : " not in text, "\t", ENTER, ESCAPE)
        screen.check()


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=str)
def test_the_lines_of_each_log(screen: Screen) -> None:
    screen.press("2")
    for _ in range(3):
        screen.press("\t", *(["\x1b[5~"] * 4), "w", "\x1b[5~", "x", "w", "G", ENTER, ESCAPE)
        screen.check()
