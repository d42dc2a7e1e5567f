"""Where the fixtures of tests are, the tables among them, and the rows of parametrised tests."""

import tomllib
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures"
CAPTURES = FIXTURES / "sirepo"


def table(name: str) -> dict[str, Any]:
    """A table of the fixtures by its path below them."""
    return tomllib.loads((FIXTURES / f"{name}.toml").read_text())


ROWS: dict[str, list[Any]] = table("rows")
