"""Going from screen to screen: those that a number opens stay as they were left, `escape` leads back."""

from collections.abc import Callable, Iterator, Mapping

from textual.app import App

from jobtui.actions import Place
from jobtui.screens.base import LiveScreen
from jobtui.screens.board import Board


def _logs(board: Board) -> LiveScreen:
    from jobtui.screens.logs import LogsScreen  # no first paint needs it, nor those below

    return LogsScreen(board)


def _sources(board: Board) -> LiveScreen:
    from jobtui.screens.sources import SourcesScreen

    return SourcesScreen(board)


def _agents(board: Board) -> LiveScreen:
    from jobtui.screens.agents import AgentsScreen

    return AgentsScreen(board)


def _charts(board: Board) -> LiveScreen:
    from jobtui.screens.charts import ChartsScreen

    return ChartsScreen(board)


def _traces(board: Board) -> LiveScreen:
    from jobtui.screens.traces import TracesScreen

    return TracesScreen(board)


def _incidents(board: Board) -> LiveScreen:
    from jobtui.screens.incidents import IncidentsScreen

    return IncidentsScreen(board)


def _allocations(board: Board) -> LiveScreen:
    from jobtui.screens.allocations import AllocationsScreen

    return AllocationsScreen(board)


NUMBERED: Mapping[str, Callable[[Board], LiveScreen]] = {
    "logs": _logs,
    "agents": _agents,
    "charts": _charts,
    "traces": _traces,
    "sources": _sources,
    "incidents": _incidents,
    "allocations": _allocations,
}
"""What `app.go` leads to, beside the jobs, which are at the bottom of every stack of screens."""
PASSING = frozenset({Place.READING, Place.CHOOSING, Place.COLUMNS, Place.LOG_SET})
"""Screens that are over when one goes elsewhere."""
JOBS = "jobs"


class Places:
    """The stack of screens of an app, and those that are kept while others are in front."""

    def __init__(self, app: App[None], board: Board) -> None:
        self._app = app
        self._board = board
        self._kept: dict[str, LiveScreen] = {}

    def screens(self) -> Iterator[LiveScreen]:
        """Every screen there is, in front or not."""
        stack = [screen for screen in self._app.screen_stack if isinstance(screen, LiveScreen)]
        yield from stack
        yield from (screen for screen in self._kept.values() if screen not in stack)

    def go(self, place: str) -> None:
        """Go to a screen; what is above it, or is passing, is left."""
        if place == JOBS:
            self._leave_down_to(self._app.screen_stack[0])
            return
        screen = self._kept_at(place)
        if screen in self._app.screen_stack:
            self._leave_down_to(screen)
            return
        while isinstance(top := self._app.screen, LiveScreen) and top.PLACE in PASSING:
            self._app.pop_screen()
        self._app.push_screen(screen)

    def _kept_at(self, place: str) -> LiveScreen:
        if place not in self._kept:
            screen = self._kept[place] = NUMBERED[place](self._board)
            # An installed screen is not removed when another takes its place
            self._app.install_screen(screen, place)
        return self._kept[place]

    def _leave_down_to(self, screen: object) -> None:
        while self._app.screen is not screen:
            self._app.pop_screen()
