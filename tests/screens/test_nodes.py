"""The nodes on their screen: order, filter, what is said of one; clusters are asked only meanwhile."""

from jobtui.screens.nodes import NODES_EVERY_S, NodesScreen
from jobtui.widgets.record_list import RecordTable
from tests.builders import a_cluster
from tests.screens.scene import Scene, read
from tests.waiting import wait_until
from tests.widgets.widget_app import press, text

NAMED = ("colon", *"nodes", "enter")


def names(scene: Scene) -> list[str]:
    return [one.node.name for one in scene.app.screen.query_one(RecordTable).records]


async def test_what_a_person_must_look_at_comes_first() -> None:
    async with read(Scene(clusters=(a_cluster(),))) as (scene, pilot):
        await press(pilot, *NAMED, until=NodesScreen)
        await wait_until(lambda: names(scene) == ["v1", "v2", "v3", "v4"], pilot)
        assert "2 down or drained" in text(scene.app)
        assert "7 messages for slurmdbd waiting" in text(scene.app)
        assert "disk: replace sda" in text(scene.app)


async def test_a_filter_narrows_them() -> None:
    async with read(Scene(clusters=(a_cluster(),))) as (scene, pilot):
        await press(pilot, *NAMED, until=NodesScreen)
        await pilot.press("slash", *"gres:gpu -is:broken", "enter")
        await wait_until(lambda: names(scene) == ["v3", "v4"], pilot)
        await pilot.press("slash", *" state:mixed", "enter")
        await wait_until(lambda: names(scene) == ["v4"], pilot)


async def test_one_goes_to_the_job_that_runs_there() -> None:
    async with read(Scene(clusters=(a_cluster(),))) as (scene, pilot):
        await press(pilot, *NAMED, until=NodesScreen)
        await wait_until(lambda: bool(names(scene)), pilot)
        await pilot.press("G")
        await wait_until(lambda: "8 of 32 CPUs" in text(scene.app), pilot)
        await press(pilot, "enter", until="Doubler")


async def test_clusters_are_asked_while_it_is_open_only() -> None:
    asked: list[float | None] = []
    async with read(Scene()) as (scene, pilot):
        scene.app._shared.ask_for_nodes = asked.append
        await press(pilot, *NAMED, until=NodesScreen)
        await wait_until(lambda: asked[-1:] == [NODES_EVERY_S], pilot)
        assert "no cluster has told of its nodes" in text(scene.app)
        await pilot.press("escape")
        await wait_until(lambda: asked[-1:] == [None], pilot)
