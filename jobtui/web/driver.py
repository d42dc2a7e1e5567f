"""The terminal of a dashboard that is shown in a browser: packets on standard input and output.

Textual 8.2.8 has one; but its dashboard never ends when its server is gone, as it takes the end of the input
for silence; and it reads its size from variables that a shell exports, too.
"""

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from textual.drivers.web_driver import WebDriver

from jobtui.web import SIZE

if TYPE_CHECKING:
    from textual.app import App

HUNG_UP = 128 + signal.SIGHUP
"""The exit code when the server is gone, the same as for a terminal that is gone."""


class BrowserDriver(WebDriver):
    """Keys from a browser and output to it; ends the dashboard when its server ends."""

    def __init__(self, app: "App[object]", *, size: tuple[int, int] | None = None, **named: Any) -> None:
        columns, lines = map(int, os.environ[SIZE].split("x"))
        super().__init__(app, size=size or (columns, lines), **named)
        send = self._write
        self._is_lost = False

        def write(data: bytes) -> int:
            """Write to the server; output after it is gone is dropped."""
            left = memoryview(data)
            with suppress(OSError):
                while left and not self._is_lost:
                    left = left[send(left) :]
            if left:
                self._lose()
            return len(data)

        self._write = write  # type: ignore[assignment]  # os.write of a pipe may take a part only

    def run_input_thread(self) -> None:
        """Pass on keys until asked to end, or until the server is gone."""
        super().run_input_thread()
        self._lose()

    def _lose(self) -> None:
        if self._is_lost or self.exit_event.is_set():
            return
        self._is_lost = True
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._app.exit, None, HUNG_UP)
