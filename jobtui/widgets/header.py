"""The top line: where one is, how many jobs stand how, what time it is."""

from collections.abc import Callable, Sequence

from jobtui.analysis.tally import Counts
from jobtui.model.clock import Nanos
from jobtui.model.jobs import JobStatus
from jobtui.render.pace import pace_line
from jobtui.render.spans import Line, Span, spread, width_of
from jobtui.render.status import GLYPHS, NEEDS_PERSON_GLYPH, NEEDS_PERSON_STYLE, STYLES
from jobtui.render.text import Zone, clock_time, fit
from jobtui.widgets.lines import LineView

COUNTED = (JobStatus.RUNNING, JobStatus.PENDING)
GAP = Span("   ", "", 3)
TRAIL = " › "
"""Between the steps of a title that says how one came here."""


class Header(LineView):
    """Title on the left; counts, pace and clock on the right. Where it is narrow the pace goes, then counts
    shrink, then they go.
    """

    DEFAULT_CSS = "Header { height: 1; }"

    def __init__(self, now: Callable[[], Nanos], title: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._now = now
        self._title = title
        self._counts: Counts | None = None
        self._attention = 0

    def set_title(self, title: str) -> None:
        """Say something else on the left; it must be safe to show."""
        self._title = title
        self.repaint()

    def set_counts(self, counts: Counts, attention: int) -> None:
        """Show these counts; `attention` is how many jobs need a person."""
        self._counts = counts
        self._attention = attention
        self.repaint()

    def line(self, y: int) -> Line:
        """All of it, as far as there is room. Of a trail the steps between go first, then where it begins."""
        cells = self.cells
        trail = self._title.split(TRAIL)
        titles = dict.fromkeys((self._title, TRAIL.join((trail[0], trail[-1])), trail[-1]))
        clock = Span(f"   {clock_time(self._now())}{Zone.mark()} ", "dim")
        words = self._words()
        paces = (self._pace(with_ends=True), self._pace(with_ends=False), ())
        rights = [(*words, *pace, clock) for pace in paces]
        for right in (*rights, (*self.glyphs(), clock), self.glyphs(), ()):
            for text in titles:
                title = (Span(f" {text} ", "title"),)
                if width_of(title) + width_of(right) <= cells:
                    return spread(title, right, cells)
        return (Span(fit(f" {trail[-1]} ", cells), "title", cells),)

    def _parts(self) -> Sequence[tuple[str, str, int, str]]:
        """Glyph, words, number and style of each count that is worth a place."""
        if self._counts is None:
            return ()
        counts = self._counts.by_status
        parts = [(GLYPHS[status], status.value, counts[status], STYLES[status]) for status in COUNTED]
        parts.append((NEEDS_PERSON_GLYPH, "to look at", self._attention, NEEDS_PERSON_STYLE))
        failed = self._counts.failed_lately
        parts.append((GLYPHS[JobStatus.FAILED], "failed 1h", failed, STYLES[JobStatus.FAILED]))
        return [part for part in parts if part[2] or part[1] in COUNTED]

    def _pace(self, *, with_ends: bool) -> Line:
        return pace_line(self._counts.pace, with_ends=with_ends) if self._counts else ()

    def _words(self) -> Line:
        spans: list[Span] = []
        for _, words, number, style in self._parts():
            spans += [GAP, Span(f"{number:,} {words}", style if number else "dim")]
        return tuple(spans)

    def glyphs(self) -> Line:
        """The counts, short."""
        spans: list[Span] = []
        for glyph, _, number, style in self._parts():
            spans += [Span(" "), Span(f"{glyph}{number:,}", style if number else "dim")]
        return (*spans, Span(" ")) if spans else ()
