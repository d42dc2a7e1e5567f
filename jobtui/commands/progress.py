"""Words on a terminal's stderr about how far something has come, while it takes its time."""

import asyncio
import sys
import time
from collections.abc import Callable

AFTER_S = 1.0
PERIOD_S = 0.2


async def show_progress(words: Callable[[], str]) -> None:
    """Say how far it has come until cancelled, once it has taken a second; nothing off a terminal."""
    if not sys.stderr.isatty():
        return
    start = time.monotonic()
    await asyncio.sleep(AFTER_S)
    try:
        while True:
            spent = time.monotonic() - start
            sys.stderr.write(f"\r\x1b[Kreading: {words()}, {spent:.0f} s (ctrl+c: print what there is)")
            sys.stderr.flush()
            await asyncio.sleep(PERIOD_S)
    finally:
        clear_progress()


def clear_progress() -> None:
    """Take the words off the terminal, where there may be some."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
