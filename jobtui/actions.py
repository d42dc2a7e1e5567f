"""Every action and its keys, in one table from which bindings, footer, help and palette are made."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from jobtui.model.settings import ANYWHERE, KeyWish
from jobtui.model.tables import tables_of


class ScreenName(StrEnum):
    JOBS = "jobs"
    JOB = "job"
    AGENTS = "agents"
    CHARTS = "charts"
    SOURCES = "sources"
    INCIDENTS = "incidents"
    ALLOCATIONS = "allocations"
    NODES = "nodes"
    READING = "reading"
    LOGS = "logs"
    CHOOSING = "choosing"
    COLUMNS = "columns"
    LOG_SET = "log set"
    FACETS = "log values"
    TRACES = "traces"
    TRACE = "trace"
    TRACE_CHANGES = "trace changes"
    SEEN = "seen"


EVERYWHERE = frozenset(ScreenName)


class Topic(StrEnum):
    """A heading of the help screen."""

    GO = "Go to"
    MOVE = "Move"
    LOOK = "Look at jobs"
    JOB = "On one job"
    LOGS = "Read logs"
    CHARTS = "Look at charts"
    TRACES = "Look at a trace"
    TAKE = "Copy and export"
    REPLAY = "Replay a recording"
    PROGRAM = "Program"


OF_ONE_SCREEN = frozenset({Topic.JOB, Topic.LOGS, Topic.CHARTS, Topic.TRACES})
"""Topics whose name is that of a screen."""
FEW_SCREENS = 3


class Action(NamedTuple):
    """One thing a user can do.

    `keys` are Textual's names of keys, the first one is shown; `call` is what is called on the screen (`app.`
    before it: on the app). `hint` is its word in the footer, None if it is not there; the lowest `rank` stay.
    """

    call: str
    keys: tuple[str, ...]
    help: str
    topic: Topic
    screens: frozenset[ScreenName] = EVERYWHERE
    hint: str | None = None
    rank: int = 3

    @property
    def name(self) -> str:
        words = NAMES.get(self.call) or self.call.removeprefix("app.")
        return words.replace("('", "-").replace("')", "").replace("_", "-")

    @property
    def found_by(self) -> str:
        return f"{self.name} {_TABLE['synonyms'].get(self.call, '')}"

    @property
    def shown_keys(self) -> str:
        """Its keys as a person writes them; for a screen without a key the command that goes there."""
        if not self.keys and self.call.startswith("app.go("):
            return ":" + self.call.split("'")[1]
        return " ".join(map(shown_key, self.keys))

    def is_of(self, screen: ScreenName) -> bool:
        return screen in self.screens and len(self.screens) <= FEW_SCREENS

    @property
    def where(self) -> str:
        if self.topic in OF_ONE_SCREEN or len(self.screens) > FEW_SCREENS:
            return ""
        return ", ".join(sorted(self.screens))


_SORTED = frozenset(map(ScreenName, ("jobs", "agents", "nodes", "traces", "seen")))
_SCREENS = {
    "everywhere": EVERYWHERE,
    "not logs": EVERYWHERE - {ScreenName.LOGS},
    "sorted": _SORTED,
    "about jobs": frozenset({ScreenName.JOBS, ScreenName.JOB}),
    "marking": frozenset({ScreenName.JOBS, ScreenName.TRACES}),
    "some traces": frozenset({ScreenName.TRACES, ScreenName.TRACE}),
    "lists": _SORTED | {ScreenName.JOB, ScreenName.SOURCES, ScreenName.INCIDENTS},
    **{screen.value: frozenset({screen}) for screen in ScreenName},
}
_TABLE = tables_of("jobtui", "actions")
NAMES: Mapping[str, str] = _TABLE["names"]
SHOWN_KEYS: Mapping[str, str] = _TABLE["keys"]
ACTIONS = tuple(
    Action(call, tuple(keys.split()), help, Topic[topic], _SCREENS[screens], hint or None, rank)
    for call, keys, help, topic, screens, hint, rank in _TABLE["actions"]
)
"""All actions, in the order of footer and help."""


class Keymap:
    """The actions with their keys in this process: those of the table, or those that the user wants."""

    actions = ACTIONS
    in_words = False
    """Whether keys are written without signs such as arrows, which some terminals cannot show."""


def shown_key(key: str) -> str:
    shown = SHOWN_KEYS.get(key, key)
    return key if Keymap.in_words and not shown.isascii() else shown


def actions_at(screen: ScreenName) -> Iterator[Action]:
    return (action for action in Keymap.actions if screen in action.screens)


def key_of(call: str, screen: ScreenName = ScreenName.JOBS) -> str:
    """The key of an action on a screen as a person writes it, "" if it has none there."""
    keys = next((action.keys for action in actions_at(screen) if action.call == call), ())
    return shown_key(keys[0]) if keys else ""


class Hint(NamedTuple):
    key: str
    word: str
    rank: int


def hints_at(screen: ScreenName) -> list[Hint]:
    """The footer of a screen; one entry for all screens if their keys are digits."""
    needless = {f"app.go('{screen}')"} | ({"back"} if screen is ScreenName.JOBS else set())
    screens = [one for one in actions_at(screen) if one.call.startswith("app.go(") and one.keys]
    digits = "".join(one.keys[0] for one in screens)
    in_one: list[Hint] = []
    if digits and digits in "123456789":
        needless.update(one.call for one in screens)
        in_one = [Hint(f"{digits[0]}-{digits[-1]}", "screens", 3)]
    return in_one + [
        Hint(shown_key(action.keys[0]), action.hint, action.rank)
        for action in actions_at(screen)
        if action.hint and action.keys and action.call not in needless
    ]


NEEDED = ("quit", "back", "keys")
"""Actions that must keep a key: to leave, and to see the keys."""
NAMED = frozenset(
    (
        "enter", "escape", "tab", "space", "backspace", "delete", "insert", "home", "end", "pageup",
        "pagedown", "up", "down", "left", "right", *(f"f{number}" for number in range(1, 25)),
    )
)  # fmt: skip
MODIFIERS = ("ctrl", "alt", "shift")
_BY_SHOWN = {shown: name for name, shown in SHOWN_KEYS.items()} | {"esc": "escape", "return": "enter"}
_SIGNS = {"solidus": "slash", "reverse_solidus": "backslash", "commercial_at": "at", "hyphen_minus": "minus",
          "plus_sign": "plus", "low_line": "underscore"}  # fmt: skip
"""Signs whose key name is not their Unicode name."""


class NoSuchKey(ValueError):
    """There is no such key. The text says what is right."""


def key_named(text: str) -> str:
    """The key meant by `ctrl+x`, `F5`, `/` or `g`, in the form of the table. Raises NoSuchKey."""
    before, plus, name = text.rpartition("+")
    if plus and not name:
        before, name = before.removesuffix("+"), "+"
    modifiers = before.split("+") if before else []
    lowered = name.lower()
    if len(name) == 1:
        sign = unicodedata.name(name, "").lower().replace("-", "_").replace(" ", "_") * name.isprintable()
        key = name if name.isalnum() else _BY_SHOWN.get(name) or _SIGNS.get(sign, sign)
    elif lowered in _BY_SHOWN or lowered in NAMED:
        key = _BY_SHOWN.get(lowered, lowered)
    else:
        key = name if name in SHOWN_KEYS else ""
    if not key or any(modifier not in MODIFIERS for modifier in modifiers):
        raise NoSuchKey(f'unknown key "{text}"; such as g, G, /, F5, ctrl+x, shift+left, enter')
    if modifiers and len(name) == 1 and modifiers[-1] == "ctrl":
        key = key.lower()
    return "+".join((*modifiers, key))


def with_wishes(wishes: Sequence[KeyWish]) -> tuple[Action, ...]:
    """The actions with the keys that a user wants; one entry per screen if keys differ by screen."""
    actions: list[Action] = []
    for action in ACTIONS:
        keys, elsewhere = action.keys, dict[ScreenName, tuple[str, ...]]()
        for wish in wishes:
            if wish.action != action.name:
                continue
            if wish.screen == ANYWHERE:
                keys = wish.keys
            elif ScreenName(wish.screen) in action.screens:
                elsewhere[ScreenName(wish.screen)] = wish.keys
        if screens := action.screens - elsewhere.keys():
            actions.append(action._replace(keys=keys, screens=frozenset(screens)))
        actions += [action._replace(keys=own, screens=frozenset({at})) for at, own in elsewhere.items()]
    return tuple(actions)


def clashes(wishes: Sequence[KeyWish]) -> Iterator[tuple[str, str, str, str]]:
    """The keys with two actions on a screen: the key as a person writes it, the screen, both actions."""
    seen = set()
    actions = with_wishes(wishes)
    for screen in ScreenName:
        meaning: dict[str, Action] = {}
        for action in actions:
            for key in action.keys if screen in action.screens else ():
                first = meaning.setdefault(key, action)
                if first.call != action.call and (key, first.name, action.name) not in seen:
                    seen.add((key, first.name, action.name))
                    yield shown_key(key), screen.value, first.name, action.name


def unreachable(wishes: Sequence[KeyWish]) -> list[str]:
    return [name for name in NEEDED if any(one.name == name and not one.keys for one in with_wishes(wishes))]
