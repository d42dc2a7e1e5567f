"""What an action is: where it can be taken, under which heading it is explained, by which keys."""

from enum import StrEnum
from typing import NamedTuple


class Place(StrEnum):
    """A screen on which an action can be taken."""

    JOBS = "jobs"
    JOB = "job"
    AGENTS = "agents"
    CHARTS = "charts"
    SOURCES = "sources"
    INCIDENTS = "incidents"
    ALLOCATIONS = "allocations"
    READING = "reading"
    LOGS = "logs"
    CHOOSING = "choosing"
    COLUMNS = "columns"
    LOG_SET = "log set"
    TRACES = "traces"
    TRACE = "trace"


EVERYWHERE = frozenset(Place)


class Topic(StrEnum):
    """A heading of the help screen."""

    GO = "Go to"
    MOVE = "Move"
    LOOK = "Look at jobs"
    JOB = "On one job"
    LOGS = "Read logs"
    CHARTS = "Look at charts"
    TRACES = "Look at a trace"
    TAKE = "Take along"
    REPLAY = "Go through a recording"
    PROGRAM = "Program"


class Action(NamedTuple):
    """One thing a user can do.

    `keys` are Textual's names of keys, the first one is shown; `call` is what is called on the screen
    (`app.` before it: on the app). `hint` is its word in the footer, None when it is not there; where there
    is little room those with the lowest `rank` stay.
    """

    call: str
    keys: tuple[str, ...]
    help: str
    topic: Topic
    places: frozenset[Place] = EVERYWHERE
    hint: str | None = None
    rank: int = 3

    @property
    def shown_keys(self) -> str:
        """Its keys as help shows them."""
        return " ".join(map(shown_key, self.keys))


SHOWN_KEYS = {
    "comma": ",",
    "full_stop": ".",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "enter": "↵",
    "escape": "esc",
    "slash": "/",
    "question_mark": "?",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "plus": "+",
    "minus": "-",
    "equals_sign": "=",
    "shift+left": "shift+←",
    "shift+right": "shift+→",
    "up": "↑",
    "down": "↓",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "left": "←",
    "right": "→",
    "ampersand": "&",
    "colon": ":",
    "apostrophe": "'",
    "shift+up": "shift+↑",
    "shift+down": "shift+↓",
}


def shown_key(key: str) -> str:
    """A key as a person would write it."""
    return SHOWN_KEYS.get(key, key)
