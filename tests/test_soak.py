"""The soak's own parts: the screen it reads, the way it goes, and that it sees what is lost."""

import json
import os
import time
from pathlib import Path

import pytest

from benchmarks.painted import CLIPBOARD, Painted
from benchmarks.rows import Row
from benchmarks.soak import ROW, STATUS_WORDS
from benchmarks.soak_figures import Found, growth, slope
from benchmarks.soak_sites import Records
from benchmarks.tour import ENTER, LEAVING, is_known, sent_for, tour, way_to
from jobtui.actions import ACTIONS, Place, actions_at
from jobtui.model.jobs import JobStatus

JID = "EPRSqtUW-IVh7w74d-heightWeightReport"


def painted(*parts: bytes, columns: int = 12, rows: int = 3) -> Painted:
    """A screen that was sent these."""
    screen = Painted(columns, rows)
    for part in parts:
        screen.feed(part)
    return screen


def test_text_stands_where_it_was_put() -> None:
    screen = painted(b"\x1b[?1049h\x1b[2;3Hab\x1b[1;31mc\x1b[0m\x1b[3H\x1b[2Cx", "\x1b[1;1H表é".encode())
    assert screen.lines() == ["表é", "  abc", "  x"]
    screen.feed(b"\x1b[2;4H\x1b[K")
    assert screen.lines()[1] == "  a"
    assert not screen.strays


def test_a_sequence_may_come_in_parts() -> None:
    screen = painted(b"a\x1b", b"[", b"2;1", b"Hb\xe8", b"\xa1\xa8")
    assert screen.lines() == ["a", "b表", ""]
    assert not screen.strays


@pytest.mark.parametrize(
    "stray",
    [
        "\x07",
        "\x00",
        "\x9b",
        "\x1b]0;title\x07",
        "\x1bPq\x1b\\",
        "\x1b[5n",
        "\x1b[?9999h",
        "\x1bc",
        "\x1b[99;99Hx",
    ],
)
def test_what_should_not_be_sent_is_a_stray(stray: str) -> None:
    assert painted(f"ok {stray} ok".encode()).strays


def test_a_copied_text_is_none_and_is_kept() -> None:
    screen = painted(f"{CLIPBOARD}aGk=\x07".encode())
    assert (len(screen.copied), screen.strays) == (1, [])


def test_the_tour_presses_every_key_but_those_that_leave() -> None:
    assert [place for place in Place if not is_known(place)] == []
    legs = list(tour("EPRSqtUW"))
    for place in Place:
        wanted = {
            sent_for(key) for action in actions_at(place) if action.call not in LEAVING for key in action.keys
        }
        assert {leg.typed[0] for leg in legs if leg.place is place} == wanted
    assert any("EPRSqtUW" in words for leg in legs for words in leg.way)
    assert {action.call for action in ACTIONS} >= LEAVING


@pytest.mark.parametrize(
    ("key", "sent"),
    [("enter", ENTER), ("ctrl+d", "\x04"), ("slash", "/"), ("j", "j"), ("shift+tab", "\x1b[Z")],
)
def test_keys_are_sent_as_a_terminal_does(key: str, sent: str) -> None:
    assert sent_for(key) == sent


def test_a_way_that_is_not_known_is_an_error() -> None:
    with pytest.raises(KeyError):
        way_to("nowhere")  # type: ignore[arg-type]


def write(place: Path, status: str) -> None:
    draft = place / "draft"
    draft.write_text(json.dumps({"status": status}))
    os.replace(draft, place / f"{JID}.json")


def test_records_are_known_with_what_they_were(tmp_path: Path) -> None:
    (place := tmp_path / "supervisor-job").mkdir()
    records = Records(tmp_path)
    write(place, "running")
    records.read()
    assert (records.now(), records.settled(60.0)) == ({JID: "running"}, {})
    assert records.settled(-1.0) == {JID: "running"}
    write(place, "completed")
    (place / "torn-torn-torn.json").write_text('{"stat')
    records.read()
    assert records.now() == {JID: "completed"}


def test_a_record_that_is_removed_while_records_are_read_is_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place := tmp_path / "supervisor-job").mkdir()
    records = Records(tmp_path)
    write(place, "running")
    records.read()
    listed = list(place.glob("*.json"))
    write(place, "completed")
    (place / f"{JID}.json").unlink()
    monkeypatch.setattr(Path, "glob", lambda self, pattern: listed)
    records.read()
    assert records.now() == {}


def test_a_job_that_is_seen_otherwise_or_not_at_all_is_noted() -> None:
    found = Found()
    found.differ("there", {"a": "done", "b": "failed"}, {"a": "done", "b": "failed", "c": "running"})
    assert found.wrong == []
    found.differ("there", {"a": "done", "b": "failed"}, {"a": "running"})
    assert len(found.wrong) == 2


def test_a_row_of_the_screen_is_read() -> None:
    row = ROW.match(f"   ! ✗ failed     {JID}    ")
    assert row is not None
    assert (row["word"], row["id"]) == ("failed", JID)
    assert ROW.match("  jobtui  12 running") is None
    assert {STATUS_WORDS[word] for word in ("error", "failed")} == {"failed"}
    assert STATUS_WORDS.keys() >= {*JobStatus}


def rows_by_name(found: Found) -> dict[str, Row]:
    return {row.what.partition(": ")[2]: row for row in growth("x", found)}


def test_memory_that_grows_is_seen() -> None:
    now = time.monotonic()
    counts = {"tasks": 5, "threads": 3, "listeners": 2, "objects": 9, "jobs": 1, "ops": 1}
    flat = Found(rss_mb=[(now + 60 * n, 100.0) for n in range(10)], counts=[counts] * 10)
    growing = Found(
        rss_mb=[(now + 60 * n, 100.0 + 5 * n) for n in range(10)],
        counts=[counts | {"tasks": 5 + n} for n in range(10)],
    )
    assert rows_by_name(flat)["memory, growth after the warm-up"].holds
    assert rows_by_name(flat)["tasks, at the end"].holds
    assert rows_by_name(growing)["memory, growth after the warm-up"].holds is False
    assert rows_by_name(growing)["tasks, at the end"].holds is False
    assert rows_by_name(growing)["memory, slope after the warm-up"].measured == pytest.approx(5.0)
    assert slope([(0.0, 1.0)]) == 0.0


def test_where_bounds_are_stated_memory_may_grow_up_to_them() -> None:
    found = Found(rss_mb=[(30.0 * n, 100.0 + n) for n in range(20)])
    found.counts = [dict.fromkeys(("jobs", "ops", "tasks", "threads", "listeners"), 1)] * 20
    for most, holds in ((119.0, True), (118.0, False)):
        rows = {row.what: row for row in growth("x", found, most)}
        assert rows["x: memory, highest"].holds is holds
        assert rows["x: memory, growth after the warm-up"].holds is None
