"""Sites and allocations as lines."""

import msgspec
import pytest

from jobtui.model.changes import Allocation, Site
from jobtui.render.allocations import lines
from jobtui.render.text import width
from tests.builders import HOSTILE, ago
from tests.conftest import NOW

SITE = Site(id=1, source="b", name="theta", path="/projects/x", seen_at=ago(30), queued=3)
RUNNING = Allocation(
    id=4, source="b", site_id=1, state="running", nodes=64, scheduler_id="4711", queue="prod", mode="mpi",
    wall_time_s=3600.0, start_at=ago(600), start_estimated=True, launchers=1, heartbeat_at=ago(20),
    tags=(("experiment", "a"),),
)  # fmt: skip
OVER = Allocation(id=3, source="b", site_id=1, state="finished", nodes=8, start_at=ago(900), end_at=ago(300))
REFUSED = Allocation(id=5, source="b", site_id=9, state="submit_failed", nodes=8, note="no budget")


def drawn(*allocations: Allocation, site: Site = SITE, cells: int = 150) -> list[tuple[str, str]]:
    return [(span.text, span.style) for span in lines([site], allocations, NOW, cells)]


def test_what_lasts_comes_first() -> None:
    texts = [text for text, _ in drawn(OVER, REFUSED, RUNNING)]
    assert [text.split()[1] for text in texts[4:] if not text.startswith("   ")] == [
        "running", "submit_failed", "finished"
    ]  # fmt: skip
    words = "● running 4 4711 64 ~10m 1h 20s theta prod experiment:a"
    assert texts[4].split() == words.split()
    assert "no budget" in texts[6]


def changed(one: Allocation, **fields: object) -> Allocation:
    return msgspec.structs.replace(one, **fields)


@pytest.mark.parametrize(
    "one",
    [changed(RUNNING, heartbeat_at=ago(301)), changed(RUNNING, launchers=0, heartbeat_at=None)],
    ids=["silent", "none"],
)
def test_a_stale_launcher_stands_out(one: Allocation) -> None:
    text, style = drawn(one)[4]
    assert text.split()[0] == "!"
    assert style == "warning"


@pytest.mark.parametrize(
    "one",
    [
        RUNNING,
        changed(RUNNING, state="finished", heartbeat_at=ago(9_000)),
        changed(RUNNING, launchers=0, heartbeat_at=None, start_at=ago(60)),
        changed(RUNNING, launchers=0, heartbeat_at=None, start_at=None),
    ],
)
def test_what_is_not_stale(one: Allocation) -> None:
    assert not one.is_stale(NOW)


def test_a_site_that_fell_silent_stands_out() -> None:
    assert drawn()[1] == (" ● theta   agent heard of 30s ago   3 jobs in its scheduler   /projects/x", "")
    text, style = drawn(site=msgspec.structs.replace(SITE, seen_at=ago(4_000)))[1]
    assert text.startswith(" ! theta   agent last heard of 1h06m ago")
    assert style == "warning"


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("cells", [20, 38, 80, 200])
def test_hostile_names_stay_in_their_line(cells: int, text: str) -> None:
    site = msgspec.structs.replace(SITE, name=text, path=text)
    one = changed(REFUSED, queue=text, note=text, state=text, scheduler_id=text, site_id=1)
    for line, _ in drawn(one, changed(one, state="submit_failed"), site=site, cells=cells):
        assert width(line) <= cells
        assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in line)


def test_several_servers_are_told_apart() -> None:
    there = msgspec.structs.replace(RUNNING, source="c", nodes=7)
    sites = [SITE, msgspec.structs.replace(SITE, source="c")]
    texts = [span.text for span in lines(sites, [RUNNING, there], NOW, 120, {"b": "here", "c": "there"})]
    assert [text.split()[1] for text in texts[1:3]] == ["theta@here", "theta@there"]
    assert {text.split()[3] for text in texts[5:]} == {"here", "there"}
    assert "SERVER" in texts[4]
    assert "SERVER" not in "".join(text for text, _ in drawn(RUNNING))
    narrow = [span.text for span in lines(sites, [RUNNING, there], NOW, 40, {"b": "here", "c": "there"})]
    assert all(width(text) <= 40 for text in narrow)
    assert [text.strip() for text in narrow[5:] if text.split()[0] in ("here", "there")] == ["here", "there"]
    assert narrow.index(" there") > narrow.index(" here") + 1, "the rows of each stand below its name"


@pytest.mark.parametrize(
    ("labels", "words"), [({}, "give --balsam URL"), ({"https://b": ""}, "none is known yet")]
)
def test_without_a_site_it_is_said_whether_a_server_is_asked(labels: dict[str, str], words: str) -> None:
    assert words in next(span.text for span in list(lines([], [], NOW, 60, labels))[1:])
