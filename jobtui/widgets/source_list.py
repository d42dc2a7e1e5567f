"""Every source in a line: what it is, how old it is, how much was read and left out."""

from collections.abc import Callable, Mapping, Sequence

from textual.message import Message

from jobtui.model.clock import Nanos
from jobtui.model.health import SourceHealth, SourceState
from jobtui.render.sources import judge, labels
from jobtui.render.spans import Line, Span
from jobtui.render.text import Zone, clock_time, fit
from jobtui.widgets.row_view import RowView

GLYPHS: Mapping[SourceState, tuple[str, str]] = {
    SourceState.STARTING: ("○", "dim"),
    SourceState.OK: ("●", "good"),
    SourceState.PARTIAL: ("●", "warning"),
    SourceState.DOWN: ("✗", "error"),
}
KIND_CELLS = 14
AGE_CELLS = 24
NUMBER_CELLS = 10
LEAST_NAME_CELLS = 18


class SourceList(RowView):
    """The sources, in the order they were given."""

    class Highlighted(Message):
        """The cursor went to another source."""

        def __init__(self, source: SourceHealth) -> None:
            self.source = source
            super().__init__()

    def __init__(self, now: Callable[[], Nanos], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._now = now
        self._sources: tuple[SourceHealth, ...] = ()
        self._labels: list[str] = []
        self._absolute = False

    @property
    def count(self) -> int:
        """How many sources there are."""
        return len(self._sources)

    @property
    def source(self) -> SourceHealth | None:
        """The source under the cursor."""
        return self._sources[self.cursor] if self._sources else None

    def set_sources(self, sources: Sequence[SourceHealth], *, absolute: bool = False) -> None:
        """Show these, as old as they are now."""
        before = self.source
        self._sources = tuple(sources)
        self._labels = labels(sources)
        self._absolute = absolute
        self.keep_in_view()
        self.repaint()
        if self.source is not None and self.source != before:
            self.post_message(self.Highlighted(self.source))

    def cursor_moved(self) -> None:
        """Tell which source it is."""
        if self.source is not None:
            self.post_message(self.Highlighted(self.source))

    def heading(self, y: int) -> Line:
        """The columns."""
        return tuple(
            Span(text, "heading") for text in self._cells("", "SOURCE", "KIND", "AGE", "RECORDS", "SKIPPED")
        )

    def row(self, index: int) -> Line:
        """A source."""
        source = self._sources[index]
        glyph, style = GLYPHS[source.state]
        words, words_style = judge(source, self._now())
        if self._absolute and source.read_at is not None:
            words = f"read {clock_time(source.read_at)}{Zone.mark()}"
        skipped = f"{source.skipped:,}" if source.skipped else ""
        cells = self._cells(glyph, self._labels[index], source.kind, words, f"{source.records:,}", skipped)
        styles = (style, "", "dim", words_style, "dim", "warning")
        return tuple(Span(text, own) for text, own in zip(cells, styles, strict=True))

    def _cells(
        self, glyph: str, name: str, kind: str, words: str, records: str, skipped: str
    ) -> tuple[str, ...]:
        """The texts cut to their columns; numbers, then the kind, go where it is narrow."""
        left = self.cells - 3 - LEAST_NAME_CELLS
        age_cells = max(0, min(AGE_CELLS, left))
        left -= age_cells
        kind_cells = KIND_CELLS if left >= KIND_CELLS else 0
        left -= kind_cells
        number_cells = NUMBER_CELLS if left >= 2 * NUMBER_CELLS else 0
        left -= 2 * number_cells
        return (
            fit(f" {glyph}", 3),
            fit(name, max(0, LEAST_NAME_CELLS + left - 1)) + " " * (LEAST_NAME_CELLS + left > 0),
            fit(kind, kind_cells),
            fit(words, age_cells),
            fit(records, number_cells, align="right"),
            fit(skipped, number_cells, align="right"),
        )
