"""The agents: what each does and holds, what became of it, and where its log is."""

from collections.abc import Callable, Iterator

from textual import on
from textual.app import ComposeResult

from jobtui.actions import Place, hints_at
from jobtui.analysis.agent_filter import FIELD_NAMES, AgentTest, parse_agent_filter, values_of
from jobtui.analysis.agent_logs import AgentLog, log_of
from jobtui.analysis.filter import token_span
from jobtui.model.ops import Agent
from jobtui.render.agent_columns import AGENT_COLUMNS, AgentLook, is_trouble, sort_agents
from jobtui.render.agent_facts import agent_facts
from jobtui.render.text import Zone, safe, show
from jobtui.screens.base import Board, Taken, bindings_at
from jobtui.screens.filtering import FilteredList
from jobtui.store.store import Changes
from jobtui.widgets.agent_table import AgentTable
from jobtui.widgets.filter_bar import Completion, FilterBar
from jobtui.widgets.header import Header
from jobtui.widgets.key_line import KeyLine
from jobtui.widgets.row_view import Move
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.source_strip import SourceStrip
from jobtui.widgets.text_pane import Paragraph, TextPane

MOST_OFFERED = 50
"""Values offered for a field of the filter."""
NAME_CELLS = 16
"""Cells of the names of facts."""
JOBS_SOURCE = "sirepo_db"
"""The kind of sources whose names are database roots."""


class AgentFilterBar(FilterBar):
    """A filter of agents is typed in it."""

    PLACEHOLDER = "words, or: state:lost host:v4 user:vn9m driver:docker op:pb5u"


class AgentsScreen(FilteredList):
    """All agents, and all about the one under the cursor."""

    PLACE = Place.AGENTS
    BINDINGS = bindings_at(Place.AGENTS)
    SORT_KEYS = tuple(column.key for column in AGENT_COLUMNS)

    DEFAULT_CSS = """
    AgentsScreen AgentTable { height: 1fr; }
    AgentsScreen TextPane { height: 11; max-height: 35%; }
    AgentsScreen.-low TextPane, AgentsScreen.-flat TextPane { display: none; }
    AgentsScreen.-low RuleLine.-needed { display: block; }
    AgentsScreen.-tiny Header, AgentsScreen.-tiny NoticeLine { display: none; }
    """

    def __init__(self, board: Board) -> None:
        super().__init__(board)
        self._agents: tuple[Agent, ...] = ()
        self._read_of: tuple[int, ...] = ()
        self._passes: AgentTest = parse_agent_filter("")
        self._header = Header(board.now, board.title)
        self._strip = SourceStrip(board.now)
        self._table = AgentTable(self._look)
        self._about = TextPane()

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self._header
        yield self._strip
        yield RuleLine()
        yield self._table
        yield self._rule
        yield self._about
        yield RuleLine()
        yield KeyLine(hints_at(Place.AGENTS))

    def on_mount(self) -> None:
        """Show what is known already."""
        self._read()
        self.show_all()

    def show_trail(self) -> None:
        """Say where one is."""
        self._header.set_title(self.titled(self.crumb))

    def take(self, changes: Changes) -> None:
        """Show how the agents are now."""
        self._read()
        self.show_all()

    def tick(self) -> None:
        """Let ages go on; news of an agent need not be news of a job."""
        self._read()
        self.show_all()
        self._header.repaint()

    def _read(self) -> None:
        """Look at the agents anew if something was read since, and not everything is to stay as it is."""
        read = tuple(source.records for source in self.board.store.sources())
        if read != self._read_of and (self.board.paused_at is None or not self._agents):
            self._read_of = read
            self._agents = self.board.store.correlation.agents()

    def show_all(self) -> None:
        """Show the agents anew; what is the same is not painted again."""
        passing = [agent for agent in self._agents if self._passes(agent)]
        ordered = sort_agents(passing, self.board.now(), self._sorted_by, reverse=self._reverse)
        self._table.set_records(ordered, sorted_by=self._sorted_by, reverse=self._reverse)
        self._strip.set_sources(self.board.store.sources())
        self._show_words()
        self._show_about()

    def move_list(self, move: Move) -> None:
        """Move the cursor."""
        self._table.move(move)

    def _look(self) -> AgentLook:
        return AgentLook(self.board.now(), relative=not self.board.absolute, local=Zone.is_local)

    def log_of(self, agent: Agent) -> AgentLog:
        """Where the log of an agent is, by what is configured."""
        roots = (source.name for source in self.board.store.sources() if source.kind == JOBS_SOURCE)
        return log_of(agent, self.board.hosts, roots)

    @on(AgentTable.Highlighted)
    def _show_about(self) -> None:
        self._about.set_text(self._paragraphs(self._table.record))

    def _paragraphs(self, agent: Agent | None) -> Iterator[Paragraph]:
        """All that is known of an agent; without one why there is none."""
        if agent is None:
            yield Paragraph(_silence(self._agents, self._filter_text), "dim")
            return
        for name, text, style in agent_facts(agent, self.log_of(agent), self._look()):
            yield Paragraph(f"{name:<{NAME_CELLS}}{text}", style, NAME_CELLS)

    def _show_words(self) -> None:
        self._rule.set_words(self._words())
        self._rule.set_class(bool(self._filter_text), "-needed")

    def _words(self) -> str:
        """How many agents there are, how many of them are in trouble, what is shown of them."""
        trouble = sum(is_trouble(agent, self.board.now()) for agent in self._agents)
        shown, total = self._table.count, len(self._agents)
        count = f"{shown:,} of {total:,} agents" if self._filter_text else f"{total:,} agents"
        filtered = f"/{safe(self._filter_text)}" if self._filter_text else ""
        lost = f"{trouble:,} lost or never came in the last hour" if trouble else ""
        return " · ".join(part for part in (filtered, count, lost, self._order_words) if part)

    # Going on from an agent.

    @on(AgentTable.Opened)
    def action_open(self) -> None:
        """Read the log of the agent, or what to type to read it."""
        # Imported here, as the first paint does not need it
        from jobtui.screens.agent_log import open_log

        if (agent := self._table.record) is not None:
            open_log(self.app, self.board, agent, self.log_of(agent))

    def action_jobs(self) -> None:
        """Go to a job whose op the agent holds."""
        # Imported here, as the first paint does not need it
        from jobtui.screens.agent_log import go_to_held

        if (agent := self._table.record) is not None:
            go_to_held(self.app, self.board, agent)

    def action_copy(self) -> None:
        """Copy the command that shows the log of the agent, or what its log is called."""
        if (agent := self._table.record) is not None:
            log = self.log_of(agent)
            self.copy(show(log.command or log.described or agent.agent))

    async def taken(self) -> Taken | None:
        """All about the agent under the cursor, and the command that lists these agents."""
        # Imported here, as the first paint does not need it
        from jobtui.screens.taking import jobtui_command

        block = "\n".join(part.text for part in self._paragraphs(self._table.record))
        words = (self._filter_text,) if self._filter_text else ()
        return Taken(block, jobtui_command(self.board, "agents", *words))

    # Which agents.

    def filter_bar(self) -> FilterBar:
        """The line in which the filter is typed."""
        return AgentFilterBar(
            self._filter_text, history=self._filters, completer=completer(lambda: self._agents)
        )

    def let_pass(self, text: str) -> None:
        """Let only agents pass of which this is true."""
        self._passes = parse_agent_filter(text)


def completer(agents: Callable[[], tuple[Agent, ...]]) -> Callable[[str, int], Completion]:
    """What completes a filter of these agents: fields, and the values that they have."""

    def complete(text: str, cursor: int) -> Completion:
        start, end = token_span(text, cursor)
        field, colon, begun = text[start:end].partition(":")
        if not colon:
            return Completion(start, end, [f"{name}:" for name in FIELD_NAMES if name.startswith(field)])
        found = {value for name, value in values_of(agents()) if name == field.lower()}
        words = sorted(value for value in found if value.lower().startswith(begun.lower()))
        plain = [word for word in words if not any(char in ' "(),' for char in word)]
        return Completion(start, end, [f"{field}:{word}" for word in plain[:MOST_OFFERED]])

    return complete


def _silence(agents: tuple[Agent, ...], filter_text: str) -> str:
    """Why no agent is shown."""
    if agents and filter_text:
        return "no agent passes the filter"
    return "no line of a supervisor's log that was read speaks of an agent"
