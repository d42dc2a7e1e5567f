"""A list of rows with a cursor. Only visible rows are asked for."""

from collections.abc import Sequence
from enum import StrEnum

from textual import events
from textual.containers import Container

from jobtui.render.spans import Line, Piece, padded, styled
from jobtui.render.text import SEPARATOR, fit_facts, width
from jobtui.widgets.lines import LineView, ShownAttribute

WHEEL_ROWS = 3


class Move(StrEnum):
    UP = "up"
    DOWN = "down"
    HALF_UP = "half_up"
    HALF_DOWN = "half_down"
    PAGE_UP = "page_up"
    PAGE_DOWN = "page_down"
    TOP = "top"
    BOTTOM = "bottom"

    def lines(self, page: int) -> int:
        """How many lines down the key moves, `page` for a page; 0 if it moves to an end."""
        half = max(1, page // 2)
        steps = {
            Move.UP: -1, Move.DOWN: 1, Move.HALF_UP: -half, Move.HALF_DOWN: half, Move.PAGE_UP: -page,
            Move.PAGE_DOWN: page,
        }  # fmt: skip
        return steps.get(self, 0)


class RowView(LineView):
    """Rows below some lines of heading. Subclasses give `count`, `row` and perhaps `heading`."""

    HEADINGS = 1
    """Lines of heading; none if the widget is one or two lines high."""
    is_active = ShownAttribute(True)
    """Whether keys that move the cursor go to it."""

    def __init__(self) -> None:
        super().__init__()
        self.top = 0
        self.cursor = 0
        self.shows_cursor = True

    @property
    def count(self) -> int:
        raise NotImplementedError

    @property
    def headings(self) -> int:
        return self.HEADINGS if self.rows_high > 2 else 0

    @property
    def page(self) -> int:
        return max(1, self.rows_high - self.headings)

    def heading(self, y: int) -> Line:
        raise NotImplementedError

    def row(self, index: int) -> Line:
        raise NotImplementedError

    def line(self, y: int) -> Line:
        if y < self.headings:
            return self.heading(y)
        index = self.top + y - self.headings
        if not self.count:
            return self.empty_line(index)
        if index >= self.count:
            return ()
        if index == self.cursor and self.shows_cursor:
            style = "cursor" if self.is_active else "cursor.weak"
            return styled(padded(self.row(index), self.cells), style)
        return self.row(index)

    def move(self, move: Move) -> None:
        ends = {Move.TOP: 0, Move.BOTTOM: self.count}
        self.go(ends.get(move, self.cursor + move.lines(self.page)))

    def go(self, index: int) -> None:
        self.cursor = max(0, min(index, self.count - 1))
        self.keep_in_view()
        self.repaint()

    def keep_in_view(self) -> None:
        self.cursor = max(0, min(self.cursor, self.count - 1))
        self.top = max(min(self.top, self.cursor), self.cursor - self.page + 1)
        self.top = max(0, min(self.top, self.count - self.page))

    def on_resize(self) -> None:
        self.keep_in_view()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.scroll_rows(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.scroll_rows(-WHEEL_ROWS)

    def scroll_rows(self, rows: int) -> None:
        self.top = max(0, min(self.top + rows, self.count - self.page))
        self.go(max(self.top, min(self.cursor, self.top + self.page - 1)))

    def on_click(self, event: events.Click) -> None:
        if self.selected_text:
            return  # this click ended a selection
        index = self.top + event.y - self.headings
        if event.y >= self.headings and index < self.count:
            self.go(index)


class PaneGroup(Container):
    """One list or text, or two of which one takes the keys that move. Subclasses give `panes`."""

    panes: Sequence[RowView] = ()

    def move(self, move: Move) -> None:
        *first, last = self.panes
        is_in_first = first and first[0].display and not last.is_active
        (first[0] if is_in_first else last).move(move)

    def switch_pane(self) -> None:
        *first, last = self.panes
        if first:
            to_last = not last.is_active and last.display
            last.is_active, first[0].is_active = to_last, not to_last


def rule(cells: int, text: str = "") -> Line:
    """A rule across the screen, with words at its right end if there is room."""
    room = cells - 6
    if not text or room < min(width(text.partition(SEPARATOR)[0]), 12):
        return (Piece("─" * cells, "rule", cells),)
    words = f" {fit_facts(text, room)} "
    taken = width(words)
    return (Piece("─" * (cells - taken - 2), "rule"), Piece(words, "dim", taken), Piece("──", "rule", 2))
