"""The bounds that docs/performance.md states are those that the program has."""

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
ROW = re.compile(r"\| (?P<said>[\d,]+)(?P<unit> MB)? \| `(?P<module>[\w.]+)\.(?P<name>[A-Z_]+)` \|")
ROWS = list(ROW.finditer(PAGE.read_text()))


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_what_is_kept_at_most_is_as_the_page_says(row: re.Match[str]) -> None:
    value = getattr(import_module(f"jobtui.{row['module']}"), row["name"])
    assert f"{value >> 20 if row['unit'] else value:,}" == row["said"]


def test_the_page_states_bounds() -> None:
    assert len(ROWS) > 10
