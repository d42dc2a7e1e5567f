"""The top lines of the log screen: which logs there are, whether it follows or searches, what time it is."""

from collections.abc import Callable
from typing import NamedTuple

from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.pages import Overview, Place
from jobtui.render.log_lines import Histogram
from jobtui.render.sources import judge_age
from jobtui.render.spans import Line, Span, fitting, padded, width_of
from jobtui.render.text import Zone, clock_time, fit
from jobtui.widgets.lines import LineView, Shown

SEPARATOR = Span(" · ", "rule", 3)
TITLE = "logs"
FEWEST_NAME_CELLS = 8
"""Cells for the name of the log at least, however much there is to say."""


class LogStatus(NamedTuple):
    """What the header says. Texts are safe to show; the most important words come first."""

    names: tuple[str, ...] = ()
    chosen: int = 0
    words: tuple[tuple[str, str], ...] = ()
    """Words and their style, each with a place of its own."""


class LogHeader(LineView):
    """Names of the logs on the left, the one that is shown standing out; words and clock on the right."""

    DEFAULT_CSS = "LogHeader { height: 1; }"

    status = Shown(LogStatus())
    trail = Shown[tuple[str, ...]](())
    """The screens between the jobs and this one."""
    read_at = Shown[Nanos | None](None)
    """When the log was last looked at."""

    def __init__(self, now: Callable[[], Nanos]) -> None:
        super().__init__()
        self._now = now

    def line(self, y: int) -> Line:
        """All of it, as far as there is room: names of other logs go first, then the clock and the title."""
        age = self._age()
        clock = Span(f" {clock_time(self._now())}{Zone.mark()} ", "dim")
        words = tuple(Span(f"  {text}", style) for text, style in self.status.words if text)
        title = Span(f" {TITLE} ", "title")
        for names in (
            self._whole(),
            (title, *self._names()),
            (title, *self._chosen_name()),
            self._chosen_name(),
        ):
            for right in ((*words, age, clock), (*words, age)):
                if width_of(names) + width_of(right) + 1 <= self.cells:
                    return (*padded(names, self.cells - width_of(right)), *right)
        right = (*fitting(words, max(0, self.cells - FEWEST_NAME_CELLS - age.width)), age)
        left = fit("".join(span.text for span in self._chosen_name()), self.cells - width_of(right))
        return (Span(left, "accent"), *right)

    def _age(self) -> Span:
        lag_s = None if self.read_at is None else max(0.0, seconds_between(self.read_at, self._now()))
        words, style = judge_age(lag_s)
        return Span(f"  {words} ", style)

    def _whole(self) -> Line:
        trail = "".join(f" {name} ›" for name in self.trail)
        return (*((Span(trail, "dim"),) if trail else ()), Span(f" {TITLE} ", "title"), *self._names())

    def _chosen_name(self) -> Line:
        names = self.status.names
        return (Span(f" {names[self.status.chosen]}", "accent"),) if names else ()

    def _names(self) -> Line:
        spans: list[Span] = [Span(" ", "", 1)]
        for at, name in enumerate(self.status.names):
            spans += [SEPARATOR] if at else []
            spans.append(Span(name, "accent" if at == self.status.chosen else "dim"))
        return tuple(spans)


class LogHistogram(LineView):
    """Lines and errors over time, with the place of the cursor."""

    DEFAULT_CSS = "LogHistogram { height: 1; }"

    overview = Shown(Overview((), 0, 0, complete=False))
    _place: Place | None = None
    _drawn: Histogram | None = None
    _drawn_for: tuple[Overview, int] | None = None

    def redraw(self) -> None:
        self._drawn = None
        self.repaint()

    def set_place(self, place: Place | None) -> None:
        if place != self._place:
            self._place = place
            self.repaint()

    def line(self, y: int) -> Line:
        return self._histogram().line(self._place)

    def _histogram(self) -> Histogram:
        before = self._drawn_for
        if self._drawn is None or before is None or before[0] is not self.overview or before[1] != self.cells:
            self._drawn = Histogram(self.overview, self.cells)
            self._drawn_for = (self.overview, self.cells)
        return self._drawn
