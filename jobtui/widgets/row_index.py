"""Which rows a table shows and in which order: filtered, sorted, and kept so while single rows change.

Knows nothing of a terminal. A new order over many rows is worked out in slices, so that no key waits for it.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from sortedcontainers import SortedList

from jobtui.model.health import FAULTS

Entry = tuple[Any, str]
"""Sort key and id. The keys of one list compare with each other; the id decides between equal ones."""

SLICE = 1024
"""Rows looked at in one slice of a rebuild."""
RUN = 4096
"""Rows sorted at once in a rebuild, before runs are merged."""


Row = TypeVar("Row", bound=Any)
"""Anything with an `id`, which is a text."""


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
        self._keyed: SortedList[Entry] = SortedList()
        self._keyless: SortedList[Entry] = SortedList()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, row_id: object) -> bool:
        return row_id in self._entries

    def put(self, row: Row) -> bool:
        """Take in a new or changed row; whether it came, went or moved."""
        before = self._entries.get(row.id)
        if (entry := _entry(row, self.order)) is None:
            return before is not None and self.discard(row.id)
        if before is not None and before[0] == entry[0]:
            return False
        if before is not None:
            self._part(before).remove(before)
        try:
            self._part(entry).add(entry)
        except TypeError as error:  # its key does not compare with those of others
            FAULTS.note(error, "sorting rows")
            self._keyless.add(entry := (None, row.id))
        self._entries[row.id] = entry
        return True

    def discard(self, row_id: str) -> bool:
        entry = self._entries.pop(row_id, None)
        if entry is None:
            return False
        self._part(entry).remove(entry)
        return True

    def position(self, row_id: str) -> int | None:
        entry = self._entries.get(row_id)
        if entry is None:
            return None
        if entry[0] is None:
            behind: int = self._keyless.index(entry)
            return len(self._keyed) + behind
        at: int = self._keyed.index(entry)
        return len(self._keyed) - 1 - at if self.order.reverse else at

    def window(self, start: int, stop: int) -> list[str]:
        """The ids at the places from `start` up to `stop`, clipped to what there is."""
        count, start = len(self._keyed), max(0, start)
        keyed = range(start, min(stop, count))
        keyless = range(max(0, start - count), min(stop - count, len(self._keyless)))
        shown = [self._keyed[count - 1 - at if self.order.reverse else at] for at in keyed]
        return [entry[1] for entry in (*shown, *(self._keyless[at] for at in keyless))]

    def _part(self, entry: Entry) -> "SortedList[Entry]":
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
        index._keyed = SortedList((yield from _sorted(keyed)))
        yield
        index._keyless = SortedList((yield from _sorted(keyless)))
        for part in (keyed, keyless):
            for at in range(0, len(part), 8 * SLICE):
                yield
                index._entries.update((entry[1], entry) for entry in part[at : at + 8 * SLICE])
        return index


def _entries(rows: Sequence[Row], order: Order[Row]) -> Iterator[Entry | None]:
    """The entries of the shown rows, with a None after each slice."""
    for at in range(0, len(rows), SLICE):
        for row in rows[at : at + SLICE]:
            if (entry := _entry(row, order)) is not None:
                yield entry
        yield None


def _entry(row: Row, order: Order[Row]) -> Entry | None:
    """The entry of a row, None when it is not shown; with a fault of ours it is shown after all others."""
    try:
        return (order.sort(row), row.id) if order.keep is None or order.keep(row) else None
    except Exception as error:  # noqa: BLE001 - it costs this row its place; a `with` would cost the others time
        FAULTS.note(error, "sorting rows")
        return (None, row.id)


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
