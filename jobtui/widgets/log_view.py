"""The log view: a log of any size, of which only the lines around the screen are ever asked for.

It opens at the end and stays there while lines come, until somebody moves away; then it stays with its lines.
Lines come from a `LineSource`, asked for in workers ahead of the screen: keys never wait for a file. What is
searched, filtered or followed is decided by its screen, which hands it a source and positions to go to.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from textual import events, on, work
from textual.message import Message

from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.health import contained
from jobtui.model.pages import Extent, LineSource, LogLine, LogUnreadable, Overview
from jobtui.render import log_lines
from jobtui.render.sources import SEPARATOR, judge_age
from jobtui.render.spans import Line, Piece, crop, fitting, padded, rows, styled, width_of
from jobtui.render.text import Zone, clock_time, telling
from jobtui.widgets.lines import LineView, ShownAttribute
from jobtui.widgets.log_feed import FIRST, LogFeed, LogWindow
from jobtui.widgets.row_view import WHEEL_ROWS, Move

DRAWN = 600
"""Drawn lines that are kept."""
MORE_LEFT, MORE_RIGHT = "‹", "›"
NEVER_MORE = 50
"""The most rows of one line."""
SIDE_STEP = 20
"""How many cells a step to the left or right moves."""


class LogView(LineView):
    class Moved(Message):
        """The cursor or the lines around it changed."""

    @dataclass
    class Failed(Message):
        """Lines could not be read; the words are outside text."""

        words: str

    def __init__(self) -> None:
        super().__init__()
        self.bookmarks: set[int] = set()
        self._look = self._drawn_look = log_lines.LineLook()
        self._find: log_lines.Finder | None = None
        self._bodies: dict[tuple[int, int], Line] = {}
        """Whole lines as they are drawn."""
        self.wraps = False
        self._left = 0
        self._window = LogWindow()
        self._top = 0
        self._skip = 0
        self._cursor = 0
        self._anchor: LogLine | None = None
        self._layout: list[Line] = []
        self._visible = 1
        self.follows = True
        """Whether it stays at the end while lines come."""
        self._feed: LogFeed | None = None
        self._owed = 0
        self._fetching = False

    @property
    def line_at_cursor(self) -> LogLine | None:
        return self._window.lines[self._cursor] if len(self._window) else None

    @property
    def position(self) -> int | None:
        line = self.line_at_cursor
        return line.position if line else None

    @property
    def time(self) -> Nanos | None:
        return self._window.time_at(self._cursor)

    @property
    def selection(self) -> tuple[int, int] | None:
        """The first and last position of the selected lines, None when none are."""
        line = self.line_at_cursor
        if self._anchor is None or line is None:
            return None
        return min(self._anchor.position, line.position), max(self._anchor.end, line.end) - 1

    @property
    def shows_heads(self) -> bool:
        return self._look.whole

    def set_finder(self, find: log_lines.Finder | None) -> None:
        self._find = find
        self.redraw()

    def set_look(self, look: log_lines.LineLook) -> None:
        self._look = look
        self._redraw()

    def toggle_selection(self) -> None:
        self._anchor = self.line_at_cursor if self._anchor is None else None
        self.repaint()

    def toggle_wrap(self) -> None:
        self.wraps = not self.wraps
        self._left = 0
        self._redraw()

    def toggle_heads(self) -> None:
        self.set_look(self._look._replace(whole=not self._look.whole))

    def go_sideways(self, steps: int) -> None:
        widest = max((width_of(self._body(line)) for line in self._on_screen()), default=0)
        most = max(0, widest - self.cells // 2)
        self._left = max(0, min(self._left + steps * SIDE_STEP, most)) if not self.wraps else 0
        self._redraw()

    def toggle_bookmark(self) -> None:
        if self.position is not None:
            self.bookmarks ^= {self.position}
            self.repaint()

    def line(self, y: int) -> Line:
        if not self._layout:
            return self.empty_line(y)
        return self._layout[y] if y < len(self._layout) else ()

    def repaint(self) -> None:
        self._lay_out()
        super().repaint()

    def redraw(self) -> None:
        self._bodies.clear()
        self._redraw()

    def _redraw(self) -> None:
        look = self._look._replace(indents=any(map(log_lines.has_clock, self._on_screen())))
        if look != self._drawn_look:
            self._drawn_look = look
            self._bodies.clear()
        self._keep_in_view()
        self.repaint()

    def _on_screen(self) -> list[LogLine]:
        return self._window.lines[self._top : self._top + self._visible]

    def _rows_of(self, line: LogLine) -> list[Line]:
        whole, cells = self._body(line), max(1, self.cells - log_lines.GUTTER_CELLS)
        if self.wraps:
            shown = rows(whole, cells, min(max(1, self.rows_high), NEVER_MORE))
        else:
            shown = [self._cropped(whole, cells)]
        hides_hit = has_hit(whole) and not any(map(has_hit, shown))
        first = log_lines.gutter(line, bookmarked=line.position in self.bookmarks, hides_hit=hides_hit)
        return [(*(log_lines.NO_GUTTER if at else first), *row) for at, row in enumerate(shown)]

    def _body(self, line: LogLine) -> Line:
        key = (line.position, line.size)
        found = self._bodies.get(key)
        if found is None:
            if len(self._bodies) >= DRAWN:
                self._bodies.clear()
            with contained("drawing a line of a log") as drawing:
                found = log_lines.body(line, self._drawn_look)
                if self._find is not None:
                    found = log_lines.marked(found, self._find("".join(span.text for span in found)))
            if drawing.fault is not None or found is None:
                found = (Piece(drawing.words, "warning"),)
            self._bodies[key] = found
        return found

    def _cropped(self, whole: Line, cells: int) -> Line:
        left, width = self._left, width_of(whole)
        if not left and width <= cells:
            return whole
        before = left > 0 and width > 0
        behind = width > left + cells
        middle = crop(whole, left + before, cells - before - behind)
        start = (Piece(MORE_LEFT, "dim", 1),) if before else ()
        end = (Piece(MORE_RIGHT, "dim", 1),) if behind else ()
        return (*start, *middle, *end)

    def _lay_out(self) -> None:
        layout: list[Line] = []
        shown = 0
        chosen = self.selection
        for line in self._window.lines[self._top :]:
            if len(layout) >= self.rows_high:
                break
            style = "cursor" if line.position == self.position else ""
            if not style and chosen and chosen[0] <= line.position <= chosen[1]:
                style = "selected"
            drawn = self._rows_of(line)[0 if layout else self._skip :]
            layout += [_in_style(padded(row, self.cells), style) if style else row for row in drawn]
            shown += len(layout) <= self.rows_high
        self._layout = layout[: self.rows_high]
        self._visible = max(1, shown)

    def _keep_in_view(self) -> None:
        count = len(self._window)
        self._cursor = max(0, min(self._cursor, count - 1))
        if not count:
            self._top = self._skip = 0
            return
        begin = max((0, 0), min((self._top, self._skip), (self._cursor, 0), self._begin_above(count - 1)))
        self._top, self._skip = max(begin, self._begin_above(self._cursor))

    def _begin_above(self, index: int) -> tuple[int, int]:
        """The first line, and how many of its rows are hidden, if the given line ends at the bottom."""
        left = self.rows_high
        if not self.wraps:
            return max(0, index - left + 1), 0
        while index >= 0 and (left := left - len(self._rows_of(self._window.lines[index]))) > 0:
            index -= 1
        return max(0, index), max(0, -left) if index >= 0 else 0

    def show(self, source: LineSource, position: int | None = None) -> None:
        """Show lines of another source, at `position`; at its end without one, following it."""
        self._feed = LogFeed(source)
        self._anchor = None
        self._jump_to(position, self._cursor - self._top)

    def take_over(self, feed: LogFeed, position: int | None) -> None:
        """Show lines that were read already, at `position` or at the end; also before there is a screen."""
        self._feed = feed
        self._anchor = None
        self.follows = position is None
        self._owed = 0
        self._show_window(feed, position, self.rows_high // 3)

    def go_to(self, position: int | None) -> None:
        is_held = self._feed is not None and self._window is self._feed.window
        if position is not None and is_held and self._window.holds(position):
            at = self._window.index_of(position)
            if not self._window.lines[at].folded or self._window.lines[at].position == position:
                return self._go(at)
        self._jump_to(position, self.rows_high // 3)

    def reload(self) -> None:
        self._jump_to(None if self.follows else self.position, self._cursor - self._top)

    def grown(self, extent: Extent) -> None:
        if not len(self._window):
            self.reload()
        elif extent.end > self._window.lines[-1].end:
            self._window.at_end = False
            self._fetch()

    def move(self, move: Move) -> None:
        lines = move.lines(max(1, self._visible - 1))
        if move is Move.TOP:
            self.go_to(FIRST)
        elif move is Move.BOTTOM:
            self.go_to(None)
        else:
            self._go(self._cursor + self._owed + lines, by_page=move in (Move.PAGE_UP, Move.PAGE_DOWN))

    def select(self, move: Move) -> None:
        if self._anchor is None:
            self._anchor = self.line_at_cursor
        self.move(move)

    def next_bookmark(self) -> None:
        here = FIRST if self.position is None else self.position
        if self.bookmarks:
            self.go_to(min((mark for mark in self.bookmarks if mark > here), default=min(self.bookmarks)))

    def on_resize(self) -> None:
        self._redraw()
        self._fetch()
        self.post_message(self.Moved())

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

    def _jump_to(self, position: int | None, row: int) -> None:
        if self._feed is not None:
            self.follows = position is None
            self._owed = 0
            self._jump(self._feed, position, row)

    @work(group="jump", exclusive=True, description="")
    async def _jump(self, feed: LogFeed, position: int | None, row: int) -> None:
        try:
            await feed.jump(position)
        except LogUnreadable as error:
            self.post_message(self.Failed(str(error)))
            return
        if feed is self._feed:  # else another log was chosen meanwhile
            self._show_window(feed, position, row)

    def _show_window(self, feed: LogFeed, position: int | None, row: int) -> None:
        self._window = feed.window
        self._bodies.clear()  # another log may have a line of the same size at the same position
        self._cursor = len(self._window) - 1 if position is None else self._window.index_of(position)
        self._top = self._cursor - row
        if self.is_attached:
            self._redraw()
            self._settle()

    def _fetch(self) -> None:
        if self._feed is None or self._fetching or self._window is not self._feed.window:
            return
        if self._feed.wants(self._top, self._top + self._visible):
            self._fetching = True
            self._fill()

    @work(group="fill")
    async def _fill(self) -> None:
        try:
            while self._feed is not None and self._window is self._feed.window:
                feed = self._feed
                moved = await feed.fill(self._top, self._top + self._visible)
                if moved is None:
                    return
                if self._window is feed.window:
                    self._take(moved)
        except LogUnreadable as error:
            self.post_message(self.Failed(str(error)))
        finally:
            self._fetching = False

    def _take(self, moved: int) -> None:
        self._top += moved
        self._cursor += moved
        if self.follows:
            self._cursor = len(self._window) - 1
            self._settle()
        elif self._owed:
            self._go(self._cursor + self._owed)
        else:
            self._settle()

    @on(events.MouseScrollDown)
    @on(events.MouseScrollUp)
    def _scroll(self, event: events.MouseEvent) -> None:
        event.stop()
        self._go(self._cursor + (WHEEL_ROWS if isinstance(event, events.MouseScrollDown) else -WHEEL_ROWS))


def has_hit(line: Line) -> bool:
    return any("hit" in span.style for span in line)


def _in_style(line: Line, style: str) -> Line:
    parts: list[Piece] = []
    for span in line:
        is_found = log_lines.HIT in span.style.split()
        parts += [span._replace(style=f"{style} {span.style}")] if is_found else styled((span,), style)
    return tuple(parts)


FEWEST_NAME_CELLS = 8
"""The fewest cells for the name of the log, however much there is to say."""


class LogStatus(NamedTuple):
    """What the header says. Texts are safe to show; the most important words come first."""

    names: tuple[str, ...] = ()
    chosen: int = 0
    words: tuple[tuple[str, str], ...] = ()
    """Words and their style, each at its own place."""


class LogHeader(LineView):
    """Names of the logs on the left, the shown one highlighted; words and clock on the right."""

    status = ShownAttribute(LogStatus())
    trail = ShownAttribute[tuple[str, ...]](())
    """The screens between the jobs and this one."""
    read_at = ShownAttribute[Nanos | None](None)

    def __init__(self, now: Callable[[], Nanos]) -> None:
        super().__init__()
        self._now = now

    def line(self, y: int) -> Line:
        """All of it, as far as there is room: names of other logs go first, then the clock and the title."""
        lag_s = None if self.read_at is None else max(0.0, seconds_between(self.read_at, self._now()))
        words, style, _ = judge_age(lag_s)
        shows_age = self.status.names and style != "dim"  # lines have times: only a late log has its age here
        age = Piece(f"  {words} " if shows_age else " ", style)
        clock = Piece(f" {clock_time(self._now())}{Zone.mark()} ", "dim")
        said = tuple(Piece(f"  {text}", style) for text, style in self.status.words if text)
        title, names = Piece(" logs ", "title"), self._names()
        trail = "".join(f" {name} ›" for name in self.trail)
        chosen = f" {self.status.names[self.status.chosen]}" if self.status.names else ""
        alone = (Piece(chosen, "accent"),) if chosen else ()
        whole = (*((Piece(trail, "dim"),) if trail else ()), title, *names)
        for left in (whole, (title, *names), (title, *alone), alone):
            for right in ((*said, age, clock), (*said, age)):
                if width_of(left) + width_of(right) + 1 <= self.cells:
                    return (*padded(left, self.cells - width_of(right)), *right)
        right = (*fitting(said, max(0, self.cells - FEWEST_NAME_CELLS - age.width)), age)
        room = self.cells - width_of(right)
        return (*padded((Piece(telling(chosen, room), "accent"),), room), *right)

    def _names(self) -> Line:
        spans: list[Piece] = [Piece(" ", "", 1)]
        for at, name in enumerate(self.status.names):
            spans += [SEPARATOR] if at else []
            spans.append(Piece(name, "accent" if at == self.status.chosen else "dim"))
        return tuple(spans)


class LogHistogram(LineView):
    """Lines and errors over time, with the position of the cursor."""

    overview = ShownAttribute(Overview((), 0, 0, complete=False))
    position = ShownAttribute[int | None](None)
    _drawn: tuple[Overview, int, log_lines.Histogram] | None = None

    def redraw(self) -> None:
        self._drawn = None
        self.repaint()

    def line(self, y: int) -> Line:
        if self._drawn is None or self._drawn[0] is not self.overview or self._drawn[1] != self.cells:
            self._drawn = self.overview, self.cells, log_lines.Histogram(self.overview, self.cells)
        return self._drawn[2].line(self.position)
