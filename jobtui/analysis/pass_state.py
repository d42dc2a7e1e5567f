"""What the handlers of a supervisor's lines share: the indices, and what the lines just before have said."""

from collections.abc import Callable, Sequence

from jobtui.analysis.agent_track import Agents, AgentTrack
from jobtui.analysis.job_events import JobEvents
from jobtui.analysis.messages import Message
from jobtui.analysis.op_index import OpIndex, others
from jobtui.analysis.op_track import OpTrack
from jobtui.model.ids import JobId, RunDir, split_jid
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Certainty, Component

RUNS = frozenset({"run", "run_status"})
"""Ops to which an agent's news of a job's state belong."""
NEVER_SENT = frozenset({"begin_session"})
"""Ops that only get an agent started."""
FINAL_STATES = frozenset({"completed", "error", "canceled", "missing", "job_run_purged"})
"""Words for the state of a run after which no more comes."""


class PassState:
    """State of the pass over one supervisor's log.

    `before` is its line before this one; `update` an agent's news whose job the next line names; `debug` the
    full message that a debug line has shown; `newest` the op created last.
    """

    def __init__(self, ops: OpIndex, agents: Agents, events: JobEvents) -> None:
        self.ops = ops
        self.agents = agents
        self.events = events
        self.before: LogRecord | None = None
        self.update: tuple[LogRecord, AgentTrack] | None = None
        self.debug: Message | None = None
        self.newest: OpTrack | None = None


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
    """The op of a line's prefix and name that the supervisor spoke of last."""
    name = record.fields["name"]
    prefix = record.fields["o"] or ""
    found = state.ops.open_with(prefix, lambda t: t.name == name and fits(t))
    if not found:
        found = state.ops.kept_with(prefix, lambda t: t.name == name and fits(t))[-1:]
    return max(found, key=_last_line, default=None)


def _last_line(op: OpTrack) -> tuple[int, int]:
    return (op.steps[-1].offset if op.steps else -1), op.key
