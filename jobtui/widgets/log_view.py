"""The log view: a log of any size, of which only the lines around the screen are ever asked for.

It opens at the end and stays there while lines come, until somebody moves away; then it stays with its lines.
Lines come from a `LineSource`, asked for in workers ahead of the screen: keys never wait for a file. What is
searched, filtered or followed is decided by its screen, which hands it a source and places to go to.
"""

from functools import partial
from typing import Any

from textual import events
from textual.message import Message

from jobtui.model.pages import Extent, LineSource, LogUnreadable, Place
from jobtui.render.log_line import Look
from jobtui.widgets.log_feed import Filled, LogFeed
from jobtui.widgets.log_lines import PLAIN_LOOK, LogLines
from jobtui.widgets.row_view import WHEEL_ROWS, Move


class LogView(LogLines):
    """Lines of a log out of a source."""

    class Moved(Message):
        """The cursor is on another line, or the log has other lines around it."""

    class Failed(Message):
        """Lines could not be read; the words are outside text."""

        def __init__(self, words: str) -> None:
            self.words = words
            super().__init__()

    def __init__(self, *, look: Look = PLAIN_LOOK, id: str | None = None) -> None:
        super().__init__(look=look, id=id)
        self.follows = True
        """Whether it stays at the end while lines come."""
        self._feed: LogFeed | None = None
        self._owed = 0
        self._fetching = False

    # What it is told.

    def show(self, source: LineSource, place: Place | None = None) -> None:
        """Show lines of another source, at `place`; at its end without one, following it."""
        self._feed = LogFeed(source)
        self._anchor = None
        self._jump_to(place, self._cursor - self._top)

    def take_over(self, feed: LogFeed, place: Place | None) -> None:
        """Show lines that are held already, at `place` or at the end; also before there is a screen."""
        self._feed = feed
        self._anchor = None
        self.follows = place is None
        self._owed = 0
        self._show_window(feed, place, self.rows_high // 3)

    def go_to(self, place: Place | None) -> None:
        """Put the cursor on the line that holds `place`, or on the last one."""
        if place is not None and self._is_held(place):
            self._go(self._window.index_of(place))
        else:
            self._jump_to(place, self.rows_high // 3)

    def stop_following(self) -> None:
        """Stay where it is while lines come."""
        self.follows = False

    def reload(self) -> None:
        """Ask again for the lines around the cursor: the source holds others now."""
        self._jump_to(None if self.follows else self.place, self._cursor - self._top)

    def grown(self, extent: Extent) -> None:
        """Lines were added behind the last one."""
        if not len(self._window):
            self.reload()
        elif extent.end > self._window.lines[-1].end:
            self._window.at_end = False
            self._fetch()

    # What the user does.

    def move(self, move: Move) -> None:
        """Move the cursor."""
        page = max(1, self._visible - 1)
        steps = {
            Move.UP: -1,
            Move.DOWN: 1,
            Move.HALF_UP: -max(1, page // 2),
            Move.HALF_DOWN: max(1, page // 2),
            Move.PAGE_UP: -page,
            Move.PAGE_DOWN: page,
        }
        if move is Move.TOP:
            self.go_to(0)
        elif move is Move.BOTTOM:
            self.go_to(None)
        else:
            self._go(self._cursor + self._owed + steps[move], by_page=move in (Move.PAGE_UP, Move.PAGE_DOWN))

    def select(self, move: Move) -> None:
        """Move the cursor, and select what it goes over."""
        if self._anchor is None:
            self._anchor = self.place
        self.move(move)

    def next_bookmark(self) -> None:
        """Go to the next line kept in mind, after the last one to the first."""
        here = -1 if self.place is None else self.place
        if self.bookmarks:
            self.go_to(min((mark for mark in self.bookmarks if mark > here), default=min(self.bookmarks)))

    def on_resize(self) -> None:
        """Draw for another size, which may need more lines."""
        super().on_resize()
        self._fetch()
        self.post_message(self.Moved())

    # How it moves.

    def _go(self, index: int, *, by_page: bool = False) -> None:
        if not len(self._window):
            return
        target = max(0, min(index, len(self._window) - 1))
        at_edge = self._window.at_begin if index < 0 else self._window.at_end
        self._owed = 0 if at_edge else index - target
        if by_page:
            self._top = max(0, self._top + target - self._cursor)
        self.follows = target == len(self._window) - 1 and self._window.at_end
        self._cursor = target
        self._settle()

    def _settle(self) -> None:
        self._keep_in_view()
        self.repaint()
        self._fetch()
        self.post_message(self.Moved())

    # How it gets lines.

    def _is_held(self, place: Place) -> bool:
        return self._feed is not None and self._window is self._feed.window and self._window.holds(place)

    def _jump_to(self, place: Place | None, row: int) -> None:
        if self._feed is not None:
            self.follows = place is None
            self._owed = 0
            work: Any = partial(self._jump, self._feed, place, row)
            self.run_worker(work, group="jump", exclusive=True)

    async def _jump(self, feed: LogFeed, place: Place | None, row: int) -> None:
        try:
            await feed.jump(place)
        except LogUnreadable as error:
            self.post_message(self.Failed(str(error)))
            return
        if feed is self._feed:  # else another log was chosen meanwhile
            self._show_window(feed, place, row)

    def _show_window(self, feed: LogFeed, place: Place | None, row: int) -> None:
        self._window = feed.window
        self._cursor = len(self._window) - 1 if place is None else self._window.index_of(place)
        self._top = self._cursor - row
        if self.is_attached:
            self._redraw()
            self._settle()

    def _fetch(self) -> None:
        if self._feed is None or self._fetching or self._window is not self._feed.window:
            return
        if self._feed.wants(self._top, self._top + self._visible):
            self._fetching = True
            work: Any = self._fill
            self.run_worker(work, group="fill")

    async def _fill(self) -> None:
        """Ask for lines until enough are held on both sides."""
        try:
            while self._feed is not None and self._window is self._feed.window:
                feed = self._feed
                filled = await feed.fill(self._top, self._top + self._visible)
                if filled is None:
                    return
                if self._window is feed.window:
                    self._take(filled)
        except LogUnreadable as error:
            self.post_message(self.Failed(str(error)))
        finally:
            self._fetching = False

    def _take(self, filled: Filled) -> None:
        self._top += filled.moved
        self._cursor += filled.moved
        if self.follows:
            self._cursor = len(self._window) - 1
            self._settle()
        elif self._owed:
            self._go(self._cursor + self._owed)
        else:
            self._settle()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll by the wheel."""
        event.stop()
        self._go(self._cursor + WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll by the wheel."""
        event.stop()
        self._go(self._cursor - WHEEL_ROWS)
