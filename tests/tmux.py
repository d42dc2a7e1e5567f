"""A program in tmux: keys go in, what a person would see comes out. A server of its own for each."""

import os
import shlex
import subprocess
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from tests.waiting import LONG_S, wait_for


class Tmux:
    """A program that runs in a window of so many columns and rows. A context manager that ends it.

    The window stays when the program ends, so that what it left behind can be read.
    """

    def __init__(
        self, command: Sequence[str], columns: int, rows: int, environ: Mapping[str, str] | None = None
    ) -> None:
        self._socket = f"jobtui-{uuid.uuid4().hex[:12]}"
        extra = {"TERM": "tmux-256color", "COLORTERM": "truecolor", **(environ or {})}
        # The size of the window counts, not what the variables of whoever runs the test say.
        words = ["env", "-u", "COLUMNS", "-u", "LINES", *(f"{k}={v}" for k, v in extra.items()), *command]
        program = shlex.join(words)
        self._size = ["-x", str(columns), "-y", str(rows)]
        self._program = f"{program}; printf '\\n[ended %s]\\n' $?; exec sleep 3600"

    def __enter__(self) -> Self:
        quiet = [";", "set", "-g", "status", "off"]
        self.run("-f", os.devnull, "new-session", "-d", *self._size, self._program, *quiet)
        self.run("resize-window", *self._size)
        return self

    def __exit__(self, *error: object) -> None:
        subprocess.run(["tmux", "-L", self._socket, "kill-server"], check=False, capture_output=True)

    def run(self, *command: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._socket, *command], check=True, capture_output=True, text=True
        )
        return done.stdout

    def keys(self, *names: str) -> None:
        """Press keys, by tmux's names for them: `Enter`, `Escape`, `C-p`, `j`."""
        for name in names:
            self.run("send-keys", name)

    def press(self, *names: str, until: Callable[[str], object] | str) -> str:
        """Press keys, then wait for what comes of them; the text of the window then."""
        self.keys(*names)
        return self.wait_text(until)

    def type(self, text: str) -> None:
        self.run("send-keys", "-l", "--", text)

    def paste(self, text: str) -> None:
        """As a terminal pastes it: in brackets, where the program asks for them."""
        self.run("set-buffer", "--", text, ";", "paste-buffer", "-p")

    def text(self) -> str:
        return self.run("capture-pane", "-p")

    def styled(self) -> str:
        return self.run("capture-pane", "-p", "-e", "-N")

    def resize(self, columns: int, rows: int) -> None:
        self.run("resize-window", "-x", str(columns), "-y", str(rows))

    def wait_text(self, shows: Callable[[str], object] | str, timeout_s: float = LONG_S) -> str:
        """The text of the window once it holds or satisfies this; an AssertionError shows it otherwise."""
        seen = ""

        def there() -> bool:
            nonlocal seen
            seen = self.text()
            return shows in seen if isinstance(shows, str) else bool(shows(seen))

        try:
            wait_for(there, timeout_s=timeout_s, step_s=0.05)
        except AssertionError as error:
            raise AssertionError(f"{error}\nthe window shows:\n{seen}") from error
        return seen
