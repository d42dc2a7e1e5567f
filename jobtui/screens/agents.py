"""The agents: state, the ops they hold, and where their logs are."""

from collections.abc import Iterator

from textual import on
from textual.app import App

from jobtui.actions import Place as At
from jobtui.analysis.filter_fields import AGENT_FIELD_NAMES, AgentTest, agent_values, parse_agent_filter
from jobtui.analysis.paths import SLACK, AgentLog, LogPlace, log_of, reached
from jobtui.backends.registry import SIREPO_DB
from jobtui.model.clock import Nanos
from jobtui.model.journal import place_at
from jobtui.model.ops import Agent
from jobtui.model.pages import Place
from jobtui.render.agents import AGENT_COLUMNS, agent_facts, is_trouble, log_facts, sort_agents
from jobtui.render.text import show
from jobtui.screens.base import TableScreen, bindings_at
from jobtui.screens.choices import Goal, Guide
from jobtui.screens.command_table import complete_fields
from jobtui.screens.shared import Shared, Taken, open_screen
from jobtui.screens.text import ErrorScreen
from jobtui.widgets.filter_bar import Completion
from jobtui.widgets.record_list import RecordTable
from jobtui.widgets.text_pane import Paragraph, TextPane

COPIES = "agent-sbatch"
"""The directory in which the supervisor keeps copies of the logs of agents on clusters."""
Opening = tuple[str, Place | None, Nanos | None]
"""The name of a log, the place in it, None for its end, and a time to go to instead if it goes so far."""


class LogSheet(ErrorScreen):
    """Where to find the log of an agent that cannot be read here."""

    def __init__(self, shared: Shared, agent: Agent, log: AgentLog) -> None:
        text = "\n\n".join(sheet(agent, log))
        self._command = log.command
        super().__init__(shared, f"log of {show(agent.agent)}", text, Taken(text, self._command))

    def action_copy(self) -> None:
        if self._command:
            self.copy(self._command)
        else:
            super().action_copy()


def open_log(app: App[None], shared: Shared, agent: Agent, log: AgentLog) -> None:
    opening = where_to_open(shared, agent, log)
    if opening is not None:
        open_screen(app, At.LOGS, shared, *opening)
        return
    app.push_screen(LogSheet(shared, agent, log))


def where_to_open(shared: Shared, agent: Agent, log: AgentLog) -> Opening | None:
    """At the op it holds, else the end; in a log that tells of others, too, where its own lines begin."""
    sent = max((op.sent_at for op in agent.ops if op.sent_at is not None), default=None)
    at = None if sent is None else Nanos(sent - SLACK)
    if (
        log.place is LogPlace.CLUSTER
        and not _is_read_itself(agent)
        and (path := _path_of(shared, agent, log))
    ):
        return path, None, at
    if agent.log is not None and (agent.log != agent.supervisor or log.place is LogPlace.SUPERVISOR):
        return agent.log, agent.log_at if agent.log == agent.supervisor else None, at
    if log.place is LogPlace.SUPERVISOR and log.name:
        return log.name, agent.supervisor_at, at
    if log.place is LogPlace.JOURNAL:
        is_its_own = agent.container_id is not None or log.at is None
        return log.described, None if is_its_own else place_at(Nanos((log.at or 0) - SLACK)), at
    if log.place is LogPlace.CLUSTER:
        found = [name for name in shared.logs.names() if log.copies and name.startswith(log.copies)]
        return (found[-1], None, at) if found else None
    return None


def _is_read_itself(agent: Agent) -> bool:
    return agent.log not in (None, agent.supervisor) and f"/{COPIES}/" not in (agent.log or "")


def _path_of(shared: Shared, agent: Agent, log: AgentLog) -> str | None:
    """The log on a cluster where it is mounted as configured, or over ssh; it says more than copies do."""
    if not log.path:
        return None
    places = list(reached(log.path, agent.host, shared.reach))
    configured = [place for place in places if place != log.path]
    return configured[0] if configured else None


def sheet(agent: Agent, log: AgentLog) -> Iterator[str]:
    """What is said instead of a log that cannot be read here; masked."""
    yield f"The log of agent {show(agent.agent)} cannot be read from here."
    yield from (f"{name}: {text}" for name, text, _ in log_facts(log))
    if agent.log is not None and agent.log == agent.supervisor:
        yield f"A part of it was forwarded into {show(agent.supervisor)}, which can be read in the logs."


def go_to_held(app: App[None], shared: Shared, agent: Agent) -> None:
    goals = tuple(Goal(op.jid, f"{op.name} {op.op}", job=op.jid) for op in agent.ops if op.jid is not None)
    if not goals:
        app.notify("it holds no op of a job", timeout=2)
    else:
        Guide(app, shared).choose(agent.agent, goals, is_clear=len({goal.job for goal in goals}) == 1)


NAME_CELLS = 16
"""Cells of the names of facts."""


def key_of(agent: Agent) -> tuple[str, ...]:
    return agent.supervisor, agent.driver, agent.kind, f"{agent.uid[:4]} {agent.agent}"


class AgentsScreen(TableScreen):
    """All agents, and the details of the one under the cursor."""

    PLACE = At.AGENTS
    BINDINGS = bindings_at(At.AGENTS)
    COLUMNS = AGENT_COLUMNS
    PLACEHOLDER = "words, or: state:lost host:v4 user:vn9m driver:docker op:pb5u"

    DEFAULT_CSS = """
    AgentsScreen TextPane { height: 11; max-height: 35%; }
    AgentsScreen.-low TextPane, AgentsScreen.-flat TextPane { display: none; }
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._agents: tuple[Agent, ...] = ()
        self._read_of: tuple[int, ...] = ()
        self._passes: AgentTest = parse_agent_filter("")
        self._main = self._table = RecordTable[Agent](AGENT_COLUMNS, self.look, key_of)
        self._about = self._text = TextPane()

    def _read(self) -> None:
        read = tuple(source.records for source in self.shared.store.sources())
        if read != self._read_of and (self.shared.paused_at is None or not self._agents):
            self._read_of = read
            self._agents = self.shared.store.correlation.agents()

    def show_all(self) -> None:
        self._read()
        passing = [agent for agent in self._agents if self._passes(agent)]
        self.show_records(
            self._table, sort_agents(passing, self.shared.now(), self._sorted_by, reverse=self._reverse)
        )
        self._show_about()

    def log_of(self, agent: Agent) -> AgentLog:
        roots = (source.name for source in self.shared.store.sources() if SIREPO_DB.made(source))
        return log_of(agent, self.shared.hosts, roots)

    @on(RecordTable.Highlighted)
    def _show_about(self) -> None:
        self._text.set_text(self._paragraphs(self._table.record))

    def _paragraphs(self, agent: Agent | None) -> Iterator[Paragraph]:
        if agent is None:
            yield Paragraph(_silence(self._agents, self._filter_text), "dim")
            return
        for name, text, style in agent_facts(agent, self.log_of(agent), self.look()):
            yield Paragraph(f"{name:<{NAME_CELLS}}{text}", style, NAME_CELLS)

    def words(self) -> Iterator[str]:
        trouble = sum(is_trouble(agent, self.shared.now()) for agent in self._agents)
        shown, total = self._table.count, len(self._agents)
        yield f"{shown:,} of {total:,} agents" if self._filter_text else f"{total:,} agents"
        yield f"{trouble:,} lost or never came in the last hour" if trouble else ""

    # Going on from an agent.

    @on(RecordTable.Opened)
    def action_open(self) -> None:
        if (agent := self._table.record) is not None:
            open_log(self.app, self.shared, agent, self.log_of(agent))

    def action_jobs(self) -> None:
        if (agent := self._table.record) is not None:
            go_to_held(self.app, self.shared, agent)

    def action_copy(self) -> None:
        if (agent := self._table.record) is not None:
            log = self.log_of(agent)
            self.copy(log.command or show(log.described or agent.agent))

    async def taken(self) -> Taken | None:
        from jobtui.screens.export import jobtui_command

        block = "\n".join(part.text for part in self._paragraphs(self._table.record))
        words = (self._filter_text,) if self._filter_text else ()
        return Taken(block, jobtui_command(self.shared, "agents", about=words))

    # Which agents.

    def complete(self, text: str, cursor: int) -> Completion:
        return complete_fields(text, cursor, AGENT_FIELD_NAMES, self._values)

    def _values(self, field: str) -> set[str]:
        return {value for name, value in agent_values(self._agents) if name == field}

    def let_pass(self, text: str) -> None:
        self._passes = parse_agent_filter(text)


def _silence(agents: tuple[Agent, ...], filter_text: str) -> str:
    if agents and filter_text:
        return "no agent passes the filter"
    return "no line of a supervisor's log that was read speaks of an agent"
