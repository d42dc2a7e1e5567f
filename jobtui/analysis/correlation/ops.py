"""The kept ops: one op while its lines come in, and the index that finds the op of a line.

A prefix of four characters is never a key: some thousand ops are enough for two with the same one. The
prefix narrows the search. User, name, agent, run directory and the state of the op decide.

A driver's lines list the ops that its agent holds. An op that has ended since is no longer held.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import TypeVar

import msgspec

from jobtui.analysis.correlation.agents import Agents, AgentTrack
from jobtui.formats.schema import step_words
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId, OpPrefix
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Agent, Certainty, Component, HeldOp, Op, OpFacts, OpStatus, Step, in_order

STEPS_KEPT = 200
"""Steps kept of one op. A run that reports every two seconds would have thousands."""
FIRST_STEPS_KEPT = 60
"""How many of these are the first steps; the others are the newest."""
LINES_KEPT = 500
"""Agent lines kept of one op, to recognize a repeated line."""
OP_BYTES, STEP_BYTES = 1_000, 250
"""Measured memory of an op without its steps, and of a step without its text, in bytes."""


@dataclass(slots=True, eq=False)
class SharedCounts:
    """Of all ops together: how many steps they got, about how many bytes they take, which jobs changed."""

    given: int = 0
    taken: int = 0
    changed: set[JobId] = field(default_factory=set)


class OpTrack(OpFacts, eq=False, kw_only=True):
    """One op while its lines come in. `last_named` and `sent_turn` number its last step and its last send
    among all steps, as offsets differ between rotated files.
    """

    source: str
    shared: SharedCounts
    certainty: Certainty = Certainty.ADJACENT
    called_api: str | None = None
    uid: str = ""
    requested_at: Nanos | None = None
    last_named: int = 0
    sent_turn: int = 0
    saw_destroyed: bool = False
    exited: bool = False
    is_open: bool = True
    steps: list[Step] = msgspec.field(default_factory=list)
    agent_side: dict[int, None] = msgspec.field(default_factory=dict)
    frozen: Op | None = None

    def has_agent(self, agent: AgentTrack) -> bool:
        """Whether it was sent to this agent. The two agents of a user may have the same prefix."""
        return self.agent == agent.agent and self.kind == agent.kind and self.belongs_to_user(agent.uid)

    def belongs_to_user(self, uid: str) -> bool:
        mine = self.uid
        return not mine or not uid or mine.startswith(uid) or uid.startswith(mine)

    def learn_user(self, uid: str) -> None:
        if len(uid) > len(self.uid):
            self.uid = uid

    def is_news(self, line: tuple[str, str]) -> bool:
        """Whether an agent's line is new for it. The supervisor's copy repeats the agent's log."""
        mark = hash(line)
        if mark in self.agent_side:
            return False
        self.agent_side[mark] = None
        if len(self.agent_side) > LINES_KEPT:
            del self.agent_side[next(iter(self.agent_side))]
        return True

    def end(self, status: OpStatus, at: Nanos | None, result: str | None = None) -> None:
        """End it. `result` is how it ended, if the line says so."""
        if self.is_open:
            self.is_open = False
            self.result = result or self.result
            self.status = status
            self.ended_at = at
            self.note_change()

    def reopen(self, status: OpStatus) -> None:
        self.is_open = True
        self.status = status
        self.ended_at = None
        self.note_change()

    def note_change(self) -> None:
        self.frozen = None
        if self.jid is not None:
            self.shared.changed.add(self.jid)

    def add(self, record: LogRecord, certainty: Certainty, step: str = "") -> None:
        """Add a line as a step, in these words, else in those of its shape."""
        self.note_change()
        shared, steps = self.shared, self.steps
        if len(steps) >= STEPS_KEPT:
            shared.taken -= _size(steps.pop(FIRST_STEPS_KEPT))
            self.dropped_steps += 1
        steps.append(step_of(record, certainty, step))
        shared.given += 1
        shared.taken += STEP_BYTES + len(record.text)
        self.last_named = shared.given

    def remove(self, step: str, key: tuple[int | None, str] | None = None) -> None:
        """Remove its steps in these words, or only that of one line."""
        kept = [one for one in self.steps if one.step != step or key not in (None, line_key(one))]
        self.shared.taken += sum(map(_size, kept)) - sum(map(_size, self.steps))
        self.steps = kept
        self.note_change()

    def add_rest(self, other: "OpTrack") -> None:
        """Add the steps of another track of the same op, which was read only from a later line on."""
        known = Counter(map(line_key, self.steps))
        rest = []
        for step in other.steps:
            known[key := line_key(step)] -= 1
            if known[key] < 0:
                rest.append(step)
        words = Counter(step.step.partition(" ")[0] for step in rest)
        self.updates += words["update"]
        self.sends += words["sent"]
        self.replies += words["reply"]
        self.steps += rest
        self.shared.taken += sum(map(_size, rest))
        self.wrote_stderr |= other.wrote_stderr
        if not other.is_open:
            self.end(other.status, other.ended_at, other.result)

    def move_to(self, shared: SharedCounts) -> None:
        self.last_named -= self.shared.given
        self.sent_turn -= self.shared.given
        shared.taken += self.leave_room()
        self.shared = shared

    def leave_room(self) -> int:
        """Free its memory, and tell how much: it is no longer kept, and further lines are ignored."""
        size = OP_BYTES + sum(map(_size, self.steps))
        self.shared.taken -= size
        self.shared = SharedCounts()
        return size

    def freeze(self) -> Op:
        """The record of the op now; the same object until something changes."""
        if self.frozen is None:
            same = {name: getattr(self, name) for name in OpFacts.__struct_fields__}
            self.frozen = Op(**same, uid=self.uid or None, steps=in_order(self.steps))
        return self.frozen


def step_of(
    record: LogRecord, certainty: Certainty, step: str = "", component: Component | None = None
) -> Step:
    """A line as a step, in these words and by this component, else as the table of shapes has it."""
    if component is None:
        words, component = step_words(record.shape)
        step = intern(step) if step else words
    return Step(
        step, record.at, component, record.text, record.source, record.line, record.offset,
        certainty, record.cursor,
    )  # fmt: skip


def line_key(line: Step | LogRecord) -> tuple[int | None, str]:
    """What identifies a line in any file or copy: its second and its text.

    A journal gives a line's time to the microsecond, a file to the second.
    """
    return None if line.at is None else line.at // SECOND, line.text


def _size(step: Step) -> int:
    return STEP_BYTES + len(step.text)


OPS_KEPT = 20_000
"""Ops kept in all; the oldest that have ended are dropped first."""
BYTES_KEPT = 128 << 20
"""About how much memory they may take. An op with 20 steps takes 8 KB."""

FIRST_KEY = 1 << 40
"""The key of the first op that is read; older ones, which are added later, get smaller ones."""

_Key = TypeVar("_Key", bound=str)


class OpIndex:
    """Ops by prefix, by job, and in the order they were created."""

    def __init__(self, limit: int = OPS_KEPT, most_bytes: int = BYTES_KEPT) -> None:
        self._limit = limit
        self._most_bytes = most_bytes
        self._shared = SharedCounts()
        self.changed = self._shared.changed
        """The jobs of which something is new; whoever takes them empties it."""
        self.first_key = self.next_key = FIRST_KEY
        """The least key of an op, and the key of the next op; all others are smaller."""
        self._all: deque[OpTrack] = deque()
        self._by_prefix: dict[str, list[OpTrack]] = {}
        self._open: dict[int, OpTrack] = {}
        self._by_jid: dict[JobId, list[OpTrack]] = {}
        self._created = 0
        self._dropped_since: Nanos | None = None
        """The creation time of the oldest dropped op."""

    @property
    def dropped(self) -> int:
        return self._created - len(self._all)

    def create(self, op: str, name: str, source: str, at: Nanos | None) -> OpTrack:
        track = OpTrack(
            key=self.next_key, op=OpPrefix(op), name=name, source=source, created_at=at, shared=self._shared
        )
        self._shared.taken += OP_BYTES
        self.next_key += 1
        self._created += 1
        self._all.append(track)
        self._by_prefix.setdefault(op, []).append(track)
        self._open[track.key] = track
        self._keep_bounds()
        return track

    def all(self) -> deque[OpTrack]:
        """Every kept op in the order of creation. Do not change it."""
        return self._all

    def tie(self, track: OpTrack, jid: JobId) -> None:
        if track.jid == jid:
            return
        if track.jid is not None:
            _remove(self._by_jid, track.jid, track)
        track.jid = jid
        track.note_change()
        track.learn_user(jid.partition("-")[0])
        self._by_jid.setdefault(jid, []).append(track)

    def of_job(self, jid: JobId) -> Sequence[OpTrack]:
        return self._by_jid.get(jid, ())

    def kept_with(self, op: str) -> Sequence[OpTrack]:
        """Open and ended ops with this prefix, oldest first. Do not change it."""
        return self._by_prefix.get(op, ())

    def open_ops(self) -> list[OpTrack]:
        self._open = {key: track for key, track in self._open.items() if track.is_open}
        return list(self._open.values())

    def reopen(self, track: OpTrack, status: OpStatus) -> None:
        track.reopen(status)
        self._open[track.key] = track

    def take_in(self, other: "OpIndex") -> dict[int, int]:
        """Add the ops of another index that are not known here, or only from a later line on.

        They become older than all ops here. Returns the new keys of the added ops by the old ones.
        """
        taken = self._unknown_of(other)
        self.first_key -= len(taken)
        keys = {track.key: number for number, track in enumerate(taken, self.first_key)}
        for track in reversed(taken):
            track.key = keys[track.key]
            track.frozen = None
            track.move_to(self._shared)
            self._all.appendleft(track)
            self._by_prefix.setdefault(str(track.op), []).insert(0, track)
            if track.jid is not None:
                self._by_jid.setdefault(track.jid, []).insert(0, track)
        self._open = {track.key: track for track in self._all if track.is_open}
        self._keep_bounds()
        return keys

    def _unknown_of(self, other: "OpIndex") -> list[OpTrack]:
        """The ops of another index that this one lacks. Counts every op that either of them created.

        An op that is not known here, and was created after the oldest one dropped here, was dropped too.
        """
        since, earlier, last = self._dropped_since, 0, 0
        taken = []
        with_lines = (track for track in other._all if track.steps)
        for track in sorted(with_lines, key=lambda track: track.key):
            own = self._same(track)
            if own is not None:
                last = max(last, own.key)
                if not self._covers(own, track):
                    taken.append(track)
            elif since is None or (track.created_at or since) < since:
                earlier += 1
                taken.append(track)
        later = sum(own.key > last for own in self._all)
        self._created = max(self._created + earlier, other._created + later)
        return taken

    def _same(self, track: OpTrack) -> OpTrack | None:
        """The op here with lines of an op of another index, with its first line if possible."""
        keys = [line_key(step) for step in track.steps]
        same_prefix = self._by_prefix.get(str(track.op), ())
        alike = [own for own in same_prefix if own.name == track.name and own.steps]
        shared = [own for own in alike if not set(keys).isdisjoint(map(line_key, own.steps))]
        return min(shared, key=lambda own: line_key(own.steps[0]) != keys[0], default=None)

    def _covers(self, own: OpTrack, track: OpTrack) -> bool:
        """Whether an op is known here from its first line on. If only from a later one, it is removed."""
        first, keys = line_key(track.steps[0]), [line_key(step) for step in own.steps]
        is_whole = first in keys or (keys[0][0] or 0) < (first[0] or 0)
        if not is_whole:
            track.add_rest(own)
            self._all.remove(own)
            self._forget(own)
        return is_whole

    def _keep_bounds(self) -> None:
        """Drop the oldest ended ops, or the oldest of all if the first few are open."""
        while len(self._all) > self._limit or (self._shared.taken > self._most_bytes and len(self._all) > 1):
            for _ in range(64):
                if not self._all[0].is_open:
                    break
                self._all.rotate(-1)
            oldest = self._all.popleft()
            self._forget(oldest)
            if oldest.created_at is not None:
                self._dropped_since = min(oldest.created_at, self._dropped_since or oldest.created_at)

    def _forget(self, track: OpTrack) -> None:
        track.leave_room()
        _remove(self._by_prefix, str(track.op), track)
        self._open.pop(track.key, None)
        if track.jid is not None:
            _remove(self._by_jid, track.jid, track)


def _remove(index: dict[_Key, list[OpTrack]], key: _Key, track: OpTrack) -> None:
    tracks = index.get(key, [])
    if track in tracks:
        tracks.remove(track)
    if not tracks:
        index.pop(key, None)


def others(chosen: OpTrack, found: Iterable[OpTrack]) -> tuple[str, ...]:
    """The other jobs that a line may mean; empty if all candidates are ops of one job."""
    return tuple(dict.fromkeys(t.jid for t in found if t.jid is not None and t.jid != chosen.jid))


_LISTED = re.compile(r"_Op\((?!DESTROYED)(\w+), (\w{4})", re.ASCII)


def known_agents(agents: Agents, ops: OpIndex) -> tuple[Agent, ...]:
    return tuple(track.freeze(held_by(track, ops), before) for track, before in agents.all())


def held_by(agent: AgentTrack, ops: OpIndex) -> tuple[HeldOp, ...]:
    """The ops that an agent has not finished; none if the agent has ended."""
    if not agent.held or not agent.state.is_live:
        return ()
    held = (_held(agent, ops, name, prefix) for name, prefix in _LISTED.findall(agent.held))
    return tuple(op for op in held if op is not None)


def _held(agent: AgentTrack, ops: OpIndex, name: str, prefix: str) -> HeldOp | None:
    found = [
        op
        for op in ops.kept_with(prefix)
        if op.name == name and (op.has_agent(agent) or (not op.sends and op.belongs_to_user(agent.uid)))
    ]
    if not found:
        return HeldOp(OpPrefix(prefix), name)
    op = next((op for op in reversed(found) if op.is_open), None)
    return None if op is None else HeldOp(op.op, name, op.jid, op.sent_at)
