"""When every file is looked at, and when only those that the kernel told of."""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from jobtui.backends.file_watch import REMOVED, DirectoryId
from jobtui.backends.lookout import MANY_NAMES, UNWATCHED_SHARE, WATCHED_SHARE, Lookout
from jobtui.model.ids import JobId
from tests.backends.db_files import jid
from tests.waiting import LONG_S

SWEEP_S = 30.0


class Timer:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class FakeFiles:
    """Notes what was looked at: everything, or which jobs. A sweep takes `cost_s`."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self.looks: list[str | set[JobId]] = []
        self.cost_s = 0.0
        self.error: OSError | None = None

    def sweep(self, directory: int) -> None:
        self._timer.now += self.cost_s
        self._look("all")

    def check(self, directory: int, jids: Iterable[JobId]) -> None:
        self._look(set(jids))

    def _look(self, what: str | set[JobId]) -> None:
        self.looks.append(what)
        if self.error is not None:
            raise self.error


class FakeWatch:
    """A watch that tells what a test lets it tell."""

    def __init__(self, directory: DirectoryId) -> None:
        self.directory = directory
        self.names: set[str] = set()
        self.failure: str | None = None
        self.closed = 0

    def take(self) -> set[str]:
        names, self.names = self.names, set()
        return names

    def close(self) -> None:
        self.closed += 1


class World:
    """A lookout over a real directory, with everything else in a test's hand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDONLY)
        self.timer = Timer()
        self.files = FakeFiles(self.timer)
        self.watches: list[FakeWatch] = []
        self.refusal: OSError | None = None
        self.silent: str | None = None
        self.wakes = 0
        self.lookout = Lookout(
            str(path), self.files, self._make, lambda path: self.silent, self.timer, SWEEP_S
        )

    def _make(self, path: str, wanted: Callable[[str], bool], wake: Callable[[], None]) -> FakeWatch:
        assert path == str(self.path)
        assert wanted(f"{jid()}.json")
        assert not wanted("other.json")
        if self.refusal is not None:
            raise self.refusal
        status = os.fstat(self.fd)
        self.watches.append(FakeWatch(DirectoryId(status.st_dev, status.st_ino)))
        return self.watches[-1]

    def begin(self) -> bool:
        return self.lookout.begin(self._woken)

    def _woken(self) -> None:
        self.wakes += 1

    def look(self) -> str | set[JobId] | None:
        """One look; what was looked at."""
        before = len(self.files.looks)
        self.lookout.look(self.fd)
        found = self.files.looks[before:]
        assert len(found) <= 1
        return found[0] if found else None


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    os.close(made.fd)


def test_without_notification_every_look_is_at_everything(world: World) -> None:
    assert [world.look() for _ in range(3)] == ["all"] * 3


def test_with_notification_only_what_was_told_of(world: World) -> None:
    assert world.lookout.is_due
    assert world.begin()
    assert not world.lookout.is_due
    assert world.look() == "all"
    assert world.look() is None
    world.watches[0].names = {f"{jid(1)}.json", f"{jid(2)}.json"}
    assert world.look() == {jid(1), jid(2)}
    assert world.look() is None


def test_everything_is_looked_at_now_and_then(world: World) -> None:
    world.begin()
    world.look()
    for _ in range(3):
        world.timer.now += SWEEP_S - 1
        world.watches[0].names = {f"{jid(1)}.json"}
        assert world.look() == {jid(1)}
        world.timer.now += 1
        assert world.look() == "all"


def test_looking_at_everything_never_takes_much_of_the_time(world: World) -> None:
    world.begin()
    world.files.cost_s = 2.0
    assert world.look() == "all"
    world.timer.now += 2.0 / WATCHED_SHARE - 1
    assert world.look() is None
    world.timer.now += 1
    assert world.look() == "all"


def test_very_many_names_may_be_too_few(world: World) -> None:
    world.begin()
    world.look()
    world.watches[0].names = {f"{jid(number)}.json" for number in range(MANY_NAMES)}
    assert world.look() == "all"


def test_a_look_that_failed_is_made_up_for(world: World) -> None:
    world.begin()
    world.look()
    world.files.error = PermissionError(13, "Permission denied")
    world.watches[0].names = {f"{jid(1)}.json"}
    for expected in ({jid(1)}, "all", "all"):
        with pytest.raises(PermissionError):
            world.look()
        assert world.files.looks[-1] == expected
    world.files.error = None
    assert world.look() == "all"
    assert world.look() is None


def test_a_watch_that_failed_is_done_without_for_a_while(world: World) -> None:
    world.begin()
    world.look()
    world.watches[0].failure = "queue gone"
    assert [world.look(), world.look()] == ["all", "all"]
    assert world.watches[0].closed
    assert "queue gone" in (world.lookout.note or "")
    assert not world.lookout.is_due
    world.timer.now += SWEEP_S
    assert world.lookout.is_due
    assert world.begin()
    assert world.lookout.note == ""
    assert [world.look(), world.look()] == ["all", None]


def test_a_removed_directory_is_watched_again_at_once(world: World) -> None:
    world.begin()
    world.look()
    world.watches[0].failure = REMOVED
    assert world.look() == "all"
    assert world.lookout.is_due
    assert world.lookout.note is None


def test_another_directory_in_its_place_is_noticed(world: World) -> None:
    world.begin()
    world.watches[0].directory = DirectoryId(0, 0)
    assert world.look() == "all"
    assert (world.watches[0].closed, world.lookout.is_due) == (1, True)


@pytest.mark.parametrize(
    ("refusal", "text"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("too many watches"), "too many watches"),
    ],
)
def test_a_refused_notification_is_told_and_tried_again_later(
    refusal: OSError, text: str, world: World
) -> None:
    world.refusal = refusal
    assert not world.begin()
    assert text in (world.lookout.note or "")
    assert not world.lookout.is_due
    assert [world.look(), world.look()] == ["all", "all"]


def test_a_file_system_that_tells_nothing_is_not_watched(world: World) -> None:
    world.silent = "nfs4"
    assert not world.begin()
    assert not world.watches
    assert (world.lookout.note or "").startswith("nfs4 does not tell of changes")


def test_a_watch_that_begins_after_the_end_is_closed(world: World) -> None:
    world.lookout.close()
    world.begin()
    assert world.watches[0].closed == 1
    world.lookout.close()


def test_closing_closes_the_watch(world: World) -> None:
    world.begin()
    world.lookout.close()
    world.lookout.close()
    assert world.watches[0].closed == 1


async def test_news_end_the_waiting(world: World) -> None:
    world.begin()
    waiting = asyncio.create_task(world.lookout.wait(LONG_S))
    await asyncio.sleep(0)
    assert not waiting.done()
    world.lookout.news.set()
    await asyncio.wait_for(waiting, LONG_S / 2)


async def test_dear_looks_without_notification_are_kept_apart(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    world.look()
    await world.lookout.wait(2.0)
    world.files.cost_s = 3.0
    world.look()
    await world.lookout.wait(2.0)
    assert slept == pytest.approx([2.0, 3.0 / UNWATCHED_SHARE])
