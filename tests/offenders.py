"""A check of many things as one test, which names all that fail."""

from collections.abc import Callable, Iterable
from inspect import signature
from typing import Any, TypeVar

Thing = TypeVar("Thing")


def check_all(check: Callable[[Thing], object], things: Iterable[Thing]) -> None:
    """Check each of them; AssertionError with a line for each that fails."""
    offenders = []
    for thing in things:
        try:
            check(thing)
        except Exception as error:  # noqa: BLE001 - whatever it is, the others are checked too
            offenders.append(f"{thing!s:.300}: {error!r}")
    assert not offenders, "\n".join(offenders)


def each(*rows: Any) -> Callable[[Callable[..., object]], Callable[[], None]]:
    """Let a test of a row be one of all these rows: starting a test takes longer than most checks do.

    A row is what the test is called with, where it has several parameters their values.
    """

    def of_all(test: Callable[..., object]) -> Callable[[], None]:
        is_one = len(signature(test).parameters) == 1

        def every() -> None:
            assert rows, "there is nothing to check"
            check_all(lambda row: test(row) if is_one else test(*row), rows)

        every.__name__, every.__doc__, every.__module__ = test.__name__, test.__doc__, test.__module__
        return every

    return of_all
