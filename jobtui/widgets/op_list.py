"""The ops of a job: how each stands, what it is and how long it took or takes."""

from collections.abc import Callable, Mapping, Sequence

from textual.message import Message

from jobtui.analysis.timeline import op_duration_s
from jobtui.model.clock import Nanos
from jobtui.model.ops import Op, OpStatus
from jobtui.render.spans import Line, Span, fitting, padded
from jobtui.render.text import duration, fit, show
from jobtui.widgets.row_view import RowView

GLYPHS: Mapping[OpStatus, tuple[str, str]] = {
    OpStatus.CREATED: ("○", ""),
    OpStatus.WAITING: ("○", "warning"),
    OpStatus.SENT: ("●", "good"),
    OpStatus.REPLIED: ("●", "good"),
    OpStatus.ENDED: ("✓", "settled"),
    OpStatus.DESTROYED: ("✗", "settled"),
    OpStatus.LOST: ("?", "settled"),
}
"""Sign and style of each status, as long as nothing is known of how it ended."""
RESULT_GLYPHS: Mapping[str, tuple[str, str]] = {
    "ok": ("✓", "settled"),
    "completed": ("✓", "settled"),
    "canceled": ("⊘", "warning"),
    "error": ("✗", "error"),
}
"""The same by how it ended."""
FAILED = RESULT_GLYPHS["error"]
OTHER_RESULT = ("?", "warning")
"""For a word of the supervisor that is not known here."""
TIME_CELLS = 7
PREFIX_CELLS = 6
EDGE = Span(" │", "rule", 2)
"""What parts the ops from the steps beside them."""


class OpList(RowView):
    """Ops, oldest first."""

    class Highlighted(Message):
        """The cursor went to another op."""

        def __init__(self, op: Op) -> None:
            self.op = op
            super().__init__()

    def __init__(self, now: Callable[[], Nanos], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._now = now
        self._ops: tuple[Op, ...] = ()
        self._hidden = 0
        self._held = False

    @property
    def count(self) -> int:
        """How many ops are listed."""
        return len(self._ops)

    @property
    def op(self) -> Op | None:
        """The op under the cursor."""
        return self._ops[self.cursor] if self._ops else None

    def set_ops(self, ops: Sequence[Op], hidden: int = 0) -> None:
        """Show these ops and say how many more are hidden. The cursor stays with its op.

        As long as nobody moved it, it is on the newest run.
        """
        key = self.op.key if self.op and self._held else None
        before = self.op
        self._ops = tuple(ops)
        self._hidden = hidden
        found = next((at for at, op in enumerate(ops) if op.key == key), None)
        self.cursor = _newest_run(ops) if found is None else found
        self.keep_in_view()
        self.repaint()
        if self.op is not None and self.op != before:
            self.post_message(self.Highlighted(self.op))

    def go(self, index: int) -> None:
        """Put the cursor on a row, and keep it with that op from now on."""
        self._held = True
        super().go(index)

    def cursor_moved(self) -> None:
        """Tell which op it is."""
        if self.op is not None:
            self.post_message(self.Highlighted(self.op))

    def tick(self) -> None:
        """Let the durations of open ops go on."""
        if any(op.status.is_open for op in self._ops):
            self.repaint()

    def heading(self, y: int) -> Line:
        """How many ops there are."""
        more = f"  {self._hidden} hidden" if self._hidden else ""
        cells, edge = self._room()
        return (Span(fit(f" OPS {self.count}{more}", cells), "heading", cells), *edge)

    def row(self, index: int) -> Line:
        """Sign, name, prefix and duration of an op."""
        cells, _ = self._room()
        return op_line(self._ops[index], self._now(), cells)

    def line(self, y: int) -> Line:
        """A line, with the edge beside it where something stands there."""
        cells, edge = self._room()
        line = super().line(y)
        return line if y < self.headings else (*fitting(padded(line, cells), cells), *edge)

    def _room(self) -> tuple[int, Line]:
        """Cells for the ops, and the edge."""
        beside = self.cells < self.screen.size.width
        return (self.cells - EDGE.width, (EDGE,)) if beside else (self.cells, ())


def op_line(op: Op, now: Nanos, cells: int) -> Line:
    """An op in one line of so many cells."""
    sign, style = op_glyph(op)
    time = fit(duration(_whole(op, op_duration_s(op, now))), TIME_CELLS, align="right")
    name_cells = max(1, cells - 3 - PREFIX_CELLS - TIME_CELLS)
    prefix = fit(show(op.op), PREFIX_CELLS - 1)
    quiet = "settled" if style == "settled" else ""
    spans = (
        Span(f" {sign} ", style, 3),
        Span(fit(show(op.name), name_cells), quiet, name_cells),
        Span(f" {prefix}", "dim", PREFIX_CELLS),
        Span(time, "dim", TIME_CELLS),
    )
    return fitting(spans, cells)


def op_glyph(op: Op) -> tuple[str, str]:
    """Sign and style of an op: how it ended where that is known, else how far it has come."""
    if op.result is not None and not op.status.is_open:
        return FAILED if op.error else RESULT_GLYPHS.get(op.result, OTHER_RESULT)
    return FAILED if op.error else GLYPHS[op.status]


def _whole(op: Op, seconds: float | None) -> float | None:
    """An open op's time goes on by whole seconds."""
    return seconds if seconds is None or not op.status.is_open else float(int(seconds))


def _newest_run(ops: Sequence[Op]) -> int:
    return next((at for at in range(len(ops) - 1, -1, -1) if ops[at].name == "run"), max(0, len(ops) - 1))
