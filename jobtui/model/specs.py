"""What names a source: one value of a source setting, split into its parts. Opens nothing."""

from enum import StrEnum
from typing import NamedTuple


class LogRole(StrEnum):
    """Which process wrote a log file; `auto` finds out from its lines."""

    AUTO = "auto"
    SERVER = "server"
    SUPERVISOR = "supervisor"
    AGENT = "agent"


class SourceSpec(NamedTuple):
    """One source as configured: the setting that named it, what it reads, and the role of a log."""

    setting: str
    target: str
    role: LogRole = LogRole.AUTO


def parse_srdb(text: str) -> SourceSpec:
    """The source that `--srdb DIR` names. Raises ValueError when there is no directory in it."""
    if not text.strip() or "\0" in text:
        raise ValueError("expected a directory")
    return SourceSpec("srdb", text)


def parse_log(text: str) -> SourceSpec:
    """The source that `--log [ROLE=]FILE` names. Raises ValueError for an unknown role or no file.

    A word before the first `=` is always a role: a file whose own name has that form is given as `./a=b`.
    """
    head, equals, target = text.partition("=")
    if not equals or not head.isidentifier():
        role, target = LogRole.AUTO, text
    elif head in frozenset(LogRole):
        role = LogRole(head)
    else:
        raise ValueError(f'unknown role "{head}" of a log, expected one of {", ".join(LogRole)}')
    if not target.strip() or "\0" in target:
        raise ValueError("expected a file, or ROLE=FILE")
    return SourceSpec("log", target, role)
