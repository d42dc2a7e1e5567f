"""The `:` commands in one table, from which parsing, completion and help are made. Runs nothing."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from operator import attrgetter
from typing import NamedTuple

from jobtui.actions import EVERYWHERE, Keymap
from jobtui.analysis.filter import MOST_OFFERED, KnownWords, complete, completed, ids_beginning, token_span
from jobtui.analysis.filter_syntax import FilterError
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.spelling import nearest
from jobtui.model.tables import tables_of
from jobtui.render.columns import JOB_COLUMNS
from jobtui.render.text import safe
from jobtui.views import Views, ViewsError
from jobtui.widgets.filter_bar import Completion


class AppCommand(NamedTuple):
    """One command. `call` is an action of the app as the table of actions writes it, or the name of a method
    of `Commander`, which gets the rest of the line. `argument` describes that rest, "" for none.
    """

    name: str
    help: str
    call: str
    argument: str = ""
    needs_argument: bool = False


COMMANDS: tuple[AppCommand, ...] = tuple(
    AppCommand(name, **fields) for name, fields in tables_of("jobtui.screens", "command_table").items()
)
COMMAND_BY_NAME: Mapping[str, AppCommand] = {command.name: command for command in COMMANDS}
COLUMN_KEYS = tuple(column.key for column in JOB_COLUMNS)


def known_values(jobs: Mapping[JobId, Job], views: Views) -> KnownWords:
    """Values to complete with: those that the jobs have, their ids, failed ones first, and kept views.

    Only those that an input, which makes hostile characters visible, leaves unchanged. They are collected at
    the first use, as there may be a hundred thousand jobs.
    """

    @cache
    def values_of(key: str) -> Sequence[str]:
        values = set(map(attrgetter(key), jobs.values()))  # few of many jobs, so only these are made safe
        return sorted(value for value in values if value and safe(value) == value)[:MOST_OFFERED]

    def ids(begun: str) -> Iterator[str]:
        low = begun.lower()
        fits = [job_id for job_id in jobs if job_id.lower().startswith(low)] if low else jobs
        yield from (job_id for job_id in fits if jobs[job_id].status is JobStatus.FAILED)
        yield from (job_id for job_id in fits if jobs[job_id].status is not JobStatus.FAILED)

    def known(field: str, begun: str) -> Iterable[str]:
        if field == "id":
            return ids(begun)
        if field in ("app", "user", "model"):
            return values_of("owner" if field == "user" else field)
        with suppress(ViewsError):
            return views.names() if field == "view" else ()
        return ()

    return known


class CommandError(FilterError):
    """A command that cannot be run."""


class ParsedCommand(NamedTuple):
    """A command and its argument, which begins at `start` of the text."""

    command: AppCommand
    rest: str
    start: int


def parse_command(text: str) -> ParsedCommand:
    """The command in a text. A name may be shortened while only one begins so. Raises CommandError."""
    word = text.split(maxsplit=1)[0] if text.strip() else ""
    start = text.find(word)
    end = start + len(word)
    begun = [command for command in COMMANDS if word and command.name.startswith(word)]
    command = COMMAND_BY_NAME.get(word) or (begun[0] if len(begun) == 1 else None)
    if command is None:
        why = f"press {keys}" if (keys := _keys_called(word)) else "nothing has this name"
        near = None if keys else nearest(word, COMMAND_BY_NAME)
        raise CommandError(start, end, f"no command {word}; {why}", near)
    rest = text[end:].strip()
    rest_start = text.find(rest, end) if rest else end
    if rest and not command.argument:
        raise CommandError(rest_start, len(text), f"{command.name} takes no argument")
    if command.needs_argument and not rest:
        raise CommandError(start, end, f"{command.name} {command.argument}: {command.help}")
    return ParsedCommand(command, rest, rest_start)


def _keys_called(word: str) -> str:
    """The keys of the actions that are called so, each with its few screens; empty if none is."""
    found: dict[str, set[str]] = {}
    for one in Keymap.actions:
        if one.keys and word in (one.name.removeprefix("tab-"), *one.found_by.split()):
            found.setdefault(one.shown_keys, set()).update(one.screens if one.screens < EVERYWHERE else ())
    return " or ".join(f"{key} ({', '.join(sorted(at))})" if at else key for key, at in found.items())


def complete_command(text: str, cursor: int, known: KnownWords) -> Completion:
    head = text[:cursor]
    last = head[head.rfind(" ") + 1 :]
    if head.strip() == last:
        begun = [name for name in COMMAND_BY_NAME if name.startswith(last)]
        return Completion(cursor - len(last), cursor, begun or ids_beginning(last, known))
    try:
        name = parse_command(head.rstrip() + " x").command.name
    except CommandError:
        return Completion(cursor, cursor, ())
    if name == "filter":
        return complete_filter_at(head, cursor, known)
    words = _OFFERS[name](last, known) if name in _OFFERS else ()
    return Completion(cursor - len(last), cursor, [word for word in words if word.startswith(last)])


_OFFERS: Mapping[str, Callable[[str, KnownWords], Iterable[str]]] = {
    "goto": ids_beginning,
    "sort": lambda last, known: (last[: last.startswith("-")] + key for key in COLUMN_KEYS),
    **dict.fromkeys(("view", "forget", "save"), lambda last, known: known("view", last)),
}


def complete_filter_at(text: str, cursor: int, known: KnownWords) -> Completion:
    start, end = token_span(text, cursor)
    return Completion(start, end, complete(text, cursor, known))


def complete_fields(
    text: str, cursor: int, names: Iterable[str], values: Callable[[str], Iterable[str]] = lambda field: ()
) -> Completion:
    """Completes names of fields, and after a colon the values of a field."""
    start, end = token_span(text, cursor)
    found = completed(text[start:end], names, lambda name, begun: sorted(values(name)))
    return Completion(start, end, found)
