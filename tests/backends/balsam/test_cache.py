"""Events kept between runs: given back when the server still says so, never as new, harmless when broken."""

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from jobtui.backends.balsam.client import VERSION, EventCache
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import SourceState
from tests.analysis.balsam_data import nanos
from tests.backends.balsam.watching import EARLY, Watched, an_event, answers, move_on
from tests.balsam_server import TOKEN, RecordedBalsam

MOST = 100_000


class Run(Watched):
    """One run of jobtui on a server, with the cache of the runs before."""

    def __init__(self, server: RecordedBalsam, path: Path, most: int = MOST, since: Nanos = EARLY) -> None:
        self.cache = EventCache(str(path), "balsam", most)
        super().__init__(server, since, self.cache)
        server.requests.clear()

    async def whole(self) -> "Run":
        await self.poller.catch_up()
        await self.poll(10)
        await self.source.aclose()
        return self

    @property
    def events(self) -> list[tuple[int, Nanos]]:
        return sorted((one.id, one.at) for one in self.store.changes.all())

    @property
    def note(self) -> str:
        return self.health.note or ""

    def asked_from(self) -> list[str]:
        asked = [target for target in self.server.requests if "timestamp_after" in target]
        return [target.partition("timestamp_after=")[2].partition("&")[0] for target in asked]


def events_of(server: RecordedBalsam) -> list[tuple[int, Nanos]]:
    return sorted((row["id"], nanos(row["timestamp"])) for row in server.events)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "balsam.sqlite3"


@pytest.fixture
async def server(path: Path) -> RecordedBalsam:
    await Run(made := RecordedBalsam(), path).whole()
    return made


async def test_the_next_run_has_the_same_events_and_asks_for_the_last_only(path: Path) -> None:
    server = RecordedBalsam()
    first = await Run(server, path).whole()
    asked = min(first.asked_from())
    again = await Run(server, path).whole()
    assert again.store.changes.all() == first.store.changes.all()
    assert dict(again.store.jobs) == dict(first.store.jobs)
    assert min(again.asked_from()) > asked
    last = max(at for _, at in first.events)
    assert nanos(min(again.asked_from()).replace("%3A", ":").removesuffix("Z")) >= last - 3600 * SECOND


async def test_what_came_meanwhile_or_late_is_asked_for(path: Path, server: RecordedBalsam) -> None:
    row = move_on(server, 90_001)
    server.events.append(an_event(90_002, row["id"], "2026-11-20T18:45:00", "READY", "STAGED_IN"))
    again = await Run(server, path).whole()
    assert again.events == events_of(server)


async def test_nothing_is_shown_before_the_server_has_answered(path: Path, server: RecordedBalsam) -> None:
    """What is old is not served as new: a server that is down is down, and nothing was read."""
    again = Run(server, path)
    server.faults = [answers(500)] * 3
    await again.poll(3)
    assert (again.health.state, again.health.read_at) == (SourceState.DOWN, None)
    assert not again.store.changes
    await again.whole()
    assert again.events == events_of(server)


async def test_another_server_at_the_same_address_begins_anew(path: Path, server: RecordedBalsam) -> None:
    for row in server.events:
        row["timestamp"] = row["timestamp"].replace("T17:", "T18:")
    again = await Run(server, path).whole()
    assert again.events == events_of(server)
    third = await Run(server, path).whole()
    assert third.events == again.events


async def test_events_that_changed_are_asked_for_once(path: Path, server: RecordedBalsam) -> None:
    for row in server.events:
        row["timestamp"] = row["timestamp"].replace("T19:0", "T19:1")
    again = await Run(server, path).whole()
    assert set(events_of(server)) <= set(again.events)
    assert "event ids went back" in again.note
    third = await Run(server, path).whole()
    assert third.events == events_of(server)


async def test_one_that_does_not_go_back_far_enough_is_not_used(path: Path) -> None:
    server = RecordedBalsam()
    await Run(server, path, since=nanos("2026-11-20T19:00:00")).whole()
    again = await Run(server, path).whole()
    assert again.events == events_of(server)


async def test_a_run_that_ended_while_it_began_leaves_no_gap(path: Path) -> None:
    server = RecordedBalsam()
    for polls in (1, 4, 5, 6, 7):
        broken = Run(server, path)
        await broken.poll(polls)
        await broken.source.aclose()
        whole = await Run(server, path).whole()
        assert whole.events == events_of(server)


async def test_it_is_for_its_owner_alone(path: Path) -> None:
    old = os.umask(0)
    try:
        await Run(RecordedBalsam(), path).whole()
    finally:
        os.umask(old)
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent)] == [0o600, 0o700]
    assert [*path.parent.iterdir()] == [path]
    assert TOKEN.encode() not in path.read_bytes()  # noqa: ASYNC240 - nothing else goes on


def newer(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA user_version = {VERSION + 1}")
    database.close()


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (lambda path: path.write_bytes(b"not a database at all" * 100), "not a database"),
        (lambda path: path.write_bytes(path.read_bytes()[:5_000] + b"\xff" * 40_000), ""),
        (newer, "a newer jobtui wrote it"),
        (lambda path: (path.unlink(), path.mkdir()), ""),
        (lambda path: (path.unlink(), path.symlink_to("/etc/passwd")), ""),
    ],
    ids=["text", "torn", "newer", "directory", "link"],
)
async def test_one_that_cannot_be_used(broken: object, says: str, path: Path, server: RecordedBalsam) -> None:
    broken(path)  # type: ignore[operator]
    again = await Run(server, path).whole()
    assert again.events == events_of(server)
    assert again.health.state is SourceState.OK
    assert f"the cache {path} cannot be used" in again.note
    assert says in again.note
    assert "delete it to start again" in again.note
    assert "\n" not in again.note


async def test_it_has_a_bound_and_what_is_left_is_whole(path: Path) -> None:
    server = RecordedBalsam()
    await Run(server, path, most=200).whole()
    with sqlite3.connect(path) as database:
        ((since,),) = database.execute("SELECT since FROM covered")
        kept = set(database.execute("SELECT id, at FROM events"))
    database.close()
    assert 0 < len(kept) <= 200
    assert kept == {(number, at) for number, at in events_of(server) if at >= since}
    again = await Run(server, path, most=200).whole()
    assert again.events == events_of(server)


def test_without_it_sqlite_is_not_loaded() -> None:
    code = (
        "import sys; from jobtui.backends.registry import build; "
        "from jobtui.model.specs import parse_balsam; build(parse_balsam('http://127.0.0.1:1')); "
        "print('sqlite3' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
