"""A check of many things as one test, which names all that fail."""

from collections.abc import Callable, Iterable
from typing import TypeVar

Thing = TypeVar("Thing")


def check_all(check: Callable[[Thing], object], things: Iterable[Thing]) -> None:
    """Check each of them; AssertionError with a line for each that fails."""
    offenders = {}
    for thing in things:
        try:
            check(thing)
        except Exception as error:  # noqa: BLE001 - whatever it is, the others are checked too
            offenders[str(thing)] = error
    assert not offenders, "\n".join(f"{thing}: {error!r}" for thing, error in offenders.items())
