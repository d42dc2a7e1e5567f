"""The tabs of a screen in a rule: the one in front stands out, some words at the right end."""

from collections.abc import Sequence

from jobtui.render.spans import Line, Span, width_of
from jobtui.render.text import fit, width
from jobtui.widgets.lines import LineView


class TabLine(LineView):
    """Names of tabs."""

    DEFAULT_CSS = "TabLine { height: 1; }"

    def __init__(self, names: Sequence[str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._names = tuple(names)
        self._current = self._names[0]
        self._words = ""

    def set_current(self, name: str) -> None:
        """Which tab is in front."""
        self._current = name
        self.repaint()

    def set_words(self, words: str) -> None:
        """Say something at the right end; it must be safe to show."""
        self._words = words
        self.repaint()

    def line(self, y: int) -> Line:
        """The rule."""
        spans: list[Span] = [Span("─", "rule", 1)]
        for name in self._names:
            is_current = name == self._current
            spans += [Span(f" {name} ", "sorted" if is_current else "dim"), Span("─", "rule", 1)]
        if width_of(spans) > self.cells:
            spans = [Span(fit(f"─ {self._current} ", self.cells), "sorted", self.cells)]
        room = self.cells - width_of(spans)
        words = f" {fit(self._words, room - 6).rstrip()} " if self._words and room > 12 else ""
        filling = "─" * (room - width(words) - (2 if words else 0))
        return (
            *spans,
            Span(filling, "rule"),
            *((Span(words, "dim"), Span("──", "rule", 2)) if words else ()),
        )
