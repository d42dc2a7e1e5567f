"""What settings, flags, arguments and commands are made of."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple

from jobtui.model.specs import SourceSpec

ENVIRONMENT_PREFIX = "JOBTUI_"


class Kind(StrEnum):
    """What the values of a setting are."""

    SOURCE = "source"
    TIME = "time"
    TEXT = "text"


class Scope(StrEnum):
    """Where a setting may be given, beside flags and environment."""

    ANYWHERE = "anywhere"
    FILE = "file"
    NOWHERE = "nowhere"


class Setting(NamedTuple):
    """One setting. `name` is its key; `--name` is the flag and `JOBTUI_NAME` the variable.

    `metavar` is None for a switch. `completes` names what a shell may offer: `file`, `directory` or nothing.
    One with `choices` is one of these words, one with `most` a whole number up to that.
    """

    name: str
    metavar: str | None
    help: str
    kind: Kind
    repeatable: bool = False
    scope: Scope = Scope.ANYWHERE
    completes: str = ""
    parse: Callable[[str], SourceSpec] | None = None
    choices: tuple[str, ...] = ()
    most: int = 0

    @property
    def flag(self) -> str:
        """How it is written on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """How it is written in the environment."""
        return ENVIRONMENT_PREFIX + self.name.upper()


class Expects(StrEnum):
    """What the value of a flag must be."""

    NOTHING = "nothing"
    TEXT = "text"
    COUNT = "count"
    REGEX = "regex"


class Flag(NamedTuple):
    """One flag of the command line that is no setting. One that `frees` lets the argument be anything."""

    name: str
    help: str
    short: str | None = None
    metavar: str | None = None
    expects: Expects = Expects.NOTHING
    choices: tuple[str, ...] = ()
    frees: bool = False

    @property
    def flag(self) -> str:
        """How it is written on the command line."""
        return f"--{self.name}"


class Argument(NamedTuple):
    """What stands behind a command. `many` words are joined with spaces."""

    name: str
    help: str
    required: bool = True
    many: bool = False
    dashes: bool = False
    choices: tuple[str, ...] = ()


class Command(NamedTuple):
    """One command; `jobtui.commands.<name>` runs it. `opens` marks the dashboard, which has no name.

    `reads` are settings of time that it takes for words of its own when they are given as flags. What stands
    behind the argument of one that `wraps` is a command line of its own.
    """

    name: str
    summary: str
    argument: Argument | None = None
    flags: tuple[Flag, ...] = ()
    prints: bool = True
    reads: tuple[str, ...] = ()
    wraps: bool = False


class Invocation(NamedTuple):
    """A command line, understood: which command, its words, and the flags by name with their values."""

    command: Command
    words: tuple[str, ...]
    settings: Mapping[str, tuple[str, ...]]
    flags: Mapping[str, str]
    inner: "Invocation | None" = None
    """The command line behind one that wraps another."""
