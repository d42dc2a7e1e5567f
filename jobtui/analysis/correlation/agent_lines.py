"""Links lines of agents, job_cmd and sbatch pollers to the ops that the supervisor knows.

They may come before the supervisor's own lines (another file) or minutes after (forwarded container
output). So each line is looked up among all kept ops, and waits if there is none yet. Lines of a `fastcgi`
process or of the sbatch poller belong to no op: these serve all jobs of their agent.

Such a note is linked to a run only when somebody asks for the job. By then every source has been read, and
a note that came before the supervisor's lines finds the right one of several runs.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from jobtui.analysis.correlation.agents import Agents, user_of_container
from jobtui.analysis.correlation.ops import OpIndex, OpTrack, line_key, others, step_of
from jobtui.analysis.correlation.supervisor_state import RUNS, message_in
from jobtui.formats.schema import step_words
from jobtui.model.bounded import Bounded
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import PREFIX_LENGTH, AgentPrefix, JobId, OpId, jid_of_run_dir, op_prefix
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Certainty, Component, Step

WAITING_KEPT = 5_000
"""Agent lines kept whose op is not known yet; the oldest are dropped first."""
FOLLOWERS_KEPT = 10
"""Lines kept that follow a waiting line and mean its op without naming it."""
AHEAD = 2 * SECOND
"""How much earlier than the send an arrival or a note may be: rounding to a second, and two clocks."""
SHARED_COMMANDS = frozenset({"_FastCgiCmd", "_SbatchRunStatus"})
"""Processes that serve every job of an agent."""

_FULL, _JID, _PREFIX, _ADJACENT = Certainty.FULL_ID, Certainty.JID, Certainty.PREFIX, Certainty.ADJACENT
_NAMED = frozenset(
    {"op_arrived", "op_raised", "job_cmd_exited", "job_cmd_killed", "job_cmd_ended", "job_cmd_note",
     "job_cmd_output", "job_cmd_error", "run_status_answer", "run_status_mismatch", "fastcgi_failed",
     "answer_not_sent", "job_cmd_canceled"}
)  # fmt: skip
_UNNAMED = frozenset(
    {"job_cmd_started", "scancel", "sbatch_refused", "supervisor_lost", "slurm_state_unexpected"}
)
SHAPES = _NAMED | _UNNAMED | {"agent_started"}

_Process = tuple[str, str | None, int | None]


class _Waiting(NamedTuple):
    """A line whose op is not known yet, and the lines after it that mean the same op."""

    record: LogRecord
    followers: list[LogRecord]


class _LastOp(msgspec.Struct, frozen=True):
    """The op that a process wrote of last, with the line's number and time; None if it is not known yet."""

    number: int
    at: Nanos | None
    op: OpTrack | None


class AgentPass:
    """Takes agents' records, in order for each file."""

    def __init__(self, ops: OpIndex, agents: Agents) -> None:
        self._ops = ops
        self._agents = agents
        self._last = Bounded[_Process, _LastOp](WAITING_KEPT)
        self._waiting: OrderedDict[int, _Waiting] = OrderedDict()
        self._waiting_of: dict[str, list[int]] = {}
        self._unnamed = Bounded[tuple[object, ...], _LastOp](WAITING_KEPT)
        """Lines that name nothing, by process and text, with the op to which each was linked."""
        self._count = 0

    def read(self, record: LogRecord) -> None:
        if record.shape == "agent_started":
            self._agents.learn_start(record, AgentPrefix((record.fields["agent_id"] or "")[:PREFIX_LENGTH]))
        elif record.shape in _UNNAMED:
            self._after_last(record)
        else:
            self._count += 1
            self._of_op(self._count, record)

    def retry(self, prefix: str) -> None:
        for number in self._waiting_of.pop(prefix, ()):
            if (waiting := self._waiting.pop(number, None)) is not None:
                self._of_op(number, *waiting)

    def _of_op(self, number: int, record: LogRecord, followers: Sequence[LogRecord] = ()) -> None:
        prefix = _prefix(record)
        if prefix is None or record.fields.get("cmd") in SHARED_COMMANDS:
            return
        message = message_in(record)
        jid = job_of(record) or message.jid
        found = self._fits(record, prefix, jid, message.op_id)
        if not found:
            self._wait(number, record, prefix, followers)
            self._ops.changed.update((jid,) if jid else ())
            return
        op = found[0] if len(found) == 1 else _best(record, found)
        self._place(record, op, jid, message.op_id, found)
        self._remember(number, record, op)
        for follower in followers:
            self._add_unnamed(follower, op, _LastOp(number, record.at, op))

    def _fits(self, record: LogRecord, prefix: str, jid: JobId | None, op_id: OpId | None) -> list[OpTrack]:
        name = record.fields.get("name")
        agent = self._agent_of(record)
        uid = user_of_container(record.container) or ""
        return [
            t
            for t in self._ops.kept_with(prefix)
            if t.sends
            and (name is None or t.name == name)
            and (op_id is None or t.op_id in (None, op_id))
            and (jid is None or t.jid == jid or _is_cut(record, jid, t.jid))
            and (agent is None or t.agent is None or t.agent == agent)
            and t.belongs_to_user(uid)
        ]

    def _agent_of(self, record: LogRecord) -> AgentPrefix | None:
        own = record.fields.get("a")
        if own:
            self._agents.learn_process(record, AgentPrefix(own))
            return AgentPrefix(own)
        return self._agents.of_process(record)

    def _place(
        self, record: LogRecord, op: OpTrack, jid: JobId | None, op_id: OpId | None, found: list[OpTrack]
    ) -> None:
        if not op.is_news((record.shape, record.text)):
            return
        code = record.fields.get("returncode")
        op.op_id = op.op_id or op_id
        certainty = _FULL if op_id else _JID
        if certainty is _JID and jid is None:
            rivals = len(found) > 1 and others(op, found)
            certainty = _ADJACENT if rivals else _PREFIX
        op.add(record, certainty, f"{step_words(record.shape)[0]} {code}" if code else "")
        if record.shape == "op_arrived":
            op.arrived_at = op.arrived_at if op.arrived_at is not None else record.at
        elif record.shape == "job_cmd_exited":
            op.exited = True

    def _remember(self, number: int, record: LogRecord, op: OpTrack | None) -> None:
        """Remember the op that a process writes of, unless a later line of it has set another one."""
        key = _process(record)
        before = self._last.get(key)
        # A run that arrives kills the one before it, and then starts
        if record.shape != "job_cmd_killed" and (before is None or before.number <= number):
            self._last[key] = _LastOp(number, record.at, op)

    def _after_last(self, record: LogRecord) -> None:
        """Link a line that names nothing to the op of which its process wrote just before."""
        spoken = self._last.get(_process(record))
        if spoken is None or _second(spoken.at) > _second(record.at):
            return
        waiting = self._waiting.get(spoken.number)
        if spoken.op is not None:
            self._add_unnamed(record, spoken.op, spoken)
        elif waiting is not None and len(waiting.followers) < FOLLOWERS_KEPT:
            waiting.followers.append(record)

    def _add_unnamed(self, record: LogRecord, op: OpTrack, spoken: _LastOp) -> None:
        """Add a line to the op of which its process wrote before. Of two copies, trust the one without a gap.

        Within one second an equal line may have been written about each of two ops.
        """
        line = line_key(record)
        if not op.is_news((record.shape, f"{line[0]} {line[1]}")):
            return
        key = (*_process(record)[1:], record.shape, *line)
        known = self._unnamed.get(key)
        before, since = _second(known.at) if known else 0, _second(spoken.at)
        if known and known.op and before != since and max(before, since) < _second(record.at):
            if before > since:
                return
            known.op.remove(step_words(record.shape)[0], line)
        op.add(record, _ADJACENT)
        self._unnamed[key] = _LastOp(spoken.number, spoken.at, op)

    def _wait(self, number: int, record: LogRecord, prefix: str, followers: Sequence[LogRecord]) -> None:
        self._remember(number, record, None)
        self._waiting[number] = _Waiting(record, [*followers])
        self._waiting_of.setdefault(prefix, []).append(number)
        if len(self._waiting) > WAITING_KEPT:
            oldest, dropped = self._waiting.popitem(last=False)
            self._waiting_of.get(_prefix(dropped.record) or "", []).remove(oldest)

    def take_in(self, other: "AgentPass") -> None:
        """Link, or keep, the waiting lines of another pass that are not known here."""
        known = {line_key(waiting.record) for waiting in self._waiting.values()}
        for waiting in other._waiting.values():
            if line_key(waiting.record) not in known:
                # Before all that was read here: what a process speaks of now stays as it is
                self._of_op(min(0, *self._waiting, 0) - 1, *waiting)

    def waiting_for(self, jid: JobId) -> Iterable[LogRecord]:
        records = (waiting.record for waiting in self._waiting.values())
        return [record for record in records if (job_of(record) or message_in(record).jid) == jid]


def _second(at: Nanos | None) -> int:
    return (at or 0) // SECOND


def _best(record: LogRecord, found: list[OpTrack]) -> OpTrack:
    """The op that a line means: of those without such a line the last one sent before it."""
    arrival = record.shape == "op_arrived"
    fresh = [t for t in found if (t.arrived_at is None if arrival else not t.exited)] or found
    at = record.at
    timed = [t for t in fresh if at is not None and t.sent_at is not None and t.sent_at <= at + AHEAD]
    return max(timed, key=lambda t: (t.sent_at or 0, -t.key)) if timed else fresh[0]


def _prefix(record: LogRecord) -> str | None:
    prefix = record.fields.get("o")
    if prefix is None and (op_id := message_in(record).op_id):
        return op_prefix(op_id)
    return None if prefix == "None" else prefix


def _is_cut(record: LogRecord, jid: JobId, whole: JobId | None) -> bool:
    """Whether a forwarded line that was cut, or glued to the next one, may have named this job."""
    if record.container is None or whole is None:
        return False
    return whole.startswith(jid) or whole == jid[:-1] or whole == jid[:-2]


def _process(record: LogRecord) -> _Process:
    return record.source, record.container, record.pid


POLLER = "_SbatchRunStatus"
_WORDS: Mapping[str, str] = {
    "sbatch_status_file": "problem with the sbatch status file",
    "job_cmd_note": "note from the sbatch poller",
    "job_cmd_error": "error with the sbatch poller",
    "job_cmd_ended": "sbatch poller ended",
}


def is_note(record: LogRecord) -> bool:
    return record.shape in _WORDS and record.fields.get("cmd", POLLER) == POLLER


def job_of(record: LogRecord) -> JobId | None:
    if jid := record.fields.get("jid"):
        return JobId(jid)
    return jid_of_run_dir(record.fields.get("run_dir") or "")


def place_notes(
    notes: Sequence[LogRecord], ops: Sequence[OpTrack]
) -> tuple[dict[int, list[Step]], tuple[LogRecord, ...]]:
    """Notes as steps of their runs, by the key of the op, and the notes about no run."""
    placed: dict[int, list[Step]] = {}
    left: list[LogRecord] = []
    for note in notes:
        ahead = None if note.at is None else note.at + AHEAD
        runs = (op for op in reversed(ops) if op.name in RUNS and op.sends)
        op = next((op for op in runs if ahead is None or op.sent_at is None or op.sent_at <= ahead), None)
        if op is None:
            left.append(note)
        else:
            step = step_of(note, _JID, _WORDS[note.shape], Component.AGENT)
            placed.setdefault(op.key, []).append(step)
    return placed, tuple(left)
