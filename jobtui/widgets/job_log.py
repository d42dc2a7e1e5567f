"""The lines of all logs that belong to one job, in the order of time."""

from collections.abc import Mapping, Sequence

from textual.message import Message

from jobtui.analysis.job_lines import JobLine
from jobtui.model.words import counted
from jobtui.render.job_log import job_line, tag_cells
from jobtui.render.spans import Line, Span
from jobtui.render.text import fit
from jobtui.widgets.row_view import RowView


class JobLog(RowView):
    """Lines; the cursor begins on the last one, and goes on with new ones while it is there."""

    class Highlighted(Message):
        """The cursor went to another line, or to none."""

        def __init__(self, line: JobLine | None) -> None:
            self.line = line
            super().__init__()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: tuple[JobLine, ...] = ()
        self._tags: Mapping[str, str] = {}
        self._tag_cells = 1

    @property
    def count(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    @property
    def current(self) -> JobLine | None:
        """The line under the cursor."""
        return self._lines[self.cursor] if self._lines else None

    def set_lines(self, lines: Sequence[JobLine], tags: Mapping[str, str]) -> None:
        """Show these lines; `tags` are the short names of their sources."""
        before, at_end = self.current, self.cursor >= self.count - 1
        self._lines, self._tags, self._tag_cells = tuple(lines), tags, tag_cells(tags.values())
        places = {line.place: at for at, line in enumerate(lines)}
        found = None if before is None or at_end else places.get(before.place)
        self.cursor = self.count - 1 if found is None else found
        self.keep_in_view()
        self.repaint()
        if self.current != before:
            self.post_message(self.Highlighted(self.current))

    def cursor_moved(self) -> None:
        """Tell which line it is."""
        self.post_message(self.Highlighted(self.current))

    def heading(self, y: int) -> Line:
        """How many lines of how many logs."""
        count, logs = self.count, len(self._tags)
        words = f" {counted(count, 'line')} of {counted(logs, 'log')}"
        return (Span(fit(words, self.cells), "heading", self.cells),)

    def row(self, index: int) -> Line:
        """A line."""
        line = self._lines[index]
        return job_line(line, self._tags.get(line.source, ""), self._tag_cells, self.cells)
