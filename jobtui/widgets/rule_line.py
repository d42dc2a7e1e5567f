"""A rule across the screen, with a few words in it."""

from jobtui.render.spans import Line
from jobtui.widgets.lines import LineView
from jobtui.widgets.row_view import rule


class RuleLine(LineView):
    """The rule."""

    DEFAULT_CSS = "RuleLine { height: 1; }"

    def __init__(self, words: str = "", *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._words = words

    def set_words(self, words: str) -> None:
        """Say something else; it must be safe to show."""
        self._words = words
        self.repaint()

    def line(self, y: int) -> Line:
        """The rule."""
        return rule(self.cells, self._words)
