"""The state that handlers of a supervisor's lines share, its messages, and its restarts.

The text of a message may be cut anywhere (`<SNIP>`) and holds outside data, so it is searched and not
evaluated. The first occurrence of a key is the message's own: nested replies come after it in sorted order.

Another log belongs to the former process of a restarted supervisor if it is in the same directory, names run
directories below the same database root, and has no line after the restart. One condition alone is not
enough: logs of two installations may be in one directory, and two hosts may have their databases at the same
path. If such a log goes on after all, the ops that were marked as lost are open again.
"""

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import dirname

import msgspec

from jobtui.analysis.correlation.agents import Agents
from jobtui.analysis.correlation.job_events import JobEvents
from jobtui.analysis.correlation.ops import OpIndex, OpTrack, line_key, others
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId, OpId, RunDir, database_root, is_full_id, split_jid
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Certainty, OpStatus, Writer

_FIELD = re.compile(r"'(opId|opName|computeJid|state|error|jid)': (?:'([^']*)'|\"([^\"]*)\"|(\w+))")
_TORN_ERROR = re.compile(r"'error': ['\"]([^'\"]*)$")
"""An error with a line break: the rest of the message is on the next line."""


class AgentMessage(msgspec.Struct, frozen=True, gc=False):
    """The parts of a message that correlation uses; a missing one is None."""

    op_id: OpId | None = None
    op_name: str | None = None
    jid: JobId | None = None
    state: str | None = None
    error: str | None = None


NOTHING = AgentMessage()


def read_message(text: str | None) -> AgentMessage:
    """The parts of a logged message. Never raises. Agent ids in it are ignored."""
    if not text:
        return NOTHING
    found: dict[str, str] = {}
    for key, single, double, bare in _FIELD.findall(text):
        found.setdefault(key, single or double or bare)
    torn = _TORN_ERROR.search(text)
    op_id = found.get("opId", "")
    jid = found.get("computeJid") or found.get("jid") or ""
    return AgentMessage(
        op_id=OpId(op_id) if is_full_id(op_id) else None,
        op_name=found.get("opName"),
        jid=JobId(jid) if split_jid(jid) else None,
        state=found.get("state"),
        error=found.get("error") or (torn[1] if torn else None),
    )


STEP = "supervisor restarted"
KEPT = 100


@dataclass(slots=True, eq=False)
class SupervisorLog:
    """One log as written by one process of a supervisor after another."""

    source: str
    root: str | None = None
    """The database root above the run directories of its jobs."""
    at: Nanos | None = None
    """The newest time in it."""
    restart: LogRecord | None = None
    """A restart in it, while its root is not known."""
    lost_at: Nanos | None = None
    """The time of the restart in another log that ended the ops in `lost`, with the status they had."""
    lost: list[tuple[OpTrack, OpStatus]] = field(default_factory=list)
    pid: int | None = None
    before: LogRecord | None = None
    """The process that wrote its last line, and the last line of another one."""


class Restarts:
    """All supervisors' logs."""

    def __init__(self, ops: OpIndex, origin: Callable[[str], str]) -> None:
        self._ops = ops
        self._origin = origin
        self._logs: dict[str, SupervisorLog] = {}
        self._starts: dict[str, deque[tuple[int, LogRecord]]] = {}

    def log(self, source: str) -> SupervisorLog:
        return self._logs.setdefault(source, SupervisorLog(source))

    def writers(self) -> dict[str, Writer]:
        return {log.source: Writer(log.pid, log.before, log.at) for log in self._logs.values()}

    def take_in(self, other: "Restarts", keys: Mapping[int, int]) -> None:
        """Add the restarts that are not known here. `keys` are the new keys of ops by the old ones."""
        first_own = self._ops.first_key + len(keys)
        for source, theirs in other._starts.items():
            own = self._starts.get(source, ())
            known = {line_key(record) for _, record in own}
            earlier = [
                (min((new for old, new in keys.items() if old >= key), default=first_own), record)
                for key, record in theirs
                if line_key(record) not in known
            ]
            self._starts[source] = deque((*earlier, *own), maxlen=KEPT)
        self._logs = {**other._logs, **self._logs}

    def goes_on(self, log: SupervisorLog, record: LogRecord, before: LogRecord | None) -> None:
        """Note a line of a log, and the one before it."""
        if record.pid != log.pid:
            log.pid, log.before = record.pid, before
        if (at := record.at) is None or (log.at is not None and at <= log.at):
            return
        log.at = at
        log = self._whole(log)
        if log.at is None or at > log.at:
            log.at = at
        if log.lost_at is None or at <= log.lost_at:
            return
        lost, log.lost, log.lost_at = log.lost, [], None
        for op, status in lost:
            self._ops.reopen(op, status)
            op.remove(STEP)

    def learn_run_dir(self, log: SupervisorLog, run_dir: str) -> None:
        """Learn the database root of a log from a run directory, and so which ops a restart has ended."""
        log = self._whole(log)
        if log.root is None and (root := database_root(run_dir)) is not None:
            log.root = root
            self._end_before(log)

    def restarted(self, log: SupervisorLog, record: LogRecord) -> None:
        log = self._whole(log)
        self._starts.setdefault(log.source, deque(maxlen=KEPT)).append((self._ops.next_key, record))
        _end([op for op in self._ops.open_ops() if self._origin(op.source) == log.source], record)
        log.restart = record
        if log.root is not None:
            self._end_before(log)

    def first_after(self, op: OpTrack) -> LogRecord | None:
        """The first restart after an op's creation in the same log."""
        starts = self._starts.get(self._origin(op.source), ())
        return next((record for next_key, record in starts if op.key < next_key), None)

    def _whole(self, log: SupervisorLog) -> SupervisorLog:
        origin = self._origin(log.source)
        return log if origin == log.source else self.log(origin)

    def _end_before(self, log: SupervisorLog) -> None:
        """End the open ops of the former process of a supervisor whose log tells of its restart."""
        restart, log.restart = log.restart, None
        if restart is None or (at := restart.at) is None:
            return
        before = {}
        for other in self._logs.values():
            is_beside = other.source.startswith("/") and dirname(other.source) == dirname(log.source)
            is_over = other.at is not None and other.at <= at
            if is_beside and is_over and other.root == log.root and self._whole(other) is not log:
                before[other.source] = other
        ended = [
            op
            for op in self._ops.open_ops()
            if op.source in before and op.created_at is not None and op.created_at <= at
        ]
        for op in ended:
            other = before[op.source]
            other.lost.append((op, op.status))
            other.lost_at = at
        _end(ended, restart)


def _end(ops: list[OpTrack], restart: LogRecord) -> None:
    for op in ops:
        op.add(restart, Certainty.ADJACENT, STEP)
        op.end(OpStatus.LOST, restart.at)


RUNS = frozenset({"run", "run_status"})
"""Ops to which an agent's news of a job's state belong."""
NEVER_SENT = frozenset({"begin_session"})
"""Ops that only get an agent started."""
FINAL_STATES = frozenset({"completed", "error", "canceled", "missing", "job_run_purged"})
"""Words for the state of a run after which no more comes."""


@dataclass(slots=True, kw_only=True, eq=False)
class PassState:
    """State of the pass over one supervisor's log.

    `before` is its line before this one; `update` an agent's news whose job the next line names; `newest` the
    op created last; `replies_bear_names` means that the supervisor is one of until 2024, whose agents answer
    a run or an analysis by its name.
    """

    log: SupervisorLog
    ops: OpIndex
    agents: Agents
    events: JobEvents
    restarts: Restarts
    before: LogRecord | None = None
    update: LogRecord | None = None
    newest: OpTrack | None = None
    replies_bear_names: bool = False

    def named(self, record: LogRecord) -> list[OpTrack]:
        """The kept ops with the prefix and the name in a line, oldest first."""
        name = record.fields["name"]
        return [op for op in self.ops.kept_with(record.fields["o"] or "") if op.name == name]


Handler = Callable[[PassState, LogRecord], None]


def jid_in(record: LogRecord) -> JobId | None:
    """The job that a line names, itself or in a message that it quotes."""
    jid = record.fields.get("jid")
    return JobId(jid) if jid and split_jid(jid) else message_in(record).jid


def message_in(record: LogRecord) -> AgentMessage:
    return read_message(record.fields.get("message"))


def path_in(text: str | None) -> RunDir | None:
    return None if text is None or text == "None" else RunDir(text)


def add_step(
    op: OpTrack, record: LogRecord, certainty: Certainty, found: Sequence[OpTrack], step: str = ""
) -> None:
    """Add a driver's step, less certain if the line may as well have meant one of `found` of another job."""
    if len(found) > 1 and certainty is not Certainty.FULL_ID and (rivals := others(op, found)):
        op.candidates = tuple(dict.fromkeys((*op.candidates, *rivals)))
        certainty = Certainty.ADJACENT
    op.add(record, certainty, step)


def latest_op(record: LogRecord, kept: Sequence[OpTrack]) -> OpTrack | None:
    """Of the ops that a line may mean the one that the supervisor spoke of last.

    A line that calls its op destroyed means one that was given up before it was answered, if there is one.
    """
    if len(kept) == 1:
        return kept[0]
    still_open, given_up = [t for t in kept if t.is_open], []
    if record.fields.get("dead"):
        ended = (t for t in kept if not t.is_open and t.status is not OpStatus.LOST)
        given_up = [t for t in ended if not (t.replies or t.saw_destroyed)]
    return max(given_up or still_open or kept[-1:], key=last_named, default=None)


def last_named(op: OpTrack) -> tuple[int, int]:
    """When an op was last spoken of; of two that never were the newer one is greater."""
    return op.last_named, op.key
