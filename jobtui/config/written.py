"""What stands in the tables of a configuration file, for somebody who wants to know what holds and why."""

from collections.abc import Iterator
from typing import NamedTuple

from jobtui.config.file import dotted, parse_file, read_file
from jobtui.config.loading import resolved
from jobtui.config.toml_places import Keys
from jobtui.config.values import TABLES

OPEN = frozenset({"user", "ca_file", "bearer_file"})
"""What may be shown of how a server wants to be asked."""


class Written(NamedTuple):
    """An entry of a table: its name from the table on, its value in words, and where it stands."""

    name: str
    value: str
    origin: str


def written_tables(path: str, profile: str | None) -> Iterator[Written]:
    """The entries of all tables that hold with this profile. Raises ConfigError when it cannot be read."""
    file = read_file(path, "")
    for name in TABLES:
        for keys, table, holds in file.tables(name, profile):
            for at, value in _leaves(keys, table) if holds else ():
                named = at[len(keys) - 1 :]
                is_open = name != "servers" or at[-1] in OPEN
                yield Written(dotted(named), _words(value) if is_open else "given", file.origin(at))


def _leaves(keys: Keys, table: dict[str, object]) -> Iterator[tuple[Keys, object]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves((*keys, key), value)
        else:
            yield (*keys, key), value


def _words(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def check_text(path: str, text: str) -> None:
    """Whether this text would do as the configuration file at a path. Raises ConfigError."""
    resolved(parse_file(path, text.encode()), {}, {})
