"""How far apart the clocks of hosts are, bounded by messages that went from one to the other.

An op arrives after it was sent, and is answered after it arrived. So of the agent's clock against that of
the supervisor: `arrived - sent` is not less than its lead, and `arrived - replied` not more (Cristian's and
NTP's reasoning). Each op bounds it from both sides; the narrowest bounds of all ops hold as long as no clock
was set. A time in whole seconds may be up to a second more.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice

from jobtui.model.clock import SECOND, Nanos, Offset, Offsets, clock_of
from jobtui.model.ops import Component, Op, Step

MATTERS_S = 0.05
"""Clocks that are surely no farther apart are taken for one."""
RENEW_S = 20.0
OPS_AT_ONCE = 1_000
PAIRS_KEPT = 500
"""Ops between two machines that the bounds are worked out of, the newest: a clock drifts, or is set."""

_AGENTS = frozenset({Component.AGENT, Component.JOB_CMD})
_SUPERVISORS = frozenset({Component.SUPERVISOR, Component.DRIVER})


class Bounds:
    """Gathers what ops, oldest first, say of the lead of each agent's clock over its supervisor's."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[str, str], deque[tuple[float | None, float | None]]] = {}

    def take(self, op: Op) -> None:
        if op.arrived_at is None or op.sends != 1 or (clocks := _clocks(op)) is None:
            return
        pairs = self._pairs.setdefault(clocks, deque(maxlen=PAIRS_KEPT))
        pairs.append((_low(op, op.arrived_at), _high(op, op.arrived_at)))

    def offsets(self) -> Offsets:
        """What follows from all of them. Bounds that contradict each other come of a clock that was set."""
        found: dict[tuple[str, str], Offset] = {}
        for clocks, pairs in self._pairs.items():
            low = max((low for low, _ in pairs if low is not None), default=None)
            high = min((high for _, high in pairs if high is not None), default=None)
            if low is None or high is None or low <= high:
                found[clocks] = Offset(low, high, len(pairs))
        return found


class KnownOffsets:
    """The offsets that matter, worked out anew now and then, a few ops at each call.

    `ops` gives the ops that have a larger key than this one, oldest first; `timer` seconds. Nobody may call
    for hours: in between no op is held that is no longer kept.
    """

    def __init__(
        self, ops: Callable[[int], Iterable[Op]], timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._ops = ops
        self._timer = timer
        self._known: Offsets = {}
        self._due_at = -math.inf
        self._after: int | None = None
        self._bounds = Bounds()

    def __call__(self) -> Offsets:
        if self._after is None and self._timer() >= self._due_at:
            self._after, self._bounds = 0, Bounds()
        if self._after is not None:
            self._after = self._go_on(self._after)
        return self._known

    def _go_on(self, after: int) -> int | None:
        """The key of the last op that was taken, None when these were the last."""
        some = list(islice(self._ops(after), OPS_AT_ONCE))
        for op in some:
            self._bounds.take(op)
        if len(some) == OPS_AT_ONCE:
            return some[-1].key
        self._known = telling(self._bounds.offsets())
        self._due_at = self._timer() + RENEW_S
        return None


def telling(offsets: Offsets) -> dict[tuple[str, str], Offset]:
    """Those offsets that matter: clocks that are, or may be, apart by more than MATTERS_S."""
    return {
        clocks: offset
        for clocks, offset in offsets.items()
        if offset.spread_s is not None and offset.spread_s > MATTERS_S
    }


def _low(op: Op, arrived: Nanos) -> float | None:
    if op.replied_at is None:
        return None
    return (arrived - op.replied_at - _grain(op.replied_at)) / SECOND


def _high(op: Op, arrived: Nanos) -> float | None:
    return None if op.sent_at is None else (arrived + _grain(arrived) - op.sent_at) / SECOND


def _grain(at: Nanos) -> int:
    """How much later than its time says something may have been."""
    return 0 if at % SECOND else SECOND


def _clocks(op: Op) -> tuple[str, str] | None:
    """The supervisor's clock and the agent's; None when they are the same, or one is not known."""
    supervisor = _clock(op.steps, _SUPERVISORS, "")
    agent = _clock(op.steps, _AGENTS, "arrived")
    return None if supervisor is None or agent is None or supervisor == agent else (supervisor, agent)


def _clock(steps: Iterable[Step], components: frozenset[Component], word: str) -> str | None:
    for step in steps:
        if step.component in components and step.step.startswith(word):
            return clock_of(step.source)
    return None
