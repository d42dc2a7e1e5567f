"""All keys, out of the table of actions."""

from collections.abc import Iterator

from jobtui.actions import ACTIONS, Topic
from jobtui.render.spans import Span
from jobtui.screens.base import Board
from jobtui.screens.reading import ReadingScreen

KEY_CELLS = 14

FILTERS = (
    "status:failed  user:vn9m  app:srw,warp  age<10m  dur>1h  %>=90",
    "words are looked for in id, user, name, app and model; -word leaves out; or, ( ) group",
)


class HelpScreen(ReadingScreen):
    """The keys and the filter language."""

    def __init__(self, board: Board) -> None:
        super().__init__(board, "keys", help_text())


def help_text() -> Iterator[Span]:
    """Every action under its topic."""
    for topic in Topic:
        yield Span(str(topic), "title")
        for action in ACTIONS:
            if action.topic is topic:
                yield Span(f"{action.shown_keys:<{KEY_CELLS}}{action.help}")
        yield Span("")
    yield Span("Filter", "title")
    yield from map(Span, FILTERS)
