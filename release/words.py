"""What completion in a shell works on, as plain lists: commands, flags, words of filters (`completion.json`).

Each key waits for it: made while a shell waits, out of the tables of the program, it takes 40 ms.
"""

import json

from jobtui import grammar
from jobtui.analysis.filter import FIELD_BY_NAME, VALUE_WORDS
from jobtui.backends.registry import of_setting
from jobtui.completion import Command, Flag, Table

PATHS = {"FILE": ":file", "DIR": ":directory", "THING": ":file"}
"""Arguments that are paths, or may be."""
JOBS = frozenset({"ID", "THING"})
"""Arguments that are jobs, or may be."""


def _flag(one: grammar.Option | grammar.Setting) -> Flag:
    if isinstance(one, grammar.Setting):
        words = [*one.choices, *(f"{head}=" for head in of_setting(one.name).heads)]
        return [one.flag], one.help, True, words + ([f":{one.completes}"] if one.completes else [])
    spelled = [one.flag, *([f"-{one.short}"] if one.short else ())]
    return spelled, one.help, False, [] if one.metavar else None


def _command(one: grammar.Subcommand) -> Command:
    name, choices = (one.argument.name, [*one.argument.choices]) if one.argument else ("", [])
    choices += [PATHS[name]] if name in PATHS else []
    return one.summary, choices, name in JOBS, one.wraps, [*map(_flag, grammar.flags_of(one))]


def table() -> Table:
    commands = {"": _command(grammar.DASHBOARD), **{one.name: _command(one) for one in grammar.COMMANDS}}
    fields = {name: [*VALUE_WORDS.get(one.kind, ())] for name, one in FIELD_BY_NAME.items()}
    return commands, [*map(_flag, grammar.SETTINGS)], fields


def words() -> str:
    commands, settings, fields = table()
    rows = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in commands.items()]
    rest = ",\n".join((json.dumps(settings), json.dumps(fields)))
    return "[{\n" + ",\n".join(rows) + "\n},\n" + rest + "]\n"
