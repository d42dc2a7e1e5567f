"""Widgets, commands of the palette and the real dashboard with hostile text: nothing is shown or sent raw."""

import json
import pkgutil
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widget import Widget

import jobtui.screens
import jobtui.widgets
from benchmarks.painted import Painted
from benchmarks.startup import isolated
from benchmarks.terminal import Program, Terminal
from benchmarks.tour import ENTER, ESCAPE, sent_for, way_to
from jobtui.actions import ScreenName, actions_at
from jobtui.app import JobtuiApp
from jobtui.model.clock import FixedClock
from jobtui.screens.command_table import COMMANDS, AppCommand
from jobtui.session import Session
from jobtui.store.store import Store
from jobtui.views import Views
from jobtui.widgets.filter_bar import CommandBar, FilterBar
from jobtui.widgets.filter_input import FilterInput
from jobtui.widgets.lines import LineView
from tests.conftest import NOW
from tests.fakes import FakeCorrelation, ScriptedSource, batch
from tests.hostile.site import HostileSite
from tests.hostile.texts import FEW, SECRET, TEXTS, cells, faults_in
from tests.hostile.widgets import BASES, CASES, TraceTable, jobs
from tests.waiting import LONG_S, wait_until
from tests.widgets.widget_app import Stack, screen_text

COLUMNS, ROWS = [100, 9], 10


def all_widgets() -> Iterator[type[Widget]]:
    """Every widget of jobtui.widgets, and those of screens that draw lines themselves."""
    for package in (jobtui.widgets, jobtui.screens):
        kind = Widget if package is jobtui.widgets else LineView
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for found in vars(import_module(module.name)).values():
                if isinstance(found, type) and issubclass(found, kind) and found.__module__ == module.name:
                    yield found


def test_every_widget_has_a_case() -> None:
    missing = {widget.__name__ for widget in {*all_widgets()} - CASES.keys() - BASES}
    assert not missing, "a new widget needs a case in tests/hostile/widgets.py"
    assert ({*CASES} | BASES) - {TraceTable} <= {*all_widgets()}


@pytest.mark.parametrize("widget", CASES, ids=lambda widget: widget.__name__)
async def test_a_widget_takes_every_text(widget: type[Widget]) -> None:
    cases = [CASES[widget](text) for text in TEXTS.values()]
    rows = ROWS * len(cases)
    app = Stack([shown for shown, _ in cases], ROWS)
    async with app.run_test(size=(COLUMNS[0], rows)) as pilot:
        await pilot.pause()
        for _, tell in cases:
            tell()
        assert len(app.screen.query(widget)) == len(cases)
        for columns in COLUMNS:
            await pilot.resize_terminal(columns, rows)
            await pilot.pause()
            await pilot.pause()
            check(widget, columns, [strip.text for strip in app.screen._compositor.render_strips()])


def check(widget: type[Widget], columns: int, lines: list[str]) -> None:
    for number, name in enumerate(TEXTS):
        for line in lines[number * ROWS : (number + 1) * ROWS]:
            typed = issubclass(widget, FilterBar | FilterInput) and name == "secret"
            assert not faults_in(line.replace(SECRET, "") if typed else line), f"{name}: {line!a}"
            assert cells(line) == columns, f"{name}: {line!a}"


WIDE, HIGH = 90, 20


def app_on(views: Path) -> JobtuiApp:
    session = Session([], FixedClock(NOW))
    session.store = Store(FakeCorrelation(), FixedClock(NOW))
    every = [job for text in TEXTS.values() for job in jobs(text)]
    session.add(ScriptedSource([batch(*every)], name=TEXTS["everything"]))
    return JobtuiApp(session, title="jobtui", views=Views(views))


@pytest.fixture
def views(tmp_path: Path) -> Path:
    view = {"filter": TEXTS["csi"], "sort": TEXTS["osc"], "columns": list(TEXTS.values())}
    path = tmp_path / "views.json"
    path.write_text(json.dumps({"": {"start": view, **dict.fromkeys(TEXTS.values(), view)}}))
    return path


def check_screen(app: JobtuiApp, what: str) -> None:
    for line in screen_text(app):
        line = line.replace("hunter2", "")  # it was typed by the user
        assert not faults_in(line), f"{what}: {line!a}"
        assert cells(line) <= WIDE, f"{what}: {line!a}"


async def say(pilot: Pilot[None], app: JobtuiApp, words: str) -> None:
    await wait_until(lambda: not app.screen.query(CommandBar), pilot)
    await app.screen.run_action("command")
    await wait_until(lambda: app.screen.query(FilterInput), pilot)
    app.screen.query_one(FilterInput).value = words
    await pilot.pause()
    check_screen(app, words)
    app.screen.query_one(CommandBar).close(app.screen.query_one(FilterInput).value)
    await pilot.pause()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
async def test_every_command_accepts_hostile_text(command: AppCommand, views: Path) -> None:
    app = app_on(views)
    async with app.run_test(size=(WIDE, HIGH), notifications=True) as pilot:
        await wait_until(lambda: app._session.store.jobs, pilot)
        for name in FEW if command.argument else ("empty",):
            await say(pilot, app, f"{command.name} {TEXTS[name][:2_000]}")
            check_screen(app, f"{command.name} {name}")
            for bar in app.screen.query(CommandBar):
                bar.close(None)
            if not app.is_running:
                break
            await app.run_action("go('jobs')")
            await pilot.pause()
            check_screen(app, f"{command.name} {name}, back")


async def test_the_palette_offers_hostile_names_safely(views: Path) -> None:
    app = app_on(views)
    async with app.run_test(size=(WIDE, HIGH)) as pilot:
        await wait_until(lambda: app._session.store.jobs, pilot)
        await pilot.press("ctrl+p")
        for letter in "bal":
            await pilot.press(letter)
        await wait_until(lambda: "balsam" in "\n".join(screen_text(app)), pilot)
        check_screen(app, "the palette")


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


SCREENS = [name for name in ScreenName if name is not ScreenName.CHOOSING]


@pytest.mark.parametrize("half", [0, 1])
def test_every_key_of_every_screen(screen: Screen, half: int) -> None:
    """Of several in one program, as starting it takes longest; `say` leads back from wherever keys led."""
    for name in SCREENS[half::2]:
        screen.say(ESCAPE)
        screen.press(*way_to(name))
        for action in actions_at(name):
            if action.call not in LEFT_OUT and not action.call.startswith("app.go("):
                screen.press(sent_for(action.keys[0]))
                if action.call in OPENING:
                    screen.press(ESCAPE)
        screen.check()


def test_pasted_text_breaks_no_screen(screen: Screen) -> None:
    for name in FEW:
        screen.say(f"\x1b[200~{TEXTS[name][:300]}\x1b[201~")
        screen.wait(lambda text: "\n : " not in text, "\t", ENTER, ESCAPE)
        screen.check()


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=str)
def test_the_lines_of_each_log(screen: Screen) -> None:
    screen.press("2")
    for _ in range(3):
        screen.press("\t", *(["\x1b[5~"] * 4), "w", "\x1b[5~", "x", "w", "G", ENTER, ESCAPE)
        screen.check()
