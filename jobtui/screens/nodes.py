"""The nodes of clusters: why they are down or drained, what runs on them; and the allocations of sites."""

from collections.abc import Iterator
from operator import attrgetter

from textual import on
from textual.events import ScreenSuspend, Unmount
from textual.widget import Widget

from jobtui.actions import ScreenName
from jobtui.analysis.nodes import NODE_FIELDS, ListedNode, listed_nodes
from jobtui.backends.registry import BALSAM
from jobtui.model.changes import Allocation
from jobtui.model.ids import JobId, labels_of
from jobtui.model.slurm import Cluster
from jobtui.render import resources
from jobtui.render.spans import Paragraph
from jobtui.render.text import show
from jobtui.screens.base import HeadedScreen, TableScreen
from jobtui.screens.choices import Goal, Guide
from jobtui.screens.shared import Shared
from jobtui.widgets.record_list import RecordTable
from jobtui.widgets.text_pane import TextPane

NODES_EVERY_S = 30.0
"""How often clusters are asked for their nodes while this is open, if they answer quickly."""
NAME_CELLS = 12


class NodesScreen(TableScreen[ListedNode]):
    """All nodes, which are asked for while it is open, and what is known of the one under the cursor."""

    NAME = ScreenName.NODES
    WHAT = "node"
    COLUMNS = resources.NODE_COLUMNS
    KEY = attrgetter("source", "node.name")
    FIELDS = NODE_FIELDS
    PLACEHOLDER = "words, or: is:broken state:drained partition:gpu reason:disk job:1234"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._clusters: tuple[Cluster, ...] = ()
        self._listed: list[ListedNode] = []
        self._about = TextPane()

    def on_screen_resume(self) -> None:
        self.shared.ask_for_nodes(NODES_EVERY_S)

    @on(ScreenSuspend)
    @on(Unmount)
    def _ask_no_more(self) -> None:
        self.shared.ask_for_nodes(None)

    def show_all(self) -> None:
        store = self.shared.store
        self._clusters = store.clusters()
        self._listed = resources.broken_first(listed_nodes(self._clusters, store.jobs.values()))
        super().show_all()

    def records(self) -> list[ListedNode]:
        return self._listed

    def paragraphs(self) -> Iterator[Paragraph]:
        if (one := self._table.record) is not None:
            cluster = next(known for known in self._clusters if known.source == one.source)
            health = ("scheduler", resources.controller_words(cluster.controller, self.shared.now()))
            for name, text in (*resources.node_facts(one, self.look()), health):
                yield Paragraph(f"{name:<{NAME_CELLS}}{text}", "", NAME_CELLS)

    def silence(self) -> tuple[str, ...]:
        parts = [part for source in self.shared.store.sources() for part in source.failing]
        why = [show(part.words) for part in parts if part.name == "nodes"]
        return (*why,) or ("no cluster has reported its nodes yet; name one with --slurm",)

    def words(self) -> Iterator[str]:
        broken = sum(one.node.needs_person for one in self._listed)
        yield f"{broken:,} down or drained" if broken else ""

    def action_open(self) -> None:
        one = self._table.record
        if one is None or not one.jobs:
            self.notify("no job runs there", timeout=2)
            return
        goals = tuple(Goal(JobId(job), show(job), job=JobId(job)) for job in one.jobs)
        Guide(self.app, self.shared).choose(one.node.name, goals, is_clear=len(goals) == 1)

    def copied(self) -> str:
        return show(self._table.record.node.name) if self._table.record is not None else ""


class AllocationsScreen(HeadedScreen):
    """The sites, and a table of allocations; stale ones stand out."""

    NAME = ScreenName.ALLOCATIONS

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._sites = TextPane()
        self._main = self._table = RecordTable[Allocation](
            resources.ALLOCATION_COLUMNS, self.look, lambda one: (one.source, one.id)
        )
        self._table.empty = ("No allocation is known.",)

    def body(self) -> Iterator[Widget]:
        yield self._sites
        yield from super().body()

    def look(self) -> resources.ServerLook:
        store, now = self.shared.store, self.shared.now()
        sources = store.sources()
        return resources.ServerLook(
            now,
            labels_of([source.name for source in sources if BALSAM.made(source)]),
            {source.name: source.now_at(now) for source in sources},
            {(site.source, site.id): site.name for site in store.sites()},
        )

    def show_all(self) -> None:
        super().show_all()
        store, look = self.shared.store, self.look()
        self._sites.set_text(resources.site_lines(store.sites(), look))
        self._sites.styles.height = 1 + max(1, len(store.sites()))
        self._table.set_records(resources.live_first(store.allocations(), look))

    def paragraphs(self) -> Iterator[Paragraph]:
        yield from map(Paragraph, (self._sites.text, *self._table.texts()))
