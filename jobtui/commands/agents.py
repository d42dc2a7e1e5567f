"""`agents [FILTER]`: the agents that the logs speak of, what each holds, and where its log is."""

from jobtui.analysis.filter_fields import AgentTest, parse_agent_filter
from jobtui.analysis.filter_syntax import FilterError
from jobtui.analysis.paths import AgentLog, log_of
from jobtui.commands.context import Context
from jobtui.commands.printing import Report, answer, first
from jobtui.commands.reader import Reader, in_session
from jobtui.commands.streams import Exit, complain, marked
from jobtui.model.ops import Agent
from jobtui.render.agents import agent_record, agent_table, sort_agents

CSV_COLUMNS = (
    "agent", "driver", "kind", "uid", "host", "container", "state", "connected_at", "last_message_at",
    "messages", "ops", "log",
)  # fmt: skip


def run(context: Context) -> Exit:
    text = " ".join(context.words)
    try:
        passes = parse_agent_filter(text)
    except FilterError as error:
        complain(f"filter: {error}: {marked(text, error.start, error.end)}")
        return Exit.USAGE
    return in_session(context, lambda reader: show_agents(reader, passes))


async def show_agents(reader: Reader, passes: AgentTest) -> Exit:
    await reader.read_agents()
    agents = reader.session.store.correlation.agents()
    picked = [agent for agent in agents if passes(agent) and _within(agent, reader)]
    shown = first(sort_agents(picked, reader.now, None), reader.context)
    found = [(agent, where_log_is(reader, agent)) for agent in shown]
    report = Report(
        "agents",
        lambda: {"agents": [agent_record(agent, log) for agent, log in found]},
        CSV_COLUMNS,
        lambda: (agent_record(agent, log) | {"ops": [op.op for op in agent.ops]} for agent, log in found),
        lambda width, colour: () if reader.nothing_read else agent_table(found, reader.now, width, colour),
    )
    return answer(report, reader, Exit.FINE)


def _within(agent: Agent, reader: Reader) -> bool:
    """Whether something was heard of the agent in the time that was asked for; without a time it may be."""
    since, until = reader.context.since, reader.context.until
    times = [at for at in (agent.since, agent.last_message_at, agent.started_at) if at is not None]
    if not times:
        return True
    gone = since is not None and not agent.state.is_live and max(times) < since
    return not gone and not (until is not None and min(times) > until)


def where_log_is(reader: Reader, agent: Agent) -> AgentLog:
    return log_of(agent, reader.context.config.hosts, reader.roots)
