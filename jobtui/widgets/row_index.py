"""Which rows a table shows and in which order: filtered, sorted, and kept so while single rows change.

Knows nothing of a terminal. A new order over many rows is worked out in slices, so that no key waits for it.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from jobtui.model.faults import FAULTS

BLOCK = 512
"""Entries in a block when it is made; it is halved at twice that."""

Entry = tuple[Any, str]
"""Sort key and id. The keys of one list compare with each other; the id decides between equal ones."""


class SortedBlocks:
    """Distinct entries in ascending order. `entries` must be sorted already."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self._blocks = [list(entries[at : at + BLOCK]) for at in range(0, len(entries), BLOCK)]
        self._last = [block[-1] for block in self._blocks]
        self._count = len(entries)

    def __len__(self) -> int:
        return self._count

    def add(self, entry: Entry) -> None:
        if not self._blocks:
            self._blocks.append([entry])
            self._last.append(entry)
            self._count += 1
            return
        at = min(bisect_left(self._last, entry), len(self._blocks) - 1)
        block = self._blocks[at]
        insort(block, entry)
        self._count += 1
        self._last[at] = block[-1]
        if len(block) >= 2 * BLOCK:
            self._blocks[at : at + 1] = [block[:BLOCK], block[BLOCK:]]
            self._last.insert(at, block[BLOCK - 1])

    def remove(self, entry: Entry) -> None:
        at = bisect_left(self._last, entry)
        block = self._blocks[at]
        del block[bisect_left(block, entry)]
        self._count -= 1
        if block:
            self._last[at] = block[-1]
        else:
            del self._blocks[at], self._last[at]

    def position(self, entry: Entry) -> int:
        at = bisect_left(self._last, entry)
        before = sum(map(len, self._blocks[:at]))
        return before if at == len(self._blocks) else before + bisect_left(self._blocks[at], entry)

    def window(self, start: int, stop: int) -> list[Entry]:
        """The entries at `start` up to `stop`, clipped to what there is."""
        start, stop = max(0, start), min(stop, self._count)
        found: list[Entry] = []
        for block in self._blocks:
            if stop <= 0:
                break
            if start < len(block):
                found += islice(block, start, min(stop, len(block)))
            start, stop = max(0, start - len(block)), stop - len(block)
        return found


SLICE = 1024
"""Rows looked at in one slice of a rebuild."""
RUN = 4096
"""Rows sorted at once in a rebuild, before runs are merged."""


class HasId(Protocol):
    """All an index needs of a row."""

    @property
    def id(self) -> str: ...


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
