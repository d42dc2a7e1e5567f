"""The command line as tables: settings, flags, commands.

The parser, help, completion, `JOBTUI_*` variables, the keys of the configuration file and `jobtui config` are
all made from them: a flag is one entry. A setting may also be given in the environment and in the
configuration file; a flag may not. Settings that name sources are made of the descriptors in
`backends.registry`. Parses nothing itself.

Commands and flags are in `grammar.json`, which is written by hand: a word in place of an argument or a flag
is one of `shared`, and a flag with a metavar takes a value, a text unless it says what.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from jobtui.backends.registry import SOURCES
from jobtui.model import spelling
from jobtui.model.specs import SourceSpec
from jobtui.model.tables import text_of


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the nearest known one, "" if none is near."""
    found = spelling.nearest(word, known)
    return f'; did you mean "{found}"?' if found and found != word else ""


ENVIRONMENT_PREFIX = "JOBTUI_"


class Setting(NamedTuple):
    """One setting. `name` is its key; `--name` is the flag and `JOBTUI_NAME` the variable.

    `completes` names what a shell may offer: `file`, `directory` or nothing. Those of sources have `parse`.
    One with `choices` is one of these words, one with `most` a whole number up to that.
    """

    name: str
    metavar: str
    help: str
    repeatable: bool = False
    in_files: bool = True
    in_profiles: bool = True
    completes: str = ""
    parse: Callable[[str], SourceSpec] | None = None
    is_time: bool = False
    choices: tuple[str, ...] = ()
    most: int = 0

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return ENVIRONMENT_PREFIX + self.name.upper()


class Option(NamedTuple):
    """One flag of the command line that is not a setting. Its value may have to be one that it `expects`: a
    `count` or a `regex`. One that `frees` lets the argument be anything.
    """

    name: str
    help: str
    short: str | None = None
    metavar: str | None = None
    expects: str = ""
    frees: bool = False

    @property
    def flag(self) -> str:
        return f"--{self.name}"


class Argument(NamedTuple):
    """The words after a command. `many` words are joined with spaces."""

    name: str
    help: str
    required: bool = True
    many: bool = False
    dashes: bool = False
    choices: tuple[str, ...] = ()


class Subcommand(NamedTuple):
    """One command; `jobtui.commands.<name>` runs it. The dashboard has no name.

    `reads` are settings of time that it takes for words of its own when they are given as flags, with what
    they mean there. After the argument of one that `wraps`, or in its place, comes a command line.
    """

    name: str
    summary: str
    argument: Argument | None = None
    flags: tuple[Option, ...] = ()
    prints: bool = True
    reads: tuple[Option, ...] = ()
    wraps: bool = False


class Invocation(NamedTuple):
    """A parsed command line: the command, its words, and the flags by name with their values."""

    command: Subcommand
    words: tuple[str, ...]
    settings: Mapping[str, tuple[str, ...]]
    flags: Mapping[str, str]
    inner: "Invocation | None" = None
    """The inner command line of one that wraps another."""


SETTINGS: tuple[Setting, ...] = (
    *(
        Setting(
            one.setting, one.metavar, one.help, repeatable=True, completes=one.completes,
            parse=one.parse,
        )
        for one in SOURCES
        if one.setting
    ),
    Setting(
        "ca_file", "FILE", "certificates to trust for trace servers, instead of the system's",
        completes="file",
    ),
    Setting(
        "kafka_config", "FILE", "settings of librdkafka, such as a login, one name=value per line",
        completes="file",
    ),
    Setting(
        "job_attribute", "NAME", "attribute of spans that holds the id of their job, instead of the usual",
        repeatable=True,
    ),
    Setting(
        "journal_unit", "UNIT", "read this unit of journals instead of Sirepo's own; may have wildcards",
        repeatable=True,
    ),
    Setting(
        "theme", "NAME", "colours of the dashboard: auto, dark, light, ansi or none",
        choices=("auto", "dark", "light", "ansi", "none"),
    ),
    Setting(
        "glyphs", "SET", "signs and lines to draw with: auto, unicode, console or ascii",
        choices=("auto", "unicode", "console", "ascii"),
    ),
    Setting(
        "clipboard", "WAY", "how to copy: auto, osc52, tmux, file or off",
        choices=("auto", "osc52", "tmux", "file", "off"),
    ),
    Setting(
        "mouse", "WHEN", "whether to take the mouse: on, off, or auto, not over ssh",
        choices=("auto", "on", "off"),
    ),
    Setting("title", "WHEN", "whether to set the title of the window: on or off", choices=("on", "off")),
    Setting("fps", "N", "paint at most N times a second", most=120),
    Setting(
        "profile", "NAME", "the profile of the configuration file to use, or several separated by commas",
        in_profiles=False,
    ),
    Setting("config", "FILE", "the configuration file to read", in_files=False, completes="file"),
    Setting("since", "TIME", "leave out what is older: a UTC time, or an age such as 2h", is_time=True),
    Setting("until", "TIME", "leave out what is newer", is_time=True),
    Setting("at", "TIME", "take this as the current time", is_time=True),
)  # fmt: skip

SETTING_BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}


def _option(said: str | dict[str, Any]) -> Option:
    if isinstance(said, str):
        return _option(_TABLES["shared"][said])
    return Option(**said)


def _argument(said: str | dict[str, Any]) -> Argument:
    if isinstance(said, str):
        return _argument(_TABLES["shared"][said])
    return Argument(**{**said, "choices": tuple(said.get("choices", ()))})


def _subcommand(said: dict[str, Any]) -> Subcommand:
    argument, flags = said.get("argument"), tuple(map(_option, said.get("flags", ())))
    made = {
        "argument": argument and _argument(argument),
        "flags": flags,
        "reads": tuple(map(_option, said.get("reads", ()))),
    }
    return Subcommand(**{**said, **made})


_TABLES = json.loads(text_of("jobtui", "grammar.json"))  # TOML takes 8 ms longer at each start
OUTPUT_FLAGS = tuple(map(_option, _TABLES["output_flags"]))
GENERAL_FLAGS = tuple(map(_option, _TABLES["general_flags"]))
DASHBOARD = _subcommand(_TABLES["dashboard"])
COMMANDS = tuple(map(_subcommand, _TABLES["command"]))
COMMAND_BY_NAME: Mapping[str, Subcommand] = {command.name: command for command in COMMANDS}


def flags_of(command: Subcommand) -> tuple[Option, ...]:
    return command.flags + (OUTPUT_FLAGS if command.prints else ()) + GENERAL_FLAGS
