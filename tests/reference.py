"""The tables of docs/reference.md that are made from the program's own: keys, fields of the filter language.

python -m tests.reference      # renews them; a test says when that is due
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from jobtui.actions import ACTIONS, Action, Topic
from jobtui.analysis.filter_fields import FIELDS
from jobtui.backends.registry import SOURCES

REFERENCE = Path(__file__).parents[1] / "docs" / "reference.md"


def keys_tables() -> Iterator[str]:
    for topic in Topic:
        yield "\n".join(
            [f"| {topic.value} | |", "|---|---|", *(_row(a) for a in ACTIONS if a.topic is topic)]
        )


def _row(action: Action) -> str:
    keys = " ".join(f"`{key}`" for key in action.shown_keys.split())
    where = f" ({action.where})" if action.where else ""
    return f"| {keys} | {action.help}{where} |"


def fields_tables() -> Iterator[str]:
    names = {field: " ".join(f"`{name}`" for name in field.names) for field in FIELDS}
    yield "\n".join(
        ["| field | |", "|---|---|", *(f"| {names[field]} | {field.about} |" for field in FIELDS)]
    )


def sources_table() -> Iterator[str]:
    rows = [
        f"| `--{one.setting.replace('_', '-')} {one.metavar}` | {one.help} ([page](sources/{one.page}.md)) |"
        for one in SOURCES
        if one.setting
    ]
    yield "\n".join(["| flag | reads |", "|---|---|", *rows])


TABLES: Mapping[str, Callable[[], Iterator[str]]] = {
    "keys": keys_tables,
    "fields": fields_tables,
    "sources": sources_table,
}
"""What stands between `<!-- NAME: begin -->` and `<!-- NAME: end -->`."""


def renewed(text: str) -> str:
    """The text with its tables as they should be. Raises ValueError when one has no place."""
    for name, tables in TABLES.items():
        text = between(text, name, "\n\n".join(tables()))
    return text


def between(text: str, name: str, body: str) -> str:
    """The text with this between the marks of a name. Raises ValueError when they are not there once."""
    marks = re.compile(rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)", re.DOTALL)
    text, count = marks.subn(lambda match: f"{match[1]}\n{body}\n\n{match[2]}", text)
    if count != 1:
        raise ValueError(f"the place of the table {name!r} is not there, or there twice")
    return text


if __name__ == "__main__":
    REFERENCE.write_text(renewed(REFERENCE.read_text()))
