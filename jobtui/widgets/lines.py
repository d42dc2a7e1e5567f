"""The base of every large widget: lines of styled spans, of which only what changed is painted again.

A widget says what a line holds; this compares it with what is on the screen and marks the difference. Styles
are names (`failed`, `dim`), several with blanks between; theme variables `jobtui-<name>` say how they look.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Generic, NamedTuple, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from jobtui.model.health import FAULTS, location_of
from jobtui.model.numbers import counted
from jobtui.render.spans import Line, Piece, crop, difference, padded, styled, width_of
from jobtui.render.styles import ATTRIBUTES
from jobtui.render.text import fit, width, wrapped

STYLE = "selection"


class TextSelection(NamedTuple):
    """The cells from `anchor` to `end`, in either direction, both included; as (line, column)."""

    anchor: tuple[int, int]
    end: tuple[int, int]

    def columns(self, y: int, cells: int) -> tuple[int, int]:
        """Begin and end of the selection in line `y` of this many cells; equal if it has none."""
        (first, left), (last, right) = sorted(self)
        if not first <= y <= last:
            return 0, 0
        return left if y == first else 0, min(cells, right + 1) if y == last else cells

    def marked(self, line: Line, y: int, cells: int) -> Line:
        start, stop = self.columns(y, cells)
        if start >= stop:
            return line
        line = padded(line, cells)
        chosen = styled(crop(line, start, stop - start), STYLE)
        return (*crop(line, 0, start), *chosen, *crop(line, stop, cells - stop))

    def text(self, lines: Sequence[Line], cells: int) -> str:
        (first, _), (last, _) = sorted(self)
        columns = [(line, *self.columns(y, cells)) for y, line in enumerate(lines[: last + 1]) if y >= first]
        parts = (crop(line, start, stop - start) for line, start, stop in columns)
        return "\n".join("".join(span.text for span in part).rstrip() for part in parts)


Value = TypeVar("Value")


class ShownAttribute(Generic[Value]):
    """An attribute of a `LineView`: a new value is painted at once. Texts must be safe to show."""

    def __init__(self, usual: Value) -> None:
        self._usual = usual
        self._name = ""

    def __set_name__(self, owner: type[Widget], name: str) -> None:
        self._name = f"_shown_{name}"

    def __get__(self, view: "LineView", owner: type[Widget]) -> Value:
        found: Value = view.__dict__.get(self._name, self._usual)
        return found

    def __set__(self, view: "LineView", value: Value) -> None:
        view.__dict__[self._name] = value
        view.repaint()


VARIABLE = "jobtui-"
"""What the names of the theme variables with our styles begin with."""


class LineView(Widget):
    """A stack of lines. Subclasses give `line` and call `repaint` when something may have changed."""

    empty = ShownAttribute[Sequence[str]](())
    """Paragraphs shown where there is nothing else to show; safe to show."""

    def __init__(self) -> None:
        super().__init__()
        self._painted: dict[int, Line] = {}
        self._broken: dict[int, tuple[str, Line]] = {}
        self._looks: dict[str, Style] = {}
        self._pressed: tuple[int, int] | None = None
        self._selection: TextSelection | None = None
        self.selected_text = ""
        """What was selected with the mouse, "" when nothing is; safe to show."""

    @property
    def cells(self) -> int:
        """Its width. `Widget.size` computes regions at every call, and there is no border here."""
        return self._size.width

    @property
    def rows_high(self) -> int:
        return self._size.height

    def line(self, y: int) -> Line:
        """What line `y` of the widget holds now."""
        raise NotImplementedError

    def empty_line(self, y: int) -> Line:
        cells = max(2, self.cells - 2)
        lines = [line for one in self.empty for line in wrapped(one, cells, hang=4 * one.startswith(" "))]
        return (Piece(f" {lines[y]}", "dim"),) if y < len(lines) else ()

    def repaint(self) -> None:
        """Mark for painting what differs from the screen; nothing once the widget is removed."""
        if not self.is_attached:
            return
        for y, before in list(self._painted.items()):
            after = self._marked_line(y)
            if (changed := difference(before, after)) is not None:
                self._painted[y] = after
                self.refresh(Region(changed.start, y, len(changed), 1))

    def render_line(self, y: int) -> Strip:
        line = self._painted.get(y)
        if line is None:
            line = self._painted[y] = self._marked_line(y)
        spans = groupby((span for span in line if span.text), key=attrgetter("style"))
        segments = [Segment("".join(span.text for span in group), self.look(style)) for style, group in spans]
        last = self.look(line[-1].style if line else "")
        return Strip(segments, width_of(line)).adjust_cell_length(self.cells, last)

    def _marked_line(self, y: int) -> Line:
        """A line with its selection marked. One that fails is reported, and tried again at each paint."""
        try:
            line = self.line(y)
            marked = line if self._selection is None else self._selection.marked(line, y, self.cells)
            signed = self._signed(marked) if y == 0 and FAULTS.all() else marked
        except Exception as error:  # noqa: BLE001 - it costs this line; a `with` would cost all others time
            return self._broken_line(y, error)
        if self._broken:
            self._broken.pop(y, None)
        return signed

    def _signed(self, line: Line) -> Line:
        """The first line of a screen says how many faults there were where no strip of sources does."""
        is_first = self.region.y == 0 and self.region.right == self.screen.size.width
        if not is_first or any(strip.display for strip in self.screen.query("SourceStrip")):
            return line
        sign = f" {counted(len(FAULTS), 'fault')} "
        if (room := self.cells - width(sign)) < 0:
            return line
        return (*padded(crop(line, 0, room), room), Piece(sign, "warning", self.cells - room))

    def _broken_line(self, y: int, error: Exception) -> Line:
        """The text in place of a line that cannot be drawn. Its fault is counted once, as it would repeat."""
        location = location_of(error)
        known, line = self._broken.get(y, ("", ()))
        if known != location:
            words = FAULTS.note(error, f"drawing {type(self).__name__}").words
            line = (Piece(fit(f" {words}", self.cells), "warning", self.cells),)
            self._broken[y] = (location, line)
        return line

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self.forget_selected()
        self._pressed = (event.y, event.x) if event.button == 1 else None

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._pressed is None:
            return
        self.capture_mouse()
        y, x = max(0, min(event.y, self.rows_high - 1)), max(0, min(event.x, self.cells - 1))
        if self._selection is not None or (y, x) != self._pressed:
            self._selection = TextSelection(self._pressed, (y, x))
            self.repaint()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        self.release_mouse()
        self._pressed = None
        if self._selection is not None:
            lines = [self.line(row) for row in range(self.rows_high)]
            self.selected_text = self._selection.text(lines, self.cells)

    def forget_selected(self) -> None:
        if self._selection is not None:
            self._selection, self.selected_text = None, ""
            self.repaint()

    def look(self, names: str) -> Style:
        """The style of one or more names or attributes; names that the theme does not know are ignored."""
        found = self._looks.get(names)
        if found is None:
            variables = self.app.theme_variables
            known = (
                variables.get(VARIABLE + name.replace(".", "-"), name if name in ATTRIBUTES else "none")
                for name in names.split()
            )
            found = self._looks[names] = sum(map(Style.parse, known), self.rich_style)
        return found

    def notify_style_update(self) -> None:
        self._looks = {}
        super().notify_style_update()

    def on_resize(self) -> None:
        self.start_over()

    def on_unmount(self) -> None:
        """Drop what was drawn: a cache of textual 8.2.8 keeps a thousand closed widgets."""
        self._styles_cache.clear()

    def start_over(self) -> None:
        self._selection, self.selected_text = None, ""
        self._painted.clear()
        self._broken.clear()
        self.refresh()
