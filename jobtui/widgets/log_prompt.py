"""The line in which a search is typed."""

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message

from jobtui.render.spans import Line, Span
from jobtui.widgets.filter_bar import FilterBar
from jobtui.widgets.lines import LineView

SIGN = "/"
PLACEHOLDER = "text in the lines, ~ before a regular expression"


class LogPrompt(FilterBar):
    """An input behind its sign. Every change is told; `enter` ends it with a text, `escape` without."""

    DEFAULT_CSS = """
    LogPrompt { height: auto; }
    LogPrompt Horizontal { height: 1; }
    LogPrompt SignLine { width: 3; height: 1; }
    """

    class Ended(Message):
        """The user is done; `text` is None when he thought better of it."""

        def __init__(self, prompt: "LogPrompt", text: str | None) -> None:
            self.prompt = prompt
            self.text = text
            super().__init__()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("", id=id)

    def compose(self) -> ComposeResult:
        """The sign and the input."""
        # Textual's Input is needed only from here on, see FilterBar
        from jobtui.widgets.filter_input import FilterInput

        field = FilterInput(self, "")
        field.placeholder = PLACEHOLDER
        with Horizontal():
            yield SignLine(SIGN)
            yield field

    def close(self, text: str | None) -> None:
        """The input is done with."""
        self.post_message(self.Ended(self, text))


class SignLine(LineView):
    """The sign before the input."""

    def __init__(self, sign: str) -> None:
        super().__init__()
        self._sign = sign

    def line(self, y: int) -> Line:
        """The key that led here."""
        return (Span(f" {self._sign} ", "key"),)
