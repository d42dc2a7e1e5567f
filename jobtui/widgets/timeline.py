"""The steps of one op as lanes, and the log line behind the step under the cursor."""

from collections.abc import Callable
from typing import NamedTuple

from textual.message import Message

from jobtui.analysis.timeline import GAP_S, Fold, TimelineRow, folds_in, timeline_rows, waits_since
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.ops import Op, Step
from jobtui.render import lanes
from jobtui.render.spans import Line
from jobtui.widgets.row_view import RowView


class Place(NamedTuple):
    """A line of the timeline: a step, the gap before it, or what stands for all steps of a fold."""

    row: int
    is_gap: bool = False
    fold: Fold | None = None


class Timeline(RowView):
    """The steps of an op, with long gaps between them marked. Gaps cannot be under the cursor.

    Steps that repeat are folded into one row; below it they are all shown once it was unfolded.
    """

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
        self._unfolded: set[Step] = set()
        """The first steps of what was unfolded."""
        self._fine = False
        self._absolute = False
        self.is_active = False

    @property
    def count(self) -> int:
        """How many lines it has, gaps included, and the one that says for how long nothing came."""
        return len(self._places) + (self._silence_s is not None)

    @property
    def step(self) -> Step | None:
        """The step under the cursor."""
        if not self._places:
            return None
        place = self._places[self.cursor]
        return self._rows[place.fold.last if place.fold else place.row].step

    def toggle_fold(self) -> bool:
        """Show all steps of the fold under the cursor, or no longer; whether there is one."""
        fold = self._places[self.cursor].fold if self._places else None
        if fold is None:
            return False
        self._unfolded ^= {self._rows[fold.first].step}
        self._places = self._lay_out()
        self.keep_in_view()
        self.repaint()
        return True

    def set_op(self, op: Op | None, *, absolute: bool = False) -> None:
        """Show the steps of an op. With another op the cursor goes to what is worth reading first."""
        is_other = op is None or self._op is None or op.key != self._op.key
        at_end = not self._places or self.cursor == len(self._places) - 1
        step = self.step
        self._op = op
        self._absolute = absolute
        self._rows = timeline_rows(op, self._now()) if op else ()
        if is_other:
            self._unfolded.clear()
        self._places = self._lay_out()
        self._fine = lanes.is_fine(self._rows)
        if is_other:
            self.cursor, self.top = self._first_to_read(), 0
        elif at_end:
            self.cursor = len(self._places) - 1
        self.keep_in_view()
        self.repaint()
        if is_other or step != self.step:
            self.post_message(self.Highlighted(self.step))

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
        times = lanes.Times(fine=self._fine, absolute=self._absolute)
        row = self._rows[place.row]
        before = self._rows[place.row - 1] if place.row else None
        if place.is_gap and before is not None:
            return lanes.gap_line(row, before, self.cells)
        if place.fold is not None:
            row = lanes.folded(self._rows, place.fold, times)
            is_open = self._rows[place.fold.first].step in self._unfolded
            row = row._replace(text=f"{'▾' if is_open else '▸'} {row.text}")
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

    def _lay_out(self) -> list[Place]:
        places: list[Place] = []
        at = 0
        for fold in folds_in(self._rows):
            places += self._plain(at, fold.first)
            if self._rows[fold.first].is_gap:
                places.append(Place(fold.first, is_gap=True))
            places.append(Place(fold.first, fold=fold))
            at = fold.last + 1
            if self._rows[fold.first].step in self._unfolded:
                places += self._plain(fold.first, at)[self._rows[fold.first].is_gap :]
        return places + self._plain(at, len(self._rows))

    def _plain(self, begin: int, end: int) -> list[Place]:
        """Each step from one row up to another, with the gap before it."""
        places: list[Place] = []
        for at in range(begin, end):
            if self._rows[at].is_gap:
                places.append(Place(at, is_gap=True))
            places.append(Place(at))
        return places
