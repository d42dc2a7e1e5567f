"""Whose lines were read at all: a verdict may not rely on the silence of who was never heard."""

from typing import NamedTuple

from jobtui.model.clock import Nanos
from jobtui.model.ops import Component


class Heard(NamedTuple):
    """Which kinds of writers were read, and the newest time in a supervisor's log, if its lines have any."""

    components: frozenset[Component] = frozenset()
    supervisor_end: Nanos | None = None
