"""A way through every screen of the dashboard, pressing every key that the table of actions has there.

Made of that table, so that a new screen or key is on the way as soon as it is in it; keys that would leave
the program, and those that another program answers, are left out.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from benchmarks.terminal import KEYS
from jobtui.actions import ACTIONS, SHOWN_KEYS, Action, ScreenName, actions_at

ENTER, ESCAPE = KEYS["enter"], KEYS["escape"]
LEAVING = frozenset({"app.quit", "app.suspend_process", "app.page", "app.edit"})
"""Calls that end the dashboard, or let another program have the terminal."""
PATHS: Mapping[str, tuple[str, ...]] = {
    "jobs": ("1",),
    "job": ("1", "g", ENTER),
    "columns": ("1", "c"),
    "reading": ("1", "?"),
    "choosing": ("1", ":", "goto {user}" + ENTER),
    "log set": ("2", "s"),
    "log values": ("2", "c"),
    "trace": ("5", ENTER),
    "trace changes": ("5", "C"),
    "seen": ("1", ":", "seen" + ENTER),
    "nodes": ("1", ":", "nodes" + ENTER),
}
"""What to type to come to a screen that no action goes to by its name; `{user}` is one with several jobs."""
TYPED: Mapping[str, str] = {
    "filter": "status:running" + ENTER,
    "command": "sort age" + ENTER,
    "search": "run" + ENTER,
    "line": "5" + ENTER,
    "app.command_palette": "sort" + ESCAPE,
    "app.pause": "p",
}
"""What is typed after an action that asks for a text, or after one that is taken back by its own key."""


class Leg(NamedTuple):
    """One stretch of the tour: where it is, what to type on the way there, and what then."""

    screen: ScreenName
    way: tuple[str, ...]
    typed: tuple[str, ...]


def sent_for(key: str) -> str:
    """What a terminal sends for a key, by Textual's name of it. Raises KeyError for one that is not known."""
    if key in KEYS:
        return KEYS[key]
    if key.startswith("ctrl+") and len(key) == 6:
        return chr(ord(key[-1]) - ord("a") + 1)
    return key if len(key) == 1 else SHOWN_KEYS[key]


def way_to(screen: ScreenName) -> tuple[str, ...]:
    """What to type to come to a screen. Raises KeyError when no way is known."""
    for action in ACTIONS:
        if action.keys and action.call == f"app.go('{screen}')":
            return tuple(map(sent_for, action.keys[:1]))
    return PATHS[screen]


def is_known(screen: ScreenName) -> bool:
    """Whether a way to a screen is known; a test says of which it is not."""
    return screen in PATHS or any(action.call == f"app.go('{screen}')" for action in ACTIONS)


def tour(user: str) -> Iterator[Leg]:
    for screen in (screen for screen in ScreenName if is_known(screen)):
        way = tuple(words.replace("{user}", user) for words in way_to(screen))
        for action in actions_at(screen):
            for key in _keys(action):
                yield Leg(screen, way, (sent_for(key), *_afterwards(action)))


def _keys(action: Action) -> tuple[str, ...]:
    return () if action.call in LEAVING else action.keys


def _afterwards(action: Action) -> tuple[str, ...]:
    typed = TYPED.get(re.sub(r"\(.*", "", action.call))
    return (typed,) if typed else ()
