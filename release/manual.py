"""The man page, made from the tables that `--help` is made from.

Macros and escapes are those of man(7) that both groff and mandoc know.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from jobtui import __version__
from jobtui.commands.help import help_table, usage_of
from jobtui.grammar import (
    COMMANDS,
    DASHBOARD,
    GENERAL_FLAGS,
    OUTPUT_FLAGS,
    SETTINGS,
    Option,
    Setting,
    Subcommand,
)

KINDS: Mapping[str, Sequence[Setting]] = {
    "SOURCES": [one for one in SETTINGS if one.parse],
    "SETTINGS": [one for one in SETTINGS if not one.parse and not one.is_time],
    "TIMES": [one for one in SETTINGS if one.is_time],
}

ENVIRONMENT = (
    ("JOBTUI_NAME", "any setting, as told with it; ; separates several values"),
    ("NO_COLOR", "print without colour"),
    ("PAGER", "what shows a file outside of the dashboard: less or most"),
    ("VISUAL, EDITOR", "what opens a file read only: vi, vim, nvim, view, nano, pico, kak or micro"),
    ("SIREPO_SRDB_ROOT", "the Sirepo database that is read when no source is named"),
    ("BALSAM_CLIENT_PATH", "where the login of Balsam's own client is"),
    ("XDG_CONFIG_HOME, XDG_DATA_HOME", "where the files below are, instead of ~/.config and ~/.local/share"),
)

FILES = (
    ("~/.config/jobtui/config.toml", "the settings; --config names another file"),
    ("~/.config/jobtui/views.json", "filters, orders and columns that were kept with `save`"),
    ("~/.local/share/jobtui/memory.jobtui", "runs that are over, which `remember` keeps"),
    ("~/.balsam/client.yml", "the login of Balsam's own client, which `login balsam` renews"),
)


def manual() -> str:
    """The page as roff."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield '.\\" Made from the tables of the program by scripts/manpage.'
    yield f'.TH JOBTUI 1 "" "jobtui {_text(__version__)}" "User Commands"'
    yield from (".SH NAME", r"jobtui \- follow scientific compute jobs through every system that knows them")
    yield ".SH SYNOPSIS"
    yield rf"\fBjobtui\fR [\fIFLAGS\fR] {_text(usage_of(DASHBOARD.argument))}"
    yield from (".br", r"\fBjobtui\fR [\fIFLAGS\fR] \fICOMMAND\fR ...")
    yield from (".SH DESCRIPTION", _line(help_table()["introduction"]))
    yield from (".PP", _line(f"Without a command: {DASHBOARD.summary}. Commands print and end."))
    yield ".SH COMMANDS"
    yield from chain.from_iterable(map(_command, COMMANDS))
    for title, settings in KINDS.items():
        yield f".SH {title}"
        yield from chain.from_iterable(map(_setting, settings))
    yield from (".PP", _line(help_table()["precedence"]))
    yield ".SH OUTPUT"
    yield from _flags((*OUTPUT_FLAGS, *GENERAL_FLAGS))
    sections = ("EXIT STATUS", help_table()["exit_codes"]), ("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES)
    for title, rows in (*sections, ("EXAMPLES", help_table()["first_steps"])):
        yield f".SH {title}"
        yield from chain.from_iterable(_item(_bold(name), text) for name, text in rows)


def _command(command: Subcommand) -> Iterator[str]:
    """A command: what it does, what stands behind it, and its own flags."""
    yield f'.SS "{_text(f"{command.name} {usage_of(command.argument)}".rstrip())}"'
    yield _line(f"{command.summary}.")
    if command.argument:
        yield from _item(rf"\fI{_text(command.argument.name)}\fR", command.argument.help)
    yield from _flags(command.flags)


def _flags(flags: Iterable[Option]) -> Iterator[str]:
    for flag in flags:
        spelled = ", ".join(filter(None, (_bold(f"-{flag.short}") if flag.short else "", _bold(flag.flag))))
        yield from _item(_with_value(spelled, flag.metavar), flag.help)


def _setting(setting: Setting) -> Iterator[str]:
    told = [setting.help, *(["may be given several times"] if setting.repeatable else [])]
    if setting.in_files:
        told.append(f"key {setting.name}, variable {setting.variable}")
    yield from _item(_with_value(_bold(setting.flag), setting.metavar), "; ".join(told))


def _with_value(spelled: str, metavar: str | None) -> str:
    return rf"{spelled} \fI{_text(metavar)}\fR" if metavar else spelled


def _item(head: str, text: str) -> Sequence[str]:
    return (".TP", head, _line(f"{text}."))


def _bold(text: str) -> str:
    return rf"\fB{_text(text)}\fR"


def _text(text: str) -> str:
    """A text whose every character stands for itself; hyphens are such that can be pasted."""
    return "".join(_ESCAPED.get(character, character) for character in text)


_ESCAPED: Mapping[str, str] = {
    "\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", '"': r"\(dq", "\n": " ",
}  # fmt: skip


def _line(text: str) -> str:
    """A text as a line of its own, which must not begin as a request does."""
    return rf"\&{_text(text)}" if text.startswith((".", "'")) else _text(text)
