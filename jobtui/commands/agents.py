"""`agents [FILTER]`: the agents that the logs speak of, what each holds, and where its log is."""

from collections.abc import Iterator, Mapping, Sequence

from jobtui.analysis.agent_filter import AgentTest, parse_agent_filter
from jobtui.analysis.agent_logs import AgentLog, log_of
from jobtui.analysis.filter_syntax import FilterError
from jobtui.commands.context import Context, OutputFormat
from jobtui.commands.exits import Exit
from jobtui.commands.printing import print_csv, print_document, print_lines
from jobtui.commands.reading import Reader, in_session
from jobtui.commands.streams import complain, marked
from jobtui.model.clock import Nanos
from jobtui.model.ops import Agent
from jobtui.render.agent_columns import AGENT_COLUMNS, AgentColumn, AgentLook, sort_agents
from jobtui.render.agent_output import agent_record
from jobtui.render.table import Cell, Head, table_lines
from jobtui.render.text import NONE, show

CSV_COLUMNS = (
    "agent", "driver", "kind", "uid", "host", "container", "state", "connected_at", "last_message_at",
    "messages", "ops", "log",
)  # fmt: skip
KEPT = frozenset({"state", "agent", "user"})
HIGHEST_PRIORITY = 100


def run(context: Context) -> Exit:
    """Print the agents that pass the filter; USAGE for a filter that makes no sense."""
    text = " ".join(context.words)
    try:
        passes = parse_agent_filter(text)
    except FilterError as error:
        complain(f"filter: {error}: {marked(text, error.start, error.end)}")
        return Exit.USAGE
    return in_session(context, lambda reader: show_agents(reader, passes))


async def show_agents(reader: Reader, passes: AgentTest) -> Exit:
    """Read the logs and print the agents they speak of."""
    await reader.read_agents()
    agents = reader.session.store.correlation.agents()
    picked = [agent for agent in agents if passes(agent) and _within(agent, reader)]
    _print(reader, sort_agents(picked, reader.now, None))
    return reader.settle(Exit.FINE)


def _within(agent: Agent, reader: Reader) -> bool:
    """Whether something was heard of the agent in the time that was asked for; without a time it may be."""
    since, until = reader.context.since, reader.context.until
    times = [at for at in (agent.since, agent.last_message_at, agent.started_at) if at is not None]
    if not times:
        return True
    gone = since is not None and not agent.state.is_live and max(times) < since
    return not gone and not (until is not None and min(times) > until)


def _print(reader: Reader, agents: Sequence[Agent]) -> None:
    found = [(agent, where_log_is(reader, agent)) for agent in agents]
    match reader.context.format:
        case OutputFormat.JSON:
            body = {"agents": [agent_record(agent, log) for agent, log in found]}
            print_document("agents", body, reader)
        case OutputFormat.CSV:
            print_csv(CSV_COLUMNS, (_flat_record(agent, log) for agent, log in found))
        case _ if not reader.nothing_read:
            print_lines(_table(found, reader.now, reader.context.width, reader.context.colour))


def _flat_record(agent: Agent, log: AgentLog) -> Mapping[str, object]:
    """An agent as CSV has it: of its ops only the ids."""
    return agent_record(agent, log) | {"ops": [op.op for op in agent.ops]}


def where_log_is(reader: Reader, agent: Agent) -> AgentLog:
    """Where the log of an agent is, by what is configured."""
    return log_of(agent, reader.context.config.hosts, reader.roots)


def _table(
    found: Sequence[tuple[Agent, AgentLog]], now: Nanos, width: int | None, colour: bool
) -> Iterator[str]:
    """The lines of the table. Columns in which no agent has a value are left out."""
    look = AgentLook(now)
    rows = [
        [
            *(Cell(column.cell(agent, look), column.style(agent, look)) for column in AGENT_COLUMNS),
            Cell(show(log.described) or NONE, "settled"),
        ]
        for agent, log in found
    ]
    heads = [*map(_head, AGENT_COLUMNS), Head("LOG", "left", 12, HIGHEST_PRIORITY)]
    keys = [*(column.key for column in AGENT_COLUMNS), "log"]
    has_values = [any(row[at].text not in ("", NONE) for row in rows) for at in range(len(keys))]
    used = [at for at, key in enumerate(keys) if key in KEPT or has_values[at]]
    return table_lines([heads[at] for at in used], [[row[at] for at in used] for row in rows], width, colour)


def _head(column: AgentColumn) -> Head:
    drop = 0 if column.key in KEPT else HIGHEST_PRIORITY - column.priority + 1
    return Head(column.header, column.align, column.cells.least, drop)
