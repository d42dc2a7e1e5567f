"""All jobs in a single line, for a window of a few lines: how many stand how, and what is worst."""

from collections.abc import Callable

from jobtui.analysis.flags import waits_for
from jobtui.model.clock import Nanos
from jobtui.model.jobs import Job
from jobtui.render.facts import matter, status_words
from jobtui.render.spans import Line, Span, fitting, padded, width_of
from jobtui.render.text import fit, show
from jobtui.widgets.lines import LineView

LEAST_CELLS = 12
"""With less room for it nothing is said of the worst job."""


class OneLine(LineView):
    """The line."""

    DEFAULT_CSS = "OneLine { height: 1; display: none; }"

    def __init__(self, now: Callable[[], Nanos], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._now = now
        self._counts: Line = ()
        self._worst: Job | None = None
        self._pause = False

    def set_state(self, counts: Line, worst: Job | None, *, is_paused: bool) -> None:
        """Show these counts, and the job that needs a person most."""
        self._counts, self._worst, self._pause = counts, worst, is_paused
        self.repaint()

    def line(self, y: int) -> Line:
        """All of it, as far as there is room."""
        head = (*((Span(" paused", "warning"),) if self._pause else ()), *self._counts)
        room = self.cells - width_of(head)
        if self._worst is None or room < LEAST_CELLS:
            return padded(fitting(head, self.cells), self.cells)
        now = self._now()
        job = self._worst
        status = status_words(job, now, absolute=False)
        why = waits_for(job, now) or matter(job, now).text
        words = f" {show(job.name or job.id)} · {show(why)}"
        left = max(0, room - width_of(status))
        return (*head, *fitting(status, room), Span(fit(words, left), "", left))
