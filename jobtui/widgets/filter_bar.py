"""The line in which a filter is typed, with a mistake shown at its place."""

from typing import NamedTuple

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message

from jobtui.render.spans import Line, Span
from jobtui.render.text import fit
from jobtui.widgets.lines import LineView


class Mistake(NamedTuple):
    """From where to where the text is wrong, and what is right. The words are safe to show."""

    start: int
    end: int
    words: str


class FilterBar(Vertical):
    """An input. Every change is told; `enter` keeps the filter, `escape` puts the old one back."""

    DEFAULT_CSS = """
    FilterBar { height: auto; }
    FilterBar Horizontal { height: 1; }
    FilterBar Prompt { width: 3; height: 1; }
    FilterBar MistakeLine { height: 1; }
    """

    class Edited(Message):
        """The text changed."""

        def __init__(self, bar: "FilterBar", text: str) -> None:
            self.bar = bar
            self.text = text
            super().__init__()

    class Closed(Edited):
        """The user is done; the text is the new filter, or the one from before."""

    def __init__(self, text: str = "", *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._before = text
        self._mistake_line = MistakeLine()
        self.mistake: Mistake | None = None

    def compose(self) -> ComposeResult:
        """The words on a mistake, and the input."""
        # Textual's Input would cost every start some milliseconds, and is needed only from here on
        from jobtui.widgets.filter_input import FilterInput

        yield self._mistake_line
        with Horizontal():
            yield Prompt()
            yield FilterInput(self, self._before)

    def set_mistake(self, mistake: Mistake | None) -> None:
        """Show what is wrong, or that nothing is."""
        self.mistake = mistake
        self._mistake_line.set_mistake(mistake)

    def edited(self, text: str) -> None:
        """The input has another text."""
        self.post_message(self.Edited(self, text))

    def close(self, text: str | None) -> None:
        """The input is done with: this is the filter, or with None the one from before."""
        self.post_message(self.Closed(self, self._before if text is None else text))


class Prompt(LineView):
    """The sign before the input."""

    def line(self, y: int) -> Line:
        """The key that led here."""
        return (Span(" / ", "key"),)


class MistakeLine(LineView):
    """What is wrong with the filter; not there when nothing is."""

    def __init__(self) -> None:
        super().__init__()
        self._mistake: Mistake | None = None
        self.display = False

    def set_mistake(self, mistake: Mistake | None) -> None:
        """Show this one."""
        self._mistake = mistake
        self.display = mistake is not None
        self.repaint()

    def line(self, y: int) -> Line:
        """The words, under which the input marks the place."""
        words = self._mistake.words if self._mistake else ""
        return (Span(fit(f" {words}", self.cells), "error"),)
