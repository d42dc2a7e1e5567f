"""Sites as lines, allocations as rows."""

import msgspec
import pytest

from jobtui.model.changes import Allocation, Site
from jobtui.render.allocations import ALLOCATION_COLUMNS, ServerLook, in_order, site_lines
from jobtui.render.columns import blank_columns, cells_of
from jobtui.render.text import NONE
from tests.builders import ago
from tests.conftest import NOW

SITE = Site(id=1, source="b", name="theta", path="/projects/x", seen_at=ago(30), queued=3)
RUNNING = Allocation(
    id=4, source="b", site_id=1, state="running", nodes=64, scheduler_id="4711", queue="prod", mode="mpi",
    wall_time_s=3600.0, start_at=ago(600), start_estimated=True, launchers=1, heartbeat_at=ago(20),
    tags=(("experiment", "a"),),
)  # fmt: skip
OVER = Allocation(id=3, source="b", site_id=1, state="finished", nodes=8, start_at=ago(900), end_at=ago(300))
REFUSED = Allocation(id=5, source="b", site_id=9, state="submit_failed", nodes=8, note="no budget")


LOOK = ServerLook(NOW, {"b": ""}, {}, {("b", 1): "theta"})


def cells(one: Allocation, look: ServerLook = LOOK) -> dict[str, tuple[str, str]]:
    row = cells_of(ALLOCATION_COLUMNS, one, look)
    return {column.key: (cell.text, cell.style) for column, cell in zip(ALLOCATION_COLUMNS, row, strict=True)}


def test_what_lasts_comes_first() -> None:
    assert in_order((OVER, REFUSED, RUNNING), LOOK) == [RUNNING, REFUSED, OVER]
    texts = [text for text, _ in cells(RUNNING).values() if text not in ("", NONE)]
    assert texts == ["● running", "4", "4711", "64", "~10m", "1h", "20s", "theta", "prod", "experiment:a"]
    assert cells(REFUSED)["note"] == ("no budget", "error")
    assert cells(REFUSED)["site"][0] == "9"


def changed(one: Allocation, **fields: object) -> Allocation:
    return msgspec.structs.replace(one, **fields)


@pytest.mark.parametrize(
    ("one", "is_stale"),
    [
        (changed(RUNNING, heartbeat_at=ago(301)), True),
        (changed(RUNNING, launchers=0, heartbeat_at=None), True),
        (RUNNING, False),
        (changed(RUNNING, state="finished", heartbeat_at=ago(9_000)), False),
        (changed(RUNNING, launchers=0, heartbeat_at=None, start_at=ago(60)), False),
        (changed(RUNNING, launchers=0, heartbeat_at=None, start_at=None), False),
    ],
)
def test_a_stale_launcher_stands_out(one: Allocation, is_stale: bool) -> None:
    assert one.is_stale(NOW) == is_stale
    state, style = cells(one)["state"]
    assert (state[0] == "!", style == "warning") == (is_stale, is_stale)


def test_a_site_that_fell_silent_stands_out() -> None:
    words = "● theta   agent heard of 30s ago   3 jobs in its scheduler   /projects/x"
    assert [*site_lines([SITE], LOOK)][1][:2] == (words, "")
    text, style = [*site_lines([msgspec.structs.replace(SITE, seen_at=ago(4_000))], LOOK)][1][:2]
    assert text.startswith("! theta   agent last heard of 1h06m ago")
    assert style == "warning"


def test_several_servers_are_told_apart() -> None:
    look = ServerLook(NOW, {"b": "here", "c": "there"})
    there = msgspec.structs.replace(RUNNING, source="c", nodes=7)
    sites = [*site_lines([SITE, msgspec.structs.replace(SITE, source="c")], look)]
    assert [site.text.split()[1] for site in sites[1:]] == ["theta@here", "theta@there"]
    assert in_order((there, OVER, RUNNING), look) == [RUNNING, OVER, there]
    assert cells(there, look)["server"][0] == "there"
    assert blank_columns(ALLOCATION_COLUMNS, [RUNNING], LOOK) >= {"server", "note"}


@pytest.mark.parametrize(
    ("labels", "words"), [({}, "give --balsam URL"), ({"https://b": ""}, "none is known yet")]
)
def test_without_a_site_it_is_said_whether_a_server_is_asked(labels: dict[str, str], words: str) -> None:
    assert words in [*site_lines([], ServerLook(NOW, labels))][1].text
