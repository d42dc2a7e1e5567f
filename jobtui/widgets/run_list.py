"""The runs of a job, oldest first."""

from collections.abc import Callable, Sequence

from textual.message import Message

from jobtui.model.clock import Nanos
from jobtui.model.jobs import Run
from jobtui.render.run_table import run_lines
from jobtui.render.spans import Line, Span
from jobtui.widgets.row_view import RowView


class RunList(RowView):
    """A line for each run; the one under the cursor is the one that is shown everywhere else."""

    class Highlighted(Message):
        """The cursor went to another run."""

        def __init__(self, run: Run) -> None:
            self.run = run
            super().__init__()

    def __init__(self, now: Callable[[], Nanos], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._now = now
        self._runs: tuple[Run, ...] = ()
        self._heading = Span("")
        self._rows: list[Span] = []

    @property
    def count(self) -> int:
        """How many runs there are."""
        return len(self._runs)

    @property
    def run_under_cursor(self) -> Run | None:
        """The run under the cursor."""
        return self._runs[self.cursor] if self._runs else None

    def set_runs(self, runs: Sequence[Run], number: int | None) -> None:
        """Show these, with the cursor on the one of this number."""
        self._runs = tuple(runs)
        self.cursor = next((at for at, run in enumerate(runs) if run.number == number), self.count - 1)
        self._draw()

    def tick(self) -> None:
        """Let the times of a run that goes on go on."""
        if any(run.status.is_live for run in self._runs):
            self._draw()

    def _draw(self) -> None:
        self.keep_in_view()
        self.repaint()

    def keep_in_view(self) -> None:
        """Lay the table out anew."""
        super().keep_in_view()
        if self._runs:
            self._heading, self._rows = run_lines(self._runs, self._now(), max(1, self.cells - 2))

    def cursor_moved(self) -> None:
        """Tell which run it is."""
        self.post_message(self.Highlighted(self._runs[self.cursor]))

    def heading(self, y: int) -> Line:
        """The columns."""
        return (Span(" "), self._heading)

    def row(self, index: int) -> Line:
        """A run."""
        return (Span(" "), self._rows[index])
