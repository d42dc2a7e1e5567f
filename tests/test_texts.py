"""What functions make of a text, as `tests/fixtures/texts.toml` has it."""

import tomllib
from collections.abc import Iterator
from importlib import import_module

import pytest

from tests.excerpts import FIXTURES


def cases() -> Iterator[tuple[str, str, object]]:
    for name, told in tomllib.loads((FIXTURES / "texts.toml").read_text()).items():
        yield from ((name, text, value) for text, value in told.get("gives", {}).items())
        yield from ((name, text, None) for text in told.get("none", ()))


@pytest.mark.parametrize(("name", "text", "value"), cases())
def test_what_is_made_of_a_text(name: str, text: str, value: object) -> None:
    module, _, function = name.partition(":")
    made = getattr(import_module(f"jobtui.{module}"), function)(text)
    assert (list(made) if isinstance(made, tuple) else made) == value
