"""A sorted list in blocks: to add, take out or find one entry among a hundred thousand costs microseconds."""

from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import islice
from typing import Any

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
        """Put an entry in its place."""
        self._count += 1
        if not self._blocks:
            self._blocks.append([entry])
            self._last.append(entry)
            return
        at = min(bisect_left(self._last, entry), len(self._blocks) - 1)
        block = self._blocks[at]
        insort(block, entry)
        self._last[at] = block[-1]
        if len(block) >= 2 * BLOCK:
            self._blocks[at : at + 1] = [block[:BLOCK], block[BLOCK:]]
            self._last.insert(at, block[BLOCK - 1])

    def remove(self, entry: Entry) -> None:
        """Take out an entry that is there."""
        at = bisect_left(self._last, entry)
        block = self._blocks[at]
        del block[bisect_left(block, entry)]
        self._count -= 1
        if block:
            self._last[at] = block[-1]
        else:
            del self._blocks[at], self._last[at]

    def position(self, entry: Entry) -> int:
        """How many entries come before this one."""
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
