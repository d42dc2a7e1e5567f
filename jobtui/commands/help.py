"""Help and `completion SHELL`, made from the tables of `grammar`. A shell waits: it imports nothing heavy."""

import os
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jobtui import grammar
from jobtui.commands.streams import Exit
from jobtui.model.tables import tables_of

if TYPE_CHECKING:
    from jobtui.commands.reader import Reader

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
    yield from _section(
        "Dashboard", [(usage_of(grammar.DASHBOARD.argument), grammar.DASHBOARD.summary)], width
    )
    yield from _section("Commands, which print and end", commands, width)
    yield from _section("Sources and settings", settings, width)
    which_holds = help_table()["precedence"]
    yield from textwrap.wrap(which_holds, width, initial_indent=INDENT, subsequent_indent=INDENT)
    yield from _section("Output", [_flag_row(f) for f in grammar.OUTPUT_FLAGS], width)
    yield from _section("Other", [_flag_row(f) for f in grammar.GENERAL_FLAGS], width)
    yield from _section("Exit codes", help_table()["exit_codes"], width)


def _command(command: grammar.Subcommand, width: int) -> Iterable[str]:
    yield from textwrap.wrap(f"jobtui {command.name}: {command.summary}", width)
    yield ""
    yield f"Usage: jobtui [FLAGS] {command.name} {usage_of(command.argument)}".rstrip()
    if command.argument:
        yield from _section("Argument", [(command.argument.name, command.argument.help)], width)
    if command.flags:
        yield from _section("Flags", [_flag_row(f) for f in command.flags], width)
    common = [*(one.flag for one in grammar.OUTPUT_FLAGS if command.prints), *help_table()["common_flags"]]
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


PATHS: Mapping[str, str] = {"FILE": "file", "DIR": "directory", "THING": "file"}
"""Arguments that are paths, or may be."""
JOBS = frozenset({"ID", "THING"})
"""Arguments that are jobs, or may be."""
OFFERED, READ_S = 200, 1.0
"""How many of the newest jobs are offered, of those that were read in time."""
PLAIN_ID = re.compile(r"[\w./@#:,+-]+", re.ASCII)
"""An id that no shell takes for something else."""


def run_completion(asked: grammar.Invocation) -> Exit:
    """Print the script of a shell; with the words typed so far what may stand for the last of them."""
    shell, *words = asked.words
    if not words:
        # What asks `jobtui completion SHELL -- WORDS`, and offers what is answered
        sys.stdout.write(help_table()["completion"][shell].lstrip())
        return Exit.FINE
    if shell == "bash":
        words = _joined(words)
    found, begun = list(_offered(words)), words[-1]
    paths = [row for row in found if row[0].startswith(":")]
    fits = [row for row in found if row[0].startswith(begun) and row not in paths]
    done = begun.rpartition(":")[0] + ":" if shell == "bash" and ":" in begun else ""
    for word, text in fits or paths:
        word = word.removeprefix(done)
        if shell == "zsh" and not word.startswith(":"):
            word = word.replace(":", "\\:")
        between = {"zsh": ":", "fish": "\t"}.get(shell, "") if text else ""
        sys.stdout.write(f"{word}{between}{text if between else ''}\n")
    return Exit.FINE


def _joined(words: Iterable[str]) -> list[str]:
    """The words without the breaks that readline makes at colons; what is offered begins after the last."""
    whole = [""]
    for word in words:
        if whole[1:] and (word == ":" or whole[-1].endswith(":")):
            whole[-1] += word
        else:
            whole.append(word)
    return whole[1:]


def _offered(words: Sequence[str]) -> Iterable[_Row]:
    """The words that can be typed, each with a description; `:file` and `:directory` stand for paths."""
    *before, begun = words
    if "=" in (begun, *before[-1:]) or (begun.startswith("--") and "=" in begun):
        return [(":file", "")]
    settings: dict[str, tuple[str, ...]] = {}
    command, flag = grammar.DASHBOARD, None
    pieces = (part for word in before for part in (word.split("=", 1) if word[:2] == "--" else (word,)))
    for piece in filter(None, pieces):
        if flag is None:
            if command is grammar.DASHBOARD or command.wraps:
                command = grammar.COMMAND_BY_NAME.get(piece, command)
            flag = next((one for one in _known(command) if piece in _spelled(one) and one.metavar), None)
        elif piece != "=":  # readline gives --flag=value in three pieces
            if isinstance(flag, grammar.Setting):
                settings[flag.name] = (*settings.get(flag.name, ()), piece)
            flag = None
    if flag is not None:
        return _values(flag)
    if begun.startswith("-"):
        return [(word, one.help) for one in _known(command) for word in _spelled(one)]
    is_elsewhere = any(
        grammar.COMMAND_BY_NAME[word].wraps for word in before if word in grammar.COMMAND_BY_NAME
    )
    is_command = command is grammar.DASHBOARD and any(one.name.startswith(begun) for one in grammar.COMMANDS)
    takes_job = command.argument is not None and command.argument.name in JOBS
    jobs = _ids(settings, begun) if takes_job and not is_elsewhere and not is_command else ()
    return [*_words(command, begun), *jobs]


def _known(command: grammar.Subcommand) -> list[grammar.Option | grammar.Setting]:
    return [*grammar.flags_of(command), *grammar.SETTINGS]


def _spelled(flag: grammar.Option | grammar.Setting) -> list[str]:
    short = getattr(flag, "short", None)
    return [flag.flag, *([f"-{short}"] if short else [])]


def _values(flag: grammar.Option | grammar.Setting) -> Iterable[_Row]:
    if isinstance(flag, grammar.Setting):
        from jobtui.backends.registry import of_setting  # of values only

        yield from ((word, "") for word in flag.choices)
        yield from ((f"{head}=", "") for head in of_setting(flag.name).heads)
        if flag.completes:
            yield f":{flag.completes}", ""


def _words(command: grammar.Subcommand, begun: str) -> Iterable[_Row]:
    if command is grammar.DASHBOARD or command.wraps:
        yield from ((one.name, one.summary) for one in grammar.COMMANDS)
    if (argument := command.argument) is None:
        return
    yield from ((word, "") for word in argument.choices)
    if command.name == "jobs":
        from jobtui.analysis.filter import complete  # only asked for at a filter

        yield from ((word, "") for word in complete(begun, len(begun)))
    if argument.name in PATHS:
        yield f":{PATHS[argument.name]}", ""


def _ids(settings: Mapping[str, tuple[str, ...]], begun: str) -> Iterable[_Row]:
    """The newest jobs of the sources that are named whose ids begin so, those that failed first."""
    from jobtui.backends.registry import SIREPO_DB, Gives, gives
    from jobtui.backends.sirepo.files import newest_jobs
    from jobtui.config import load
    from jobtui.model.jobs import Job, JobStatus
    from jobtui.render.text import show

    async def read(reader: "Reader") -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(READ_S):
                await reader.read_jobs()
        jobs.extend(reader.session.store.jobs.values())

    config, jobs = load(settings, os.environ), list[Job]()
    named = [spec for spec in config.sources if gives(spec, Gives.JOBS)]
    if not named or not all(map(SIREPO_DB.names, named)):
        import asyncio  # takes as long as all the rest

        from jobtui.commands.context import make_context
        from jobtui.commands.reader import configured, within

        asked = grammar.Invocation(grammar.DASHBOARD, (), {}, {})
        context = make_context(asked, config, lambda *about: None)
        named = [spec for spec in configured(context) if gives(spec, Gives.JOBS)]
        if others := [spec for spec in named if not SIREPO_DB.names(spec)]:
            asyncio.run(within(context, others, read))
    for spec in filter(SIREPO_DB.names, named):
        jobs += newest_jobs(spec.target, OFFERED, begun)
    found = [job for job in jobs if PLAIN_ID.fullmatch(job.id)]
    found.sort(key=lambda job: (job.status is not JobStatus.FAILED, -(job.updated_at or job.queued_at or 0)))
    return [(job.id, show(f"{job.status.value} {job.owner} {job.name}")) for job in found[:OFFERED]]
