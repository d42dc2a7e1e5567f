"""The input of the filter bar. Only here Textual's Input is needed."""

import asyncio
from collections.abc import Callable, Sequence

from rich.highlighter import Highlighter
from rich.text import Text
from textual import events
from textual.suggester import Suggester
from textual.widgets import Input

from jobtui.render.text import safe

Completer = Callable[[str, int], tuple[int, int, Sequence[str]]]
"""The completer of the filter bar: start, end and text of a completion."""
OFFERED_AFTER_S = 0.01
"""How long after a key completions are looked for: by then the key is painted."""


class FilterInput(Input):
    """An input that takes one safe line, and underlines a mistake."""

    def __init__(self, text: str, placeholder: str = "", complete: Completer | None = None) -> None:
        self.underline = Underline()
        super().__init__(
            text,
            placeholder=placeholder,
            highlighter=self.underline,
            select_on_focus=False,
            suggester=Ghost(complete) if complete else None,
        )
        self.cursor_blink = False
        self.was_pasted = False

    def validate_value(self, value: str) -> str:
        return safe(value)

    def on_mount(self) -> None:
        self._selection = self.screen.text_selection_started_signal
        self.focus()

    def on_unmount(self) -> None:
        """Unsubscribe from the screen, which the input of textual 8.2.8 never does."""
        self._selection.unsubscribe(self)

    def put(self, text: str, cursor: int) -> None:
        self.value = text
        self.cursor_position = cursor

    def on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        self.was_pasted = True
        self.insert_text_at_cursor(safe(" ".join(event.text.split())))


class Underline(Highlighter):
    start, end = 0, 0

    def highlight(self, text: Text) -> None:
        if self.end > self.start:
            text.stylize("underline", self.start, self.end)


class Ghost(Suggester):
    """The completion of the last word, dim after the cursor; `right` takes it."""

    def __init__(self, complete: Completer) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._complete = complete

    async def get_suggestion(self, value: str) -> str | None:
        await asyncio.sleep(OFFERED_AFTER_S)
        start, end, choices = self._complete(value, len(value))
        longer = (safe(one) for one in choices if start < end < start + len(one))
        return next((value[:start] + one for one in longer), None)
