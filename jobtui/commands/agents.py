"""`agents` and `nodes`: what agents hold, and their logs; why nodes are down, and their jobs."""

from collections.abc import Callable, Iterator

from jobtui.analysis.filter import AGENT_FIELDS
from jobtui.analysis.nodes import NODE_FIELDS, ListedNode, listed_nodes
from jobtui.analysis.paths import log_of
from jobtui.commands.context import Context
from jobtui.commands.printing import Report, first
from jobtui.commands.reader import ONCE_S, Reader, in_filtered
from jobtui.commands.streams import Exit, complain
from jobtui.model.ops import Agent
from jobtui.render import resources
from jobtui.render.agents import agent_record, agent_table, urgent_first
from jobtui.render.columns import TimeLook, printed
from jobtui.render.table import paint
from jobtui.render.text import show

CSV_COLUMNS = (
    "agent", "driver", "kind", "uid", "host", "container", "state", "connected_at", "last_message_at",
    "messages", "ops", "log",
)  # fmt: skip


def run(context: Context) -> Exit:
    return in_filtered(context, AGENT_FIELDS.parse, show_agents)


def run_nodes(context: Context) -> Exit:
    return in_filtered(context, NODE_FIELDS.parse, show_nodes)


async def show_agents(reader: Reader, passes: Callable[[Agent], bool]) -> Exit:
    await reader.read_logs(None)
    agents = reader.session.store.correlation.agents()
    picked = [agent for agent in agents if passes(agent) and _within(agent, reader)]
    shown = first(urgent_first(picked, reader.now), reader.context)
    found = [(agent, log_of(agent, reader.session.reach)) for agent in shown]
    return Report(
        lambda: {"agents": [agent_record(agent, log) for agent, log in found]},
        CSV_COLUMNS,
        lambda: (agent_record(agent, log) | {"ops": [op.op for op in agent.ops]} for agent, log in found),
        lambda width: () if reader.nothing_read else agent_table(found, reader.now, width),
    ).answer(reader, Exit.FINE)


def _within(agent: Agent, reader: Reader) -> bool:
    """Whether the agent may have lived within the chosen time, by its known times."""
    since, until = reader.context.since, reader.context.until
    times = [at for at in (agent.since, agent.last_message_at, agent.started_at) if at is not None]
    if not times:
        return True
    gone = since is not None and not agent.state.is_live and max(times) < since
    return not gone and not (until is not None and min(times) > until)


NODE_CSV_COLUMNS = (
    "node", "standing", "states", "partitions", "cpus", "cpus_used", "memory_mb", "memory_used_mb", "gres",
    "features", "reason", "by", "since", "jobs", "source",
)  # fmt: skip


async def show_nodes(reader: Reader, passes: Callable[[ListedNode], bool]) -> Exit:
    reader.add_job_sources()
    reader.session.ask_for_nodes(ONCE_S)
    await reader.read_jobs()
    store = reader.session.store
    clusters = store.clusters()
    picked = [one for one in listed_nodes(clusters, store.jobs.values()) if passes(one)]
    shown = first(resources.broken_first(picked), reader.context)

    def lines(width: int | None) -> Iterator[str]:
        for cluster in clusters:
            health = resources.controller_words(cluster.controller, reader.now)
            yield f"{paint(show(cluster.source), 'heading')}  {health}"
            yield from printed(resources.PARTITION_COLUMNS, cluster.partitions, None, width)
            yield ""
        if not reader.nothing_read:
            yield from printed(resources.NODE_COLUMNS, shown, TimeLook(reader.now), width)

    if not clusters and not reader.nothing_read:
        complain("no source here has nodes: name a cluster with --slurm")
    return Report(
        lambda: {
            "clusters": list(map(resources.cluster_record, clusters)),
            "nodes": list(map(resources.node_record, shown)),
        },
        NODE_CSV_COLUMNS,
        lambda: map(resources.node_record, shown),
        lines,
    ).answer(reader, Exit.FINE if clusters else Exit.NO_SOURCE)
