"""The base of every large widget: lines of styled spans, of which only what changed is painted again.

A widget says what a line holds; this compares it with what is on the screen and marks the difference. Styles
are names (`failed`, `dim`), several with blanks between; theme variables `jobtui-<name>` say how they look.
"""

from itertools import groupby
from operator import attrgetter

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from jobtui.render.spans import Line, difference, width_of
from jobtui.widgets.text_selection import TextSelection

VARIABLE = "jobtui-"
"""What the names of the theme variables with our styles begin with."""


class LineView(Widget):
    """A stack of lines. Subclasses give `line` and call `repaint` when something may have changed."""

    DEFAULT_CSS = "LineView { height: 1fr; }"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._painted: dict[int, Line] = {}
        self._looks: dict[str, Style] = {}
        self._pressed: tuple[int, int] | None = None
        self._selection: TextSelection | None = None
        self.selected_text = ""
        """What was selected with the mouse, "" when nothing is; safe to show."""

    @property
    def cells(self) -> int:
        """Its width. `Widget.size` works out regions at every call, and there is no border to leave out."""
        return self._size.width

    @property
    def rows_high(self) -> int:
        """Its height."""
        return self._size.height

    def line(self, y: int) -> Line:
        """What line `y` of the widget holds now."""
        raise NotImplementedError

    def repaint(self) -> None:
        """Mark for painting whatever differs from what is on the screen; not once it is taken away."""
        if not self.is_attached:
            return
        for y, before in list(self._painted.items()):
            after = self._marked_line(y)
            if changed := difference(before, after):
                self._painted[y] = after
                self.refresh(Region(changed.start, y, changed.stop - changed.start, 1))

    def render_line(self, y: int) -> Strip:
        """A line as Textual wants it."""
        line = self._painted.get(y)
        if line is None:
            line = self._painted[y] = self._marked_line(y)
        return self.strip(line, self.cells)

    def _marked_line(self, y: int) -> Line:
        """A line with what is selected of it."""
        line = self.line(y)
        return line if self._selection is None else self._selection.marked(line, y, self.cells)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Perhaps begin to select text."""
        self.forget_selected()
        self._pressed = (event.y, event.x) if event.button == 1 else None

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Select up to here."""
        if self._pressed is None:
            return
        self.capture_mouse()
        y, x = max(0, min(event.y, self.rows_high - 1)), max(0, min(event.x, self.cells - 1))
        if self._selection is not None or (y, x) != self._pressed:
            self._selection = TextSelection(self._pressed, (y, x))
            self.repaint()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Keep what is selected as it is now, however the lines go on."""
        self.release_mouse()
        self._pressed = None
        if self._selection is not None:
            lines = [self.line(y) for y in range(self.rows_high)]
            self.selected_text = self._selection.text(lines, self.cells)

    def forget_selected(self) -> None:
        """Let nothing be selected with the mouse."""
        if self._selection is not None:
            self._selection, self.selected_text = None, ""
            self.repaint()

    def strip(self, line: Line, width: int) -> Strip:
        """A line with its styles, exactly `width` cells wide and with the background painted."""
        segments = [
            Segment("".join(span.text for span in spans), self.look(style))
            for style, spans in groupby((span for span in line if span.text), key=attrgetter("style"))
        ]
        return Strip(segments, width_of(line)).adjust_cell_length(
            width, self.look(line[-1].style if line else "")
        )

    def look(self, names: str) -> Style:
        """The style behind one or several names; a name the theme does not know changes nothing."""
        found = self._looks.get(names)
        if found is None:
            variables = self.app.theme_variables
            known = (variables.get(VARIABLE + name.replace(".", "-"), "none") for name in names.split())
            found = self._looks[names] = sum(map(Style.parse, known), self.rich_style)
        return found

    def notify_style_update(self) -> None:
        """Forget looks when the theme or a rule changed."""
        self._looks = {}
        super().notify_style_update()

    def on_resize(self) -> None:
        """Everything is another width: begin anew."""
        self.start_over()

    def on_unmount(self) -> None:
        """Let go of what was drawn: a cache of textual 8.2.8 keeps a thousand dead widgets with theirs."""
        self._styles_cache.clear()

    def start_over(self) -> None:
        """Forget what is on the screen and paint all of it."""
        self._selection, self.selected_text = None, ""
        self._painted.clear()
        self.refresh()
