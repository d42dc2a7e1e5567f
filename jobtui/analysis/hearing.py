"""Notes whose lines were read, and up to when. Costs next to nothing for each record."""

from collections.abc import Iterable
from functools import cache

from jobtui.formats.schema import load
from jobtui.model.clock import Nanos
from jobtui.model.heard import Heard
from jobtui.model.ops import Component


class Hearing:
    """Takes in the shapes of records."""

    def __init__(self) -> None:
        self._shapes: set[str] = set()
        self._supervisor_end: Nanos | None = None

    def add(self, shapes: Iterable[str], supervisor_end: Nanos | None) -> None:
        """Note the shapes of the records of a batch, and the last time in it that a supervisor wrote."""
        self._shapes.update(shapes)
        if supervisor_end is not None:
            self._supervisor_end = max(supervisor_end, self._supervisor_end or supervisor_end)

    @property
    def heard(self) -> Heard:
        """What is known by now."""
        components = _components()
        known = frozenset(components[shape] for shape in self._shapes if shape in components)
        return Heard(known, self._supervisor_end)


@cache
def _components() -> dict[str, Component]:
    return {shape.name: shape.component for shape in load("sirepo").shapes}
