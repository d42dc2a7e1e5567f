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


OF_ONE_SCREEN = frozenset({Topic.JOB, Topic.LOGS, Topic.CHARTS, Topic.TRACES})
"""Topics whose name is that of a screen."""
FEW_PLACES = 3


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
    def name(self) -> str:
        """What it is called where keys are given to it, the same on every screen."""
        words = NAMES.get(self.call) or self.call.removeprefix("app.")
        return words.replace("('", "-").replace("')", "").replace("_", "-")

    @property
    def shown_keys(self) -> str:
        """Its keys as help shows them."""
        return " ".join(map(shown_key, self.keys))

    def is_of(self, place: Place) -> bool:
        """Whether it is an action of this screen and of few others."""
        return place in self.places and len(self.places) <= FEW_PLACES

    @property
    def where(self) -> str:
        """The few screens on which it can be taken; nothing where its topic says so, or it is on many."""
        if self.topic in OF_ONE_SCREEN or len(self.places) > FEW_PLACES:
            return ""
        return ", ".join(sorted(self.places))


NAMES = {
    "app.keys": "keys",
    "app.step(-60)": "step-back",
    "app.step(60)": "step-on",
    "app.change(False)": "change-before",
    "app.change(True)": "change-next",
    "shift(-1)": "column-left",
    "shift(1)": "column-right",
    "run(-1)": "run-before",
    "run(1)": "run-next",
    "next_chart(1)": "chart-next",
    "next_chart(-1)": "chart-before",
    "cursor(-1)": "cursor-left",
    "cursor(1)": "cursor-right",
    "zoom(0.5)": "zoom-in",
    "zoom(2)": "zoom-out",
    "pan(-0.5)": "pan-left",
    "pan(0.5)": "pan-right",
    "pan(-0.25)": "pan-left",
    "pan(0.25)": "pan-right",
    "failure(1)": "failure-next",
    "failure(-1)": "failure-before",
    "fold(-1)": "fold",
    "fold(1)": "unfold",
    "hit(1)": "hit-next",
    "hit(-1)": "hit-before",
    "error(1)": "error-next",
    "error(-1)": "error-before",
    "next_log(1)": "log-next",
    "next_log(-1)": "log-before",
    "sideways(-1)": "sideways-left",
    "sideways(1)": "sideways-right",
}
"""Names of actions whose call does not say enough in words."""

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


class Signs:
    """Whether this process may name keys by signs such as arrows; a terminal may not have them."""

    in_words = False


def shown_key(key: str) -> str:
    """A key as a person would write it."""
    shown = SHOWN_KEYS.get(key, key)
    return key if Signs.in_words and not shown.isascii() else shown
