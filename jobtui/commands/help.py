"""Help, made from the tables of `grammar`."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jobtui import grammar
from jobtui.model.tables import tables_of

INDENT = "  "

_Row = Sequence[str]


def help_table() -> Mapping[str, Any]:
    return tables_of("jobtui.commands", "help")


def help_text(command: grammar.Subcommand) -> str:
    import shutil  # takes as long as all the rest

    width = max(40, min(100, shutil.get_terminal_size().columns))
    lines = _program(width) if command is grammar.DASHBOARD else _command(command, width)
    return "\n".join(lines) + "\n"


def _program(width: int) -> Iterable[str]:
    commands = [(f"{one.name} {usage_of(one.argument)}".rstrip(), one.summary) for one in grammar.COMMANDS]
    settings = [
        (f"{one.flag} {one.metavar or ''}".rstrip(), one.help + (" (repeatable)" if one.repeatable else ""))
        for one in grammar.SETTINGS
    ]
    yield from textwrap.wrap(f"jobtui: {help_table()['introduction']}", width)
    yield ""
    yield f"Usage: jobtui [FLAGS] {usage_of(grammar.DASHBOARD.argument)}"
    yield "       jobtui [FLAGS] COMMAND ...   (more: jobtui COMMAND --help)"
    yield from _section("First steps", help_table()["first_steps"], width)
    dashboard = usage_of(grammar.DASHBOARD.argument), grammar.DASHBOARD.summary
    yield from _section("Dashboard", [dashboard], width)
    yield from _section("Commands, which print and end", commands, width)
    yield from _section("Sources and settings", settings, width)
    which_holds = help_table()["precedence"]
    yield from textwrap.wrap(which_holds, width, initial_indent=INDENT, subsequent_indent=INDENT)
    yield from _section("Output", [_flag_row(flag) for flag in grammar.OUTPUT_FLAGS], width)
    yield from _section("Other", [_flag_row(flag) for flag in grammar.GENERAL_FLAGS], width)
    yield from _section("Exit codes", help_table()["exit_codes"], width)


def _command(command: grammar.Subcommand, width: int) -> Iterable[str]:
    yield from textwrap.wrap(f"jobtui {command.name}: {command.summary}", width)
    yield ""
    yield f"Usage: jobtui [FLAGS] {command.name} {usage_of(command.argument)}".rstrip()
    if command.argument:
        yield from _section("Argument", [(command.argument.name, command.argument.help)], width)
    if own := (*command.reads, *command.flags):
        yield from _section("Flags", [_flag_row(flag) for flag in own], width)
    common = [one.flag for one in grammar.OUTPUT_FLAGS if command.prints]
    common += [flag for flag in help_table()["common_flags"] if flag not in {one.flag for one in own}]
    yield from ("", f"With every command: {' '.join(common)}; all: jobtui --help")


def usage_of(argument: grammar.Argument | None) -> str:
    if argument is None:
        return ""
    name = argument.name + (" ..." if argument.many else "")
    return name if argument.required else f"[{name}]"


def _flag_row(flag: grammar.Option) -> _Row:
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
