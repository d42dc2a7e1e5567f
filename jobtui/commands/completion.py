"""`completion SHELL`: the script that completes a jobtui command line, made from the tables of `grammar`."""

import sys
from collections.abc import Callable, Iterable, Mapping

from jobtui.commands.context import Context
from jobtui.commands.exits import Exit
from jobtui.grammar import (
    COMMANDS,
    DASHBOARD,
    GENERAL_FLAGS,
    OUTPUT_FLAGS,
    SETTINGS,
    Command,
    Flag,
    Setting,
    flags_of,
)
from jobtui.model.specs import LogRole


def run(context: Context) -> Exit:
    """Print the script."""
    sys.stdout.write("\n".join(SCRIPTS[context.words[0]]()) + "\n")
    return Exit.FINE


def _spelled(flag: Flag | Setting) -> list[str]:
    short = getattr(flag, "short", None)
    return [flag.flag, *([f"-{short}"] if short else [])]


def _offered(command: Command) -> list[str]:
    known: list[Flag | Setting] = [*flags_of(command), *SETTINGS]
    return [word for flag in known for word in _spelled(flag)]


def _anywhere(flags: Iterable[Flag]) -> list[Flag | Setting]:
    """The settings and these flags, which no command owns."""
    return [*SETTINGS, *flags]


def _valued() -> list[Flag]:
    """Flags with a value, over all commands."""
    return [flag for command in COMMANDS for flag in command.flags if flag.metavar]


def _bash() -> Iterable[str]:
    yield '# bash completion of jobtui: eval "$(jobtui completion bash)"'
    yield '_jobtui_offer() { mapfile -t COMPREPLY < <(compgen "$@" -- "$word"); }'
    yield "_jobtui() {"
    yield "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= i"
    yield "  COMPREPLY=()"
    yield "  # readline breaks words at =, so that ROLE=FILE and --flag=value arrive in three pieces"
    yield '  [[ $word == "=" ]] && before="=" word='
    yield '  case "$before" in'
    yield '    "=") compopt -o filenames 2>/dev/null; _jobtui_offer -f; return ;;'
    for setting in SETTINGS:
        if setting.metavar:
            yield f"    {setting.flag}) {_bash_values(setting)}return ;;"
    for flag in _valued():
        yield f"    {'|'.join(_spelled(flag))}) return ;;"
    yield "  esac"
    yield "  for ((i = 1; i < COMP_CWORD; i++)); do"
    yield f'    case "${{COMP_WORDS[i]}}" in {"|".join(c.name for c in COMMANDS)})'
    yield "      command=${COMP_WORDS[i]}; break ;;"
    yield "    esac"
    yield "  done"
    yield '  case "$command" in'
    for command in COMMANDS:
        yield f"    {command.name}) _jobtui_offer -W {_quoted(_choices(command))} ;;"
    words = [command.name for command in COMMANDS] + _offered(DASHBOARD)
    yield f"    *) _jobtui_offer -W {_quoted(words)} ;;"
    yield "  esac"
    yield "}"
    yield "complete -F _jobtui jobtui"


def _bash_values(setting: Setting) -> str:
    """What offers the values of a setting; nothing is offered for free text."""
    option = {"directory": "-d", "file": "-f"}.get(setting.completes)
    if option is None:
        return ""
    offer = f"compopt -o filenames 2>/dev/null; _jobtui_offer {option}; "
    if setting.name != "log":
        return offer
    roles = f"_jobtui_offer -S = -W {_quoted(LogRole)}"
    return f"{roles}; if [[ $COMPREPLY ]]; then compopt -o nospace 2>/dev/null; else {offer}fi; "


def _choices(command: Command) -> list[str]:
    return [*(command.argument.choices if command.argument else ()), *_offered(command)]


def _quoted(words: Iterable[str]) -> str:
    return f"'{' '.join(words)}'"


def _zsh() -> Iterable[str]:
    yield "#compdef jobtui"
    yield "# zsh completion of jobtui: put it as _jobtui into a directory of $fpath"
    yield "_jobtui() {"
    yield "  local -a commands settings output"
    yield "  local context state state_descr line"
    yield "  typeset -A opt_args"
    yield "  commands=("
    yield from (f"    {_zsh_text(f'{command.name}:{command.summary}')}" for command in COMMANDS)
    yield "  )"
    yield "  settings=("
    yield from (f"    {_zsh_flag(flag)}" for flag in _anywhere(GENERAL_FLAGS))
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
    for flag in _anywhere(GENERAL_FLAGS + OUTPUT_FLAGS):
        yield _fish_flag(flag)
    for command in COMMANDS:
        condition = f"-n {_fish_text(f'__fish_seen_subcommand_from {command.name}')}"
        for flag in command.flags:
            yield _fish_flag(flag, condition)
        if command.argument and command.argument.choices:
            yield f"complete -c jobtui -f {condition} -a {_fish_text(' '.join(command.argument.choices))}"


_FISH_VALUES: Mapping[str, str] = {
    "directory": "-x -a '(__fish_complete_directories)'",
    "file": "-r -F",
}


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
