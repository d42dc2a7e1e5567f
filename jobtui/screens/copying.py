"""Putting text where the user can paste it from, and saying where that is."""

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from jobtui.render.clipboard import TooLong, Way, clipboard_sequence, way_for
from jobtui.render.text import fit, safe

if TYPE_CHECKING:
    from jobtui.screens.base import LiveScreen

COPIED_CELLS = 40
"""How much of a copied text is named."""
TMUX_S = 5.0
"""How long tmux may take."""


def copy(screen: "LiveScreen", text: str) -> None:
    """Copy text in the way that the user wants, or that fits the terminal."""
    match way_for(screen.board.looks.clipboard, os.environ):
        case Way.OFF:
            screen.notify("copying is off: --clipboard off", severity="warning")
        case Way.FILE:
            _to_file(screen, text, "")
        case Way.TMUX:
            screen.run_worker(_through_tmux(screen, text), group="copy")
        case Way.OSC52:
            _through_terminal(screen, text)


def _through_terminal(screen: "LiveScreen", text: str) -> None:
    try:
        sequence = clipboard_sequence(text, os.environ)
    except TooLong as error:
        _to_file(screen, text, f", as {error}")
        return
    if screen.app._driver is not None:
        screen.app._driver.write(sequence)
    _say_copied(screen, text)


async def _through_tmux(screen: "LiveScreen", text: str) -> None:
    """Make it the newest buffer of tmux, which hands it on to its terminal; it needs no setting for that."""
    try:
        tmux = await asyncio.create_subprocess_exec(
            "tmux",
            "load-buffer",
            "-w",
            "-",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        _through_terminal(screen, text)
        return
    try:
        await asyncio.wait_for(tmux.communicate(text.encode("utf-8", "replace")), TMUX_S)
    except TimeoutError:
        tmux.kill()
    then: Callable[[LiveScreen, str], None] = _say_copied if tmux.returncode == 0 else _through_terminal
    then(screen, text)


def _say_copied(screen: "LiveScreen", text: str) -> None:
    screen.notify(f"copied {fit(safe(text), COPIED_CELLS).rstrip()}", timeout=2, markup=False)


def _to_file(screen: "LiveScreen", text: str, why: str) -> None:
    """Write it to a file that only its owner may read, and name it."""
    from tempfile import NamedTemporaryFile

    try:
        with NamedTemporaryFile(
            "w", prefix="jobtui-", suffix=".txt", delete=False, encoding="utf-8", errors="replace"
        ) as file:
            file.write(text)
    except OSError as error:
        screen.notify(f"not copied{why}; {error.strerror}", severity="error", markup=False)
        return
    screen.notify(f"written to {safe(file.name)}{why}", timeout=10, markup=False)
