"""Stretches of a trace in which nothing ran: a job in its queue, a pause between attempts."""

from typing import NamedTuple

from jobtui.analysis.traces.tree import Tree, end_of
from jobtui.model.clock import Nanos
from jobtui.model.traces import Span

LEAST_SHARE = 0.05
"""A stretch is told of when it is this part of the trace or more."""
LEAST_NS = 1_000_000_000
"""And this long."""


class Wait(NamedTuple):
    """A stretch between the end of one span and the start of the next."""

    start: Nanos
    end: Nanos
    after: Span
    before: Span

    @property
    def duration_ns(self) -> int:
        """How long nothing ran, nanoseconds."""
        return self.end - self.start


def waits_of(tree: Tree) -> tuple[Wait, ...]:
    """The stretches that matter, by time. An open span runs on as far as is known only."""
    least = max(LEAST_NS, int(tree.duration_ns * LEAST_SHARE))
    waits: list[Wait] = []
    latest: Span | None = None
    for span in tree.spans:
        if not span.started_at:
            continue
        if latest is not None and span.started_at - end_of(latest) >= least:
            waits.append(Wait(end_of(latest), span.started_at, latest, span))
        if latest is None or end_of(span) > end_of(latest):
            latest = span
    return tuple(waits)
