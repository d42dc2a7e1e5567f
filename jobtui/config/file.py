"""The configuration file: its content, the position of everything in it, and all that is wrong with it."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from jobtui.model.patterns import regex
from jobtui.model.tables import home_of


class ConfigError(Exception):
    """Settings are wrong. Each of `lines` is one mistake: where it is, and what is right."""

    def __init__(self, *lines: str) -> None:
        self.lines = lines
        super().__init__("\n".join(lines))


Keys = tuple[str | int, ...]
"""The keys that lead to a value, from the top; numbers count items of lists."""

_NAME = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""
_NAMES = rf"{_NAME}(?:[ \t]*\.[ \t]*{_NAME})*"
_BARE = regex(r"[A-Za-z0-9_-]+")
_ONE_NAME = regex(_NAME)
_HEADER = regex(rf"[ \t]*\[\[?[ \t]*({_NAMES})[ \t]*\]")
_PAIR = regex(rf"[ \t]*({_NAMES})[ \t]*=[ \t]*")


class SettingPosition(NamedTuple):
    """A line and a column of it, both from 1 on, columns in characters."""

    line: int
    column: int


class SettingPositions(NamedTuple):
    """Where keys and where their values begin; tables have keys only."""

    keys: dict[Keys, SettingPosition]
    values: dict[Keys, SettingPosition]

    def of(self, keys: Keys) -> SettingPosition:
        """The position of a value, else of its key, else of the table around it; else the beginning."""
        while keys:
            if position := self.values.get(keys) or self.keys.get(keys):
                return position
            keys = keys[:-1]
        return SettingPosition(1, 1)


def positions_of(text: str) -> SettingPositions:
    """Line and column of the keys and values of a TOML document, of each that begins a line."""
    positions, table = SettingPositions({}, {}), Keys()
    for number, line in enumerate(text.split("\n"), 1):
        if found := _HEADER.match(line):
            table = _noted(positions, (), found, number)
        elif found := _PAIR.match(line):
            keys = _noted(positions, table, found, number)
            positions.values.setdefault(keys, SettingPosition(number, found.end() + 1))
    return positions


def _noted(positions: SettingPositions, table: Keys, found: re.Match[str], line: int) -> Keys:
    """Note line and column of each name of a dotted key; gives the whole key."""
    import tomllib  # a file was read, so it is loaded already

    keys = table
    for name in _ONE_NAME.finditer(found[1]):
        text = name[0]
        if text[0] in "\"'":
            with suppress(tomllib.TOMLDecodeError):  # in a text of several lines
                text = str(tomllib.loads(f"name = {text}")["name"])
        keys = (*keys, text)
        positions.keys.setdefault(keys, SettingPosition(line, found.start(1) + name.start() + 1))
    return keys


FILE_NAME = "config.toml"
PROFILES = "profiles"
FILE_SIZE_LIMIT = 1 << 20
"""A larger file is refused: it is not a configuration file."""
_AT = regex(r" \(at line (\d+), column (\d+)\)$")
_TOO_LONG = regex(r"[0-9_]{4300,}")
_KINDS: Mapping[type, str] = {
    bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list", dict: "a table",
}  # fmt: skip


class ConfigFile:
    """What a configuration file holds; `document` is None when there is none.

    Mistakes are noted and not raised, so that the user sees all of them at once.
    """

    def __init__(self, path: str, document: dict[str, object] | None = None, text: str = "") -> None:
        self.path = path
        self.document = document
        self.positions = positions_of(text) if text else SettingPositions({}, {})
        self._mistakes: list[tuple[SettingPosition, str]] = []

    @property
    def base(self) -> str:
        return os.path.dirname(self.path)

    def origin(self, keys: Keys) -> str:
        return f"{self.path}:{self.positions.of(keys).line}"

    def wrong(self, keys: Keys, text: str, *, is_key: bool = False) -> None:
        from jobtui.model.secrets import mask_text  # only needed for an error

        position = (self.positions.keys.get(keys) if is_key else None) or self.positions.of(keys)
        named = keys[:-1] if is_key else keys
        self._mistakes.append((position, f"{mask_text(dotted(named))}: {text}" if named else text))

    def wrong_kind(self, keys: Keys, expected: str, value: object) -> None:
        self.wrong(keys, f"expected {expected}, found {kind_of(value)}")

    def mistakes(self) -> Iterator[str]:
        for position, text in sorted(self._mistakes, key=lambda mistake: mistake[0]):
            yield f"{self.path}:{position.line}:{position.column}: {text}"

    def profiles(self) -> dict[str, dict[str, object]]:
        profiles = (self.document or {}).get(PROFILES, {})
        return {
            name: table
            for name, table in (profiles.items() if isinstance(profiles, dict) else ())
            if isinstance(table, dict)
        }

    def sections(self, profile: str | None) -> Iterator[tuple[Keys, dict[str, object], bool]]:
        yield (), self.document or {}, True
        for name, table in self.profiles().items():
            yield (PROFILES, name), table, name == profile

    def tables(self, name: str, profile: str | None) -> Iterator[tuple[Keys, dict[str, object], bool]]:
        """The tables of this name at the top and in profiles; anything else of this name is a mistake."""
        for keys, section, holds in self.sections(profile):
            if name not in section:
                continue
            table = section[name]
            if isinstance(table, dict):
                yield (*keys, name), table, holds
            else:
                self.wrong_kind((*keys, name), f"a table [{dotted((*keys, name))}]", table)

    def check_profiles(self) -> None:
        profiles = (self.document or {}).get(PROFILES, {})
        if not isinstance(profiles, dict):
            self.wrong((PROFILES,), f"expected tables [{PROFILES}.NAME]")
            return
        for name, table in profiles.items():
            if not isinstance(table, dict):
                self.wrong_kind((PROFILES, name), "a table", table)


def user_file() -> str:
    return os.path.join(home_of("CONFIG"), "jobtui", FILE_NAME)


def read_file(path: str | None, asked_by: str) -> ConfigFile:
    """The configuration file at the given path, else the user's. Raises ConfigError."""
    given, path = path, os.path.expanduser(path) if path else user_file()
    try:
        os.lstat(path)
        from jobtui.transport.files import read_given  # most have no such file

        content = read_given(path, FILE_SIZE_LIMIT + 1)
    except FileNotFoundError:
        if given:
            raise ConfigError(f"{path}: no such configuration file ({asked_by})") from None
        return ConfigFile(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > FILE_SIZE_LIMIT:
        raise ConfigError(f"{path}: larger than {FILE_SIZE_LIMIT} bytes, not a configuration file")
    return parse_file(path, content)


def parse_file(path: str, content: bytes) -> ConfigFile:
    """A configuration file of this content. Raises ConfigError."""
    import tomllib  # costs 20 ms, and most have no configuration file

    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise ConfigError(f"{path}:{line}:{column}: not UTF-8") from error
    text = text.replace("\r\n", "\n")
    try:
        return ConfigFile(path, tomllib.loads(text), text)
    except RecursionError as error:
        raise ConfigError(f"{path}: not TOML: nested too deeply") from error
    except tomllib.TOMLDecodeError as error:
        # The parser's message, with the position before it; at the end of the file it gives none
        at, said = _AT.search(str(error)), _AT.sub("", str(error)).removesuffix(" (at end of document)")
        position = (at[1], at[2]) if at else (text.count("\n") + 1, len(text) - text.rfind("\n"))
        raise ConfigError(f"{path}:{position[0]}:{position[1]}: not TOML: {said}") from error
    except ValueError as error:  # for a number that Python cannot read
        line = text.count("\n", 0, found.start()) + 1 if (found := _TOO_LONG.search(text)) else 1
        raise ConfigError(f"{path}:{line}: a number has thousands of digits") from error


def dotted(keys: Keys) -> str:
    """Keys as TOML writes them, without indexes of lists."""
    names = [key for key in keys if isinstance(key, str)]
    return ".".join(name if _BARE.fullmatch(name) else f'"{name}"' for name in names)


def leaves(keys: Keys, table: Mapping[str, object]) -> Iterator[tuple[Keys, object]]:
    """The entries of a table, also those of tables in it: `status.failed` needs no quotes."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from leaves((*keys, key), value)
        else:
            yield (*keys, key), value


def kind_of(value: object) -> str:
    if isinstance(value, list):
        odd = next((item for item in value if not isinstance(item, str)), None)
        return "a list" if odd is None else f"a list with {kind_of(odd)}"
    return _KINDS.get(type(value), type(value).__name__)
