"""Whose lines were read at all: a verdict may not rely on the silence of who was never heard."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from jobtui.model.clock import Nanos
from jobtui.model.ops import Component


class Writer(NamedTuple):
    """The process that wrote the last lines of a supervisor's log, from a place in it on, and its last time.

    `pid` is None where its lines do not tell.
    """

    pid: int | None
    since: int
    end: Nanos | None


class Heard(NamedTuple):
    """Which kinds of writers were read, and the newest time in a supervisor's log, if its lines have any.

    `writers` are the last writers of supervisors' logs, `damaged` places that cannot be read, both by source.
    """

    components: frozenset[Component] = frozenset()
    supervisor_end: Nanos | None = None
    writers: Mapping[str, Writer] = MappingProxyType({})
    damaged: Mapping[str, tuple[int, ...]] = MappingProxyType({})
