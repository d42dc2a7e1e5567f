"""Notes whose lines were read, and up to when. Costs next to nothing for each record."""

from collections import deque
from collections.abc import Iterable, Set
from functools import cache

from jobtui.formats.damage import SHAPE as DAMAGED
from jobtui.formats.schema import load
from jobtui.model.clock import Nanos
from jobtui.model.heard import Heard
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Component

PLACES_KEPT = 200
"""Damaged places remembered of a log, the newest."""


class Hearing:
    """Takes in the shapes of records."""

    def __init__(self) -> None:
        self._shapes: set[str] = set()
        self._supervisor_end: Nanos | None = None
        self._damaged: dict[str, deque[int]] = {}

    def add(self, records: Iterable[LogRecord], shapes: Set[str], supervisor_end: Nanos | None) -> None:
        """Note the records of a batch, which shapes they have, and the last time that a supervisor wrote."""
        self._shapes.update(shapes)
        if supervisor_end is not None:
            self._supervisor_end = max(supervisor_end, self._supervisor_end or supervisor_end)
        if DAMAGED in shapes:
            for record in records:
                if record.shape == DAMAGED:
                    self._damaged.setdefault(record.source, deque(maxlen=PLACES_KEPT)).append(record.offset)

    @property
    def heard(self) -> Heard:
        """What is known by now."""
        components = _components()
        known = frozenset(components[shape] for shape in self._shapes if shape in components)
        damaged = {source: tuple(places) for source, places in self._damaged.items()}
        return Heard(known, self._supervisor_end, damaged=damaged)


@cache
def _components() -> dict[str, Component]:
    return {shape.name: shape.component for shape in load("sirepo").shapes}
