"""A mapping with a stated bound: nothing that is kept grows without one."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Bounded(OrderedDict[K, V]):
    """Holds `most` entries. What is set becomes the newest; the oldest goes when there are too many."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)

    def put_before(self, older: Mapping[K, V]) -> None:
        """Add entries as older ones than all; of a key that is here already, its value stays."""
        merged = {**older, **self}
        self.clear()
        self.update(merged)
