"""Bounds of the differences between clocks of hosts, from messages between them.

An op arrives after it was sent, and the reply comes after it arrived. So the lead of the agent's clock over
the supervisor's is at most `arrived - sent` and at least `arrived - replied` (as in Cristian's algorithm and
NTP). Each op gives both bounds. The narrowest bounds of all ops hold as long as no clock was set. A time in
whole seconds may be up to a second later.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice

from jobtui.model.clock import SECOND, Nanos, Offset, Offsets, clock_of
from jobtui.model.ops import BY_SUPERVISOR, Component, Op, Step

MATTERS_S = 0.05
"""Clocks that are certainly no farther apart count as one."""
RENEW_S = 20.0
OPS_AT_ONCE = 1_000
PAIRS_KEPT = 500
"""How many of the newest ops between two machines give the bounds: a clock drifts, or is set."""

_AGENTS = frozenset({Component.AGENT, Component.JOB_CMD})


class OffsetBounds:
    """Collects bounds on the lead of each agent's clock over its supervisor's from ops, oldest first."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[str, str], deque[tuple[float | None, float | None]]] = {}

    def take(self, op: Op) -> None:
        sent, arrived, replied = op.sent_at, op.arrived_at, op.replied_at
        if arrived is None or op.sends != 1:
            return
        supervisor, agent = _clock(op.steps, BY_SUPERVISOR, ""), _clock(op.steps, _AGENTS, "arrived")
        if supervisor is None or agent is None or supervisor == agent:
            return
        low = None if replied is None else (arrived - replied - _grain(replied)) / SECOND
        high = None if sent is None else (arrived + _grain(arrived) - sent) / SECOND
        pairs = self._pairs.setdefault((supervisor, agent), deque(maxlen=PAIRS_KEPT))
        pairs.append((low, high))

    def offsets(self) -> Offsets:
        """The bounds from all ops. Contradicting bounds mean that a clock was set."""
        found: dict[tuple[str, str], Offset] = {}
        for clocks, pairs in self._pairs.items():
            low = max((low for low, _ in pairs if low is not None), default=None)
            high = min((high for _, high in pairs if high is not None), default=None)
            if low is None or high is None or low <= high:
                found[clocks] = Offset(low, high)
        return found


class KnownOffsets:
    """The offsets that matter, computed again from time to time, with a few ops at each call.

    `ops` gives the ops with a larger key, oldest first; `timer` gives seconds. There may be hours between
    calls: no op is held that the store has dropped.
    """

    def __init__(
        self, ops: Callable[[int], Iterable[Op]], timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._ops = ops
        self._timer = timer
        self._known: Offsets = {}
        self._due_at = -math.inf
        self._after: int | None = None
        self._bounds = OffsetBounds()

    def __call__(self) -> Offsets:
        if self._after is None and self._timer() >= self._due_at:
            self._after, self._bounds = 0, OffsetBounds()
        if self._after is not None:
            self._after = self._go_on(self._after)
        return self._known

    def _go_on(self, after: int) -> int | None:
        """The key of the last op that was used, None if there are no more."""
        some = list(islice(self._ops(after), OPS_AT_ONCE))
        for op in some:
            self._bounds.take(op)
        if len(some) == OPS_AT_ONCE:
            return some[-1].key
        self._known = telling(self._bounds.offsets())
        self._due_at = self._timer() + RENEW_S
        return None


def telling(offsets: Offsets) -> dict[tuple[str, str], Offset]:
    """The offsets between clocks that are, or may be, more than MATTERS_S apart."""
    return {
        clocks: offset
        for clocks, offset in offsets.items()
        if offset.spread_s is not None and offset.spread_s > MATTERS_S
    }


def _grain(at: Nanos) -> int:
    """How much later than its time an event may have been: a second if the time is in whole seconds."""
    return 0 if at % SECOND else SECOND


def _clock(steps: Iterable[Step], components: frozenset[Component], word: str) -> str | None:
    for step in steps:
        if step.component in components and step.step.startswith(word):
            return clock_of(step.source)
    return None
