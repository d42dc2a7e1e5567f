"""The keys that hold: those of the table of actions, with what a user wants otherwise."""

import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jobtui.actions import ACTIONS, SHOWN_KEYS, Action, Place, shown_key
from jobtui.model.settings import ANYWHERE, KeyWish

NEEDED = ("quit", "back", "keys")
"""Actions without which nobody finds the way out, nor what the keys are."""
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
"""Signs whose name as a key is not that of Unicode."""


class NoSuchKey(ValueError):
    """No key is called so. The text says what is right."""


class Clash(NamedTuple):
    """A key that means two actions on a screen; the key as a person writes it."""

    key: str
    place: str
    first: str
    second: str


def key_named(text: str) -> str:
    """The key that is meant by `ctrl+x`, `F5`, `/`, `g`, as the table of actions has it. Raises NoSuchKey."""
    *modifiers, name = [*text[:-2].split("+"), "+"] if text.endswith("++") else _parts(text)
    lowered = name.lower()
    if len(name) == 1:
        key = name if name.isalnum() else _BY_SHOWN.get(name) or _sign(name)
    elif lowered in _BY_SHOWN or lowered in NAMED:
        key = _BY_SHOWN.get(lowered, lowered)
    else:
        key = name if name in SHOWN_KEYS else ""
    if not key or any(modifier not in MODIFIERS for modifier in modifiers):
        raise NoSuchKey(f'no key is called "{text}"; such as g, G, /, F5, ctrl+x, shift+left, enter')
    if modifiers and len(name) == 1 and modifiers[-1] == "ctrl":
        key = key.lower()
    return "+".join((*modifiers, key))


def _parts(text: str) -> list[str]:
    return [text] if text == "+" else text.split("+")


def _sign(char: str) -> str:
    name = unicodedata.name(char, "").lower().replace("-", "_").replace(" ", "_")
    return _SIGNS.get(name, name) if char.isprintable() else ""


def with_wishes(wishes: Sequence[KeyWish]) -> tuple[Action, ...]:
    return tuple(one for action in ACTIONS for one in _wished(action, wishes))


def _wished(action: Action, wishes: Sequence[KeyWish]) -> Iterator[Action]:
    keys = action.keys
    elsewhere: dict[Place, tuple[str, ...]] = {}
    for wish in wishes:
        if wish.action != action.name:
            continue
        if wish.place == ANYWHERE:
            keys = wish.keys
        elif Place(wish.place) in action.places:
            elsewhere[Place(wish.place)] = wish.keys
    if places := action.places - elsewhere.keys():
        yield action._replace(keys=keys, places=frozenset(places))
    for place, own in elsewhere.items():
        yield action._replace(keys=own, places=frozenset({place}))


def clashes(wishes: Sequence[KeyWish]) -> Iterator[Clash]:
    told = set()
    actions = with_wishes(wishes)
    for place in Place:
        meaning: dict[str, Action] = {}
        for action in actions:
            for key in action.keys if place in action.places else ():
                first = meaning.setdefault(key, action)
                if first.call != action.call and (key, first.name, action.name) not in told:
                    told.add((key, first.name, action.name))
                    yield Clash(shown_key(key), place.value, first.name, action.name)


def unreachable(wishes: Sequence[KeyWish]) -> list[str]:
    return [name for name in NEEDED if any(one.name == name and not one.keys for one in with_wishes(wishes))]
