"""Rows of parametrised tests, from `tests/fixtures/rows.toml`."""

import tomllib
from typing import Any

from tests.excerpts import FIXTURES

ROWS: dict[str, list[Any]] = tomllib.loads((FIXTURES / "rows.toml").read_text())
