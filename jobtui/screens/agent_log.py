"""From an agent to its log, or to what one types to read it; and to the jobs whose ops it holds."""

from collections.abc import Iterator

from textual.app import App

from jobtui.analysis.agent_logs import SLACK, AgentLog, LogPlace
from jobtui.analysis.cluster_paths import reached
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId
from jobtui.model.journal import place_at
from jobtui.model.ops import Agent
from jobtui.render.agent_facts import log_facts
from jobtui.render.text import show
from jobtui.screens.base import Board, Taken
from jobtui.screens.error import ErrorScreen
from jobtui.screens.jumping import Goal

COPIES = "agent-sbatch"
"""The directory in which the supervisor keeps copies of the logs of agents on clusters."""
Opening = tuple[str, int | None]
"""The name of a log, and the place in it; None for its end."""


class LogSheet(ErrorScreen):
    """What is said instead of the log of an agent that cannot be read here."""

    def __init__(self, board: Board, agent: Agent, log: AgentLog) -> None:
        text = "\n\n".join(sheet(agent, log))
        self._command = show(log.command)
        super().__init__(board, f"log of {show(agent.agent)}", text, Taken(text, self._command))

    def action_copy(self) -> None:
        """Copy the command; all of it where there is none."""
        if self._command:
            self.copy(self._command)
        else:
            super().action_copy()


def open_log(app: App[None], board: Board, agent: Agent, log: AgentLog) -> None:
    """Show the log of an agent where it begins, or say how it can be read."""
    # Imported here, as the first paint does not need it
    from jobtui.screens.logs import LogsScreen

    opening = where_to_open(board, agent, log)
    if opening is not None:
        app.push_screen(LogsScreen(board, *opening))
        return
    app.push_screen(LogSheet(board, agent, log))


def where_to_open(board: Board, agent: Agent, log: AgentLog) -> Opening | None:
    """The log that can be read here, and where in it the agent begins."""
    if log.place is LogPlace.CLUSTER and not _is_read_itself(agent) and (path := _path_of(board, agent, log)):
        return path, None
    if agent.log is not None and (agent.log != agent.supervisor or log.place is LogPlace.SUPERVISOR):
        return agent.log, agent.log_at
    if log.place is LogPlace.SUPERVISOR and log.name:
        return log.name, agent.supervisor_at
    if log.place is LogPlace.JOURNAL:
        return log.described, place_at(Nanos(log.at - SLACK)) if log.at is not None else None
    if log.place is LogPlace.CLUSTER:
        found = [name for name in board.logs.names() if log.copies and name.startswith(log.copies)]
        return (found[-1], None) if found else None
    return None


def _is_read_itself(agent: Agent) -> bool:
    """Whether the log itself is read, and not a copy or an echo of its end."""
    return agent.log not in (None, agent.supervisor) and f"/{COPIES}/" not in (agent.log or "")


def _path_of(board: Board, agent: Agent, log: AgentLog) -> str | None:
    """The log on a cluster where it is mounted as configured, or over ssh; it says more than copies do."""
    if not log.path:
        return None
    places = list(reached(log.path, agent.host, board.reach))
    configured = [place for place in places if place != log.path]
    return configured[0] if configured else None


def sheet(agent: Agent, log: AgentLog) -> Iterator[str]:
    """What is said instead of a log that cannot be read here; masked."""
    yield f"The log of agent {show(agent.agent)} cannot be read from here."
    yield from (f"{name}: {text}" for name, text, _ in log_facts(log))
    if agent.log is not None and agent.log == agent.supervisor:
        yield f"A part of it was forwarded into {show(agent.supervisor)}, which can be read in the logs."


def go_to_held(app: App[None], board: Board, agent: Agent) -> None:
    """Show the job whose op an agent holds; of several, let one be chosen."""
    # Imported here, as the first paint does not need it
    from jobtui.screens.choosing import ChoosingScreen
    from jobtui.screens.job import JobScreen

    goals = tuple(_goals(agent))
    if not goals:
        app.notify("it holds no op of a job", timeout=2)
    elif len({goal.job for goal in goals}) == 1:
        app.push_screen(JobScreen(board, _job(goals[0])))
    else:
        app.push_screen(ChoosingScreen(board, agent.agent, goals, lambda goal: _push(app, board, goal)))


def _goals(agent: Agent) -> Iterator[Goal]:
    for op in agent.ops:
        if op.jid is not None:
            yield Goal(op.jid, f"{op.name} {op.op}", job=op.jid)


def _job(goal: Goal) -> JobId:
    assert goal.job is not None
    return goal.job


def _push(app: App[None], board: Board, goal: Goal) -> None:
    from jobtui.screens.job import JobScreen

    app.push_screen(JobScreen(board, _job(goal)))
