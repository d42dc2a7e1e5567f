"""What functions make of texts and other plain values, as `tests/fixtures/texts.toml` has it."""

from collections.abc import Iterator
from importlib import import_module
from inspect import signature
from itertools import chain, repeat
from typing import Any

import msgspec
import pytest

from tests.offenders import each
from tests.rows import table

TABLES: dict[str, dict[str, Any]] = table("texts")
Case = tuple[str, list[object], Any]


def cases() -> Iterator[Case]:
    for name, told in TABLES.items():
        yield from ((name, [text], value) for text, value in told.get("gives", {}).items())
        yield from ((name, given, value) for *given, value in told.get("calls", ()))
        yield from ((name, [one] if isinstance(one, str) else one, None) for one in told.get("none", ()))


def mistakes() -> Iterator[Case]:
    for name, told in TABLES.items():
        yield from ((name, given, words) for *given, words in told.get("mistakes", ()))


def called(name: str, given: list[object]) -> Any:
    """What a function makes of these; where it wants a record or bytes, a table, list or text is one.

    The last may be a table of what is only given by name.
    """
    module, _, function = name.partition(":")
    made = getattr(import_module(f"jobtui.{module}"), function)
    wanted = signature(made, eval_str=True).parameters.values()
    by_name: Any = given[-1] if any(one.kind is one.KEYWORD_ONLY for one in wanted) else None
    by_name = by_name if isinstance(by_name, dict) else {}
    hints = chain((one.annotation for one in wanted), repeat(object))
    return made(*map(as_wanted, given[: len(given) - bool(by_name)], hints), **by_name)


def as_wanted(given: Any, hint: object) -> object:
    if hint is bytes:
        return given.encode()
    if not (isinstance(hint, type) and issubclass(hint, tuple)):
        return given
    return hint(**given) if isinstance(given, dict) else hint(*given)


def plain(made: Any, wanted: object) -> object:
    """As a table has it: of a record the fields that are not as usual, where it has their names."""
    if isinstance(wanted, dict) and hasattr(made, "_asdict"):
        usual = made._field_defaults
        made = {key: value for key, value in made._asdict().items() if value != usual.get(key, ...)}
    made = [*made] if isinstance(made, Iterator) else made
    return msgspec.json.decode(msgspec.json.encode(made, enc_hook=str))


@each(*cases())
def test_each_function_gives_what_the_table_says(name: str, given: list[object], value: object) -> None:
    assert plain(called(name, given), value) == value


@each(*mistakes())
def test_a_mistake_is_reported_without_a_secret(name: str, given: list[object], words: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as raised:
        called(name, given)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "s3cr3t" not in str(raised.value)
