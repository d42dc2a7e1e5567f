"""The log line behind a step: where it stands, what it says, and how sure it is that it belongs here."""

from collections.abc import Iterable

from jobtui.model.ops import Component, Step
from jobtui.model.words import counted
from jobtui.render.lanes import certainty_words
from jobtui.render.spans import Line, Span
from jobtui.render.text import fit, show
from jobtui.render.wrapping import wrapped
from jobtui.widgets.lines import LineView

MOST_SHOWN = 4_000
"""Characters of a line that may be shown here; what is longer is read on its own screen."""


def where(step: Step, *, full: bool = False) -> str:
    """File and line of a step; the byte where lines are not counted yet; of a journal the stream alone."""
    source = show(step.source)
    name = source if full else source.rstrip("/").rsplit("/", 1)[-1]
    if step.cursor is not None or step.component is Component.SPAN:
        return name
    return f"{name}:{step.line}" if step.line > 0 else f"{name} at byte {step.offset:,}"


class StepDetail(LineView):
    """The line in a few lines of the screen, and a sentence on certainty below it."""

    DEFAULT_CSS = "StepDetail { height: 4; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._step: Step | None = None
        self._more: tuple[str, ...] = ()

    @property
    def step(self) -> Step | None:
        """The step that is shown."""
        return self._step

    def set_step(self, step: Step | None) -> None:
        """Show the line behind this step."""
        if step != self._step:
            self._more = ()
        self._step = step
        self.repaint()

    @property
    def more(self) -> tuple[str, ...]:
        """The lines that continue the record of the step, safe to show."""
        return self._more

    def set_more(self, lines: Iterable[str]) -> None:
        """Show these lines below that of the step; they must be safe to show."""
        self._more = tuple(lines)
        self.repaint()

    def line(self, y: int) -> Line:
        """Where and what, then how sure."""
        if self._step is None:
            return ()
        cells = self.cells
        place = where(self._step)
        lines = self._lines(place, max(2, cells - 2))
        shown = min(len(lines), self.rows_high - 1)
        if y == shown:
            return (
                Span(
                    " " + fit(certainty_words(self._step.component, self._step.certainty), max(0, cells - 1)),
                    "dim",
                ),
            )
        if y > shown:
            return ()
        text = lines[y]
        if y == shown - 1 and len(lines) > shown:
            count = len(lines) - shown
            left = f" … {counted(count, 'more line')}"
            text = fit(text, max(0, cells - 2 - len(left))) + left
        if y == 0 and text.startswith(place):
            return (Span(f" {place}", "accent"), Span(text[len(place) :]))
        return (Span(f" {text}"),)

    def _lines(self, place: str, cells: int) -> list[str]:
        """The line of the step, wrapped, and those that continue its record, each cut to the width."""
        if self._step is None:
            return []
        first = wrapped(f"{place}  {show(self._step.text)[:MOST_SHOWN]}", cells)
        return first + [fit(f"  {line[:MOST_SHOWN]}", cells).rstrip() for line in self._more]
