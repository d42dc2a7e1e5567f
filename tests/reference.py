"""The tables of pages that are made from the program's own: keys, fields of the filter, actions, styles.

python -m tests.reference      # renews them; a test says when that is due
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from jobtui.actions import ACTIONS, Action, Topic
from jobtui.analysis.filter import FIELDS
from jobtui.backends.registry import SOURCES
from jobtui.render.columns import JOB_COLUMNS
from jobtui.render.styles import style_names
from jobtui.screens.command_table import COMMANDS

DOCS = Path(__file__).parents[1] / "docs"
REFERENCE, CONFIGURATION = DOCS / "reference.md", DOCS / "configuration.md"


def table(head: str, rows: Iterable[str]) -> str:
    return "\n".join([head, "|---" * (head.count("|") - 1) + "|", *rows])


def keys_tables() -> Iterator[str]:
    for topic in Topic:
        yield table(f"| {topic.value} | |", (_row(a) for a in ACTIONS if a.topic is topic))


def _keys(action: Action) -> str:
    return " ".join(f"`{key}`" for key in action.shown_keys.split())


def _row(action: Action) -> str:
    where = f" ({action.where})" if action.where else ""
    return f"| {_keys(action)} | {action.help}{where} |"


def fields_tables() -> Iterator[str]:
    names = {field: " ".join(f"`{name}`" for name in field.names) for field in FIELDS}
    yield table("| field | |", (f"| {names[field]} | {field.about} |" for field in FIELDS))


def typed_table() -> Iterator[str]:
    typed = {one: f"{one.name} {one.argument}".strip() for one in COMMANDS}
    yield table("| command | |", (f"| `{words}` | {one.help} |" for one, words in typed.items()))


def sources_table() -> Iterator[str]:
    named = {one: f"{one.setting.replace('_', '-')} {one.metavar}" for one in SOURCES if one.setting}
    rows = (f"| `--{flag}` | {one.help} ([page](sources/{one.page}.md)) |" for one, flag in named.items())
    yield table("| flag | reads |", rows)


def actions_table() -> Iterator[str]:
    rows = dict.fromkeys(f"| `{action.name}` | {_keys(action)} | {action.help} |" for action in ACTIONS)
    yield table("| action | keys | |", rows)


def styles_table() -> Iterator[str]:
    yield table("| colour | |", (f"| `{name}` | {about} |" for name, about in style_names().items()))


def columns_row() -> Iterator[str]:
    yield ", ".join(f"`{column.key}`" for column in JOB_COLUMNS)


TABLES: Mapping[Path, Mapping[str, Callable[[], Iterator[str]]]] = {
    REFERENCE: {"keys": keys_tables, "fields": fields_tables, "sources": sources_table, "typed": typed_table},
    CONFIGURATION: {"actions": actions_table, "styles": styles_table, "columns": columns_row},
}
"""What stands between `<!-- NAME: begin -->` and `<!-- NAME: end -->` of each page."""


def renewed(page: Path, text: str) -> str:
    """The text of a page with its tables as they should be. Raises ValueError when one has no place."""
    for name, tables in TABLES[page].items():
        text = _between(text, name, "\n\n".join(tables()))
    return text


def _between(text: str, name: str, body: str) -> str:
    marks = re.compile(rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)", re.DOTALL)
    text, count = marks.subn(lambda match: f"{match[1]}\n{body}\n\n{match[2]}", text)
    if count != 1:
        raise ValueError(f"the place of the table {name!r} is not there, or there twice")
    return text


if __name__ == "__main__":
    for path in TABLES:
        path.write_text(renewed(path, path.read_text()))
