"""Which cells of which rows changed a moment ago."""

from collections.abc import Iterable
from time import monotonic

MARK_S = 2.0
"""How long a changed cell stays marked."""
NONE: frozenset[str] = frozenset()


class ChangeMarks:
    """Marks by row and column, each for some seconds."""

    def __init__(self) -> None:
        self._marks: dict[str, tuple[frozenset[str], float]] = {}

    def add(self, row_id: str, columns: Iterable[str]) -> None:
        """Mark these columns of a row, and go on marking what is marked already."""
        marked = self.of(row_id).union(columns)
        if marked:
            self._marks[row_id] = (marked, monotonic() + MARK_S)

    def of(self, row_id: str) -> frozenset[str]:
        """The marked columns of a row."""
        return self._marks.get(row_id, (NONE, 0.0))[0]

    def forget(self, row_id: str) -> None:
        """A row is no more."""
        self._marks.pop(row_id, None)

    def expire(self) -> list[str]:
        """End what was marked long enough; the rows."""
        now = monotonic()
        over = [row_id for row_id, (_, until) in self._marks.items() if until <= now]
        for row_id in over:
            del self._marks[row_id]
        return over
