"""What the dashboard paints on a real pseudo-terminal, as a terminal shows it: all of it, and the last."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.terminal import CHUNK, KEYS, Program, Terminal
from tests.waiting import wait_for
from tests.widgets.terminal import Cell, FakeTerminal

CAPTURE = Path(__file__).parent / "fixtures" / "sirepo" / "local"
COLUMNS, ROWS = 100, 30
SLOW_BYTES_PER_S = 2_000
SLOW_S = 5.0
PRESS_S = 0.05
DAY_S = 86_400
MOST_WAITING = 20_000
"""Bytes: what the kernel keeps of a pseudo-terminal, and a picture."""


class Screen:
    """A program on a terminal of which one sees what it shows."""

    def __init__(self, terminal: Terminal, columns: int, rows: int) -> None:
        self.terminal = terminal
        self.shown = FakeTerminal(columns, rows)
        self._rest = b""

    def read(self, timeout_s: float, most: int = CHUNK) -> int:
        """How many bytes came; they are shown."""
        data = self.terminal.read(timeout_s, most)
        if not data:
            return 0
        # A chunk may end within a character or a sequence; a frame is shown when all of it is there
        self._rest += data
        whole, mark, rest = self._rest.rpartition(END_OF_FRAME)
        self._rest = rest
        self.shown.feed((whole + mark).decode())
        return len(data)

    def settle(self, quiet_s: float = 0.3) -> None:
        """Read on until nothing came for a while."""
        while self.read(quiet_s):
            pass

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            self.terminal.write(key.encode())
            self.settle(0.05)
        self.settle()

    def resize(self, columns: int, rows: int) -> None:
        """Give it another size."""
        self.shown.resize(columns, rows)
        self.terminal.set_size(columns, rows)

    def all_anew(self) -> list[list[Cell]]:
        """What it shows after something wrote all over it, and it was told."""
        self.shown.spill()
        self.terminal.say_resized()
        wait_for(lambda: self.read(0.05) >= 0 and not self.shown.is_spilt())
        self.settle()
        assert not self.shown.is_spilt()
        return self.shown.seen()


END_OF_FRAME = b"\x1b[?2026l"
"""What ends an update, on a terminal that knows synchronized output."""


@pytest.fixture
def dashboard(tmp_path: Path) -> Iterator[Screen]:
    """The dashboard on recorded jobs, paused, so that what it shows changes by keys and sizes only."""
    (tmp_path / "supervisor-job").symlink_to(CAPTURE / "supervisor-job")
    words = [sys.executable, "-m", "jobtui", "--srdb", str(tmp_path)]
    with Terminal(Program(argv=words, ready="srunit_", columns=COLUMNS, rows=ROWS)) as terminal:
        terminal.wait_for("srunit_")
        terminal.settle()
        terminal.press("p")
        terminal.settle()
        screen = Screen(terminal, COLUMNS, ROWS)
        screen.all_anew()
        yield screen


WALKS = ("jjjGgk", "ssrr", "6j", "1\r\t\t", "\x1b\x1b?", "\x1b/srw", "\x1b:sou", "\x1b  k ", "\x1b")
"""Keys that lead through cursor, orders, sources, a job and its tabs, keys, a filter, a command, marks."""


def test_what_is_left_after_many_keys_is_what_is_painted_anew(dashboard: Screen) -> None:
    for keys in WALKS:
        dashboard.press(*keys)
        left = dashboard.shown.seen()
        assert dashboard.all_anew() == left, keys


def test_a_storm_of_resizes_ends_in_the_last_size(dashboard: Screen) -> None:
    received, begun = dashboard.terminal.received, time.monotonic()
    for number in range(200):
        dashboard.resize(40 + number % 90, 8 + number % 37)
        while time.monotonic() < begun + number / 200:
            dashboard.read(0.001)
    dashboard.resize(90, 25)
    ended = time.monotonic()
    dashboard.settle()
    assert time.monotonic() - ended < 10.0, "it still worked on old sizes"
    assert dashboard.terminal.received - received < 100_000
    left = dashboard.shown.seen()
    assert not dashboard.shown.is_spilt()
    assert "q quit" in dashboard.shown.text()[-1]
    assert dashboard.all_anew() == left


def test_a_terminal_that_is_slow_gets_the_last_state_and_no_backlog() -> None:
    words = [sys.executable, "-m", "benchmarks.table_live", "--jobs", "5000", "--share", "0"]
    with Terminal(Program(argv=words, ready="ready")) as terminal:
        terminal.wait_for("ready")
        terminal.settle()
        screen = Screen(terminal, 120, 40)
        screen.all_anew()
        begun, received, pressed = time.monotonic(), terminal.received, 0
        while (passed := time.monotonic() - begun) < SLOW_S:
            if passed > pressed * PRESS_S:
                pressed += 1
                terminal.write(KEYS["pagedown"])
            allowed = int(passed * SLOW_BYTES_PER_S) - (terminal.received - received)
            if allowed > 0:
                screen.read(0.01, allowed)
            else:
                time.sleep(0.01)
        assert terminal.received - received > SLOW_S * SLOW_BYTES_PER_S / 2, "it had less to send than that"
        backlog = 0
        while count := screen.read(0.05):
            backlog += count
        assert backlog < MOST_WAITING
        at = seconds_of_day()
        wait_for(lambda: screen.read(0.1) >= 0 and 0 <= (shown_seconds(screen) - at) % DAY_S < DAY_S / 2)
        screen.press(KEYS["home"].decode())
        left = names(screen)
        screen.all_anew()
        assert names(screen) == left


def names(screen: Screen) -> list[str]:
    """The jobs that are shown, without what time changes of them."""
    return [line[24:90] for line in screen.shown.text()[2:]]


def shown_seconds(screen: Screen) -> int:
    """Seconds of the day by the clock in the top line."""
    hours, minutes, seconds = screen.shown.text()[0].split()[-1].rstrip("Z").split(":")
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds)


def seconds_of_day() -> int:
    """Seconds of the day by the machine's clock."""
    now = time.gmtime()
    return now.tm_hour * 3600 + now.tm_min * 60 + now.tm_sec
