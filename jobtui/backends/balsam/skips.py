"""Rows that made no sense, each counted once however often it is read, and no more when it is mended."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from jobtui.model.health import Skip

KEPT = 10_000
"""Rows that are remembered; beyond, they count anew."""


class HasId(Protocol):
    """A row that made sense."""

    @property
    def id(self) -> int:
        """Its id in its list."""
        ...


class Counted(NamedTuple):
    """What of skipped rows is new, and how many are good again."""

    fresh: tuple[Skip, ...] = ()
    recovered: int = 0


class BadRows:
    """Which rows of a server make no sense."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._places: dict[str, None] = {}

    def count(self, path: str, rows: Sequence[HasId], skips: Iterable[Skip]) -> Counted:
        """Learn from a page of a list."""
        fresh = tuple(skip for skip in skips if skip.where not in self._places)
        recovered = 0
        if self._places:
            mended = {place_of(self._source + path, row.id) for row in rows} & self._places.keys()
            recovered = len(mended)
            for place in mended:
                del self._places[place]
        for skip in fresh[: max(0, KEPT - len(self._places))]:
            self._places[skip.where] = None
        return Counted(fresh, recovered)


def place_of(where: str, number: int) -> str:
    """How a row of a list is called."""
    return f"{where}{number}"
