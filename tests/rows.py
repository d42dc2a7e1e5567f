"""Where the fixtures of tests are, the tables among them, and the rows of parametrised tests."""

import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures"
CAPTURES = FIXTURES / "sirepo"


def table(name: str) -> dict[str, Any]:
    """A table of the fixtures by its path below them."""
    return tomllib.loads((FIXTURES / f"{name}.toml").read_text())


def program(name: str) -> str:
    """The text of a program below `fixtures/programs`, for a process of its own."""
    return (FIXTURES / "programs" / name).read_text()


def database_rows(path: Path, sql: str, *values: object) -> list[Any]:
    """What a statement gives in a database, which is closed again with what it changed."""
    with closing(sqlite3.connect(path)) as db, db:
        return db.execute(sql, values).fetchall()


ROWS: dict[str, list[Any]] = table("rows")
