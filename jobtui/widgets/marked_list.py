"""Things of which any number can be chosen, one a row."""

from collections.abc import Iterable, Sequence

from jobtui.render.spans import Line, Span
from jobtui.render.text import fit, width
from jobtui.widgets.choice_list import Choice
from jobtui.widgets.row_view import RowView

SIGN_CELLS = 3


class MarkedList(RowView):
    """The chosen ones have a sign."""

    HEADINGS = 0

    def __init__(
        self, choices: Sequence[Choice], marked: Iterable[int] = (), *, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self._choices = tuple(choices)
        self._marked = set(marked)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._choices)

    @property
    def marked(self) -> tuple[int, ...]:
        """Which ones are chosen, in their order."""
        return tuple(sorted(self._marked))

    def toggle(self) -> None:
        """Choose the one under the cursor, or no longer."""
        if self.count:
            self._marked ^= {self.cursor}
        self.repaint()

    def toggle_all(self) -> None:
        """Choose all, or none when all are chosen."""
        self._marked = set() if len(self._marked) == self.count else set(range(self.count))
        self.repaint()

    def row(self, index: int) -> Line:
        """Whether it is chosen, what it is, and more about it."""
        words, reason = self._choices[index]
        is_marked = index in self._marked
        room = max(0, self.cells - SIGN_CELLS)
        name_cells = min(room, max(width(words), room // 2))
        sign = Span(" ✓ " if is_marked else "   ", "good", SIGN_CELLS)
        name = Span(fit(words, name_cells), "" if is_marked else "dim", name_cells)
        rest = room - name_cells
        return (sign, name, Span(fit(f"  {reason}", rest), "dim", rest))
