"""Recent traces, one a row."""

from collections.abc import Sequence

from jobtui.analysis.traces.standing import ListedTrace
from jobtui.model.trace_ids import TraceId
from jobtui.render.spans import Line, Span
from jobtui.render.trace_columns import TRACE_COLUMNS
from jobtui.widgets.record_table import RecordTable
from jobtui.widgets.text_pane import wrapped


class TraceTable(RecordTable[ListedTrace]):
    """Traces in the order they are handed over."""

    COLUMNS = TRACE_COLUMNS
    _empty: tuple[str, ...] = ()

    def key_of(self, record: ListedTrace) -> TraceId:
        """Its id."""
        return record.told.trace_id

    def set_empty(self, words: Sequence[str]) -> None:
        """What is said while there is none; each a paragraph that is safe to show."""
        self._empty = tuple(words)
        self.repaint()

    def line(self, y: int) -> Line:
        """A trace, or what is said when there is none."""
        if self.count or y < self.headings:
            return super().line(y)
        lines = [line for words in self._empty for line in wrapped(words, max(2, self.cells - 2))]
        at = y - self.headings
        return (Span(f" {lines[at]}", "dim"),) if at < len(lines) else ()
