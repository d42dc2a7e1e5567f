"""The line in which a filter or a command is typed, with a mistake shown at its place."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message

from jobtui.render.spans import Line, Span
from jobtui.render.text import fit, safe
from jobtui.render.wrapping import wrapped
from jobtui.widgets.history import History
from jobtui.widgets.lines import LineView


class Mistake(NamedTuple):
    """From where to where the text is wrong, and what is right. The words are safe to show."""

    start: int
    end: int
    words: str


class Completion(NamedTuple):
    """What may stand in place of the text from `start` to `end`."""

    start: int
    end: int
    choices: Sequence[str]


Completer = Callable[[str, int], Completion]
"""Gives what may stand where the cursor is, in a text and at a place in it."""


class FilterBar(Vertical):
    """An input. Every change is told; `enter` keeps the filter, `escape` puts the old one back.

    With a history `up` and `down` bring back what was typed before; with a completer `tab` completes.
    """

    SIGN = "/"
    PLACEHOLDER = "words, or: status:failed user:vn9m age<10m dur>1h"

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

    def __init__(
        self,
        text: str = "",
        *,
        history: History | None = None,
        completer: Completer | None = None,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.before = text
        """What holds when the user thinks better of it."""
        self._history = history or History()
        self._history.begin()
        self._completer = completer
        self.was_pasted = False
        """Whether some of the text was pasted."""
        self.had_keys = False
        """Whether keys have come to go into the input; not yet while it opens."""
        self._mistake_line = MistakeLine()
        self.mistake: Mistake | None = None

    def compose(self) -> ComposeResult:
        """The words on a mistake, and the input."""
        # Textual's Input would cost every start some milliseconds, and is needed only from here on
        from jobtui.widgets.filter_input import FilterInput

        yield self._mistake_line
        with Horizontal():
            yield Prompt(self.SIGN)
            yield FilterInput(self, self.before, self.PLACEHOLDER)

    def set_mistake(self, mistake: Mistake | None) -> None:
        """Show what is wrong, or that nothing is."""
        self.mistake = mistake
        self._mistake_line.set_mistake(mistake)
        self.query("FilterInput").refresh()

    def set_note(self, words: str) -> None:
        """Say something about the text, which is safe to show, until it is another."""
        self._mistake_line.set_words(words, "dim")

    def earlier(self, text: str) -> str:
        """What was typed before this."""
        return self._history.earlier(text)

    def later(self, text: str) -> str:
        """What was typed after this."""
        return self._history.later(text)

    def complete(self, text: str, cursor: int) -> tuple[str, int]:
        """The text with what is sure at the cursor, and the cursor behind it; choices are named."""
        if self._completer is None:
            return text, cursor
        start, end, choices = self._completer(text, cursor)
        if not choices:
            return text, cursor
        found = choices[0] if len(choices) == 1 else _shared_start(choices)
        if len(choices) > 1:
            self._mistake_line.set_words(safe("  ".join(choices)), "dim")
        if len(found) <= end - start:
            return text, cursor
        return text[:start] + found + text[end:], start + len(found)

    def edited(self, text: str) -> None:
        """The input has another text."""
        self.post_message(self.Edited(self, text))

    def close(self, text: str | None) -> None:
        """The input is done with: this is the filter, or with None the one from before."""
        if text is not None and self.mistake is None:
            self._history.add(text)
        self.post_message(self.Closed(self, self.before if text is None else text))


def _shared_start(words: Sequence[str]) -> str:
    """What all of some words begin with."""
    first, last = min(words), max(words)
    same = next((at for at, char in enumerate(first) if not last.startswith(char, at)), len(first))
    return first[:same]


class Prompt(LineView):
    """The sign before the input."""

    def __init__(self, sign: str) -> None:
        super().__init__()
        self._sign = sign

    def line(self, y: int) -> Line:
        """The key that led here."""
        return (Span(f" {self._sign} ", "key"),)


MOST_ROWS = 2
"""Rows that words on the text take at most."""


class MistakeLine(LineView):
    """What is wrong with the text, or what may follow; not there when nothing is."""

    def __init__(self) -> None:
        super().__init__()
        self._words = ""
        self._rows: list[str] = []
        self._style = "error"
        self.display = False

    def set_mistake(self, mistake: Mistake | None) -> None:
        """Say what is wrong; the input marks the place below."""
        self.set_words(mistake.words if mistake else "", "error")

    def set_words(self, words: str, style: str) -> None:
        """Say this, which is safe to show."""
        self._words = words
        self._style = style
        self.display = bool(words)
        self._rows_for(self.cells or self.app.size.width)
        self.repaint()

    def on_resize(self) -> None:
        """Break the words for another width."""
        super().on_resize()
        self._rows_for(self.cells)

    def _rows_for(self, cells: int) -> None:
        """Take a second row where one is too narrow."""
        self._rows = wrapped(self._words, max(2, cells - 1))
        self.styles.height = min(MOST_ROWS, len(self._rows))

    def line(self, y: int) -> Line:
        """The words, the last row cut."""
        rest = (
            " ".join(self._rows[y:]) if y == MOST_ROWS - 1 else self._rows[y] if y < len(self._rows) else ""
        )
        return (Span(fit(f" {rest}", self.cells), self._style),)
