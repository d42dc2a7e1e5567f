"""The columns of the table of agents, for the dashboard and the one-shot command alike.

Cells are masked and safe for a terminal. Sorting is by the values of the record, never by what is shown.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from jobtui.model.clock import SECOND, Nanos, seconds_between
from jobtui.model.ops import Agent, AgentState
from jobtui.render.cells import short_host
from jobtui.render.columns import Cells
from jobtui.render.text import NONE, Align, age, short_time, show

RECENT_S = 3600.0
"""So long an agent that was lost or never came is something to look at."""

GLYPHS: Mapping[AgentState, tuple[str, str]] = {
    AgentState.STARTING: ("○", "o"),
    AgentState.CONNECTED: ("●", "*"),
    AgentState.IDLE: ("·", "."),
    AgentState.LOST: ("✗", "x"),
    AgentState.KILLED: ("⊘", "-"),
    AgentState.NEVER_CONNECTED: ("✗", "x"),
    AgentState.UNKNOWN: ("?", "?"),
}
"""The sign of a state, and the same in ASCII."""
_STYLES: Mapping[AgentState, str] = {
    AgentState.STARTING: "status.pending",
    AgentState.CONNECTED: "status.running",
    AgentState.IDLE: "",
    AgentState.LOST: "status.failed",
    AgentState.KILLED: "settled",
    AgentState.NEVER_CONNECTED: "status.failed",
    AgentState.UNKNOWN: "status.unknown",
}
_BAD = frozenset({AgentState.LOST, AgentState.NEVER_CONNECTED})
_RANKS: Mapping[AgentState, int] = {
    AgentState.STARTING: 1,
    AgentState.CONNECTED: 2,
    AgentState.IDLE: 3,
    AgentState.UNKNOWN: 4,
    AgentState.NEVER_CONNECTED: 5,
    AgentState.LOST: 5,
    AgentState.KILLED: 5,
}
_KINDS = {"sequential": "seq", "parallel": "par"}
SortKey = str | int | None


class AgentLook(NamedTuple):
    """What a cell depends on beside its agent. `relative` shows ages instead of times."""

    now: Nanos
    relative: bool = True
    local: bool = False
    ascii_only: bool = False


class AgentColumn(msgspec.Struct, frozen=True, kw_only=True):
    """One column, as `columns.Column` is one of jobs."""

    key: str
    header: str
    cell: Callable[[Agent, AgentLook], str]
    sort: Callable[[Agent], SortKey]
    cells: Cells
    priority: int
    style: Callable[[Agent, AgentLook], str] = lambda agent, look: plain_style(agent, look)
    align: Align = "left"
    narrow: "AgentColumn | None" = None
    narrow_below: int = 0


def plain_style(agent: Agent, look: AgentLook) -> str:
    """The style of most cells: what is settled steps back."""
    return "" if agent.state.is_live or is_trouble(agent, look.now) else "settled"


def is_trouble(agent: Agent, now: Nanos) -> bool:
    """Whether an agent was lost or did not come, and lately. One whose end has no time counts too."""
    if agent.state not in _BAD:
        return False
    return agent.since is None or seconds_between(agent.since, now) < RECENT_S


def state_style(agent: Agent, look: AgentLook) -> str:
    """The style of a state; what went wrong long ago is settled."""
    settled = agent.state in _BAD and not is_trouble(agent, look.now)
    return "settled" if settled else _STYLES[agent.state]


def glyph(agent: Agent, look: AgentLook) -> str:
    """The one-cell sign of its state."""
    return GLYPHS[agent.state][look.ascii_only]


def state_words(state: AgentState) -> str:
    """A state as a person reads it."""
    return state.value.replace("_", " ").replace("never connected", "never came")


def held_words(agent: Agent) -> str:
    """The ops it holds, or why it holds none any more; not masked."""
    if agent.ops:
        return ", ".join(f"{op.name} {op.op}" for op in agent.ops)
    return agent.why


def _since_cell(get: Callable[[Agent], Nanos | None]) -> Callable[[Agent, AgentLook], str]:
    def cell(agent: Agent, look: AgentLook) -> str:
        at = get(agent)
        if at is None:
            return NONE
        if look.relative:
            return age(max(0.0, seconds_between(at, look.now)))
        return short_time(at, look.now, local=look.local)

    return cell


def _text(get: Callable[[Agent], str | None]) -> Callable[[Agent, AgentLook], str]:
    return lambda agent, look: show(get(agent) or "") or NONE


def _low(get: Callable[[Agent], str | None]) -> Callable[[Agent], SortKey]:
    def key(agent: Agent) -> SortKey:
        text = get(agent)
        return text.lower() if text else None

    return key


def _newest_first(at: Nanos | None) -> int | None:
    return None if at is None else -at


def _fixed(cells: int) -> Cells:
    return Cells(cells, cells, cells)


def _driver(agent: Agent) -> str:
    return agent.driver.removesuffix("Driver")


AGENT_COLUMNS: tuple[AgentColumn, ...] = (
    AgentColumn(
        key="state",
        header="  STATE",
        cell=lambda agent, look: f"{glyph(agent, look)} {state_words(agent.state)}",
        sort=lambda agent: _RANKS[agent.state],
        style=state_style,
        cells=_fixed(12),
        priority=100,
        narrow=AgentColumn(
            key="state", header="", cell=glyph, sort=lambda agent: _RANKS[agent.state], style=state_style,
            cells=_fixed(1), priority=100,
        ),
        narrow_below=60,
    ),
    AgentColumn(
        key="for", header="FOR", cell=_since_cell(lambda agent: agent.since), align="right",
        sort=lambda agent: _newest_first(agent.since), cells=_fixed(6), priority=80,
    ),
    AgentColumn(
        key="agent", header="AGENT", cell=_text(lambda agent: agent.agent),
        sort=_low(lambda agent: agent.agent), cells=_fixed(5), priority=95,
    ),
    AgentColumn(
        key="driver", header="DRIVER", cell=_text(_driver), sort=_low(_driver),
        cells=Cells(6, 6, 10), priority=60,
    ),
    AgentColumn(
        key="kind", header="KIND", cell=_text(lambda agent: _KINDS.get(agent.kind, agent.kind)),
        sort=_low(lambda agent: agent.kind), cells=Cells(4, 4, 6), priority=50,
    ),
    AgentColumn(
        key="user", header="USER", cell=_text(lambda agent: agent.uid), sort=_low(lambda agent: agent.uid),
        cells=_fixed(8), priority=90,
    ),
    AgentColumn(
        key="host", header="HOST", cell=_text(lambda agent: agent.host), sort=_low(lambda agent: agent.host),
        cells=Cells(4, 12, 30), priority=55,
        narrow=AgentColumn(
            key="host", header="HOST", cell=_text(lambda agent: short_host(agent.host or "")),
            sort=_low(lambda agent: agent.host), cells=Cells(4, 8, 16), priority=55,
        ),
        narrow_below=160,
    ),
    AgentColumn(
        key="container", header="CONTAINER", cell=_text(lambda agent: agent.container),
        sort=_low(lambda agent: agent.container), cells=Cells(14, 14, 20), priority=30,
    ),
    AgentColumn(
        key="holds", header="HOLDS", cell=_text(held_words), sort=_low(held_words),
        cells=Cells(9, 20, 10_000), priority=85,
    ),
    AgentColumn(
        key="last", header="LAST", cell=_since_cell(lambda agent: agent.last_message_at), align="right",
        sort=lambda agent: _newest_first(agent.last_message_at), cells=_fixed(6), priority=45,
    ),
    AgentColumn(
        key="messages", header="MSGS", cell=lambda agent, look: f"{agent.messages:,}", align="right",
        sort=lambda agent: -agent.messages, cells=_fixed(6), priority=35,
    ),
    AgentColumn(
        key="restarts", header="AGAIN", cell=lambda agent, look: str(agent.restarts or ""), align="right",
        sort=lambda agent: -agent.restarts, cells=_fixed(5), priority=25,
    ),
)  # fmt: skip
"""What `enter` leads to, and all other facts, are shown below the table."""


def sort_agents(
    agents: Iterable[Agent], now: Nanos, key: str | None = None, *, reverse: bool = False
) -> list[Agent]:
    """Agents by a column, those without a value last; without one what went wrong lately, then what lives,
    then what ended last.
    """
    if key is None:
        return sorted(agents, key=lambda agent: _urgency(agent, now), reverse=reverse)
    column = next(column for column in AGENT_COLUMNS if column.key == key)
    keyed = [(column.sort(agent), agent) for agent in sorted(agents, key=lambda agent: _urgency(agent, now))]
    with_value = [pair for pair in keyed if pair[0] is not None]
    with_value.sort(key=lambda pair: pair[0], reverse=reverse)  # type: ignore[arg-type, return-value]
    return [agent for _, agent in with_value] + [agent for value, agent in keyed if value is None]


def _urgency(agent: Agent, now: Nanos) -> tuple[int, int, str, str]:
    rank = 0 if is_trouble(agent, now) else _RANKS[agent.state]
    since = agent.since if agent.since is not None else agent.last_message_at or 0
    return rank, -(since // SECOND), agent.uid, agent.agent
