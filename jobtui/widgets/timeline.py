"""The steps of one op as lanes, and the log line behind the step under the cursor."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from textual.message import Message

from jobtui.analysis.timeline import GAP_S, TimelineRow, timeline_rows, waits_since
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.ops import Op, Step
from jobtui.render import lanes
from jobtui.render.spans import Line, Span
from jobtui.widgets.row_view import RowView
from jobtui.widgets.text_pane import wrapped


class Place(NamedTuple):
    """A line of the timeline: a step, or the gap before it."""

    row: int
    is_gap: bool = False


class Timeline(RowView):
    """The steps of an op, with long gaps between them marked. Gaps cannot be under the cursor."""

    class Highlighted(Message):
        """The cursor went to another step, or to none."""

        def __init__(self, step: Step | None) -> None:
            self.step = step
            super().__init__()

    def __init__(self, now: Callable[[], Nanos], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._now = now
        self._op: Op | None = None
        self._rows: tuple[TimelineRow, ...] = ()
        self._places: list[Place] = []
        self._fine = False
        self._absolute = False
        self._empty: tuple[str, ...] = ()
        self.is_active = False

    @property
    def count(self) -> int:
        """How many lines it has, gaps included, and the one that says for how long nothing came."""
        return len(self._places) + (self._silence_s is not None)

    @property
    def step(self) -> Step | None:
        """The step under the cursor."""
        return self._rows[self._places[self.cursor].row].step if self._places else None

    def set_op(self, op: Op | None, *, absolute: bool = False) -> None:
        """Show the steps of an op. With another op the cursor goes to what is worth reading first."""
        is_other = op is None or self._op is None or op.key != self._op.key
        at_end = not self._places or self.cursor == len(self._places) - 1
        step = self.step
        self._op = op
        self._absolute = absolute
        self._rows = timeline_rows(op, self._now()) if op else ()
        self._places = _places(self._rows)
        self._fine = lanes.is_fine(self._rows)
        if is_other:
            self.cursor, self.top = self._first_to_read(), 0
        elif at_end:
            self.cursor = len(self._places) - 1
        self.keep_in_view()
        self.repaint()
        if is_other or step != self.step:
            self.post_message(self.Highlighted(self.step))

    def set_empty(self, words: Sequence[str]) -> None:
        """What is said in place of steps when there are none; each a paragraph that is safe to show."""
        self._empty = tuple(words)
        self.repaint()

    def line(self, y: int) -> Line:
        """A step, or what is said when there are none."""
        if self._rows or y < self.headings:
            return super().line(y)
        lines = [line for words in self._empty for line in wrapped(words, max(2, self.cells - 2))]
        at = y - self.headings
        return (Span(f" {lines[at]}", "dim"),) if at < len(lines) else ()

    def tick(self) -> None:
        """Let the time since the last step go on."""
        if self._silence_s is not None:
            self.repaint()

    def go(self, index: int) -> None:
        """Put the cursor on a step; it jumps over gaps and stops at the last step."""
        index = max(0, min(index, len(self._places) - 1))
        if self._places and self._places[index].is_gap:
            index += 1 if index >= self.cursor else -1
        super().go(index)

    def cursor_moved(self) -> None:
        """Tell which step it is."""
        self.post_message(self.Highlighted(self.step))

    def heading(self, y: int) -> Line:
        """The lanes."""
        return lanes.heading(self._op, self.cells)

    def row(self, index: int) -> Line:
        """A step or a gap."""
        if index >= len(self._places):
            return lanes.waiting_line(self._rows[-1], self._silence_s or 0.0, self.cells)
        place = self._places[index]
        row = self._rows[place.row]
        before = self._rows[place.row - 1] if place.row else None
        if place.is_gap and before is not None:
            return lanes.gap_line(row, before, self.cells)
        times = lanes.Times(fine=self._fine, absolute=self._absolute)
        return lanes.row_line(row, before, self.cells, times)

    @property
    def _silence_s(self) -> float | None:
        """For how many seconds an open op has given no sign, None when that is no matter."""
        since = waits_since(self._op) if self._op and self._rows else None
        if since is None:
            return None
        seconds = seconds_between(since, self._now())
        return seconds if seconds >= GAP_S else None

    def _first_to_read(self) -> int:
        """The last step that went wrong, otherwise the last one."""
        places = enumerate(self._places)
        bad = [at for at, place in places if not place.is_gap and self._rows[place.row].is_bad]
        return bad[-1] if bad else max(0, len(self._places) - 1)


def _places(rows: Sequence[TimelineRow]) -> list[Place]:
    places: list[Place] = []
    for at, row in enumerate(rows):
        if row.is_gap:
            places.append(Place(at, is_gap=True))
        places.append(Place(at))
    return places
