"""One dashboard for one browser: a process of its own that ends with it."""

import asyncio
import os
import shlex
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress

from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from jobtui.web import DRIVER, SIZE
from jobtui.web.sizes import bounded

GRACE_S = 5.0
"""How long a dashboard may take to end before it is ended."""
OF_A_TERMINAL = frozenset({"COLUMNS", "LINES", "ROWS", "STY", "TMUX", "SSH_TTY", "SSH_CONNECTION"})
"""What tells of the terminal that the server was started in, which is not the browser's."""


class DashboardService(AppService):
    """Starts the dashboard, and passes on what it writes and what is typed."""

    def __init__(
        self, words: Sequence[str], websocket: web.WebSocketResponse, downloads: DownloadManager
    ) -> None:
        super().__init__(
            f"exec {shlex.join(words)}",
            write_bytes=websocket.send_bytes,
            write_str=websocket.send_str,
            close=self._close,
            download_manager=downloads,
        )
        self._websocket = websocket

    async def _close(self) -> None:
        await self._websocket.close()

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        columns, lines = bounded(width, height)
        kept = {name: value for name, value in os.environ.items() if name not in OF_A_TERMINAL}
        return kept | {
            "TEXTUAL_DRIVER": DRIVER,
            "TEXTUAL_COLOR_SYSTEM": "truecolor",
            "TERM": "xterm-256color",
            SIZE: f"{columns}x{lines}",
        }

    async def set_terminal_size(self, width: int, height: int) -> None:
        """Tell the dashboard how large the browser's window is."""
        await super().set_terminal_size(*bounded(int(width), int(height)))

    async def run(self) -> None:
        """Pass on what the dashboard writes until it ends; the page says so then."""
        try:
            await super().run()
        finally:
            with suppress(ConnectionError):
                await self._websocket.close()

    async def stop(self) -> None:
        """End the dashboard, and wait for its end."""
        task, self._task = self._task, None
        process: Process | None = self._process
        if task is None or process is None:
            return
        with suppress(ConnectionError):
            self.stdin.close()  # one that is still starting sees this, where it misses a request to quit
        try:
            await asyncio.wait_for(process.wait(), GRACE_S)
        except TimeoutError:
            process.kill()
            await process.wait()
        await task
