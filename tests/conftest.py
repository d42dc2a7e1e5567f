"""What every test runs under: its own home, one locale, size and time, and no configuration found."""

import asyncio
import os
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
import textual.app
from hypothesis import settings

from jobtui.model.clock import SECOND, FixedClock, Nanos

settings.register_profile("jobtui", deadline=None, max_examples=60)
settings.load_profile("jobtui")

NOW = Nanos(1_795_208_400 * SECOND)
"""2026-11-20T21:00:00Z, shortly after the captures of the fixtures were taken."""

FOREIGN = ("SIREPO_", "JOBTUI_", "BALSAM_", "PYKERN_", "SLURM_", "XDG_", "LC_", "TEXTUAL", "SSH_", "TMUX")
"""Beginnings of variables of the machine that would change what the program finds or how it looks."""

FIXED = {
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "TERM": "xterm-256color",
    "COLORTERM": "truecolor",
    "COLUMNS": "120",
    "LINES": "40",
    "TEXTUAL_ANIMATIONS": "none",
}


REST_S = 0.005
"""After a key the program under test rests when it computed for less than a tenth of this time in it."""


async def _rest(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """What Textual waits for twice after each key that is pressed, in finer steps than its own of 20 ms."""
    until = time.monotonic() + max_sleep
    while time.monotonic() < until:
        begun = time.process_time()
        await asyncio.sleep(REST_S)
        if time.process_time() - begun < REST_S / 10:
            return


textual.app.wait_for_idle = _rest  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Ever new directories: one for each test, made without looking through those there are."""
    place = tmp_path_factory.mktemp("homes")
    return (place / str(number) for number in count())


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, homes: Iterator[Path]) -> Iterator[Path]:
    """A home without any settings, and none of the machine's own; gives that home."""
    home = next(homes)
    home.mkdir()
    for name in [*os.environ]:
        if name.startswith(FOREIGN) or name == "NO_COLOR":
            monkeypatch.delenv(name)
    for name, value in FIXED.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / ".local" / "state"))
    time.tzset()
    yield home
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def clock() -> FixedClock:
    """A clock that stands at `NOW` until it is moved."""
    return FixedClock(NOW)
