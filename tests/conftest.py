"""What every test runs under: its own home, one locale, size and time, and no configuration found."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
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


@pytest.fixture(autouse=True)
def plain_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A home without any settings, and none of the machine's own; gives that home."""
    home = tmp_path_factory.mktemp("home")
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
