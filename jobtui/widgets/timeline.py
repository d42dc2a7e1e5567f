"""The steps of one op as lanes, the log line of the step under the cursor, and the lines of a job's logs."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from textual.message import Message

from jobtui.analysis import timeline
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.numbers import counted
from jobtui.model.ops import Component, Op, Step
from jobtui.render import lanes
from jobtui.render.lanes import certainty_words, op_glyph
from jobtui.render.log_lines import Tags, job_line
from jobtui.render.spans import Line, Piece, fitting, padded
from jobtui.render.text import duration, fit, show, wrapped
from jobtui.widgets.lines import LineView, ShownAttribute
from jobtui.widgets.record_list import RecordList
from jobtui.widgets.row_view import RowView

MOST_SHOWN = 4_000
"""The most characters of a line shown here; a longer one has a screen of its own."""


def where(step: Step, *, full: bool = False) -> str:
    """File and line of a step; the byte where lines are not counted yet; of a journal the stream alone."""
    source = show(step.source)
    name = source if full else source.rstrip("/").rsplit("/", 1)[-1]
    if step.cursor is not None or step.component is Component.SPAN:
        return name
    return f"{name}:{step.line}" if step.line > 0 else f"{name} at byte {step.offset:,}"


class StepDetail(LineView):
    """The line in a few lines of the screen, and a sentence on certainty below it."""

    step = ShownAttribute[Step | None](None)
    more = ShownAttribute[tuple[str, ...]](())
    """The lines that continue its record."""

    def line(self, y: int) -> Line:
        if self.step is None:
            return ()
        origin, room = where(self.step), max(2, self.cells - 2)
        lines = wrapped(f"{origin}  {show(self.step.text)[:MOST_SHOWN]}", room)
        lines += [fit(f"  {line[:MOST_SHOWN]}", room).rstrip() for line in self.more]
        shown = min(len(lines), self.rows_high - 1)
        if y == shown:
            sure = certainty_words(self.step.component, self.step.certainty)
            return (Piece(" " + fit(sure, max(0, self.cells - 1)), "dim"),)
        if y > shown:
            return ()
        text = lines[y]
        if y == shown - 1 and len(lines) > shown:
            left = f" … {counted(len(lines) - shown, 'more line')}"
            text = fit(text, max(0, self.cells - 2 - len(left))) + left
        if y == 0 and text.startswith(origin):
            return (Piece(f" {origin}", "accent"), Piece(text[len(origin) :]))
        return (Piece(f" {text}"),)


TIME_CELLS = 7
PREFIX_CELLS = 6
EDGE = Piece(" │", "rule", 2)
"""The line between the ops and their steps."""


class OpList(RecordList[Op]):
    """Ops, oldest first. Until somebody moves the cursor, it is on the newest run."""

    def __init__(self, now: Callable[[], Nanos]) -> None:
        super().__init__()
        self._now = now
        self._hidden = 0

    def key_of(self, record: Op) -> Hashable:
        return record.key

    def set_ops(self, ops: Sequence[Op], hidden: int = 0) -> None:
        self._hidden = hidden
        is_known = any(op.key == self._held for op in ops)
        runs = [at for at, op in enumerate(ops) if op.name == "run"]
        self.set_records(ops, None if is_known else runs[-1] if runs else max(0, len(ops) - 1))

    def tick(self) -> None:
        if any(op.status.is_open for op in self.records):
            self.repaint()

    def heading(self, y: int) -> Line:
        more = f"  {self._hidden} hidden" if self._hidden else ""
        cells, edge = self._room()
        return (Piece(fit(f" OPS {self.count}{more}", cells), "heading", cells), *edge)

    def row(self, index: int) -> Line:
        op, (cells, _) = self.records[index], self._room()
        sign, style = op_glyph(op)
        seconds = timeline.op_duration_s(op, self._now())
        if seconds is not None and op.status.is_open:
            seconds = float(int(seconds))
        name_cells = max(1, cells - 4 - PREFIX_CELLS - TIME_CELLS)
        quiet = "settled" if style == "settled" else ""
        spans = (
            Piece(f" {sign} ", style, 3),
            Piece(fit(show(op.name), name_cells), quiet, name_cells),
            Piece(f" {fit(show(op.op), PREFIX_CELLS - 1)}", "dim", PREFIX_CELLS),
            Piece(fit(duration(seconds), TIME_CELLS, align="right") + " ", "dim", TIME_CELLS + 1),
        )
        return fitting(spans, cells)

    def line(self, y: int) -> Line:
        cells, edge = self._room()
        line = super().line(y)
        return line if y < self.headings else (*fitting(padded(line, cells), cells), *edge)

    def _room(self) -> tuple[int, Line]:
        beside = self.cells < self.screen.size.width
        return (self.cells - EDGE.width, (EDGE,)) if beside else (self.cells, ())


class TimelineLine(NamedTuple):
    """A line of the timeline: a step, the gap before it, or the one line of a fold."""

    row: int
    is_gap: bool = False
    fold: timeline.Fold | None = None


class Timeline(RowView):
    """The steps of an op, with long gaps between them marked. The cursor skips gaps.

    Until somebody moves it, it is on the last failure, or on the last step if there is none.
    Steps that repeat are folded into one row; unfolded, all are shown below it.
    """

    @dataclass
    class StepHighlighted(Message):
        step: Step | None

    def __init__(self, now: Callable[[], Nanos]) -> None:
        super().__init__()
        self._now = now
        self._op: Op | None = None
        self._rows: tuple[timeline.TimelineRow, ...] = ()
        self._lines: list[TimelineLine] = []
        self._unfolded: set[Step] = set()
        """The first steps of the rows that were unfolded."""
        self._fine = False
        self._absolute = False
        self._is_moved = False
        self.is_active = False

    @property
    def count(self) -> int:
        return len(self._lines) + (self._silence_s is not None)

    @property
    def step(self) -> Step | None:
        if not self._lines:
            return None
        line = self._lines[self.cursor]
        return self._rows[line.fold.last if line.fold else line.row].step

    def toggle_fold(self) -> bool:
        fold = self._lines[self.cursor].fold if self._lines else None
        if fold is None:
            return False
        self._unfolded ^= {self._rows[fold.first].step}
        self._is_moved = True
        self._lines = self._lay_out()
        self.keep_in_view()
        self.repaint()
        return True

    def set_op(self, op: Op | None, *, absolute: bool = False) -> None:
        is_other = op is None or self._op is None or op.key != self._op.key
        at_end = not self._lines or self.cursor == len(self._lines) - 1
        step, held = self.step, self._key_of(self._lines[self.cursor]) if self._lines else None
        self._op = op
        self._absolute = absolute
        self._rows = timeline.timeline_rows(op) if op else ()
        if is_other:
            self._unfolded.clear()
            self._is_moved = False
        self._lines = self._lay_out()
        self._fine = lanes.is_fine(self._rows)
        wanted = [
            at for at, line in enumerate(self._lines) if not line.is_gap
            if (self._key_of(line) == held if self._is_moved else self._rows[line.row].is_bad)
        ]  # fmt: skip
        if wanted and not (at_end and self._is_moved):
            self.cursor = wanted[-1]
        elif at_end or not self._is_moved:
            self.cursor = len(self._lines) - 1
        self.top = 0 if is_other else self.top
        self.keep_in_view()
        self.repaint()
        if is_other or step != self.step:
            self.post_message(self.StepHighlighted(self.step))

    def tick(self) -> None:
        if self._silence_s is not None:
            self.repaint()

    def go(self, index: int) -> None:
        self._is_moved = True
        index, before = max(0, min(index, len(self._lines) - 1)), self.cursor
        if self._lines and self._lines[index].is_gap:
            index += 1 if index >= self.cursor else -1
        super().go(index)
        if self.cursor != before:
            self.post_message(self.StepHighlighted(self.step))

    def _key_of(self, line: TimelineLine) -> Hashable:
        return self._rows[line.fold.first if line.fold else line.row].step, line.fold is None

    def heading(self, y: int) -> Line:
        return lanes.heading(self._op, self.cells)

    def row(self, index: int) -> Line:
        if index >= len(self._lines):
            return lanes.wait_line(self._rows[-1], self._silence_s or 0.0, self.cells, "◌ nothing for")
        line = self._lines[index]
        times = lanes.TimeStyle(fine=self._fine, absolute=self._absolute)
        row = self._rows[line.row]
        before = self._rows[line.row - 1] if line.row else None
        if line.is_gap and before is not None:
            return lanes.wait_line(before, row.since_prev_s or 0.0, self.cells)
        if line.fold is not None:
            is_open = self._rows[line.fold.first].step in self._unfolded
            row = lanes.folded(self._rows, line.fold, times, "▾ " if is_open else "▸ ")
        return lanes.row_line(row, before, self.cells, times)

    @property
    def _silence_s(self) -> float | None:
        """How many seconds an open op has been silent, None if that does not matter."""
        since = timeline.waits_since(self._op) if self._op and self._rows else None
        if since is None:
            return None
        seconds = seconds_between(since, self._now())
        return seconds if seconds >= timeline.GAP_S else None

    def _lay_out(self) -> list[TimelineLine]:
        shown: list[TimelineLine] = []
        folds = {fold.first: fold for fold in timeline.folds_in(self._rows)}
        hidden_to = -1
        for at, row in enumerate(self._rows):
            fold = folds.get(at)
            if fold is not None and row.step not in self._unfolded:
                hidden_to = fold.last
            is_hidden = at <= hidden_to
            if row.is_gap and (fold is not None or not is_hidden):
                shown.append(TimelineLine(at, is_gap=True))
            if fold is not None:
                shown.append(TimelineLine(at, fold=fold))
            if not is_hidden:
                shown.append(TimelineLine(at))
        return shown


WHOLE_TAGS_FROM = 50
"""In fewer cells a tag has three letters."""


class JobLog(RecordList[timeline.JobLine]):
    """The lines of all logs that belong to one job. On the last line the cursor follows new ones."""

    is_cut = False
    """Whether some of its lines were not kept."""

    def __init__(self) -> None:
        super().__init__()
        self._tags: Mapping[str, str] = {}

    def set_lines(self, lines: Sequence[timeline.JobLine], tags: Mapping[str, str]) -> None:
        before, at_end = self.record, self.cursor >= self.count - 1
        self._tags, self._drawn = tags, [Tags(tags, cells) for cells in (3, 16)]
        shown = {line.key: at for at, line in enumerate(lines)}
        found = None if before is None or at_end else shown.get(before.key)
        self.set_records(lines, len(lines) - 1 if found is None else found)

    def key_of(self, record: timeline.JobLine) -> Hashable:
        return record.key

    def heading(self, y: int) -> Line:
        logs = sum(tag != Component.SPAN for tag in self._tags.values())
        words = f" {counted(self.count, 'line')} of {counted(logs, 'log')}"
        words += "; others were not kept: enter opens the whole log" if self.is_cut else ""
        return (Piece(fit(words, self.cells), "heading", self.cells),)

    def row(self, index: int) -> Line:
        return job_line(self.records[index], self._drawn[self.cells >= WHOLE_TAGS_FROM], self.cells)
