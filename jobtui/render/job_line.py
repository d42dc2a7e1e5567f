"""A row of the job table as a line of spans: a sign for its mark, then its cells with blanks between."""

from collections.abc import Iterator, Sequence, Set

from jobtui.model.jobs import Job
from jobtui.render.columns import Column, RowContext, columns_for, gap_for
from jobtui.render.spans import Line, Span
from jobtui.render.text import fit

MARGIN = 2
"""Cells before the first column, for the sign of a marked row."""
CLOCKS = frozenset({"age", "dur", "queued", "started", "ended"})
"""Columns that go on with time."""
TIMED = CLOCKS | {"state", "waits"}
"""Columns that may change with time alone."""


class JobLines:
    """Draws jobs into the columns that a width has room for."""

    def __init__(self, chosen: Sequence[Column], cells: int) -> None:
        room = max(1, cells - MARGIN - 1)
        self._placed = columns_for(room, chosen)
        self._blanks = " " * gap_for(room)

    def heading(self, sorted_by: str | None, *, reverse: bool) -> Line:
        """Names of the columns; that of the sorted one stands out."""
        spans = [Span(" " * MARGIN, "", MARGIN)]
        for column, cells in self._placed:
            is_sorted = column.key == sorted_by
            arrow = ("▼" if reverse else "▲") if is_sorted else ""
            style = "sorted" if is_sorted else "heading"
            text = fit(column.header + arrow, cells, align=column.align)
            spans += [Span(text, style, cells), Span(self._blanks, "heading", len(self._blanks))]
        return tuple(spans[:-1])

    def line(self, job: Job, context: RowContext, changed: Set[str], *, is_marked: bool) -> Line:
        """The row of a job; cells of `changed` columns are shown as such."""
        spans = [Span("▌ " if is_marked else "  ", "marked" if is_marked else "", MARGIN)]
        for place in self._placed:
            spans += self._cell(place, job, context, changed)
        return tuple(spans[:-1])

    def later(self, before: Line, job: Job, context: RowContext, changed: Set[str]) -> Line:
        """The row of the same job at another time; only what time may change is worked out."""
        spans = list(before)
        for at, place in enumerate(self._placed):
            if place[0].key in TIMED:
                spans[1 + 2 * at : 3 + 2 * at] = self._cell(place, job, context, changed)
        return tuple(spans[: len(before)])

    def _cell(
        self, place: tuple[Column, int], job: Job, context: RowContext, changed: Set[str]
    ) -> tuple[Span, Span]:
        """A cell, and the blanks behind it."""
        column, cells = place
        style = column.style(job, context)
        text = fit(column.cell(job, context), cells, align=column.align)
        own = f"{style} changed".strip() if column.key in changed else style
        return Span(text, own, cells), Span(self._blanks, style, len(self._blanks))

    def changed_columns(self, before: Line, after: Line) -> Iterator[str]:
        """Of two rows of the same job: the columns whose text differs, but for those that time changes."""
        for place, (column, _) in enumerate(self._placed):
            at = 1 + 2 * place
            if before[at].text != after[at].text and column.key not in CLOCKS:
                yield column.key
