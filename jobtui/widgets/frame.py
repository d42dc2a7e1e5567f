"""Header, rules, tabs, notices and the strip of sources."""

from collections.abc import Callable, Sequence

from jobtui.actions import Hint
from jobtui.analysis.counts import Counts, ProfileState
from jobtui.analysis.flags import waits_for
from jobtui.model.clock import Nanos
from jobtui.model.health import FAULTS, SourceHealth
from jobtui.model.jobs import Job, JobStatus
from jobtui.render.facts import matter, status_words
from jobtui.render.sources import profile_line, strip_line
from jobtui.render.spans import Line, Piece, fitting, pace_line, padded, spread, width_of
from jobtui.render.styles import GLYPHS, NEEDS_PERSON_GLYPH, NEEDS_PERSON_STYLE, STATUS_STYLES
from jobtui.render.text import Zone, clock_time, fit, show, width
from jobtui.widgets.lines import LineView, ShownAttribute
from jobtui.widgets.row_view import rule


class RuleLine(LineView):
    words = ShownAttribute("")

    def __init__(self, words: str = "") -> None:
        super().__init__()
        self.words = words

    def line(self, y: int) -> Line:
        return rule(self.cells, self.words)


class KeyLine(LineView):
    """As many keys as fit, each with a word."""

    def __init__(self, hints: Sequence[Hint]) -> None:
        super().__init__()
        self._hints = tuple(hints)

    def line(self, y: int) -> Line:
        """As many parts as fit, in their order; of equal rank the last ones are left out first."""
        kept = list(self._hints)
        while kept and sum(width(hint.key) + width(hint.word) + 3 for hint in kept) > self.cells + 1:
            kept.remove(max(reversed(kept), key=lambda hint: hint.rank))
        spans: list[Piece] = [Piece(" ")]
        for hint in kept:
            spans += [Piece(hint.key, "key"), Piece(f" {hint.word}  ", "dim")]
        return tuple(spans)


class TabLine(LineView):
    words = ShownAttribute("")
    current = ShownAttribute("")

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self._names = tuple(names)
        self.current = self._names[0]

    def line(self, y: int) -> Line:
        spans: list[Piece] = [Piece("─", "rule", 1)]
        for name in self._names:
            is_current = name == self.current
            spans += [Piece(f" {name} ", "sorted" if is_current else "dim"), Piece("─", "rule", 1)]
        if width_of(spans) > self.cells:
            spans = [Piece(fit(f"─ {self.current} ", self.cells), "sorted", self.cells)]
        return (*spans, *rule(self.cells - width_of(spans), self.words))


class NoticeLine(LineView):
    """A line of words. That of a screen is hidden when it has none."""

    words = ShownAttribute("")

    def __init__(self, words: str = "", style: str = "warning") -> None:
        super().__init__()
        self.words, self._style = words, style

    def line(self, y: int) -> Line:
        return (Piece(fit(f" {self.words}", self.cells), self._style, self.cells),)


class SourceStrip(LineView):
    """The sources. Only one that is late or down is coloured."""

    sources = ShownAttribute[Sequence[SourceHealth]](())

    def __init__(self, now: Callable[[], Nanos]) -> None:
        super().__init__()
        self._now = now

    def line(self, y: int) -> Line:
        return strip_line(self.sources, self._now(), self.cells, len(FAULTS))


class ProfileLines(LineView):
    """A line for each of several profiles, counted again every few ticks."""

    EVERY_TICKS = 5

    def __init__(self, states: Callable[[], Sequence[ProfileState]]) -> None:
        super().__init__()
        self._count = states
        self._states: Sequence[ProfileState] = ()
        self._ticks = 0

    def tick(self) -> None:
        is_due = self._ticks < self.EVERY_TICKS or self._ticks % self.EVERY_TICKS == 0
        if self.is_attached and is_due:
            self._states = self._count()
            self.styles.height = len(self._states)
            self.repaint()
        self._ticks += 1

    def line(self, y: int) -> Line:
        line = profile_line(self._states[y]) if y < len(self._states) else ()
        return padded(fitting(line, self.cells), self.cells)


COUNTED = (JobStatus.RUNNING, JobStatus.PENDING)
GAP = Piece("   ", "", 3)
TRAIL = " › "
"""Between the screens in a title that says how the user got here."""


class Header(LineView):
    """Title on the left; counts, pace, clock on the right. Without room the pace is left out, then counts."""

    title = ShownAttribute("")

    def __init__(self, now: Callable[[], Nanos], title: str) -> None:
        super().__init__()
        self._now = now
        self.title = title
        self._counts: Counts | None = None
        self._attention = self._new_failures = 0
        self._more = ""

    def set_counts(self, counts: Counts, attention: int, new_failures: int = 0, more: str = "") -> None:
        """Show these counts; `attention` is how many jobs need a person, `more` follows each count.

        `new_failures` is how many failed since the user last pressed a key.
        """
        self._counts = counts
        self._attention, self._new_failures, self._more = attention, new_failures, more
        self.repaint()

    def line(self, y: int) -> Line:
        cells = self.cells
        trail = self.title.split(TRAIL)
        titles = dict.fromkeys((self.title, TRAIL.join((trail[0], trail[-1])), trail[-1]))
        clock = Piece(f"   {clock_time(self._now())}{Zone.mark()} ", "dim")
        pace = self._counts.pace if self._counts else None
        paces = [pace_line(pace, with_ends=with_ends) if pace else () for with_ends in (True, False)]
        counts: list[Piece] = []
        for _, words, number, style in self._parts():
            counts += [GAP, Piece(f"{number:,}{self._more} {words}", style if number else "dim")]
        rights = [(*counts, *pace, clock) for pace in (*paces, ())]
        for right in (*rights, (*self.glyphs(), clock), self.glyphs(), ()):
            for text in titles:
                title = (Piece(f" {text} ", "title"),)
                if width_of(title) + width_of(right) <= cells:
                    return spread(title, right, cells)
        return (Piece(fit(f" {trail[-1]} ", cells), "title", cells),)

    def _parts(self) -> Sequence[tuple[str, str, int, str]]:
        if self._counts is None:
            return ()
        counts = self._counts.by_status
        parts = [(GLYPHS[status], status.value, counts[status], STATUS_STYLES[status]) for status in COUNTED]
        need = "needs attention" if self._attention == 1 else "need attention"
        parts.append((NEEDS_PERSON_GLYPH, need, self._attention, NEEDS_PERSON_STYLE))
        failed = self._counts.failed_lately
        new = f", {self._new_failures:,} new" if self._new_failures else ""
        parts.append((GLYPHS[JobStatus.FAILED], f"failed 1h{new}", failed, STATUS_STYLES[JobStatus.FAILED]))
        return [part for part in parts if part[2] or part[1] in COUNTED]

    def glyphs(self) -> Line:
        spans: list[Piece] = []
        for glyph, _, number, style in self._parts():
            spans += [Piece(" "), Piece(f"{glyph}{number:,}{self._more}", style if number else "dim")]
        return (*spans, Piece(" ")) if spans else ()


LEAST_CELLS = 12
"""In fewer cells the worst job is left out."""


class OneLine(LineView):
    counts = ShownAttribute[Line](())
    worst = ShownAttribute[Job | None](None)
    is_paused = ShownAttribute(False)

    def __init__(self, now_of: Callable[[Job], Nanos]) -> None:
        super().__init__()
        self._now_of = now_of

    def line(self, y: int) -> Line:
        head = (*((Piece(" paused", "warning"),) if self.is_paused else ()), *self.counts)
        room = self.cells - width_of(head)
        if self.worst is None or room < LEAST_CELLS:
            return padded(fitting(head, self.cells), self.cells)
        job = self.worst
        now = self._now_of(job)
        status = status_words(job, now, absolute=False)
        why = waits_for(job, now) or matter(job, now).text
        words = f" {show(job.name or job.id)} · {show(why)}"
        left = max(0, room - width_of(status))
        return (*head, *fitting(status, room), Piece(fit(words, left), "", left))
