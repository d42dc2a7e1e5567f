"""The input of the filter bar, with completion and history. Only here Textual's Input is needed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.highlighter import Highlighter
from rich.text import Text
from textual import events, on
from textual.binding import Binding, BindingType
from textual.widgets import Input

from jobtui.render.text import safe

if TYPE_CHECKING:
    from jobtui.widgets.filter_bar import FilterBar


class FilterInput(Input):
    """An input that `escape` leaves, and that underlines a mistake."""

    DEFAULT_CSS = """
    FilterInput, FilterInput:focus {
        width: 1fr;
        height: 1;
        border: none;
        padding: 0;
        background: $background;
        background-tint: $background 0%;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", show=False),
        Binding("up", "earlier", show=False),
        Binding("down", "later", show=False),
        Binding("tab", "complete", show=False),
    ]

    def __init__(self, bar: "FilterBar", text: str, placeholder: str = "") -> None:
        super().__init__(text, placeholder=placeholder, highlighter=_Underline(bar), select_on_focus=False)
        self.cursor_blink = False
        self._bar = bar

    def validate_value(self, value: str) -> str:
        return safe(value)

    def on_mount(self) -> None:
        self._selection = self.screen.text_selection_started_signal
        self.focus()

    def on_focus(self) -> None:
        self._bar.had_keys = True

    def on_unmount(self) -> None:
        """Be forgotten: textual 8.2.8 has an input subscribe to its screen, and never end that."""
        self._selection.unsubscribe(self)

    def action_cancel(self) -> None:
        self._bar.close(None)

    def action_earlier(self) -> None:
        self._put(self._bar.history.earlier(self.value))

    def action_later(self) -> None:
        self._put(self._bar.history.later(self.value))

    def action_complete(self) -> None:
        if self._bar.completer is None:
            return
        text, cursor = self.value, self.cursor_position
        start, end, choices = self._bar.completer(text, cursor)
        if len(choices) > 1:
            self._bar.set_note(safe("  ".join(choices)))
        found = choices[0] if len(choices) == 1 else _shared_start(choices)
        if len(found) > end - start:
            self.value = text[:start] + found + text[end:]
            self.cursor_position = start + len(found)

    def _put(self, text: str) -> None:
        if text != self.value:
            self.value = text
            self.cursor_position = len(text)

    @on(Input.Changed)
    def _tell_text(self, message: Input.Changed) -> None:
        message.stop()
        self._bar.edited(message.value)

    @on(Input.Submitted)
    def _tell_end(self, message: Input.Submitted) -> None:
        message.stop()
        self._bar.close(message.value)

    def on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        self._bar.was_pasted = True
        self.insert_text_at_cursor(safe(" ".join(event.text.split())))


class _Underline(Highlighter):
    """Marks the place of a mistake in the text that is being typed."""

    def __init__(self, bar: "FilterBar") -> None:
        self._bar = bar

    def highlight(self, text: Text) -> None:
        mistake = self._bar.mistake
        if mistake is not None:
            text.stylize("underline", mistake.start, max(mistake.end, mistake.start + 1))


def _shared_start(words: Sequence[str]) -> str:
    if not words:
        return ""
    first, last = min(words), max(words)
    same = next((at for at, char in enumerate(first) if not last.startswith(char, at)), len(first))
    return first[:same]
