"""What a supervisor's restart ends: the ops its forerunner held, in its own log and in the one before it.

A log that was rotated away is taken for that of the forerunner when it lies in the same directory, names run
directories below the same database root, and has said nothing after the restart. Logs of two installations
may lie side by side, and two hosts may have their databases at the same path: none of these alone is enough.
Where a log goes on nevertheless, what was taken for lost in it is open again.
"""

from collections import deque
from posixpath import dirname

from jobtui.analysis.op_index import OpIndex
from jobtui.analysis.op_track import OpTrack
from jobtui.model.clock import Nanos
from jobtui.model.heard import Writer
from jobtui.model.ids import JobId, database_root
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Certainty, Component, OpStatus

STEP = "supervisor restarted"
KEPT = 100
"""So many restarts are remembered of a log."""


class SupervisorLog:
    """What is known of one log as the work of one supervisor after another."""

    __slots__ = ("at", "lost", "lost_at", "newest", "pid", "pid_since", "restart", "root", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self.root: str | None = None
        """Below which its jobs have their run directories."""
        self.at: Nanos | None = None
        """The newest time in it."""
        self.restart: LogRecord | None = None
        """A restart it tells of, as long as its root is not known."""
        self.lost_at: Nanos | None = None
        """The restart, told by another log, that has ended `lost`: ops with the status they had."""
        self.lost: list[tuple[OpTrack, OpStatus]] = []
        self.newest = -1
        """The place of its last line."""
        self.pid: int | None = None
        self.pid_since = 0
        """From which place on all its lines are of one process."""

    def note_writer(self, record: LogRecord) -> None:
        """Note whose the newest line is; what is read of earlier ones later tells nothing of that."""
        if record.offset > self.newest:
            self.newest = record.offset
            if record.pid != self.pid:
                self.pid, self.pid_since = record.pid, record.offset


class Restarts:
    """All supervisors' logs. What changes an op returns the jobs that are now known otherwise."""

    def __init__(self, ops: OpIndex) -> None:
        self._ops = ops
        self._logs: dict[str, SupervisorLog] = {}
        self._told: dict[str, deque[tuple[int, LogRecord]]] = {}

    def log(self, source: str) -> SupervisorLog:
        """What is known of a log."""
        return self._logs.setdefault(source, SupervisorLog(source))

    def writers(self) -> dict[str, Writer]:
        """Who wrote the last lines of each log."""
        return {log.source: Writer(log.pid, log.pid_since, log.at) for log in self._logs.values()}

    def goes_on(self, log: SupervisorLog, at: Nanos | None) -> set[JobId]:
        """A log has a line of this time."""
        if at is None:
            return set()
        log.at = max(at, log.at or at)
        if log.lost_at is None or at <= log.lost_at:
            return set()
        lost, log.lost, log.lost_at = log.lost, [], None
        for op, status in lost:
            self._ops.reopen(op, status)
            op.steps = [step for step in op.steps if step.step != STEP]
        return {op.jid for op, _ in lost if op.jid is not None}

    def learn_run_dir(self, log: SupervisorLog, run_dir: str) -> set[JobId]:
        """A log names a run directory, which tells whose it is, and with it what a restart has ended."""
        if log.root is not None or (root := database_root(run_dir)) is None:
            return set()
        log.root = root
        restart, log.restart = log.restart, None
        return set() if restart is None else self._end_before(log, restart)

    def restarted(self, log: SupervisorLog, record: LogRecord) -> set[JobId]:
        """A log tells of a restart."""
        self._told.setdefault(log.source, deque(maxlen=KEPT)).append((self._ops.next_key, record))
        own = [op for op in self._ops.open_ops() if op.source == log.source]
        changed = _end(own, record)
        if log.root is None:
            log.restart = record
            return changed
        return changed | self._end_before(log, record)

    def first_after(self, op: OpTrack) -> LogRecord | None:
        """The first restart that the log that told of an op's creation told of later."""
        told = self._told.get(op.source, ())
        return next((record for next_key, record in told if op.key < next_key), None)

    def _end_before(self, log: SupervisorLog, restart: LogRecord) -> set[JobId]:
        """End what stands open in the logs of forerunners."""
        at = restart.at
        if at is None:
            return set()
        before = {
            other.source: other
            for other in self._logs.values()
            if _is_forerunner(other, log) and not_after(other.at, at)
        }
        ended = [
            op
            for op in self._ops.open_ops()
            if op.source in before and op.created_at is not None and op.created_at <= at
        ]
        for op in ended:
            other = before[op.source]
            other.lost.append((op, op.status))
            other.lost_at = at
        return _end(ended, restart)


def not_after(time: Nanos | None, at: Nanos) -> bool:
    """Whether a time is known, and none after `at`."""
    return time is not None and time <= at


def _is_forerunner(other: SupervisorLog, log: SupervisorLog) -> bool:
    return (
        other is not log
        and other.root == log.root
        and dirname(other.source) == dirname(log.source)
        and other.source.startswith("/")
    )


def _end(ops: list[OpTrack], restart: LogRecord) -> set[JobId]:
    for op in ops:
        op.add(restart, STEP, Component.SUPERVISOR, Certainty.ADJACENT)
        op.end(OpStatus.LOST, restart.at)
    return {op.jid for op in ops if op.jid is not None}
