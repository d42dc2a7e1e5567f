"""One line that tells whether the rest of the screen can be believed: every source with its age and state."""

from collections.abc import Callable, Sequence

from jobtui.model.clock import Nanos
from jobtui.model.health import SourceHealth
from jobtui.render.sources import strip_line
from jobtui.render.spans import Line
from jobtui.widgets.lines import LineView


class SourceStrip(LineView):
    """The sources. Only one that is late or down is coloured."""

    DEFAULT_CSS = "SourceStrip { height: 1; }"

    def __init__(self, now: Callable[[], Nanos], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._now = now
        self._sources: Sequence[SourceHealth] = ()

    def set_sources(self, sources: Sequence[SourceHealth]) -> None:
        """Show these, as old as they are now."""
        self._sources = sources
        self.repaint()

    def line(self, y: int) -> Line:
        """The strip."""
        return strip_line(self._sources, self._now(), self.cells)
