"""Things to choose from, each with a reason."""

from collections.abc import Sequence
from typing import NamedTuple

from jobtui.render.spans import Line, Span
from jobtui.render.text import fit, width
from jobtui.widgets.row_view import RowView

REASON_CELLS = 24
"""With less room for them reasons are left out."""


class Choice(NamedTuple):
    """One thing and why it is offered; both are safe to show."""

    words: str
    reason: str = ""


class ChoiceList(RowView):
    """One a row."""

    HEADINGS = 0

    def __init__(self, choices: Sequence[Choice], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._choices = tuple(choices)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._choices)

    def row(self, index: int) -> Line:
        """A thing and its reason, which begin below each other where there is room."""
        words, reason = self._choices[index]
        room = self.cells - 2
        widest = min(max(width(choice.words) for choice in self._choices) + 2, room)
        if room - widest < REASON_CELLS:
            return (Span(fit(f" {words}", self.cells), "", self.cells),)
        return (Span(fit(f" {words}", widest + 1), ""), Span(fit(reason, room - widest), "dim"))
