"""Nodes and partitions of clusters, allocations and sites of a Balsam: columns, facts in words, JSON."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from jobtui.analysis.nodes import STANDINGS, ListedNode
from jobtui.model.changes import ENDED_ALLOCATIONS, RUNNING, Allocation, Site
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.numbers import and_more, counted
from jobtui.model.slurm import Cluster, Controller, Partition
from jobtui.render.columns import (
    KEPT,
    Cells,
    Narrow,
    TableColumn,
    TimeLook,
    at_least,
    count_column,
    fixed,
    in_style,
    text_column,
    time_column,
)
from jobtui.render.json_output import Document, fields_of
from jobtui.render.spans import Paragraph
from jobtui.render.styles import signs_of
from jobtui.render.text import NONE, SEPARATOR, Zone, age, date_time, duration, show

SIGNS = signs_of("nodes")
"""Sign and style of the state of a node."""


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
        yield "jobs", show(", ".join(one.jobs)) + and_more(one.job_count, len(one.jobs))
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
        **fields_of(one, "node=node.name standing"),
        "states": node.states.split(),
        "partitions": [name for name in node.partitions.split(",") if name],
        **fields_of(node, "cpus cpus_used memory_mb memory_used_mb features gres gres_used reason by since"),
        **fields_of(one, "jobs job_count source"),
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


NOTED = frozenset({"submit_failed", "pending_deletion"})
"""States of which the scheduler's note says why."""
GLYPHS = {RUNNING: "●", "queued": "○", "pending_submission": "○", "finished": "✓", "submit_failed": "✗"}
ORDER = (RUNNING, "pending_deletion", "queued", "pending_submission")
"""Live ones first, in this order; ended ones last, newest first."""
_RANKS = {state: rank for rank, state in enumerate(ORDER)}


class ServerLook(NamedTuple):
    """What is known beside the records: the time, and by the name of the source: `labels`, `clocks`, sites.

    `labels` tell several servers apart. `clocks` are the times of the servers' own clocks, by which their
    words are judged; `now` is of others.
    """

    now: Nanos
    labels: Mapping[str, str] = {}
    clocks: Mapping[str, Nanos] = {}
    names: Mapping[tuple[str, int], str] = {}
    """Those of sites, by source and number."""

    def label(self, one: Site | Allocation) -> str:
        return self.labels.get(one.source, "")

    def now_of(self, one: Site | Allocation) -> Nanos:
        return self.clocks.get(one.source, self.now)


def site_lines(sites: Iterable[Site], look: ServerLook) -> Iterator[Paragraph]:
    """A line for each site; what a person must look at stands out."""
    yield Paragraph("SITES", "heading")
    known = sorted(sites, key=lambda site: (look.label(site), site.name))
    for site in known:
        now, label = look.now_of(site), look.label(site)
        is_down = site.is_down(now)
        seen = NONE if site.seen_at is None else age(max(0.0, seconds_between(site.seen_at, now)))
        words = [
            f"{'!' if is_down else '●'} {show(site.name)}{f'@{label}' if label else ''}",
            f"agent {f'silent for {seen}' if is_down else f'heard from {seen} ago'}",
            f"{counted(site.queued, 'job')} in its scheduler" if site.queued else "",
            show(site.path),
        ]
        yield Paragraph(SEPARATOR.join(filter(None, words)), "warning" if is_down else "", whole=False)
    if not known:
        yield Paragraph("none is known yet" if look.labels else "no site is read; give --balsam", "dim")


def live_first(allocations: Iterable[Allocation], look: ServerLook) -> list[Allocation]:
    return sorted(allocations, key=lambda one: (look.label(one), _RANKS.get(one.state, len(ORDER)), -one.id))


def _allocation_style(one: Allocation, look: ServerLook) -> str:
    if one.is_stale(look.now_of(one)):
        return "warning"
    return "error" if one.state == "submit_failed" else "settled" if one.state in ENDED_ALLOCATIONS else ""


def _state(one: Allocation, look: ServerLook) -> str:
    mark = "!" if one.is_stale(look.now_of(one)) else GLYPHS.get(one.state, "?")
    return f"{mark} {show(one.state)}"


def _taken(one: Allocation, look: ServerLook) -> str:
    start = one.start_at if one.start_at is not None else one.submitted_at
    if start is None or (one.state in ENDED_ALLOCATIONS and one.end_at is None):
        return NONE
    seconds = max(0.0, seconds_between(start, one.end_at or look.now_of(one)))
    return "~" * one.start_estimated + duration(float(int(seconds)))


def _launcher(one: Allocation, look: ServerLook) -> str:
    seen = one.heartbeat_at
    if one.state != RUNNING or seen is None:
        return ""
    return age(max(0.0, seconds_between(seen, look.now_of(one))))


ALLOCATION_COLUMNS: tuple[TableColumn[Allocation, ServerLook], ...] = in_style(
    _allocation_style,
    TableColumn("state", "  STATE", _state, fixed(20), 100, narrow=(Narrow(60, fixed(10)),)),
    TableColumn("id", "ID", lambda one, look: f"{one.id}", fixed(6), 95, "right"),
    TableColumn("server", "SERVER", lambda one, look: look.label(one), Cells(6, 14, 24), 71),
    TableColumn("scheduler", "SCHEDULER", lambda one, look: show(one.scheduler_id or NONE), fixed(10),
                60, "right"),
    TableColumn("nodes", "NODES", lambda one, look: f"{one.nodes}", fixed(6), 75, "right"),
    TableColumn("for", "FOR", _taken, fixed(8), 72, "right"),
    TableColumn("of", "OF", lambda one, look: duration(one.wall_time_s), fixed(8), 50, "right"),
    TableColumn("launcher", "LAUNCHER", _launcher, fixed(10), 55, "right"),
    TableColumn("site", "SITE",
                lambda one, look: show(look.names.get((one.source, one.site_id), f"{one.site_id}")),
                Cells(8, 16, 24), 45),
    text_column("queue", "QUEUE", lambda one: one.queue, Cells(8, 12, 16), 40),
    text_column("note", "NOTE", lambda one: " ".join((one.note or "").split()) if one.state in NOTED else "",
                Cells(12, 40, 10_000), 70),
    text_column("tags", "TAGS", lambda one: " ".join(f"{name}:{value}" for name, value in one.tags),
                Cells(12, 24, 60), 20),
)  # fmt: skip
