"""How a user wants the dashboard to look and to be handled, where that is not the usual way."""

from collections.abc import Mapping
from typing import NamedTuple

AUTO = "auto"
"""What fits the terminal."""
ANYWHERE = ""
"""Stands for every screen where keys are given to an action."""


class KeyWish(NamedTuple):
    """Keys for an action, on one screen or `ANYWHERE`, and where the user wrote that down."""

    place: str
    action: str
    keys: tuple[str, ...]
    origin: str


class Looks(NamedTuple):
    """What is not given is as usual.

    `theme`, `glyphs`, `clipboard` and `mouse` are words of the settings of these names, `fps` is how often a
    second the screen may be painted, None for what fits the line to the terminal. `columns` and `sort` are
    keys of columns of jobs; `colors` has styles by their names.
    """

    theme: str = AUTO
    glyphs: str = AUTO
    clipboard: str = AUTO
    mouse: str = AUTO
    title: bool = False
    fps: int | None = None
    keys: tuple[KeyWish, ...] = ()
    columns: tuple[str, ...] = ()
    sort: str | None = None
    reverse: bool = False
    colors: Mapping[str, str] = {}
