"""The line above a waterfall: where the trace failed on the left, on what its time went on the right."""

from jobtui.render.spans import Line, Span
from jobtui.render.text import fit, width
from jobtui.render.trace_facts import Sentence
from jobtui.widgets.lines import LineView


class TraceFacts(LineView):
    """One line."""

    DEFAULT_CSS = "TraceFacts { height: 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._sentence = Sentence("", "")
        self._words = ""

    def set_facts(self, sentence: Sentence, words: str) -> None:
        """Say this; both must be safe to show."""
        self._sentence, self._words = sentence, words
        self.repaint()

    def line(self, y: int) -> Line:
        """The sentence, and the words when there is room for both."""
        text, style = self._sentence
        cells = self.cells
        words = f"   {self._words} " if self._words else ""
        if width(words) + width(text) + 1 > cells:
            words = ""
        room = max(0, cells - width(words))
        return (Span(fit(f" {text}", room), style, room), Span(words, "dim"))
