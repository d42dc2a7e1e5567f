"""What the handlers of a supervisor's lines share: the indices, and what the lines just before have said."""

from collections.abc import Callable, Sequence

from jobtui.analysis.agent_track import Agents, AgentTrack
from jobtui.analysis.job_events import JobEvents
from jobtui.analysis.messages import Message
from jobtui.analysis.op_index import OpIndex, others
from jobtui.analysis.op_track import OpTrack
from jobtui.analysis.restarts import Restarts
from jobtui.model.ids import JobId, RunDir, split_jid
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Certainty, Component, OpStatus

RUNS = frozenset({"run", "run_status"})
"""Ops to which an agent's news of a job's state belong."""
NEVER_SENT = frozenset({"begin_session"})
"""Ops that only get an agent started."""
FINAL_STATES = frozenset({"completed", "error", "canceled", "missing", "job_run_purged"})
"""Words for the state of a run after which no more comes."""


class PassState:
    """State of the pass over one supervisor's log.

    `before` is its line before this one; `update` an agent's news whose job the next line names; `debug` the
    full message that a debug line has shown; `newest` the op created last; `replies_bear_names` tells that
    the supervisor is one of until 2024, whose agents answer a run or an analysis by its name. `others` are
    jobs that a line has changed besides the one it is about.
    """

    def __init__(
        self, source: str, ops: OpIndex, agents: Agents, events: JobEvents, restarts: Restarts
    ) -> None:
        self.ops = ops
        self.agents = agents
        self.events = events
        self.restarts = restarts
        self.log = restarts.log(source)
        self.before: LogRecord | None = None
        self.update: tuple[LogRecord, AgentTrack] | None = None
        self.debug: Message | None = None
        self.newest: OpTrack | None = None
        self.replies_bear_names = False
        self.others: set[JobId] = set()


Handler = Callable[[PassState, LogRecord], JobId | None]
"""Takes in a record; the id of the job that is now known better."""


def jid_in(record: LogRecord) -> JobId | None:
    """The computeJid a line names."""
    jid = record.fields.get("jid")
    return JobId(jid) if jid and split_jid(jid) else None


def path_in(text: str | None) -> RunDir | None:
    """A run directory as logged; None for the word None."""
    return None if text is None or text == "None" else RunDir(text)


def add_step(
    op: OpTrack,
    record: LogRecord,
    step: str,
    component: Component,
    certainty: Certainty,
    found: Sequence[OpTrack],
) -> None:
    """Add a step, less certain when the line may as well have meant one of `found` of another job."""
    rivals = others(op, found) if len(found) > 1 and certainty is not Certainty.FULL_ID else ()
    if rivals:
        op.candidates = tuple(dict.fromkeys((*op.candidates, *rivals)))
    op.add(record, step, component, Certainty.ADJACENT if rivals else certainty)


def latest_op(state: PassState, record: LogRecord, fits: Callable[[OpTrack], bool]) -> OpTrack | None:
    """The op of a line's prefix and name that the supervisor spoke of last.

    A line that calls its op destroyed means one that was given up before it was answered, if there is one.
    """
    name = record.fields["name"]
    prefix = record.fields["o"] or ""
    found = None
    if record.fields.get("dead"):
        found = state.ops.kept_with(prefix, lambda t: t.name == name and _was_given_up(t) and fits(t))
    found = found or state.ops.open_with(prefix, lambda t: t.name == name and fits(t))
    if not found:
        found = state.ops.kept_with(prefix, lambda t: t.name == name and fits(t))[-1:]
    return max(found, key=last_line, default=None)


def _was_given_up(op: OpTrack) -> bool:
    return not op.is_open and not op.replies and not op.told_destroyed and op.status is not OpStatus.LOST


def last_line(op: OpTrack) -> tuple[int, int]:
    """Where the supervisor last spoke of an op; of two with the same line the newer one is greater."""
    return (op.steps[-1].offset if op.steps else -1), op.key
