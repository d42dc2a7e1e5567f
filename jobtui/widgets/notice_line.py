"""A line on top of a screen that says something about all of it: that it is paused."""

from jobtui.render.spans import Line, Span
from jobtui.render.text import fit
from jobtui.widgets.lines import LineView


class NoticeLine(LineView):
    """Words across the screen; not there when there are none."""

    DEFAULT_CSS = "NoticeLine { height: 1; dock: top; }"

    def __init__(self, words: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._words = words

    def set_words(self, words: str) -> None:
        """Say something else; it must be safe to show."""
        self._words = words
        self.repaint()

    def line(self, y: int) -> Line:
        """The words."""
        return (Span(fit(f" {self._words}", self.cells), "warning", self.cells),)
