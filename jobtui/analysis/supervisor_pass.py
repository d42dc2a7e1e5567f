"""The forward pass over one supervisor's lines: every op, with what was sent and what came back.

A supervisor writes some pairs of lines with no await between, so that they are adjacent among its own lines:
a request (or a cancel) and the op without a run directory that it makes; an agent's `run_status_update` and
the line that names its job. All else is tied by ids. The line that ties an op to its job is its creation;
that which tells its agent is the one that sends it.
"""

from collections.abc import Mapping

from jobtui.analysis import driver_agents, driver_ops, supervisor_jobs, supervisor_ops
from jobtui.analysis.agent_track import Agents
from jobtui.analysis.job_events import JobEvents
from jobtui.analysis.op_index import OpIndex
from jobtui.analysis.pass_state import Handler, PassState
from jobtui.analysis.restarts import Restarts
from jobtui.model.ids import JobId
from jobtui.model.logs import LogRecord

HANDLERS: Mapping[str, Handler] = {
    **supervisor_ops.HANDLERS,
    **supervisor_jobs.HANDLERS,
    **driver_ops.HANDLERS,
    **driver_agents.HANDLERS,
}
"""What reads each shape; a shape without an entry says nothing about a job."""


class SupervisorPass:
    """Takes the records of one supervisor's log in order."""

    def __init__(
        self, source: str, ops: OpIndex, agents: Agents, events: JobEvents, restarts: Restarts
    ) -> None:
        self._state = PassState(source, ops, agents, events, restarts)

    def take_others(self) -> set[JobId]:
        """Jobs that lines have changed, since this was last asked, besides the ones they are about."""
        others, self._state.others = self._state.others, set()
        return others

    def read(self, record: LogRecord) -> JobId | None:
        """Take in one record of a shape in HANDLERS; the job it concerns, None when it concerns none."""
        state = self._state
        state.log.note_writer(record)
        if changed := state.restarts.goes_on(state.log, record.at):
            state.others |= changed
        jid = HANDLERS[record.shape](state, record)
        state.before = record
        if record.shape != "debug_message":
            state.debug = None
        return jid
