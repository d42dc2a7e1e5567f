"""What a user set that several parts of the program ask: alarms, ways to clusters, the dashboard's looks."""

from collections.abc import Mapping
from typing import NamedTuple

from jobtui.model.numbers import real_of

KIND = "alarm"
"""The kind under which the user's command is listed among the sources, to say when it fails."""
LEAST_REST_S = 10.0


class Alarms(NamedTuple):
    """Whether the terminal rings, and notifies the desktop; the command that is run; how often at most."""

    bell: bool = False
    command: tuple[str, ...] = ()
    rest_s: float = 60.0

    def __bool__(self) -> bool:
        return self.bell or bool(self.command)


def parse_alarms(table: object) -> Alarms:
    """What a table of the configuration file asks for. Raises ValueError that says what is wrong."""
    if not isinstance(table, dict):
        raise ValueError(f"expected a table of {', '.join(Alarms._fields)}")
    if unknown := set(table) - set(Alarms._fields):
        raise ValueError(f"{min(unknown)}: unknown; expected one of {', '.join(Alarms._fields)}")
    bell, rest_s = table.get("bell", False), table.get("rest_s", Alarms().rest_s)
    if not isinstance(bell, bool):
        raise ValueError("bell: expected true or false")
    rest_s = real_of(rest_s)
    if rest_s is None or rest_s < LEAST_REST_S:
        raise ValueError(f"rest_s: expected seconds, {LEAST_REST_S:g} at least")
    return Alarms(bell, _words(table.get("command", [])), rest_s)


def _words(command: object) -> tuple[str, ...]:
    """The program and its arguments; no shell reads them."""
    if not isinstance(command, list) or not all(isinstance(word, str) and word for word in command):
        raise ValueError('command: expected a list of words, such as ["notify-send", "jobtui"]')
    if any("\0" in word for word in command):
        raise ValueError("command: a word contains a NUL byte")
    return tuple(command)


class ClusterAccess(NamedTuple):
    """How clusters are reached: `mounts` are directories here by those there, `hosts` journals by host."""

    mounts: Mapping[str, str] = {}
    hosts: Mapping[str, str] = {}
    roots: tuple[str, ...] = ()
    """The database roots, any of which may have a run directory."""


NOWHERE = ClusterAccess()

AUTO = "auto"
"""What fits the terminal."""
ANYWHERE = ""
"""Stands for every screen where keys are given to an action."""
OVER_SSH = ("SSH_TTY", "SSH_CONNECTION")
"""Variables that sshd sets; they are there in mosh, too."""
FPS_OVER_SSH = 20


class KeyWish(NamedTuple):
    """Keys for an action, on one screen or `ANYWHERE`, and where the user wrote that down."""

    screen: str
    action: str
    keys: tuple[str, ...]
    origin: str


class Appearance(NamedTuple):
    """A field that is not given has the usual value.

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
    return any(environment.get(name) for name in OVER_SSH)


USUAL_LOOKS = Appearance()
