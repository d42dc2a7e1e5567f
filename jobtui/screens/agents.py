"""The agents: state, the ops they hold, and where their logs are."""

from collections.abc import Iterator

from jobtui.actions import ScreenName, key_of
from jobtui.analysis.filter import AGENT_FIELDS
from jobtui.analysis.paths import SLACK, AgentLog, LogKind, log_of, reached
from jobtui.backends.registry import Gives
from jobtui.model.clock import Nanos
from jobtui.model.journal import position_at
from jobtui.model.ops import Agent
from jobtui.render.agents import AGENT_COLUMNS, agent_facts, is_trouble, log_facts, urgent_first
from jobtui.render.spans import Paragraph
from jobtui.render.text import show
from jobtui.screens.base import TableScreen
from jobtui.screens.choices import Goal, Guide
from jobtui.screens.shared import CopyTarget, Shared, open_screen
from jobtui.screens.text import ErrorScreen
from jobtui.widgets.text_pane import TextPane

COPIES = "agent-sbatch"
"""The directory in which the supervisor keeps copies of the logs of agents on clusters."""
Opening = tuple[str, int | None, Nanos | None]
"""The name of a log, a position in it (None for its end), and a time to go to instead if the log has it."""


class AgentLogScreen(ErrorScreen):
    """Where to find an agent's log that cannot be read here; masked."""

    def __init__(self, shared: Shared, agent: Agent, log: AgentLog) -> None:
        parts = [f"The log of agent {show(agent.agent)} cannot be read from here."]
        parts += [f"{name}: {text}" for name, text, _ in log_facts(log)]
        if agent.log is not None and agent.log == agent.supervisor:
            parts.append(f"A part of it is in {show(agent.supervisor)}, which can be read in the logs.")
        taken = CopyTarget("", log.command)
        super().__init__(shared, f"log of {show(agent.agent)}", "\n\n".join(parts), taken)

    def copied(self) -> str:
        return str(self._taken.command) or super().copied()


def where_to_open(shared: Shared, agent: Agent, log: AgentLog) -> Opening | None:
    """At the op it holds, else at the end; in a log that is also about others, where its own lines begin."""
    sent = max((op.sent_at for op in agent.ops if op.sent_at is not None), default=None)
    at = None if sent is None else Nanos(sent - SLACK)
    if (path := _path_on_cluster(shared, agent, log)) is not None:
        return path, None, at
    if agent.log is not None and (agent.log != agent.supervisor or log.kind is LogKind.SUPERVISOR):
        return agent.log, agent.log_at if agent.log == agent.supervisor else None, at
    if log.kind is LogKind.SUPERVISOR and log.name:
        return log.name, agent.supervisor_at, at
    if log.kind is LogKind.JOURNAL:
        is_its_own = agent.container_id is not None or log.at is None
        return log.described, None if is_its_own else position_at(Nanos((log.at or 0) - SLACK)), at
    if log.kind is LogKind.CLUSTER:
        found = [name for name in shared.logs.names() if log.copies and name.startswith(log.copies)]
        return (found[-1], None, at) if found else None
    return None


def _path_on_cluster(shared: Shared, agent: Agent, log: AgentLog) -> str | None:
    """The log where it is mounted by the configuration, or over ssh: it has more than its copies."""
    is_read_itself = agent.log not in (None, agent.supervisor) and f"/{COPIES}/" not in (agent.log or "")
    if log.kind is not LogKind.CLUSTER or is_read_itself or not log.path:
        return None
    return next((path for path in reached(log.path, agent.host, shared.reach) if path != log.path), None)


NAME_CELLS = 16


class AgentsScreen(TableScreen[Agent]):
    NAME = ScreenName.AGENTS
    WHAT = "agent"
    COLUMNS = AGENT_COLUMNS
    KEY = staticmethod(lambda one: (one.supervisor, one.driver, one.kind, f"{one.uid[:4]} {one.agent}"))
    FIELDS = AGENT_FIELDS
    PLACEHOLDER = "words, or: state:lost host:v4 user:vn9m driver:docker op:pb5u"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._agents: tuple[Agent, ...] = ()
        self._read_of: tuple[int, ...] = ()
        self._about = TextPane()

    def records(self) -> list[Agent]:
        read = tuple(source.records for source in self.shared.store.sources())
        if read != self._read_of and (self.shared.paused_at is None or not self._agents):
            self._read_of = read
            self._agents = self.shared.store.correlation.agents()
        return urgent_first(self._agents, self.shared.now())

    def log_of(self, agent: Agent) -> AgentLog:
        return log_of(agent, self.shared.reach)

    def paragraphs(self) -> Iterator[Paragraph]:
        if (agent := self._table.record) is not None:
            for name, text, style in agent_facts(agent, self.log_of(agent), self.look()):
                yield Paragraph(f"{name:<{NAME_CELLS}}{text}", style, NAME_CELLS)

    def silence(self) -> tuple[str, ...]:
        none = "No log is read: " + key_of("app.go('logs')") + " shows how to name one."
        return self.shared.nothing_known("No line of a supervisor's log names an agent.", Gives.LOGS, none)

    def words(self) -> Iterator[str]:
        trouble = [agent for agent in self._agents if is_trouble(agent, self.shared.now())]
        lately = " in the last hour" * all(agent.since is not None for agent in trouble)
        yield f"{len(trouble):,} lost or never came{lately}" if trouble else ""

    def action_open(self) -> None:
        if (agent := self._table.record) is None:
            return
        log = self.log_of(agent)
        if (opening := where_to_open(self.shared, agent, log)) is not None:
            open_screen(self.app, ScreenName.LOGS, self.shared, *opening)
        else:
            self.app.push_screen(AgentLogScreen(self.shared, agent, log))

    def action_jobs(self) -> None:
        if (agent := self._table.record) is None:
            return
        goals = tuple(Goal(op.jid, f"{op.name} {op.op}", job=op.jid) for op in agent.ops if op.jid)
        if goals:
            is_one = len({goal.job for goal in goals}) == 1
            Guide(self.app, self.shared).choose(agent.agent, goals, is_clear=is_one)
        else:
            self.notify("it holds no op of a job", timeout=2)

    def copied(self) -> str:
        if (agent := self._table.record) is None:
            return ""
        log = self.log_of(agent)
        return log.command or show(log.described or agent.agent)
