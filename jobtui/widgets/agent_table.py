"""The agents, one a row. The cursor stays with its agent while rows move."""

from collections.abc import Callable, Sequence

from textual import events
from textual.message import Message

from jobtui.model.ops import Agent
from jobtui.render.agent_columns import AGENT_COLUMNS, AgentColumn, AgentLook
from jobtui.render.columns import fit_columns, gap_for
from jobtui.render.spans import Line, Span
from jobtui.render.text import fit
from jobtui.widgets.row_view import Move, RowView

MARGIN = 1
"""Cells before the first column."""

AgentKey = tuple[str, str, str, str]


def key_of(agent: Agent) -> AgentKey:
    """What tells an agent from every other, as long as it is known."""
    return agent.supervisor, agent.driver, agent.kind, f"{agent.uid[:4]} {agent.agent}"


class AgentTable(RowView):
    """Agents in the order they are handed over."""

    class Highlighted(Message):
        """The cursor is on another agent, or on none, or that one has changed."""

        def __init__(self, agent: Agent | None) -> None:
            self.agent = agent
            super().__init__()

    class Opened(Message):
        """Somebody wants to read the log of the agent under the cursor."""

    def __init__(self, look: Callable[[], AgentLook], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._look = look
        self._agents: Sequence[Agent] = ()
        self._sorted_by: str | None = None
        self._reverse = False
        self._held: AgentKey | None = None
        self._told: Agent | None = None

    @property
    def count(self) -> int:
        """How many agents are shown."""
        return len(self._agents)

    @property
    def agent(self) -> Agent | None:
        """The agent under the cursor."""
        return self._agents[self.cursor] if self._agents else None

    def set_agents(
        self, agents: Sequence[Agent], *, sorted_by: str | None = None, reverse: bool = False
    ) -> None:
        """Show these in this order; on the first row the cursor stays with whatever comes first."""
        self._agents = agents
        self._sorted_by, self._reverse = sorted_by, reverse
        if self._held is not None:
            at = next((at for at, agent in enumerate(agents) if key_of(agent) == self._held), None)
            if at is not None:
                self.top += at - self.cursor
                self.cursor = at
        self.keep_in_view()
        self.repaint()
        self._tell()

    def go(self, index: int) -> None:
        """Put the cursor on a row, and keep it with that agent."""
        super().go(index)
        self._held = key_of(self.agent) if self.agent is not None else None
        self._tell()

    def move(self, move: Move) -> None:
        """Move the cursor; on top it stays with whatever comes first."""
        super().move(move)
        if move is Move.TOP:
            self._held = None

    def heading(self, y: int) -> Line:
        """Names of the columns; that of the sorted one stands out."""
        spans = [Span(" " * MARGIN, "", MARGIN)]
        for column, cells in self._placed():
            is_sorted = column.key == self._sorted_by
            arrow = ("▼" if self._reverse else "▲") if is_sorted else ""
            text = fit(column.header + arrow, cells, align=column.align)
            spans += [Span(text, "sorted" if is_sorted else "heading", cells), self._gap]
        return tuple(spans[:-1])

    def row(self, index: int) -> Line:
        """An agent."""
        agent, look = self._agents[index], self._look()
        spans = [Span(" " * MARGIN, "", MARGIN)]
        for column, cells in self._placed():
            text = fit(column.cell(agent, look), cells, align=column.align)
            spans += [Span(text, column.style(agent, look), cells), self._gap]
        return tuple(spans[:-1])

    def on_click(self, event: events.Click) -> None:
        """A second click on a row opens it."""
        if event.chain == 2 and self.agent is not None:
            self.post_message(self.Opened())

    @property
    def _room(self) -> int:
        return max(1, self.cells - MARGIN - 1)

    @property
    def _gap(self) -> Span:
        cells = gap_for(self._room)
        return Span(" " * cells, "", cells)

    def _placed(self) -> tuple[tuple[AgentColumn, int], ...]:
        return fit_columns(self._room, AGENT_COLUMNS)

    def _tell(self) -> None:
        """Say so when the cursor is on another agent than before, or that one has changed."""
        if self.agent != self._told:
            self._told = self.agent
            self.post_message(self.Highlighted(self.agent))
