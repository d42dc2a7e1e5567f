"""Whose lines were read at all, and up to when: the silence of who was never heard proves nothing."""

from collections.abc import Iterable
from functools import cache

from jobtui.formats.schema import load
from jobtui.model.clock import Nanos
from jobtui.model.ops import Component

SUPERVISING = frozenset({Component.SUPERVISOR, Component.DRIVER})
"""A supervisor and its drivers write into one log."""


class Heard:
    """Which kinds of writers were read, and the newest time in a supervisor's log, if its lines have any."""

    def __init__(self) -> None:
        self._shapes: set[str] = set()
        self.supervisor_end: Nanos | None = None

    def add(self, shapes: Iterable[str], supervisor_end: Nanos | None) -> None:
        """Note the shapes of the records of a batch, and the last time in it that a supervisor wrote."""
        self._shapes.update(shapes)
        if supervisor_end is not None:
            self.supervisor_end = max(supervisor_end, self.supervisor_end or supervisor_end)

    def has(self, *components: Component) -> bool:
        """Whether a line of one of these was read."""
        return any(_components().get(shape) in components for shape in self._shapes)


@cache
def _components() -> dict[str, Component]:
    return {shape.name: shape.component for shape in load("sirepo").shapes}
