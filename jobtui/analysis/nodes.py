"""The nodes of clusters with the jobs on them, and the filter language for them.

`is:broken partition:gpu reason:disk job:1234 -state:idle`; a word is found in any field.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from jobtui.analysis.filter_syntax import TextFields
from jobtui.formats.slurm_nodes import expanded
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.slurm import Cluster, Node

MOST_JOBS = 20
"""Jobs on one node that are named; all are counted."""


class ListedNode(NamedTuple):
    """A node of a source, when that was asked, and the jobs that run on it."""

    node: Node
    source: str
    at: Nanos
    jobs: tuple[JobId, ...] = ()
    job_count: int = 0

    @property
    def standing(self) -> str:
        """Its state in one word: trouble comes before how full it is."""
        node = self.node
        if node.is_down:
            return "down"
        if node.is_drained:
            return "draining" if node.cpus_used else "drained"
        return "full" if node.cpus_used >= node.cpus else "mixed" if node.cpus_used else "idle"


STANDINGS = ("down", "drained", "draining", "full", "mixed", "idle")
"""The states of nodes, the most urgent first."""


def listed_nodes(clusters: Iterable[Cluster], jobs: Iterable[Job]) -> list[ListedNode]:
    on: defaultdict[tuple[str, str], list[JobId]] = defaultdict(list)
    for job in jobs:
        if job.status is JobStatus.RUNNING and job.host:
            for name in expanded(job.host):
                on[job.source, name].append(job.id)
    return [
        ListedNode(node, cluster.source, cluster.at, tuple(here[:MOST_JOBS]), len(here))
        for cluster in clusters
        for node in cluster.nodes
        for here in (on.get((cluster.source, node.name), []),)
    ]


NODE_FIELDS: TextFields[ListedNode] = TextFields("nodes", {
    "state": lambda one: (one.standing, *one.node.states.lower().split()),
    "is": lambda one: ("broken",) if one.node.needs_person else (),
    "node": lambda one: (one.node.name,),
    "partition": lambda one: tuple(one.node.partitions.split(",")),
    "reason": lambda one: (one.node.reason,) if one.node.reason else (),
    "feature": lambda one: tuple(filter(None, one.node.features.split(","))),
    "gres": lambda one: (one.node.gres,) if one.node.gres else (),
    "job": lambda one: one.jobs,
    "cluster": lambda one: (one.source,),
})  # fmt: skip
