"""Which rows a table shows and in which order: filtered, sorted, and kept so while single rows change.

Knows nothing of a terminal. A new order over many rows is worked out in slices, so that no key waits for it.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from jobtui.widgets.sorted_blocks import Entry, SortedBlocks

SLICE = 1024
"""Rows looked at in one slice of a rebuild."""
RUN = 4096
"""Rows sorted at once in a rebuild, before runs are merged."""


class HasId(Protocol):
    """All an index needs of a row."""

    @property
    def id(self) -> str:
        """Unique among the rows."""
        ...


Row = TypeVar("Row", bound=HasId)


class Order(NamedTuple, Generic[Row]):
    """What to show, and in which order.

    `sort` gives a row's key; None puts it last in either direction. `keep` tells whether it is shown at all.
    """

    sort: Callable[[Row], Any]
    reverse: bool = False
    keep: Callable[[Row], bool] | None = None


class RowIndex(Generic[Row]):
    """The shown rows in order. Rows without a key come after all others."""

    def __init__(self, order: Order[Row]) -> None:
        self.order = order
        self._entries: dict[str, Entry] = {}
        self._keyed = SortedBlocks()
        self._keyless = SortedBlocks()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, row_id: object) -> bool:
        return row_id in self._entries

    def put(self, row: Row) -> bool:
        """Take in a new or changed row; whether it came, went or moved."""
        sort, _, keep = self.order
        before = self._entries.get(row.id)
        if keep is not None and not keep(row):
            return before is not None and self.discard(row.id)
        key = sort(row)
        if before is not None and before[0] == key:
            return False
        entry = (key, row.id)
        if before is not None:
            self._part(before).remove(before)
        self._entries[row.id] = entry
        self._part(entry).add(entry)
        return True

    def discard(self, row_id: str) -> bool:
        """Forget a row; whether it was shown."""
        entry = self._entries.pop(row_id, None)
        if entry is None:
            return False
        self._part(entry).remove(entry)
        return True

    def position(self, row_id: str) -> int | None:
        """At which place a row is shown, None when it is not."""
        entry = self._entries.get(row_id)
        if entry is None:
            return None
        if entry[0] is None:
            return len(self._keyed) + self._keyless.position(entry)
        at = self._keyed.position(entry)
        return len(self._keyed) - 1 - at if self.order.reverse else at

    def window(self, start: int, stop: int) -> list[str]:
        """The ids at the places from `start` up to `stop`, clipped to what there is."""
        count = len(self._keyed)
        if self.order.reverse:
            keyed = self._keyed.window(count - stop, count - max(0, start))[::-1]
        else:
            keyed = self._keyed.window(start, stop)
        return [entry[1] for entry in keyed + self._keyless.window(start - count, stop - count)]

    def _part(self, entry: Entry) -> SortedBlocks:
        return self._keyless if entry[0] is None else self._keyed

    @classmethod
    def rebuilt(cls, rows: Sequence[Row], order: Order[Row]) -> Generator[None, None, "RowIndex[Row]"]:
        """An index over `rows`, returned after as many slices of a few milliseconds as it takes."""
        index = cls(order)
        keyed: list[Entry] = []
        keyless: list[Entry] = []
        for entry in _entries(rows, order):
            if entry is None:
                yield
            else:
                (keyless if entry[0] is None else keyed).append(entry)
        index._keyed = SortedBlocks((yield from _sorted(keyed)))
        yield
        index._keyless = SortedBlocks((yield from _sorted(keyless)))
        for part in (keyed, keyless):
            for at in range(0, len(part), 8 * SLICE):
                yield
                index._entries.update((entry[1], entry) for entry in part[at : at + 8 * SLICE])
        return index


def _entries(rows: Sequence[Row], order: Order[Row]) -> Iterator[Entry | None]:
    """The entries of the shown rows, with a None after each slice."""
    sort, _, keep = order
    for at in range(0, len(rows), SLICE):
        for row in rows[at : at + SLICE]:
            if keep is None or keep(row):
                yield (sort(row), row.id)
        yield None


def _sorted(entries: list[Entry]) -> Generator[None, None, list[Entry]]:
    """`entries` sorted, in slices: short runs first, then merged by twos, one pass of list.sort each."""
    runs = []
    for at in range(0, len(entries), RUN):
        runs.append(sorted(entries[at : at + RUN]))
        yield
    while len(runs) > 1:
        merged = []
        for at in range(0, len(runs), 2):
            pair = [entry for run in runs[at : at + 2] for entry in run]
            pair.sort()
            merged.append(pair)
            yield
        runs = merged
    return runs[0] if runs else []
