"""The line in which a command is typed."""

from textual.message import Message

from jobtui.widgets.filter_bar import FilterBar


class CommandBar(FilterBar):
    """An input for a command. It goes only when the command was followed, or at `escape`."""

    SIGN = ":"
    PLACEHOLDER = "jobs, sources, filter, sort, ... or anything to go to: an id, a path, a log line"

    class Given(Message):
        """A command was given; None when the user thought better of it."""

        def __init__(self, bar: "CommandBar", text: str | None) -> None:
            self.bar = bar
            self.text = text
            super().__init__()

    def edited(self, text: str) -> None:
        """A mistake is shown until something else is typed."""
        if self.mistake is not None:
            self.set_mistake(None)

    def close(self, text: str | None) -> None:
        """The command is given."""
        if text is not None:
            self._history.add(text)
        self.post_message(self.Given(self, text))
