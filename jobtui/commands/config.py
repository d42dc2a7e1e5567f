"""`config`: the effective settings and where each came from. Reads no source."""

from typing import NamedTuple

from jobtui.backends.discovery import discover
from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.exits import Exit
from jobtui.commands.printing import print_csv, print_lines
from jobtui.commands.reading import surroundings, warn
from jobtui.config import user_file, written_tables
from jobtui.grammar import SETTINGS
from jobtui.model.secrets import mask_text
from jobtui.render.json_output import document, document_lines
from jobtui.render.table import Cell, Head, table_lines
from jobtui.render.text import NONE, show

HEADS = (Head("SETTING", least=7), Head("VALUE", least=16), Head("FROM", least=12))
CSV_COLUMNS = ("name", "value", "origin")


class Row(NamedTuple):
    """One setting. `value` is a list for those that may be given several times."""

    name: str
    value: list[str] | str | None
    origin: str


def run(context: Context) -> Exit:
    """Print the settings."""
    warn(context)
    rows = _rows(context)
    match context.format:
        case OutputFormat.JSON:
            body = {
                "settings": [row._asdict() for row in rows],
                "file": context.config.file,
                "profile": context.config.profile,
                "profiles": list(context.config.profiles),
                "tables": [row._asdict() for row in _tables(context)],
            }
            print_lines(document_lines(document("config", body, (), context.clock.now(), partial=False)))
        case OutputFormat.CSV:
            print_csv(CSV_COLUMNS, (row._asdict() for row in (*rows, *_tables(context))))
        case _:
            shown = [*rows, *_tables(context)]
            print_lines(table_lines(HEADS, list(map(_cells, shown)), context.width, context.colour))
            print_lines(_file_lines(context))
    return Exit.FINE


def _rows(context: Context) -> list[Row]:
    """Every setting, and sources that were found when none is configured."""
    config = context.config
    rows = []
    for setting in SETTINGS:
        effective = config.settings[setting.name]
        values = [mask_text(value) for value in effective.values]
        value = values if setting.repeatable else values[-1] if values else None
        rows.append(Row(setting.name, value, mask_text(effective.origin)))
    if not config.sources:
        found = {finding.spec.setting: finding for finding in discover(surroundings())}
        rows = [
            Row(row.name, [mask_text(found[row.name].spec.target)], found[row.name].origin)
            if row.name in found
            else row
            for row in rows
        ]
    return rows


def _tables(context: Context) -> list[Row]:
    """What stands in the tables of the file: hosts, keys, colours and the like."""
    config = context.config
    if config.file is None:
        return []
    return [
        Row(mask_text(name), mask_text(value), mask_text(origin))
        for name, value, origin in written_tables(config.file, config.profile)
    ]


def _cells(row: Row) -> list[Cell]:
    value = ", ".join(row.value) if isinstance(row.value, list) else row.value
    return [Cell(row.name), Cell(show(value or NONE)), Cell(show(row.origin), "settled")]


def _file_lines(context: Context) -> list[str]:
    config = context.config
    if config.file is None:
        return [f"no configuration file at {show(user_file())}"]
    profile = f", profile {show(config.profile)}" if config.profile else ""
    known = f" of {', '.join(map(show, config.profiles))}" if config.profiles else ""
    return [f"configuration file {show(config.file)}{profile}{known}"]
