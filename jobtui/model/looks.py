"""How a user wants the dashboard to look and to be handled, where that is not the usual way."""

from collections.abc import Mapping
from typing import NamedTuple

AUTO = "auto"
"""What fits the terminal."""
ANYWHERE = ""
"""Stands for every screen where keys are given to an action."""


OVER_SSH = ("SSH_TTY", "SSH_CONNECTION")
"""Variables that sshd sets; they are there in mosh, too."""
FPS_OVER_SSH = 20


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

    def takes_mouse(self, environment: Mapping[str, str]) -> bool:
        """Whether to take the mouse: not over ssh, where selecting is the terminal's and every move costs."""
        return self.mouse == "on" or (self.mouse == AUTO and not is_over_ssh(environment))

    def most_fps(self, environment: Mapping[str, str]) -> int | None:
        """How often a second to paint at most; None for as often as is usual."""
        return self.fps or (FPS_OVER_SSH if is_over_ssh(environment) else None)


def is_over_ssh(environment: Mapping[str, str]) -> bool:
    """Whether the terminal is far away."""
    return any(environment.get(name) for name in OVER_SSH)


USUAL_LOOKS = Looks()
