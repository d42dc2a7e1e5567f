"""The tables of docs/configuration.md that are made from the program's own: actions and styles by name.

python -m tests.personal_tables      # renews them; a test says when that is due
"""

from collections.abc import Iterator
from pathlib import Path

from jobtui.actions import ACTIONS
from jobtui.render.columns import JOB_COLUMNS
from jobtui.render.styles import STYLE_NAMES
from tests.reference import between

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"


def actions_table() -> Iterator[str]:
    yield "| action | keys | |"
    yield "|---|---|---|"
    told = set()
    for action in ACTIONS:
        keys = " ".join(f"`{key}`" for key in action.shown_keys.split())
        row = f"| `{action.name}` | {keys} | {action.help} |"
        if row not in told:
            told.add(row)
            yield row


def styles_table() -> Iterator[str]:
    yield "| colour | |"
    yield "|---|---|"
    for name, about in STYLE_NAMES.items():
        yield f"| `{name}` | {about} |"


def columns_row() -> Iterator[str]:
    yield ", ".join(f"`{column.key}`" for column in JOB_COLUMNS)


def renewed(text: str) -> str:
    """The page with its tables as they should be. Raises ValueError when one has no place."""
    for name, lines in (("actions", actions_table), ("styles", styles_table), ("columns", columns_row)):
        text = between(text, name, "\n".join(lines()))
    return text


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
