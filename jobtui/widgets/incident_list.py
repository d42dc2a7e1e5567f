"""What went wrong, a line for each group of jobs, the largest first; those that are like no other below."""

from collections.abc import Callable, Sequence

from textual.message import Message

from jobtui.analysis.incidents import Incident
from jobtui.model.clock import Nanos
from jobtui.render.incidents import HEADINGS, incident_row, row_cells
from jobtui.render.spans import Line, Span
from jobtui.widgets.row_view import RowView


class IncidentList(RowView):
    """Groups with a cursor, which stays with its group while others come."""

    class Highlighted(Message):
        """The cursor is on another group, or the group is another."""

    def __init__(self, now: Callable[[], Nanos], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._now = now
        self._found: tuple[Incident, ...] = ()
        self._absolute = False

    @property
    def count(self) -> int:
        """How many groups there are."""
        return len(self._found)

    @property
    def incident(self) -> Incident | None:
        """The group under the cursor."""
        return self._found[self.cursor] if self._found else None

    def set_incidents(self, found: Sequence[Incident]) -> None:
        """Show these."""
        before = self.incident
        self._found = tuple(found)
        if before is not None and self.cursor > 0:
            same = (
                at for at, one in enumerate(found) if (one.code, one.first) == (before.code, before.first)
            )
            self.cursor = next(same, self.cursor)
        self.keep_in_view()
        self.repaint()
        if self.incident != before:
            self.post_message(self.Highlighted())

    def set_absolute(self, absolute: bool) -> None:
        """Times of day instead of ages."""
        self._absolute = absolute
        self.repaint()

    def cursor_moved(self) -> None:
        """Tell that it is another group."""
        self.post_message(self.Highlighted())

    def heading(self, y: int) -> Line:
        """The columns."""
        return tuple(Span(text, "heading") for text in row_cells(*HEADINGS, self.cells))

    def row(self, index: int) -> Line:
        """A group."""
        return incident_row(self._found[index], self._now(), self.cells, absolute=self._absolute)
