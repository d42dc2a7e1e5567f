"""The nodes of clusters: why they are down or drained, what runs on them; asked for while this is open."""

from collections.abc import Iterator

from textual import on

from jobtui.actions import Place
from jobtui.analysis.nodes import (
    NODE_FIELDS,
    ListedNode,
    NodeTest,
    listed_nodes,
    node_values,
    parse_node_filter,
)
from jobtui.model.ids import JobId
from jobtui.model.slurm import Cluster
from jobtui.render.nodes import NODE_COLUMNS, NodeLook, controller_words, node_facts, sort_nodes
from jobtui.render.text import Zone, show
from jobtui.screens.base import TableScreen, bindings_at
from jobtui.screens.choices import Goal, Guide
from jobtui.screens.command_table import complete_fields
from jobtui.screens.export import jobtui_command
from jobtui.screens.shared import Shared, Taken
from jobtui.widgets.filter_bar import Completion
from jobtui.widgets.record_list import RecordTable
from jobtui.widgets.text_pane import Paragraph, TextPane

NODES_EVERY_S = 30.0
"""How often clusters are asked for their nodes while this is open, if they answer quickly."""
NAME_CELLS = 12


class NodesScreen(TableScreen):
    """All nodes, and what is known of the one under the cursor."""

    PLACE = Place.NODES
    BINDINGS = bindings_at(Place.NODES)
    COLUMNS = NODE_COLUMNS
    PLACEHOLDER = "words, or: is:broken state:drained partition:gpu reason:disk job:1234"

    DEFAULT_CSS = """
    NodesScreen TextPane { height: 9; max-height: 35%; }
    NodesScreen.-low TextPane, NodesScreen.-flat TextPane { display: none; }
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._passes: NodeTest = parse_node_filter("")
        self._clusters: tuple[Cluster, ...] = ()
        self._listed: list[ListedNode] = []
        self._main = self._table = RecordTable[ListedNode](
            NODE_COLUMNS, self.look, lambda one: (one.source, one.node.name)
        )
        self._about = self._text = TextPane()

    def on_screen_resume(self) -> None:
        self.shared.ask_for_nodes(NODES_EVERY_S)

    def on_screen_suspend(self) -> None:
        self.shared.ask_for_nodes(None)

    def on_unmount(self) -> None:
        self.shared.ask_for_nodes(None)

    def tick(self) -> None:
        super().tick()
        if self.shared.store.clusters() != self._clusters:
            self.show_all()

    def show_all(self) -> None:
        store = self.shared.store
        self._clusters = store.clusters()
        self._listed = listed_nodes(self._clusters, store.jobs.values())
        passing = [one for one in self._listed if self._passes(one)]
        self.show_records(self._table, sort_nodes(passing, self._sorted_by, reverse=self._reverse))
        self._show_about()

    def look(self) -> NodeLook:
        return NodeLook(self.shared.now(), relative=not self.shared.absolute, local=Zone.is_local)

    @on(RecordTable.Highlighted)
    def _show_about(self) -> None:
        self._text.set_text(self._paragraphs(self._table.record))

    def _paragraphs(self, one: ListedNode | None) -> Iterator[Paragraph]:
        if one is None:
            silence = "no cluster has told of its nodes yet; name one with --slurm"
            yield Paragraph("no node passes the filter" if self._listed else silence, "dim")
            return
        cluster = next(known for known in self._clusters if known.source == one.source)
        health = ("scheduler", controller_words(cluster.controller, self.shared.now()))
        for name, text in (*node_facts(one, self.look()), health):
            yield Paragraph(f"{name:<{NAME_CELLS}}{text}", "", NAME_CELLS)

    def words(self) -> Iterator[str]:
        shown, total = self._table.count, len(self._listed)
        yield f"{shown:,} of {total:,} nodes" if self._filter_text else f"{total:,} nodes"
        broken = sum(one.node.needs_person for one in self._listed)
        yield f"{broken:,} down or drained" if broken else ""

    @on(RecordTable.Opened)
    def action_open(self) -> None:
        one = self._table.record
        if one is None or not one.jobs:
            self.notify("no job runs there", timeout=2)
            return
        goals = tuple(Goal(JobId(job), show(job), job=JobId(job)) for job in one.jobs)
        Guide(self.app, self.shared).choose(one.node.name, goals, is_clear=len(goals) == 1)

    def action_copy(self) -> None:
        if (one := self._table.record) is not None:
            self.copy(show(one.node.name))

    async def taken(self) -> Taken | None:
        block = "\n".join(part.text for part in self._paragraphs(self._table.record))
        words = (self._filter_text,) if self._filter_text else ()
        return Taken(block, jobtui_command(self.shared, "nodes", about=words))

    def complete(self, text: str, cursor: int) -> Completion:
        return complete_fields(text, cursor, NODE_FIELDS, self._values)

    def _values(self, field: str) -> set[str]:
        return {value for name, value in node_values(self._listed) if name == field}

    def let_pass(self, text: str) -> None:
        self._passes = parse_node_filter(text)
