"""The command line: parses what `grammar` allows, and runs the command.

Nothing heavy is imported at module level: `--version` and `--help` load nothing else, and a one-shot command
loads only what it needs.
"""

import gc
import os
import sys
import threading
from collections.abc import Iterable, Sequence
from resource import RLIMIT_AS, getrlimit
from typing import TYPE_CHECKING

from jobtui import grammar

if TYPE_CHECKING:
    from jobtui.session import Session


class UsageError(Exception):
    """The command line is wrong. The text is one line that says what is wrong, and what is right."""


_Known = grammar.Option | grammar.Setting


class _Parser:
    def __init__(self, arguments: Sequence[str]) -> None:
        self._rest = list(reversed(arguments))
        # Every way to write a flag, over all commands: a flag may stand before its command
        commands = (grammar.DASHBOARD, *grammar.COMMANDS)
        flags = [flag for command in commands for flag in grammar.flags_of(command)]
        self._spellings: dict[str, _Known] = {
            **{setting.flag: setting for setting in grammar.SETTINGS},
            **{flag.flag: flag for flag in flags},
            **{f"-{flag.short}": flag for flag in flags if flag.short},
        }
        self._command: grammar.Subcommand | None = None
        self._words: list[str] = []
        self._settings: dict[str, list[str]] = {}
        self._flags: dict[str, str] = {}
        self._inner: grammar.Invocation | None = None

    def parse(self) -> grammar.Invocation:
        """Parse it. Raises UsageError."""
        while self._rest:
            argument = self._command.argument if self._command else None
            if self._wraps(self._rest[-1]):
                self._inner = parse(self._rest[::-1])
                break
            word = self._rest.pop()
            if word == "--":
                self._take_words(reversed(self._rest))
                break
            if word.startswith("--"):
                self._long(word)
            elif not word.startswith("-") or word == "-":
                self._take_words([word])
            elif argument is not None and argument.dashes and word not in self._spellings:
                self._take_words([word])  # as in `jobs -app:srw`, which leaves an app out
            else:
                self._short(word)
        settings = {name: tuple(values) for name, values in self._settings.items()}
        command = self._command or grammar.DASHBOARD
        return grammar.Invocation(command, tuple(self._words), settings, self._flags, self._inner)

    def _wraps(self, word: str) -> bool:
        """Whether another command line begins here."""
        command = self._command
        if command is None or not command.wraps or command.argument is None:
            return False
        return bool(self._words) if command.argument.required else not word.startswith("-")

    def _take_words(self, words: Iterable[str]) -> None:
        for word in words:
            if self._command is None and not self._words and word in grammar.COMMAND_BY_NAME:
                self._command = grammar.COMMAND_BY_NAME[word]
            elif self._command is None and not self._words and word == "help":  # as many programs have it
                self._flags["help"] = "true"
            else:
                self._words.append(word)

    def _long(self, word: str) -> None:
        name, equals, value = word.partition("=")
        known = self._spellings.get(name)
        if known is None:
            raise UsageError(f"unknown flag {name}{grammar.nearest(name, self._offered())}")
        if known.metavar is None and equals:
            raise UsageError(f"{name} takes no value")
        self._note(known, name, value if equals else None)

    def _short(self, word: str) -> None:
        known = self._spellings.get(word[:2])
        if known is None:
            raise UsageError(f"unknown flag {word[:2]}{grammar.nearest('-' + word, self._offered())}")
        attached = word[2:]
        if known.metavar is not None:
            self._note(known, word[:2], attached or None)
            return
        self._note(known, word[:2], None)
        if attached:
            self._short(f"-{attached}")

    def _offered(self) -> list[str]:
        return [spelling for spelling in self._spellings if spelling.startswith("--")]

    def _note(self, known: _Known, spelling: str, value: str | None) -> None:
        if known.metavar is None:
            value = "true"
        elif value is None:
            if not self._rest or self._rest[-1].partition("=")[0] in self._spellings:
                raise UsageError(f"{spelling} needs a value: {spelling} {known.metavar}")
            value = self._rest.pop()
        if isinstance(known, grammar.Option):
            self._flags[known.name] = value
        elif known.repeatable:
            self._settings.setdefault(known.name, []).append(value)
        else:
            self._settings[known.name] = [value]


def parse(arguments: Sequence[str]) -> grammar.Invocation:
    """The parsed command line; next to `--help` or `--version` nothing is checked. Raises UsageError."""
    invocation = _Parser(arguments).parse()
    if not invocation.flags.keys() & {"help", "version"}:
        _check_flags(invocation)
        _check_words(invocation)
    return invocation


def _check_flags(invocation: grammar.Invocation) -> None:
    allowed = {flag.name: flag for flag in grammar.flags_of(invocation.command)}
    for name, value in invocation.flags.items():
        flag = allowed.get(name)
        if flag is None:
            owners = [c.name for c in grammar.COMMANDS if any(f.name == name for f in grammar.flags_of(c))]
            of = f"is a flag of {' and '.join(owners)}, not" if len(owners) < 4 else "is not a flag"
            raise UsageError(f"--{name} {of} of {_called(invocation.command)}")
        is_count = value.isdecimal() and value.isascii() and len(value) < 10
        if flag.expects == "count" and not is_count:
            raise UsageError(f"--{name} needs a whole number, not {value!r}")
        if flag.expects == "regex":
            from jobtui.analysis.filter import danger_of  # few give one

            if danger := danger_of(value):
                raise UsageError(f"--{name} {value!r} is refused: {danger}")
    if {"json", "csv"} <= invocation.flags.keys():
        raise UsageError("--json and --csv cannot be used together")


def _check_words(invocation: grammar.Invocation) -> None:
    argument, words = invocation.command.argument, invocation.words
    name = _called(invocation.command)
    if argument is None:
        if words:
            raise UsageError(f"{name} takes no argument, found {words[0]!r}")
        return
    if argument.required and not words:
        raise UsageError(f"{name} needs {argument.name}: {argument.help}")
    if not argument.many and len(words) > 1:
        hint = grammar.nearest(words[0], grammar.COMMAND_BY_NAME)
        if hint and invocation.command is grammar.DASHBOARD:
            raise UsageError(f"unknown command {words[0]!r}{hint}")
        raise UsageError(f"{name} takes one {argument.name}, found {words[1]!r} too")
    is_free = any(flag.frees and flag.name in invocation.flags for flag in invocation.command.flags)
    if argument.choices and not is_free and words[0] not in argument.choices:
        near = grammar.nearest(words[0], argument.choices) or f"; expected {', '.join(argument.choices)}"
        raise UsageError(f"unknown {argument.name} {words[0]!r}{near}")


def _called(command: grammar.Subcommand) -> str:
    return "jobtui" if command is grammar.DASHBOARD else command.name


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; the exit code of the program (see `commands.streams`)."""
    if arguments is None:
        # A start makes no garbage, and looking for it takes a tenth of the time
        gc.disable()
    from jobtui.commands.streams import complain, fault, guarded, prepare_streams, termination_signals

    prepare_streams()
    try:
        invocation = parse(sys.argv[1:] if arguments is None else arguments)
        with termination_signals() as code_of:
            return code_of(guarded(lambda: _run(invocation)))
    except UsageError as error:
        complain(str(error))
        return 2
    except Exception as error:  # noqa: BLE001 - Python would print a traceback with data in it
        return fault(error)


def _answered(invocation: grammar.Invocation) -> int | None:
    """Answer what needs only the tables of the command line; None for anything else."""
    if "help" in invocation.flags:
        from jobtui.commands.help import help_text

        text = help_text(invocation.command)
    elif "version" in invocation.flags:
        from jobtui import __version__

        text = f"jobtui {__version__}\n"
    elif invocation.command.name == "completion":
        shell, *words = invocation.words
        if words:
            from jobtui.completion import offer

            return offer(shell, words)
        from jobtui.commands.help import help_table

        # The function of the shell that asks `jobtui completion SHELL -- WORDS`
        text = help_table()["completion"][shell].lstrip()
    else:
        return None
    sys.stdout.write(text)
    return 0


def _run(invocation: grammar.Invocation) -> int:
    if (code := _answered(invocation)) is not None:
        return code
    from jobtui.commands.context import make_context
    from jobtui.config import load
    from jobtui.model.ids import JobFilter, JobId, TraceRef

    def open_dashboard(
        session: "Session", open_at: JobId | TraceRef | JobFilter | None, title: str, words: Sequence[str]
    ) -> None:
        if 0 <= getrlimit(RLIMIT_AS)[0] < 640 << 20:  # libraries would crash and not restore the terminal
            raise UsageError("the dashboard needs 640 MB of address space; raise `ulimit -v`")
        gc.disable()  # until the app has painted
        looks = config.looks
        if (fps := looks.most_fps(os.environ)) and (looks.fps or "TEXTUAL_FPS" not in os.environ):
            os.environ["TEXTUAL_FPS"] = str(fps)  # which Textual reads when it is imported
        os.environ.setdefault("ESCDELAY", "10")  # milliseconds to wait for the rest of a key; tmux's default
        from jobtui.app import run_app

        if code := run_app(session, open_at, title=title, profile=config.profile, words=words, looks=looks):
            raise SystemExit(code)

    config = load(invocation.settings, os.environ)
    context = make_context(invocation, config, open_dashboard)
    if invocation.command.name == "logs":
        from jobtui.commands.container import print_container  # before the rest is imported

        if print_container(context):
            return 0
    from jobtui.commands import runner
    from jobtui.commands.streams import say_faults
    from jobtui.model.health import FAULTS

    run = runner(invocation.command.name)
    if not gc.isenabled():
        gc.freeze()  # imported modules stay, so the collector need not look at them
        gc.enable()
    threading.excepthook = sys.unraisablehook = FAULTS.unseen
    return say_faults(run(context))
