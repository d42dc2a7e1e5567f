"""Who waits for whom: the chain from an op that waits for a slot to the op that holds it.

A supervisor logs the begin and the end of a wait. It does not log who took a slot without waiting, so
holders are inferred: open ops that need the slot and do not wait for it. The slots of a supervisor:

- `op_slot`: one for each agent and kind of op (for runs on a cluster a few);
- `run_dir_slot`: one for each job;
- `cpu_slot`: as many as configured for all runs and analyses of one kind, for the host of a Docker driver.

They are requested in this order, so an op that waits for one holds those before it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from jobtui.analysis.explain.flow import Mark, mark_of
from jobtui.analysis.flags import slot_of
from jobtui.model.clock import Nanos, since_s
from jobtui.model.ids import AgentPrefix
from jobtui.model.ops import Agent, Op, Step, is_line_before
from jobtui.model.verdicts import Chain, Holder, OpWait, Slot, UsualTime

ORDER = tuple(Slot)
SLOTTED = frozenset({"run", "analysis", "io"})
CPU_OPS = frozenset({"run", "analysis"})
CHAIN_LIMIT = 20

UsualOf = Callable[[Op], UsualTime | None]
LimitOf = Callable[[Op], float | None]


class WaitSnapshot(NamedTuple):
    """All that is open at one time, and how long such ops usually take."""

    open_ops: Sequence[Op]
    agents: Mapping[AgentPrefix, Agent]
    now: Nanos
    usual_of: UsualOf
    limit_of: LimitOf
    cancels: Mapping[int, Op]


def waited_slot(op: Op) -> tuple[Slot, Step] | None:
    """The slot for which an op waits now, and the line that says so; None if it waits for none."""
    for step in reversed(op.steps):
        mark = mark_of(step)
        if mark in (Mark.SLOT_GOT, Mark.SENT):
            return None
        if mark is Mark.SLOT_WAIT:
            found = slot_of(f"{step.step} {step.text}")
            return None if found is None else (Slot(found[0]), step)
    return None


def wait_chain(op: Op, scene: WaitSnapshot) -> Chain:
    waits: list[OpWait] = []
    seen: list[Op] = []
    current: Op | None = op
    while current is not None and len(waits) < CHAIN_LIMIT:
        keys = [one.key for one in seen]
        if current.key in keys:
            return Chain(tuple(waits), tuple(seen[keys.index(current.key) :]))
        wait = wait_of(current, scene)
        if wait is None:
            break
        seen.append(current)
        waits.append(wait)
        current = next((holder.op for holder in wait.holders if waited_slot(holder.op)), None)
    return Chain(tuple(waits), (), _range(waits, scene) if waits else None)


def wait_of(op: Op, scene: WaitSnapshot) -> OpWait | None:
    if (found := waited_slot(op)) is None:
        return None
    slot, step = found
    rivals = [one for one in scene.open_ops if one.key != op.key and _needs_same(op, one, slot, scene)]
    waits = [waited for one in rivals if (waited := waited_slot(one)) is not None]
    holders = [one for one in rivals if _holds(one, slot)]
    ahead = sum(other is slot and is_line_before(since, step) for other, since in waits)
    return OpWait(
        op=op,
        slot=slot,
        step=step,
        waited_s=since_s(step.at, scene.now),
        ahead=ahead,
        holders=tuple(_holder(one, scene) for one in sorted(holders, key=lambda one: one.sent_at or 0)),
    )


def _needs_same(op: Op, other: Op, slot: Slot, scene: WaitSnapshot) -> bool:
    if other.name not in SLOTTED:
        return False
    if slot is Slot.RUN_DIR:
        return other.jid is not None and other.jid == op.jid
    if slot is Slot.OP:
        return other.name == op.name and other.any_agent is not None and other.any_agent == op.any_agent
    same = other.name in CPU_OPS and (other.driver, other.kind) == (op.driver, op.kind)
    return same and _host(op, scene) == _host(other, scene)


def _host(op: Op, scene: WaitSnapshot) -> str | None:
    agent = scene.agents.get(prefix) if (prefix := op.any_agent) is not None else None
    return None if agent is None else agent.host


def _holds(op: Op, slot: Slot) -> bool:
    if slot is Slot.CPU and op.name not in CPU_OPS:
        return False
    found = waited_slot(op)
    if found is None:
        return op.sends > 0
    return ORDER.index(found[0]) > ORDER.index(slot)


def _holder(op: Op, scene: WaitSnapshot) -> Holder:
    cancel = scene.cancels.get(op.key)
    asked = cancel.created_at if cancel is not None else None
    since = op.sent_at or op.created_at
    usual = scene.usual_of(op)
    return Holder(
        op=op,
        held_s=since_s(since, scene.now),
        limit_s=scene.limit_of(op),
        cancel_s=since_s(asked, scene.now),
        is_confirmed=cancel.replies > 0 if cancel is not None else None,
        usual_s=usual.p50_s if usual is not None else None,
    )


def _range(waits: Sequence[OpWait], scene: WaitSnapshot) -> tuple[float, float] | None:
    """The time until the first op of a chain gets its slot: at least the usual time, at most the limits."""
    least = most = 0.0
    for wait in waits:
        lows, highs = [], []
        for holder in wait.holders:
            usual = scene.usual_of(holder.op)
            longest = holder.limit_s
            if longest is None and usual is not None:
                longest = usual.p99_s
            if holder.held_s is None or longest is None:
                return None  # without history and limit nothing tells when it is done
            lows.append(max(0.0, usual.p50_s - holder.held_s) if usual is not None else 0.0)
            highs.append(max(lows[-1], longest - holder.held_s))
        if not lows:
            return None
        turns = 1 + wait.ahead // len(lows)
        least, most = max(least, min(lows)), max(most, min(highs) * turns)
    return (min(least, most), most)
