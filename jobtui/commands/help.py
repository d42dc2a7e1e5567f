"""Help, made from the tables of `grammar`."""

import shutil
import textwrap
from collections.abc import Iterable, Sequence

from jobtui.grammar import (
    COMMANDS,
    DASHBOARD,
    GENERAL_FLAGS,
    OUTPUT_FLAGS,
    SETTINGS,
    Argument,
    Command,
    Flag,
    Setting,
)

WIDEST = 100
NARROWEST = 40
INDENT = "  "

INTRODUCTION = (
    "What a scientific compute job is doing, what happened to it, and where to look next. It only ever reads."
)

PRECEDENCE = (
    "Each but --config is also a key of ~/.config/jobtui/config.toml (profiles are tables [profiles.NAME]) "
    "and a variable JOBTUI_NAME, where ; separates several. A flag wins over the environment, and that over "
    "the file."
)

FIRST_STEPS = (
    ("jobtui --srdb DIR --log supervisor=FILE", "the dashboard on these files"),
    ("jobtui --srdb DIR --log supervisor=FILE explain ID", "what is the matter with one job"),
    ("jobtui doctor", "what is read, and whether it can be"),
    ("jobtui demo", "a simulated job system, to look around in"),
)
"""What somebody types first; ID is an id, or anything pasted that names a job."""

EXIT_CODES = (
    ("0", "fine"),
    ("1", "the job failed, or doctor found a fault"),
    ("2", "wrong usage"),
    ("3", "the job is stuck or needs a person"),
    ("4", "not found or ambiguous"),
    ("5", "no source could be read"),
    ("130", "interrupted; what was read until then is printed"),
)

_Row = tuple[str, str]


def help_text(command: Command) -> str:
    """The help of a command; for the dashboard that of the whole program."""
    width = max(NARROWEST, min(WIDEST, shutil.get_terminal_size().columns))
    lines = _program(width) if command is DASHBOARD else _command(command, width)
    return "\n".join(lines) + "\n"


def _program(width: int) -> Iterable[str]:
    yield from textwrap.wrap(f"jobtui: {INTRODUCTION}", width)
    yield ""
    yield f"Usage: jobtui [FLAGS] {usage_of(DASHBOARD.argument)}"
    yield "       jobtui [FLAGS] COMMAND ...   (jobtui COMMAND --help tells more)"
    yield from _section("First steps", FIRST_STEPS, width)
    yield from _section("Dashboard", [(usage_of(DASHBOARD.argument), DASHBOARD.summary)], width)
    yield from _section("Commands, which print and end", [_command_row(c) for c in COMMANDS], width)
    yield from _section("Sources and settings", [_setting_row(s) for s in SETTINGS], width)
    yield from textwrap.wrap(PRECEDENCE, width, initial_indent=INDENT, subsequent_indent=INDENT)
    yield from _section("Output", [_flag_row(f) for f in OUTPUT_FLAGS], width)
    yield from _section("Other", [_flag_row(f) for f in GENERAL_FLAGS], width)
    yield from _section("Exit codes", EXIT_CODES, width)


def _command(command: Command, width: int) -> Iterable[str]:
    yield from textwrap.wrap(f"jobtui {command.name}: {command.summary}", width)
    yield ""
    yield f"Usage: jobtui [FLAGS] {command.name} {usage_of(command.argument)}".rstrip()
    if command.argument:
        yield from _section("Argument", [(command.argument.name, command.argument.help)], width)
    if command.flags:
        yield from _section("Flags", [_flag_row(f) for f in command.flags], width)
    if command.prints:
        yield from _section("Output", [_flag_row(f) for f in OUTPUT_FLAGS], width)
    yield from _section("Sources and settings", [_setting_row(s) for s in SETTINGS], width)


def usage_of(argument: Argument | None) -> str:
    """How an argument stands in a usage line."""
    if argument is None:
        return ""
    name = argument.name + (" ..." if argument.many else "")
    return name if argument.required else f"[{name}]"


def _command_row(command: Command) -> _Row:
    return f"{command.name} {usage_of(command.argument)}".rstrip(), command.summary


def _setting_row(setting: Setting) -> _Row:
    more = " (repeatable)" if setting.repeatable else ""
    return f"{setting.flag} {setting.metavar or ''}".rstrip(), setting.help + more


def _flag_row(flag: Flag) -> _Row:
    short = f"-{flag.short}, " if flag.short else ""
    return f"{short}{flag.flag} {flag.metavar or ''}".rstrip(), flag.help


def _section(title: str, rows: Sequence[_Row], width: int) -> Iterable[str]:
    yield ""
    yield title
    column = min(max(len(name) for name, _ in rows) + 4, width // 2)
    for name, text in rows:
        folded = textwrap.wrap(text, width - column) or [""]
        head = INDENT + name
        if len(head) + 1 >= column:
            yield head
        else:
            yield f"{head:<{column}}{folded.pop(0)}"
        yield from (f"{'':<{column}}{line}" for line in folded)
