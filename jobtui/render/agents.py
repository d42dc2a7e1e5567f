"""Agents: the columns of their table, all that is known of one in words, and its JSON.

Cells are masked and safe for a terminal. Sorting is by the values of the record, never by what is shown.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from jobtui.analysis.paths import AgentLog, LogKind
from jobtui.model.clock import SECOND, Nanos, seconds_between
from jobtui.model.numbers import counted
from jobtui.model.ops import UNWANTED_ENDS, Agent, AgentState
from jobtui.model.tables import tables_of
from jobtui.render.columns import (
    MODES,
    Cells,
    Narrow,
    TableColumn,
    TimeLook,
    at_least,
    count_column,
    fixed,
    in_style,
    printed,
    short_host,
    text_cell,
    text_column,
    time_column,
)
from jobtui.render.json_output import Document, fields_of
from jobtui.render.text import Zone, age, date_time, show

RECENT_S = 3600.0
"""How long an agent that was lost or never came is marked."""

STATES: Mapping[str, tuple[str, str, int]] = tables_of("jobtui.render", "signs")["agents"]
"""Sign and style of a state, and its rank in the order of the table."""


def plain_style(agent: Agent, look: TimeLook) -> str:
    return "" if agent.state.is_live or is_trouble(agent, look.now) else "settled"


def is_trouble(agent: Agent, now: Nanos) -> bool:
    """Whether an agent was lost or did not connect lately. One whose end has no time counts too."""
    if agent.state not in UNWANTED_ENDS:
        return False
    return agent.since is None or seconds_between(agent.since, now) < RECENT_S


def state_style(agent: Agent, look: TimeLook) -> str:
    settled = agent.state in UNWANTED_ENDS and not is_trouble(agent, look.now)
    return "settled" if settled else STATES[agent.state][1]


def state_words(state: AgentState) -> str:
    return state.value.replace("_", " ").replace("never connected", "never came")


def held_words(agent: Agent) -> str:
    """The ops it holds, or why it holds none any more; not masked."""
    if agent.ops:
        return ", ".join(f"{op.name} {op.op}" for op in agent.ops)
    return agent.why


AGENT_COLUMNS: tuple[TableColumn[Agent, TimeLook], ...] = in_style(
    plain_style,
    TableColumn("state", "  STATE",
                lambda agent, look: f"{STATES[agent.state][0]} {state_words(agent.state)}", fixed(12), 100,
                sort=lambda agent: STATES[agent.state][2], style=state_style,
                narrow=(Narrow(60, fixed(1), lambda agent, look: STATES[agent.state][0], ""),)),
    time_column("for", "FOR", lambda agent: agent.since, fixed(6), 80),
    text_column("agent", "AGENT", lambda agent: agent.agent, fixed(5), 95),
    text_column("driver", "DRIVER", lambda agent: agent.driver.removesuffix("Driver"), Cells(6, 6, 10), 60),
    text_column("kind", "KIND", lambda agent: MODES.get(agent.kind, agent.kind), Cells(4, 4, 6), 50),
    text_column("user", "USER", lambda agent: agent.uid, fixed(8), 90),
    text_column("host", "HOST", lambda agent: agent.host, Cells(4, 12, 30), 55,
                narrow=(Narrow(160, Cells(4, 8, 16), text_cell(lambda one: short_host(one.host or ""))),)),
    text_column("container", "CONTAINER", lambda agent: agent.container, Cells(14, 14, 20), 25),
    text_column("holds", "HOLDS", held_words, Cells(30, 30, 10_000), 85,
                narrow=(Narrow(100, Cells(25, 25, 10_000)), Narrow(60, Cells(14, 20, 10_000)))),
    time_column("last", "LAST", lambda agent: agent.last_message_at, fixed(6), 45),
    count_column("messages", "MSGS", lambda agent: agent.messages, fixed(6), 35),
    count_column("restarts", "RESTARTS", lambda agent: agent.restarts or None, fixed(8), 30),
)  # fmt: skip
"""The target of `enter`, and all other facts, are shown below the table."""


def urgent_first(agents: Iterable[Agent], now: Nanos) -> list[Agent]:
    """Recent failures first, then live agents, then those that ended last."""

    def urgency(agent: Agent) -> tuple[int, int, str, str]:
        rank = 0 if is_trouble(agent, now) else STATES[agent.state][2]
        since = agent.since if agent.since is not None else agent.last_message_at or 0
        return rank, -(since // SECOND), agent.uid, agent.agent

    return sorted(agents, key=urgency)


def agent_table(found: Sequence[tuple[Agent, AgentLog]], now: Nanos, width: int | None) -> Iterator[str]:
    agents, logs = [agent for agent, _ in found], {id(agent): log for agent, log in found}
    log: TableColumn[Agent, TimeLook] = text_column(
        "log", "LOG", lambda one: logs[id(one)].note or logs[id(one)].described, at_least(12), 1
    )
    return printed((*AGENT_COLUMNS, *in_style(lambda *_: "settled", log)), agents, TimeLook(now), width)


def agent_facts(agent: Agent, log: AgentLog, look: TimeLook) -> Iterator[tuple[str, str, str]]:
    """What a person asks about an agent, the most urgent first: each with its name and its style."""
    state = state_words(agent.state)
    if agent.since is not None:
        lasts = f"for {age(max(0.0, seconds_between(agent.since, look.now)))}"
        state += f" {lasts}" if look.relative else f" since {_last_line_ago(agent.since, look)}"
    yield "state", f"{state}: {show(agent.why)}" if agent.why else state, state_style(agent, look)
    for op in agent.ops:
        since = f", sent {_last_line_ago(op.sent_at, look)}" if op.sent_at is not None else ""
        of_job = f" of {show(op.jid)}" if op.jid else ""
        yield "holds", f"{show(op.name)} {show(op.op)}{of_job}{since}", ""
    yield "agent", f"{show(agent.agent)}, {show(agent.kind)}, by {show(agent.driver)}", ""
    yield "user", show(agent.uid), ""
    if agent.host:
        yield "host", show(agent.host), ""
    if agent.container:
        yield "container", show(" ".join(filter(None, (agent.container, agent.container_id)))), ""
    parts = [counted(agent.messages, "message")]
    for words, at in (
        ("last", agent.last_message_at),
        ("connected", agent.connected_at),
        ("started", agent.started_at),
    ):
        if at is not None:
            parts.append(f"{words} {_last_line_ago(at, look)}")
    yield "heard", ", ".join(parts), ""
    if agent.restarts:
        yield "restarts", str(agent.restarts), ""
    yield from log_facts(log)


def log_facts(log: AgentLog) -> Iterator[tuple[str, str, str]]:
    if log.kind is not LogKind.REMOTE and log.described:
        yield "log", show(log.described), ""
    if log.kind is LogKind.CLUSTER and log.path and log.path != log.described:
        yield "on the cluster", show(log.path), ""
    if log.note:
        yield "note", show(log.note), "warning"
    if log.command:
        yield "to read it", show(log.command), "accent"


def _last_line_ago(at: Nanos, look: TimeLook) -> str:
    if look.relative:
        return f"{age(max(0.0, seconds_between(at, look.now)))} ago"
    return f"{date_time(at)}{Zone.mark()}"


def agent_record(agent: Agent, log: AgentLog) -> Document:
    return {
        **fields_of(agent, "agent driver kind uid host container state"),
        **fields_of(agent, "connected_at last_message_at messages"),
        "ops": [fields_of(op, "op name job=jid sent_at") for op in agent.ops],
        **fields_of(log, "log=described?"),
        **fields_of(agent, "since started_at container_id restarts why?"),
        **fields_of(log, "log_place=kind log_command=command? log_note=note?"),
    }
