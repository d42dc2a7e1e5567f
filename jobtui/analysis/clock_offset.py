"""How far apart the clocks of hosts are, bounded by messages that went from one to the other.

An op arrives after it was sent, and is answered after it arrived. So of the agent's clock against that of
the supervisor: `arrived - sent` is not less than its lead, and `arrived - replied` not more (Cristian's and
NTP's reasoning). Each op bounds it from both sides; the narrowest bounds of all ops hold as long as no clock
was set. A time in whole seconds may be up to a second more.
"""

import time
from collections.abc import Callable, Iterable

from jobtui.model.clock import SECOND, Nanos
from jobtui.model.clocks import Offset, Offsets, clock_of
from jobtui.model.ops import Component, Op, Step

MATTERS_S = 0.05
"""Clocks that are surely no farther apart are taken for one."""
RENEW_S = 20.0
OPS_LOOKED_AT = 2_000
"""Of so many ops, the newest, the bounds are worked out: a clock drifts, and may be set."""

_AGENTS = frozenset({Component.AGENT, Component.JOB_CMD})
_SUPERVISORS = frozenset({Component.SUPERVISOR, Component.DRIVER})


def clock_offsets(ops: Iterable[Op]) -> Offsets:
    """The lead of each agent's clock over its supervisor's, where their ops bound it. Ops in any order."""
    newest = sorted(ops, key=lambda op: op.sent_at or Nanos(0))[-OPS_LOOKED_AT:]
    found: dict[tuple[str, str], Offset] = {}
    for op in newest:
        clocks = _clocks(op)
        if clocks is None or op.arrived_at is None or op.sends != 1:
            continue
        before = found.get(clocks, Offset(None, None))
        low, high = _low(op, op.arrived_at), _high(op, op.arrived_at)
        found[clocks] = Offset(_larger(before.low, low), _smaller(before.high, high), before.pairs + 1)
    return {clocks: offset for clocks, offset in found.items() if _is_possible(offset)}


class KnownOffsets:
    """The offsets that matter, worked out anew now and then. `ops` gives all ops, `timer` seconds."""

    def __init__(self, ops: Callable[[], Iterable[Op]], timer: Callable[[], float] = time.monotonic) -> None:
        self._ops = ops
        self._timer = timer
        self._known: Offsets = {}
        self._known_at: float | None = None

    def __call__(self) -> Offsets:
        """The offsets as they were worked out last, not longer than RENEW_S ago."""
        now = self._timer()
        if self._known_at is None or now - self._known_at >= RENEW_S:
            self._known, self._known_at = telling(clock_offsets(self._ops())), now
        return self._known


def telling(offsets: Offsets) -> dict[tuple[str, str], Offset]:
    """Those offsets that matter: clocks that are, or may be, apart by more than MATTERS_S."""
    return {
        clocks: offset
        for clocks, offset in offsets.items()
        if offset.spread_s is not None and offset.spread_s > MATTERS_S
    }


def _is_possible(offset: Offset) -> bool:
    """Bounds that contradict each other come of a clock that was set: they say nothing."""
    return offset.low is None or offset.high is None or offset.low <= offset.high


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


def _larger(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else max(one, other)


def _smaller(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else min(one, other)
