"""Where in a TOML file its keys and values stand, which `tomllib` does not tell.

Made for text that `tomllib` has read, so that it looks for the ends of keys and values and checks nothing;
what it does not understand has no place. A key defined in several parts (`[a.b]`, then `a.c = 1`) is where
it is first named. Format: https://toml.io/en/v1.0.0
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

Keys = tuple[str | int, ...]
"""The keys that lead to a value, from the top; numbers count items of lists."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRINGS = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r'"""(?:\\.|[^\\])*?"{3,5}(?!")',
        r"'''.*?'{3,5}(?!')",
        r'"(?:\\.|[^"\\\n])*"',
        r"'[^'\n]*'",
    )
)
_OTHER = re.compile(r"[^,\]}#\n]+")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)


class Place(NamedTuple):
    """A line and a column of it, both from 1 on, columns in characters."""

    line: int
    column: int


class Places(NamedTuple):
    """Where keys and where their values begin; tables have keys only."""

    keys: dict[Keys, Place]
    values: dict[Keys, Place]

    def of(self, keys: Keys) -> Place:
        """The place of a value, else of its key, else of what it is in; else the beginning."""
        while keys:
            if place := self.values.get(keys) or self.keys.get(keys):
                return place
            keys = keys[:-1]
        return Place(1, 1)

    def of_key(self, keys: Keys) -> Place:
        """The place of a key, else of what it is in."""
        return self.keys.get(keys) or self.of(keys)


def places_of(text: str) -> Places:
    """The places of all keys and values of a TOML document."""
    scan = _Scan(text)
    with suppress(_Lost, RecursionError):  # what comes behind has no place of its own
        scan.document()
    return scan.places


class _Lost(Exception):
    """Something is not as expected."""


class _Scan:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self._lists: dict[Keys, int] = {}
        self.places = Places({}, {})

    def document(self) -> None:
        table: Keys = ()
        while True:
            self._skip(_BLANK)
            if self._at >= len(self._text):
                return
            if self._next("["):
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> Keys:
        """The keys of `[a.b]` or `[[a.b]]`, where each list among them leads to its last item."""
        is_list = self._next("[[")
        self._at += 1 + is_list
        keys: Keys = ()
        names = list(self._names())
        for number, (name, at) in enumerate(names, 1):
            keys = (*keys, name)
            self.places.keys.setdefault(keys, self._place(at))
            if is_list and number == len(names):
                self._lists[keys] = self._lists.get(keys, -1) + 1
            if keys in self._lists:
                keys = (*keys, self._lists[keys])
        self._take("]]" if is_list else "]")
        return keys

    def _pair(self, table: Keys) -> None:
        keys = table
        for name, at in self._names():
            keys = (*keys, name)
            self.places.keys.setdefault(keys, self._place(at))
        self._take("=")
        self._skip(_SPACE)
        self._value(keys)

    def _names(self) -> Iterator[tuple[str, int]]:
        """The parts of a dotted key, each with where it begins."""
        while True:
            self._skip(_SPACE)
            at = self._at
            word = self._match(_BARE) or self._string()
            yield (word if word[0] not in "\"'" else _content(word)), at
            self._skip(_SPACE)
            if not self._next("."):
                return
            self._at += 1

    def _value(self, keys: Keys) -> None:
        self.places.values.setdefault(keys, self._place(self._at))
        if self._next("["):
            self._items(keys)
        elif self._next("{"):
            self._inline(keys)
        elif self._next('"') or self._next("'"):
            self._string()
        elif not self._match(_OTHER):
            raise _Lost

    def _items(self, keys: Keys) -> None:
        self._at += 1
        number = 0
        while True:
            self._skip(_BLANK)
            if self._next("]"):
                self._at += 1
                return
            self._value((*keys, number))
            number += 1
            self._skip(_BLANK)
            if self._next(","):
                self._at += 1

    def _inline(self, keys: Keys) -> None:
        self._at += 1
        while True:
            self._skip(_BLANK)
            if self._next("}"):
                self._at += 1
                return
            self._pair(keys)
            self._skip(_BLANK)
            if self._next(","):
                self._at += 1

    def _string(self) -> str:
        for pattern in _STRINGS:
            if found := self._match(pattern):
                return found
        raise _Lost

    def _next(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _take(self, text: str) -> None:
        self._skip(_SPACE)
        if not self._next(text):
            raise _Lost
        self._at += len(text)

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found[0] if found else ""

    def _skip(self, pattern: re.Pattern[str]) -> None:
        self._match(pattern)

    def _place(self, at: int) -> Place:
        line = bisect_right(self._lines, at)
        return Place(line, at - self._lines[line - 1] + 1)


def _content(string: str) -> str:
    """What a quoted key says."""
    if string[0] == "'":
        return string[1:-1]
    return _ESCAPE.sub(_unescaped, string[1:-1])


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    return chr(int(code, 16)) if code else _ESCAPES.get(match[3], match[3])
