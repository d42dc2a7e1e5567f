"""The spans of a trace as a waterfall: folded, filtered, looked at from near, gone through by what failed.

It opens on the span at which things failed. The cursor, what is folded and what is looked at stay as they are
while the trace grows.
"""

from textual import events

from jobtui.analysis.traces.failures import FailureKind
from jobtui.analysis.traces.findings import Findings
from jobtui.analysis.traces.layout import LineKey
from jobtui.analysis.traces.shown import ShownLines
from jobtui.analysis.traces.span_filter import SpanTest
from jobtui.analysis.traces.tree import end_of
from jobtui.model.trace_ids import SpanId, TraceId
from jobtui.render.trace_line import Path
from jobtui.widgets.trace_lines import Picture, TraceLines


class Waterfall(TraceLines):
    """The spans of one trace."""

    _begun: LineKey | None = None
    """Where it was opened: the line under the cursor."""
    _is_scrolled = False

    @property
    def trace_id(self) -> TraceId | None:
        """The trace that is shown."""
        return self.found.tree.trace_id if self.found else None

    def set_trace(self, picture: Picture) -> None:
        """Show a trace; when it is the one that is shown already, as it is now."""
        if picture is self._picture:
            return  # it is told of again and again, and may be large
        is_other = self.trace_id != picture.found.tree.trace_id
        key, is_untouched = self._key, self._is_untouched
        self._picture = picture
        tree = picture.found.tree
        self._marks.meet(tree.services)
        self._window.set_trace(tree.started_at or 0, tree.ended_at or 1)
        if self._shown is None or is_other:
            self._shown = ShownLines(picture.layout)
            self._window.show_whole()
            self._begin(picture)
        else:
            self._shown.set_layout(picture.layout)
            self._stay_at(key)
            if is_untouched:
                self._follow(picture)
        self._renew()
        self.cursor_moved()

    def set_filter(
        self,
        passes: SpanTest | None,
        tested: dict[SpanId, bool] | None = None,
        keys: frozenset[LineKey] | None = None,
    ) -> None:
        """Show only spans that pass and what is above them, or all.

        `tested` says of which it is known; `keys` are those that pass, where that is known of all.
        """
        if self._shown is not None:
            key = self._key
            self._shown.set_filter(passes, tested, keys)
            self._stay_at(key)
            self._renew()
            self.cursor_moved()

    def fold(self) -> None:
        """Fold the line under the cursor; when there is nothing to fold go to the one above it."""
        if self._shown is None or not self.count:
            return
        if self._shown.close(self.cursor):
            self._refold()
        elif (above := self._shown.above(self.cursor)) is not None:
            self.go(above)

    def unfold(self) -> bool:
        """Unfold the line under the cursor; whether it was folded."""
        if self._shown is None or not self.count or not self._shown.open(self.cursor):
            return False
        self._refold()
        return True

    def toggle_fold(self) -> bool:
        """Fold the line under the cursor, or unfold it; whether there was anything to fold."""
        if self.unfold():
            return True
        if self._shown is None or not self.count or not self._shown.close(self.cursor):
            return False
        self._refold()
        return True

    def toggle_all(self) -> None:
        """Fold all that is below something; when all is folded unfold all but the runs."""
        if self._shown is None:
            return
        key = self._key
        self._shown.toggle_all()
        self._stay_at(key)
        self._refold()
        self.cursor_moved()

    def next_failure(self, step: int) -> tuple[int, int] | None:
        """Go to the next span that failed, whatever hides it: which one of how many; None when none did."""
        if self._shown is None or self.found is None:
            return None
        keys = failed_keys(self.found)
        key = self._shown.next_of(keys, self.cursor, step)
        if key is None:
            return None
        self.reveal(key)
        at = self._shown.layout.at
        return sorted(keys, key=lambda one: at.get(one, 0)).index(key) + 1, len(keys)

    def reveal(self, key: LineKey) -> None:
        """Put the cursor on a line, whatever hides it."""
        if self._shown is not None:
            index = self._shown.reveal(key)
            self._refold()
            if index is not None:
                self.go(index)

    def zoom(self, factor: float) -> None:
        """Look at less or more of the time, around the span under the cursor."""
        if self._view is not None:
            self._window.zoom(self._view.axis, factor, self._focus)
            self._renew()

    def pan(self, part: float) -> None:
        """Look at earlier or later times."""
        if self._view is not None:
            self._window.pan(self._view.axis, part)
            self._renew()

    def zoom_to_line(self) -> None:
        """Look at the time of the span under the cursor and of all below it."""
        line = self.current
        if self._shown is not None and line is not None and line.span is not None:
            last = self._shown.layout.lasts[self._shown.numbers[self.cursor]]
            self._window.show(line.span.started_at, max(end_of(line.span), last))
            self._renew()

    def show_whole(self) -> None:
        """Look at all of the time."""
        self._window.show_whole()
        self._renew()

    @property
    def lacks_path(self) -> bool:
        """Whether the path is not known of the trace as it is now."""
        return self.found is not None and (not self._path or self._path[0] is not self.found)

    def set_path(self, found: Findings, path: Path) -> None:
        """Know what the trace spent its time on."""
        self._path = (found, path)
        self._renew()

    def toggle_path(self) -> None:
        """Mark what the trace spent its time on once that is known, or no longer."""
        self.marks_path = not self.marks_path
        self._renew()

    def toggle_squeeze(self) -> None:
        """Squeeze stretches in which nothing ran, or show them to scale."""
        self.squeezes = not self.squeezes
        self._renew()

    def scroll_rows(self, rows: int) -> None:
        """Move the rows; what comes moves them no more."""
        self._is_scrolled = True
        super().scroll_rows(rows)

    def on_click(self, event: events.Click) -> None:
        """A second click on a line folds or unfolds it."""
        if event.chain == 2:
            self.toggle_fold()

    @property
    def _key(self) -> LineKey | None:
        return self.current.key if self.current else None

    @property
    def _focus(self) -> int:
        """The time around which is zoomed: the middle of the span under the cursor, where that is seen."""
        assert self._view is not None
        low, high = self._view.axis.low, self._view.axis.high
        if (line := self.current) is not None and line.span is not None:
            middle = (line.span.started_at + end_of(line.span)) // 2
            if low <= middle <= high:
                return middle
        return self._view.axis.time(self._view.axis.cells)

    def _begin(self, picture: Picture) -> None:
        """Put the cursor where things failed, with what came before in view; at the top when nothing did."""
        self.cursor = self.top = 0
        self._path = None if self._path and self._path[0] is not picture.found else self._path
        first = first_to_read(picture.found)
        index = self._shown.reveal(first) if self._shown and first else None
        if index is not None:
            self.cursor = index
            self.top = max(0, index - 2 * self.page // 3)
        self._begun, self._is_scrolled = self._key, False

    def _follow(self, picture: Picture) -> None:
        """Go to where things failed once that is known; until then stay, as nobody has moved."""
        first = first_to_read(picture.found)
        if first is None or first == self._begun:
            return
        if self._begun is None or first in failed_keys(picture.found, at_end=False):
            self._begin(picture)

    @property
    def _is_untouched(self) -> bool:
        """Whether nobody has moved since it was opened: what failed may be known only by now."""
        return self._key == self._begun and not self._is_scrolled

    def _stay_at(self, key: LineKey | None) -> None:
        """Keep the cursor on a line, at the same height of the screen; on the one above when it is hidden."""
        index = self._shown.index_of(key) if self._shown and key else None
        if index is not None:
            self.top += index - self.cursor
            self.cursor = index


def first_to_read(found: Findings) -> LineKey | None:
    """The line of the span at which things failed, what nobody handled first; None when nothing did."""
    fatal = [cause.span.span_id for cause in found.causes if not cause.is_handled]
    said = [one.span.span_id for one in found.failures if one.kind is not FailureKind.UNFINISHED]
    last = [one.span.span_id for one in found.failures if one.is_last]
    handled = [cause.span.span_id for cause in found.causes if cause.is_handled]
    return next(iter((*fatal, *said, *last, *handled)), None)


def failed_keys(found: Findings, *, at_end: bool = True) -> frozenset[LineKey]:
    """The lines of all spans at which something failed; of those that are merely the last only `at_end`."""
    causes = (cause.span.span_id for cause in found.causes)
    said = (one for one in found.failures if at_end or one.kind is not FailureKind.UNFINISHED)
    return frozenset((*causes, *(failure.span.span_id for failure in said)))
