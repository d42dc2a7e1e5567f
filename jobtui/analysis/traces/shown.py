"""Which lines of a waterfall are shown: what is folded, what passes a filter. Follows a trace as it grows."""

from bisect import bisect_left
from collections.abc import Iterable

from jobtui.analysis.traces.layout import (
    Layout,
    LineKey,
    LineKind,
    TraceLine,
    closed_at_first,
    kept_lines,
    kept_of,
    shown_lines,
    unfolded_above,
)
from jobtui.analysis.traces.span_filter import SpanTest
from jobtui.model.trace_ids import SpanId
from jobtui.model.traces import Span


class ShownLines:
    """The lines of a layout that are shown, by their numbers in it."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.numbers: list[int] = []
        self.passing = 0
        """How many spans pass the filter; all without one."""
        self.passes: SpanTest | None = None
        self._closed = closed_at_first(layout)
        self._met = set(self._closed)
        self._tested: dict[SpanId, bool] = {}
        self._keys: frozenset[LineKey] | None = None
        self._kept: list[bool] | None = None
        self._show()

    def set_layout(self, layout: Layout) -> None:
        """The trace has grown: what was folded stays so, and runs that are new are folded."""
        self.layout = layout
        new = closed_at_first(layout) - self._met
        self._met |= new
        self._closed |= new
        self.set_filter(self.passes, keys=self._keys)

    def set_filter(
        self,
        passes: SpanTest | None,
        tested: dict[SpanId, bool] | None = None,
        keys: frozenset[LineKey] | None = None,
    ) -> None:
        """Show only spans that pass, with what is above them; of which it is known already is in `tested`.

        Where all that pass are known, `keys` are theirs.
        """
        if passes is not self.passes:
            self._tested = tested if tested is not None else {}
        self.passes, self._keys = passes, keys
        self._kept, self.passing = self._kept_now()
        self._show()

    def _kept_now(self) -> tuple[list[bool] | None, int]:
        if self.passes is None:
            return None, 0
        if self._keys is not None:
            return kept_of(self.layout, self._keys)
        return kept_lines(self.layout, self._passes)

    def _passes(self, span: Span) -> bool:
        """Whether a span passes; each is looked at once, however often the trace grows."""
        known = self._tested.get(span.span_id)
        if known is None:
            assert self.passes is not None
            known = self._tested[span.span_id] = self.passes(span)
        return known

    def line(self, index: int) -> TraceLine:
        """The line that is shown at a place."""
        return self.layout.lines[self.numbers[index]]

    def is_closed(self, key: LineKey) -> bool:
        """Whether a line is folded."""
        return key in self._closed

    def index_of(self, key: LineKey) -> int | None:
        """Where a line is shown, or the nearest above it that is; None when the trace has no such line."""
        number = self.layout.at.get(key)
        if number is None:
            return None
        for one in (number, *self.layout.above(number)):
            if (index := self._index(one)) is not None:
                return index
        return None

    def close(self, index: int) -> bool:
        """Fold a line; whether there was anything to fold."""
        number = self.numbers[index]
        key = self.layout.lines[number].key
        if not self.layout.has_below(number) or key in self._closed:
            return False
        self._closed.add(key)
        end = bisect_left(self.numbers, self.layout.ends[number])
        del self.numbers[index + 1 : end]
        return True

    def open(self, index: int) -> bool:
        """Unfold a line; whether it was folded."""
        number = self.numbers[index]
        key = self.layout.lines[number].key
        if key not in self._closed or not self.layout.has_below(number):
            return False
        self._closed.discard(key)
        end = self.layout.ends[number]
        below = shown_lines(self.layout, self._closed.__contains__, self._kept, number + 1, end)
        self.numbers[index + 1 : index + 1] = below
        return True

    def above(self, index: int) -> int | None:
        """Where the line above one in the tree is shown."""
        return next(
            (at for one in self.layout.above(self.numbers[index]) if (at := self._index(one)) is not None),
            None,
        )

    def reveal(self, key: LineKey) -> int | None:
        """Unfold whatever hides a line, and end a filter that does; where it is shown then."""
        number = self.layout.at.get(key)
        if number is None:
            return None
        if self._kept is not None and not self._kept[number]:
            self.set_filter(None)
        self._closed.difference_update(unfolded_above(self.layout, number))
        self._show()
        return self._index(number)

    def toggle_all(self) -> None:
        """Fold all that has something below it, but what is at the top; when all is folded only the runs."""
        lines = [line for at, line in enumerate(self.layout.lines) if self.layout.has_below(at)]
        runs = {line.key for line in lines if line.kind is LineKind.RUN}
        folded = {line.key for line in lines if line.depth or line.kind is LineKind.RUN}
        self._closed = runs if folded <= self._closed else folded
        self._show()

    def next_of(self, keys: Iterable[LineKey], index: int, step: int) -> LineKey | None:
        """Of some lines the next after a place, or before it; after the last comes the first."""
        here = self.numbers[index] if self.numbers else 0
        places = sorted(at for key in keys if (at := self.layout.at.get(key)) is not None)
        if not places:
            return None
        ahead = [at for at in places if (at > here if step > 0 else at < here)]
        ordered = ahead or places
        return self.layout.lines[ordered[0] if step > 0 else ordered[-1]].key

    def _index(self, number: int) -> int | None:
        index = bisect_left(self.numbers, number)
        return index if index < len(self.numbers) and self.numbers[index] == number else None

    def _show(self) -> None:
        self.numbers = shown_lines(self.layout, self._closed.__contains__, self._kept)
