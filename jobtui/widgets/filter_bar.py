"""The line in which a filter, a command or a search is typed, with a mistake shown where it is."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message

from jobtui.render.spans import Line, Piece
from jobtui.render.text import fit, safe, wrapped
from jobtui.widgets.frame import NoticeLine
from jobtui.widgets.lines import LineView

if TYPE_CHECKING:
    from textual.widgets import Input

    from jobtui.widgets.filter_input import FilterInput

MOST = 100
"""The most lines kept; older ones are forgotten."""


class History:
    """History of typed lines. The unfinished line is kept while browsing."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._at = 0
        self._draft = ""

    def add(self, line: str) -> None:
        line = line.strip()
        if line:
            self.lines = [*(before for before in self.lines if before != line), line][-MOST:]
        self.begin()

    def begin(self) -> None:
        self._at = len(self.lines)
        self._draft = ""

    def step(self, by: int, now: str) -> str:
        """The line `by` after the one shown; the unfinished one, which is `now` at first, comes last."""
        if self._at == len(self.lines):
            self._draft = now
        self._at = max(0, min(self._at + by, len(self.lines)))
        return [*self.lines, self._draft][self._at]


class Mistake(NamedTuple):
    """Where the text is wrong, and what is right. The words are safe to show."""

    start: int
    end: int
    words: str


class Completion(NamedTuple):
    """A text that may replace the one from `start` to `end`."""

    start: int
    end: int
    choices: Sequence[str]


Completer = Callable[[str, int], Completion]
"""Gives the completions at an offset in a text, where the cursor is."""


class FilterBar(Vertical):
    """An input. Every change is reported; `enter` closes it with a text, `escape` without.

    With a history `up` and `down` bring back what was typed before; with a completer `tab` completes, and
    `right` takes what is shown after the cursor.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", show=False),
        Binding("up", "step(-1)", show=False),
        Binding("down", "step(1)", show=False),
        Binding("tab", "complete", show=False),
    ]
    SIGN = "/"
    PLACEHOLDER = "words, or: status:failed user:vn9m age<10m dur>1h"

    @dataclass
    class Edited(Message):
        bar: "FilterBar"
        text: str

    @dataclass
    class Closed(Message):
        """The user is done; `text` is None to keep the old one."""

        bar: "FilterBar"
        text: str | None

    def __init__(
        self,
        text: str = "",
        *,
        history: History | None = None,
        completer: Completer | None = None,
        placeholder: str | None = None,
    ) -> None:
        super().__init__()
        self._placeholder = self.PLACEHOLDER if placeholder is None else placeholder
        self.before = text
        """The text from before, used on escape."""
        self.history = history or History()
        self.history.begin()
        self.completer = completer
        self._input: FilterInput
        self.had_keys = False
        """Whether keys go into the input; not yet while it opens."""
        self._mistake_line = MistakeLine()
        self.mistake: Mistake | None = None

    def compose(self) -> ComposeResult:
        # Textual's Input would cost every start some milliseconds, and is needed only from here on
        from jobtui.widgets.filter_input import FilterInput

        begun = f"{self.before} " if self.before else ""  # what is typed is a further word
        self._input = FilterInput(begun, self._placeholder, self.completer)
        yield self._mistake_line
        with Horizontal():
            yield NoticeLine(self.SIGN, "key")
            yield self._input

    @property
    def was_pasted(self) -> bool:
        return self._input.was_pasted

    def on_descendant_focus(self) -> None:
        self.had_keys = True

    def set_mistake(self, mistake: Mistake | None) -> None:
        self.mistake = mistake
        self._mistake_line.set_words(mistake.words if mistake else "", "error")
        start, end = (mistake.start, mistake.end) if mistake is not None else (0, -1)
        self._input.underline.start, self._input.underline.end = start, max(end, start + (end >= start))
        self._input.refresh()

    def set_note(self, words: str) -> None:
        self._mistake_line.set_words(words, "dim")

    def edited(self, text: str) -> None:
        self.post_message(self.Edited(self, text))

    def close(self, text: str | None) -> None:
        if text is not None and self.mistake is None:
            self.history.add(text)
        self.post_message(self.Closed(self, text))

    def action_cancel(self) -> None:
        self.close(None)

    def action_step(self, by: int) -> None:
        text = self.history.step(by, self._input.value)
        if text != self._input.value:
            self._input.put(text, len(text))

    def action_complete(self) -> None:
        if self.completer is None:
            return
        text, cursor = self._input.value, self._input.cursor_position
        start, end, choices = self.completer(text, cursor)
        if len(choices) > 1:
            self.set_note(safe("  ".join(choices)))
        found = choices[0] if len(choices) == 1 else os.path.commonprefix(choices)  # noqa: RUF071 - no paths
        if len(found) > end - start:
            self._input.put(text[:start] + found + text[end:], start + len(found))

    def on_input_changed(self, message: "Input.Changed") -> None:
        message.stop()
        if message.value == self._input.value:  # else more was typed
            self.edited(message.value)

    def on_input_submitted(self, message: "Input.Submitted") -> None:
        message.stop()
        self.close(message.value)


MOST_ROWS = 2
"""Rows that words on the text take at most."""


class MistakeLine(LineView):
    """What is wrong with the text, or may follow; hidden when there is nothing to say."""

    def __init__(self) -> None:
        super().__init__()
        self._words = ""
        self._rows: list[str] = []
        self._style = "error"
        self.display = False

    def set_words(self, words: str, style: str) -> None:
        self._words = words
        self._style = style
        self.display = bool(words)
        self._wrap(self.cells or self.app.size.width)
        self.repaint()

    def on_resize(self) -> None:
        self._wrap(self.cells)

    def _wrap(self, cells: int) -> None:
        self._rows = wrapped(self._words, max(2, cells - 1))
        self.styles.height = min(MOST_ROWS, len(self._rows))

    def line(self, y: int) -> Line:
        rest = " ".join(self._rows[y:] if y == MOST_ROWS - 1 else self._rows[y : y + 1])
        return (Piece(fit(f" {rest}", self.cells), self._style),)


class CommandBar(FilterBar):
    """An input for a command. It closes only once the command was carried out, or at `escape`."""

    SIGN = ":"
    PLACEHOLDER = "jobs, sources, filter, sort, ... or anything to go to: an id, a path, a log line"

    def edited(self, text: str) -> None:
        if self.mistake is not None:
            self.set_mistake(None)


class LogPrompt(FilterBar):
    PLACEHOLDER = "text in the lines, ~ before a regular expression"
