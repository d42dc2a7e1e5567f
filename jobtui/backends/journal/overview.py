"""How many lines and errors there are over time: what was written since, and two hours before that."""

from collections import deque
from collections.abc import Sequence

from jobtui.backends.journal.page_reading import PieceReader
from jobtui.model.clock import SECOND
from jobtui.model.journal import Beside, Cursor, Tail, time_at
from jobtui.model.pages import Level, LogLine, Overview, Place, Stretch

WINDOW_S = 2 * 3600
"""How far back is counted."""
PIECE = 1_000
STRETCH_LINES = 50
STRETCHES_KEPT = 4_000
"""Stretches counted; the oldest are let go, and no more are counted than that."""


class JournalOverview:
    """Counts backwards piece by piece, and forwards as lines come."""

    def __init__(self, pieces: PieceReader) -> None:
        self._pieces = pieces
        self._stretches: deque[Stretch] = deque(maxlen=STRETCHES_KEPT)
        self._limit: Place | None = None
        self._cursor: Cursor | None = None
        self._end: Place = 0
        self._done = self._complete = False
        self._made: Overview | None = None

    def begin_before(self, end: Place) -> None:
        """Count what is before this place."""
        if self._limit is None:
            self._limit = self._end = end

    def grown(self, lines: Sequence[LogLine]) -> None:
        """Count lines that were written since."""
        for at in range(0, len(lines), STRETCH_LINES):
            self._stretches.append(stretch_of(lines[at : at + STRETCH_LINES]))
        self._made = None

    async def work(self) -> bool:
        """Count a little more; whether there is more to count. Raises LogUnreadable."""
        if self._done or self._limit is None:
            return False
        start = Tail() if self._cursor is None else Beside(self._cursor)
        piece = await self._pieces.backward(start, PIECE, self._limit)
        lines = [line for _, line in piece.lines if line.place < self._end]
        for at in range(len(lines), 0, -STRETCH_LINES):
            self._stretches.appendleft(stretch_of(lines[max(0, at - STRETCH_LINES) : at]))
        if piece.lines:
            self._limit = piece.lines[0][1].place
        self._cursor = piece.cursor
        self._complete = piece.at_edge
        is_far = time_at(self._limit) < time_at(self._end) - WINDOW_S * SECOND
        self._done = piece.at_edge or is_far or len(self._stretches) >= STRETCHES_KEPT or piece.cursor is None
        self._made = None
        return not self._done

    def overview(self) -> Overview:
        """What is known by now."""
        if self._made is None:
            stretches = tuple(self._stretches)
            lines = sum(stretch.lines for stretch in stretches)
            errors = sum(stretch.errors for stretch in stretches)
            self._made = Overview(stretches, lines, errors, self._complete)
        return self._made


def stretch_of(lines: Sequence[LogLine]) -> Stretch:
    """Lines next to each other, counted."""
    errors = sum(line.level is Level.ERROR for line in lines)
    return Stretch(lines[0].place, lines[0].at, len(lines), errors)
