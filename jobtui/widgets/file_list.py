"""The files of a run directory."""

from collections.abc import Callable, Sequence

from textual.message import Message

from jobtui.model.clock import Nanos
from jobtui.model.job_desk import RunFile
from jobtui.model.words import counted
from jobtui.render.run_files import file_line
from jobtui.render.spans import Line, Span
from jobtui.render.text import fit
from jobtui.widgets.row_view import RowView


class FileList(RowView):
    """Names, sizes and ages. The cursor stays with its file."""

    class Highlighted(Message):
        """The cursor went to another file."""

        def __init__(self, file: RunFile) -> None:
            self.file = file
            super().__init__()

    def __init__(self, now: Callable[[], Nanos], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._now = now
        self._files: tuple[RunFile, ...] = ()
        self._left_out = 0
        self._absolute = False

    @property
    def count(self) -> int:
        """How many files are listed."""
        return len(self._files)

    @property
    def file(self) -> RunFile | None:
        """The file under the cursor."""
        return self._files[self.cursor] if self._files else None

    def set_files(self, files: Sequence[RunFile], left_out: int = 0, *, absolute: bool = False) -> None:
        """Show these files, and say how many more there are."""
        before = self.file
        self._files, self._left_out, self._absolute = tuple(files), left_out, absolute
        name = before.name if before else None
        self.cursor = next((at for at, file in enumerate(files) if file.name == name), 0)
        self.keep_in_view()
        self.repaint()
        if self.file is not None and self.file != before:
            self.post_message(self.Highlighted(self.file))

    def tick(self) -> None:
        """Let ages go on."""
        self.repaint()

    def cursor_moved(self) -> None:
        """Tell which file it is."""
        if self.file is not None:
            self.post_message(self.Highlighted(self.file))

    def heading(self, y: int) -> Line:
        """How many files there are."""
        more = f", {self._left_out:,} more not listed" if self._left_out else ""
        words = f" {counted(self.count, 'file')}{more}" if self._files else ""
        return (Span(fit(words, self.cells), "heading", self.cells),)

    def row(self, index: int) -> Line:
        """A file."""
        return file_line(self._files[index], self._now(), self.cells, absolute=self._absolute)
