"""Help and `completion SHELL`, both made from the tables of `grammar`."""

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from jobtui.backends.registry import of_setting
from jobtui.commands.streams import Exit
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
    flags_of,
)
from jobtui.model.tables import tables_of

if TYPE_CHECKING:
    from jobtui.commands.context import Context

WIDEST = 100
NARROWEST = 40
INDENT = "  "

_TABLE = tables_of("jobtui.commands", "help")
INTRODUCTION: str = _TABLE["introduction"]
PRECEDENCE: str = _TABLE["precedence"]
FIRST_STEPS: Sequence["_Row"] = _TABLE["first_steps"]
ANYWHERE: Sequence[Flag | Setting] = (*SETTINGS, *GENERAL_FLAGS)
EXIT_CODES: Sequence["_Row"] = _TABLE["exit_codes"]

_Row = Sequence[str]


def help_text(command: Command) -> str:
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
    common = [*(one.flag for one in OUTPUT_FLAGS if command.prints), *_TABLE["common_flags"]]
    yield from ("", f"With every command: {' '.join(common)}; all: jobtui --help")


def usage_of(argument: Argument | None) -> str:
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


def run_completion(context: "Context") -> Exit:
    sys.stdout.write("\n".join(SCRIPTS[context.words[0]]()) + "\n")
    return Exit.FINE


def _spelled(flag: Flag | Setting) -> list[str]:
    short = getattr(flag, "short", None)
    return [flag.flag, *([f"-{short}"] if short else [])]


def _offered(command: Command) -> list[str]:
    known: list[Flag | Setting] = [*flags_of(command), *SETTINGS]
    choices = command.argument.choices if command.argument else ()
    return [*choices, *(word for flag in known for word in _spelled(flag))]


def _bash() -> Iterable[str]:
    yield from _TABLE["bash"].splitlines()
    for setting in SETTINGS:
        if setting.metavar:
            yield f"    {setting.flag}) {_bash_values(setting)}return ;;"
    for flag in [flag for command in COMMANDS for flag in command.flags if flag.metavar]:
        yield f"    {'|'.join(_spelled(flag))}) return ;;"
    yield "  esac"
    yield "  for ((i = 1; i < COMP_CWORD; i++)); do"
    yield f'    case "${{COMP_WORDS[i]}}" in {"|".join(c.name for c in COMMANDS)})'
    yield "      command=${COMP_WORDS[i]}; break ;;"
    yield "    esac"
    yield "  done"
    yield '  case "$command" in'
    for command in COMMANDS:
        yield f"    {command.name}) _jobtui_offer -W {_quoted(_offered(command))} ;;"
    words = [command.name for command in COMMANDS] + _offered(DASHBOARD)
    yield f"    *) _jobtui_offer -W {_quoted(words)} ;;"
    yield "  esac"
    yield "}"
    yield "complete -F _jobtui jobtui"


def _bash_values(setting: Setting) -> str:
    option = {"directory": "-d", "file": "-f"}.get(setting.completes)
    if option is None:
        return ""
    offer = f"compopt -o filenames 2>/dev/null; _jobtui_offer {option}; "
    if not (heads := of_setting(setting.name).heads):
        return offer
    roles = f"_jobtui_offer -S = -W {_quoted(heads)}"
    return f"{roles}; if [[ $COMPREPLY ]]; then compopt -o nospace 2>/dev/null; else {offer}fi; "


def _quoted(words: Iterable[str]) -> str:
    return f"'{' '.join(words)}'"


def _zsh() -> Iterable[str]:
    yield from _TABLE["zsh"].splitlines()
    yield from (f"    {_zsh_text(f'{command.name}:{command.summary}')}" for command in COMMANDS)
    yield "  )"
    yield "  settings=("
    yield from (f"    {_zsh_flag(flag)}" for flag in ANYWHERE)
    yield "  )"
    yield "  output=("
    yield from (f"    {_zsh_flag(flag)}" for flag in OUTPUT_FLAGS)
    yield "  )"
    yield "  _arguments -C $settings $output '1: :->command' '*:: :->rest' && return"
    yield '  case "$state" in'
    yield "    command) _describe command commands ;;"
    yield '    rest) case "$line[1]" in'
    for command in COMMANDS:
        own = " ".join(_zsh_flag(flag) for flag in command.flags)
        choices = command.argument.choices if command.argument else ()
        argument = f"'1: :({' '.join(choices)})'" if choices else ""
        output = "$output" if command.prints else ""
        words = " ".join(part for part in ("$settings", output, own, argument) if part)
        yield f"      {command.name}) _arguments {words} ;;"
    yield "    esac ;;"
    yield "  esac"
    yield "}"
    yield '_jobtui "$@"'


_ZSH_VALUES: Mapping[str, str] = {"directory": "_files -/", "file": "_files"}


def _zsh_flag(flag: Flag | Setting) -> str:
    """One specification for `_arguments`; the words of a help text are quoted for it."""
    many = "*" if isinstance(flag, Setting) and flag.repeatable else ""
    text = flag.help.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
    value = ""
    if flag.metavar:
        completes = flag.completes if isinstance(flag, Setting) else ""
        metavar = flag.metavar.replace("[", "").replace("]", "")
        value = f":{metavar}:{_ZSH_VALUES.get(completes, ' ')}"
    return " ".join(_zsh_text(f"{many}{word}[{text}]{value}") for word in _spelled(flag))


def _zsh_text(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish() -> Iterable[str]:
    yield "# fish completion of jobtui: jobtui completion fish > ~/.config/fish/completions/jobtui.fish"
    names = " ".join(command.name for command in COMMANDS)
    none = f"not __fish_seen_subcommand_from {names}"
    for command in COMMANDS:
        offer = f"-a {command.name} -d {_fish_text(command.summary)}"
        yield f"complete -c jobtui -f -n {_fish_text(none)} {offer}"
    for flag in (*ANYWHERE, *OUTPUT_FLAGS):
        yield _fish_flag(flag)
    for command in COMMANDS:
        condition = f"-n {_fish_text(f'__fish_seen_subcommand_from {command.name}')}"
        for flag in command.flags:
            yield _fish_flag(flag, condition)
        if command.argument and command.argument.choices:
            yield f"complete -c jobtui -f {condition} -a {_fish_text(' '.join(command.argument.choices))}"


_FISH_VALUES: Mapping[str, str] = {"directory": "-x -a '(__fish_complete_directories)'", "file": "-r -F"}


def _fish_flag(flag: Flag | Setting, condition: str = "") -> str:
    parts = ["complete -c jobtui", condition, f"-l {flag.flag[2:]}"]
    if short := getattr(flag, "short", None):
        parts.append(f"-s {short}")
    if flag.metavar:
        completes = flag.completes if isinstance(flag, Setting) else ""
        parts.append(_FISH_VALUES.get(completes, "-x"))
    parts.append(f"-d {_fish_text(flag.help)}")
    return " ".join(part for part in parts if part)


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCRIPTS: Mapping[str, Callable[[], Iterable[str]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
