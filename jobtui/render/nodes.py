"""Nodes of clusters: the columns of their table, what is known of one in words, and their JSON."""

from collections.abc import Iterable, Iterator

from jobtui.analysis.nodes import STANDINGS, ListedNode
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.numbers import counted
from jobtui.model.slurm import Cluster, Controller, Partition
from jobtui.render.columns import (
    KEPT,
    Cells,
    TableColumn,
    TimeLook,
    at_least,
    count_column,
    fixed,
    text_column,
    time_column,
)
from jobtui.render.json_output import Document, fields_of
from jobtui.render.styles import signs_of
from jobtui.render.text import NONE, Zone, age, date_time, duration, show

SIGNS = signs_of("nodes")
"""Sign and style of how a node stands."""


def _memory(megabytes: int) -> str:
    return f"{megabytes / 1024:.0f}G" if megabytes >= 1024 else f"{megabytes}M"


def _style(one: ListedNode, look: TimeLook) -> str:
    return SIGNS[one.standing][1]


NODE_COLUMNS: tuple[TableColumn[ListedNode, TimeLook], ...] = (
    TableColumn("state", "  STATE", lambda one, look: f"{SIGNS[one.standing][0]} {one.standing}", fixed(10),
                100, sort=lambda one: STANDINGS.index(one.standing), style=_style),
    text_column("node", "NODE", lambda one: one.node.name, Cells(6, 8, 24), 95),
    time_column("for", "FOR", lambda one: one.node.since, fixed(6), 70),
    count_column("jobs", "JOBS", lambda one: one.job_count or None, fixed(5), 80),
    TableColumn("cpus", "CPUS", lambda one, look: f"{one.node.cpus_used}/{one.node.cpus}", Cells(7, 7, 9), 75,
                align="right", sort=lambda one: -one.node.cpus_used),
    TableColumn("memory", "MEM",
                lambda one, look: f"{_memory(one.node.memory_used_mb)}/{_memory(one.node.memory_mb)}",
                Cells(9, 9, 13), 40, "right", sort=lambda one: -one.node.memory_used_mb),
    text_column("partitions", "PARTITIONS", lambda one: one.node.partitions, Cells(8, 12, 24), 60),
    text_column("gres", "GRES", lambda one: one.node.gres, Cells(6, 8, 20), 35),
    text_column("reason", "REASON", lambda one: one.node.reason, Cells(10, 20, 10_000), 90, style=_style),
)  # fmt: skip


def broken_first(nodes: Iterable[ListedNode]) -> list[ListedNode]:
    return sorted(
        nodes, key=lambda one: (not one.node.needs_person, one.source, len(one.node.name), one.node.name)
    )


PARTITION_COLUMNS: tuple[TableColumn[Partition, None], ...] = (
    TableColumn("name", "PARTITION", lambda one, look: show(one.name), at_least(4), KEPT),
    TableColumn("state", "STATE", lambda one, look: show(one.state.lower()), at_least(4), KEPT,
                style=lambda one, look: "" if one.state == "UP" else "warning"),
    TableColumn("nodes", "NODES", lambda one, look: str(one.nodes), at_least(4), KEPT, "right"),
    TableColumn("cpus", "CPUS", lambda one, look: str(one.cpus), at_least(4), KEPT, "right"),
    TableColumn("limit", "LIMIT", lambda one, look: duration(one.limit_s), at_least(4), 75, "right"),
    TableColumn("most", "MOST NODES",
                lambda one, look: NONE if one.most_nodes is None else str(one.most_nodes),
                at_least(4), 70, "right"),
)  # fmt: skip


def controller_words(controller: Controller | None, now: Nanos) -> str:
    if controller is None:
        return ""
    parts = []
    if controller.cycle_ms is not None:
        parts.append(f"last round {controller.cycle_ms:.1f} ms")
    if controller.backfill_ms is not None:
        at = controller.backfill_at
        ago = f" {age(max(0.0, seconds_between(at, now)))} ago" if at is not None else ""
        parts.append(f"backfill {controller.backfill_ms:.1f} ms{ago}")
    if controller.queued is not None:
        parts.append(f"{counted(controller.queued, 'job')} looked at")
    if controller.dbd_backlog is not None:
        parts.append(f"{counted(controller.dbd_backlog, 'message')} waiting for slurmdbd")
    return ", ".join(parts)


def node_facts(one: ListedNode, look: TimeLook) -> Iterator[tuple[str, str]]:
    """What a person asks about a node, the most urgent first; safe to show."""
    node = one.node
    since = f" since {date_time(node.since)}{Zone.mark()}" if node.since is not None else ""
    by = f", by {show(node.by)}" if node.by else ""
    if node.reason:
        yield "reason", f"{show(node.reason)}{since}{by}"
    yield "state", show(node.states.lower())
    if one.jobs:
        left = f", and {one.job_count - len(one.jobs)} more" if one.job_count > len(one.jobs) else ""
        yield "jobs", f"{show(', '.join(one.jobs))}{left}"
    yield "partitions", show(node.partitions) or NONE
    memory = f"{_memory(node.memory_used_mb)} of {_memory(node.memory_mb)} of memory"
    yield "used", f"{node.cpus_used} of {node.cpus} CPUs, {memory}"
    if node.gres:
        yield "GRES", show(f"{node.gres}; used {node.gres_used}")
    if node.features:
        yield "features", show(node.features)
    yield "asked", f"{age(max(0.0, seconds_between(one.at, look.now)))} ago, {show(one.source)}"


def node_record(one: ListedNode) -> Document:
    node = one.node
    return {
        **fields_of(one, "node=node.name standing", masks=False),
        "states": node.states.split(),
        "partitions": [name for name in node.partitions.split(",") if name],
        **fields_of(node, "cpus cpus_used memory_mb memory_used_mb features gres gres_used reason by since"),
        **fields_of(one, "jobs job_count source", masks=False),
    }


def cluster_record(cluster: Cluster) -> Document:
    controller = cluster.controller
    names = "dbd_backlog agent_backlog threads cycle_ms backfill_ms backfill_at queued"
    return {
        **fields_of(cluster, "source at"),
        "controller": controller and fields_of(controller, names),
        "partitions": [
            fields_of(one, "name state nodes cpus most_nodes limit_s") for one in cluster.partitions
        ],
    }
