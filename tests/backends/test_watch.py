"""How changed files are noticed: by the kernel, by looking, and on which file systems."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from jobtui.backends.sirepo.source import MANY_NAMES, UNWATCHED_SHARE, WATCHED_SHARE, ChangeWatch, JobFiles
from jobtui.model.ids import JobId
from jobtui.transport import watch as watches
from jobtui.transport.files import FileId
from jobtui.transport.watch import DirectoryWatch, Inotify, Watch, file_system_of, silent_file_system
from jobtui.transport.worker import Worker
from tests.builders import job_id as jid
from tests.loopback import Timer
from tests.rows import FIXTURES, ROWS
from tests.waiting import LONG_S, stop, wait_for, wait_until


def watch_of(folder: Path) -> DirectoryWatch:
    return DirectoryWatch(str(folder), lambda name: name.endswith(".json"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "watched"
    path.mkdir()
    return path


@pytest.fixture
def seen(folder: Path) -> Iterator[DirectoryWatch]:
    with closing(watch_of(folder)) as made:
        yield made


async def test_changes_of_unwanted_names_wake_nobody(folder: Path, seen: DirectoryWatch) -> None:
    status = os.stat(folder)
    assert seen.directory == FileId(status.st_dev, status.st_ino)
    waiting = asyncio.create_task(seen.wait(LONG_S))
    for number in range(20):
        (folder / f"{number}.tmp").write_text("")
    (folder / "below").mkdir()
    (folder / "below" / "deep.json").write_text("")
    await asyncio.wait([waiting], timeout=watches.STEP_S)
    assert not waiting.done()
    (folder / "last.json").write_text("")
    await asyncio.wait_for(waiting, LONG_S / 2)
    assert seen.take() == {"last.json"}


@pytest.mark.parametrize("how", ["removed", "renamed"])
def test_a_directory_that_is_elsewhere_is_a_failure(how: str, folder: Path, seen: DirectoryWatch) -> None:
    if how == "removed":
        shutil.rmtree(folder)
    else:
        folder.rename(folder.with_name("elsewhere"))
    folder.mkdir()
    wait_for(lambda: not seen.take() and seen.failure == watches.REMOVED)


def test_more_than_the_kernel_can_hold_is_a_failure(folder: Path) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    paths = [folder / "a.json", folder / "b.json"]
    for path in paths:
        path.touch()
    watch = DirectoryWatch(str(folder), lambda name: True)
    for number in range(most + 10):  # which nobody reads meanwhile; equal ones in a row are one
        os.utime(paths[number % 2])
    watch.take()
    assert watch.failure == watches.OVERFLOWN
    watch.close()


async def test_closing_ends_a_wait_for_a_directory_without_a_failure(folder: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        watch_of(folder / "nowhere")
    before, seen = queues(), watch_of(folder)
    waiting = asyncio.create_task(seen.wait(LONG_S))
    await asyncio.sleep(0)
    seen.close()
    seen.close()
    await asyncio.wait_for(waiting, LONG_S / 2)
    assert seen.failure is None
    assert queues() == before


async def test_closing_a_queue_with_news_leaves_its_number_to_others(folder: Path) -> None:
    queue, loop = Inotify(), asyncio.get_running_loop()
    queue.add(str(folder), watches.CREATE)
    number = queue._fd

    def is_news() -> bool:
        loop.call_soon(queue.close)  # before who waits is back
        return bool(queue.read())

    waiting = asyncio.create_task(queue.wait(LONG_S, is_news))
    await asyncio.sleep(0)
    (folder / "a").touch()
    assert await waiting
    reader, writer = os.pipe()
    os.dup2(reader, number)
    heard = asyncio.Event()
    loop.add_reader(number, heard.set)
    os.write(writer, b"x")
    await asyncio.wait_for(heard.wait(), LONG_S / 2)
    loop.remove_reader(number)
    for one in {reader, writer, number}:
        os.close(one)


class Watched:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.looks = 0
        self.known = self.now()
        self.worker = Worker("test watch")
        self.watch = Watch(self.worker, [path], self.is_changed)

    def now(self) -> tuple[int, int, int] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return (status.st_ino, status.st_size, status.st_mtime_ns)

    def is_changed(self) -> bool:
        self.looks += 1
        return self.now() != self.known

    async def sees(self, change: Callable[[], object]) -> None:
        """Make a change while it waits; returns when the wait has ended."""
        looks = self.looks
        waiting = asyncio.create_task(self.watch.changed(LONG_S))
        await wait_until(lambda: self.looks > looks)
        change()
        await asyncio.wait_for(waiting, LONG_S / 2)
        assert self.now() != self.known
        self.known = self.now()

    def close(self) -> None:
        self.watch.close()
        self.worker.close()


@pytest.fixture(params=["told", "silent"])
def telling(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "silent":
        monkeypatch.setattr(watches, "silent_file_system", lambda _: "nfs")
        monkeypatch.setattr(watches, "LOOK_S", 0.05)


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    path = tmp_path / "a.log"
    path.write_text("first\n")
    watched = Watched(path)
    yield watched
    watched.close()


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write("more\n")


def put(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("second, and longer\n" * (path.stat().st_size + 1))
    other.rename(path)


def make(path: Path) -> None:
    path.parent.mkdir()
    path.touch()


def link(path: Path) -> None:
    fresh = path.with_name("fresh")
    fresh.symlink_to("y.real")
    fresh.rename(path)


STORIES: dict[str, tuple[str, list[Callable[[Path], object]]]] = {
    "growth": ("a.log", [append] * 3),
    "rotation": (
        "a.log",
        [lambda path: path.rename(path.with_suffix(".1")), Path.touch, append, Path.unlink, append],
    ),
    "a file in its place": ("a.log", [put, append, put, append, lambda path: os.truncate(path, 0)]),
    "a directory that is not there yet": ("later/a.log", [make, append]),
    "a link that is set again": (
        "link.log",
        [append, link, append, lambda path: path.resolve().unlink(), append],
    ),
}
"""Changes of a file, each of which ends a wait."""


@pytest.mark.usefixtures("telling")
@pytest.mark.parametrize("story", STORIES)
async def test_each_change_ends_the_wait(story: str, tmp_path: Path) -> None:
    name, changes = STORIES[story]
    (tmp_path / "a.log").write_text("first\n")
    for size, end in enumerate(("x.real", "y.real"), 1):
        (tmp_path / end).write_text("x" * size)
    (tmp_path / "link.log").symlink_to("x.real")
    watched = Watched(tmp_path / name)
    for change in changes:
        await watched.sees(partial(change, watched.path))
    watched.close()


@pytest.mark.usefixtures("telling")
async def test_a_change_between_two_waits_ends_the_next_at_once(watched: Watched) -> None:
    await watched.sees(lambda: append(watched.path))
    append(watched.path)
    await asyncio.wait_for(watched.watch.changed(LONG_S), LONG_S / 2)
    assert watched.now() != watched.known


async def test_nothing_is_checked_while_nothing_happens(watched: Watched) -> None:
    await watched.watch.changed(0.2)
    assert watched.looks == 1
    waiting = asyncio.create_task(watched.watch.changed(0.2))
    for number in range(50):  # beside it, which is none of its matter
        append(watched.path.with_name(f"{number}.log"))
        await asyncio.sleep(0)
    await waiting
    assert watched.looks == 2


async def test_many_changes_end_a_wait_only_at_intervals(watched: Watched) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for _ in range(5):
        append(watched.path)
        await watched.watch.changed(LONG_S)
        watched.known = watched.now()
    assert loop.time() - begun > 3 * watches.GAP_S


@pytest.mark.usefixtures("telling")
async def test_closing_ends_a_wait(watched: Watched) -> None:
    waiting = asyncio.create_task(watched.watch.changed(LONG_S))
    await wait_until(lambda: watched.looks)
    watched.close()
    watched.close()
    await asyncio.wait_for(waiting, LONG_S / 2)
    await watched.watch.changed(LONG_S)


async def test_a_watch_polls_without_the_kernel(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: watches.Inotify, path: str, what: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(watches.Inotify, "add", none_left)
    await watched.sees(lambda: append(watched.path))


def queues() -> int:
    names = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return sum("inotify" in os.readlink(name) for name in names if os.path.lexists(name))


async def test_a_canceled_wait_holds_nothing_and_may_be_repeated(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("first\n")
    before, watched = queues(), Watched(path)
    waiting = asyncio.create_task(watched.watch.changed(LONG_S))
    await wait_until(lambda: queues() == before + 1)
    await stop(waiting)
    await wait_until(lambda: queues() == before)
    await watched.sees(lambda: append(path))
    watched.close()
    assert queues() == before


SWEEP_S = 30.0


class FakeWatch(DirectoryWatch):
    def __init__(self, directory: FileId) -> None:
        self.directory = directory
        self.names: set[str] = set()
        self.failure: str | None = None
        self.closed = 0
        self.news = asyncio.Event()

    async def wait(self, timeout_s: float) -> None:
        await asyncio.wait_for(self.news.wait(), timeout_s)

    def take(self) -> set[str]:
        names, self.names = self.names, set()
        return names

    def close(self) -> None:
        self.closed += 1


class WorldWatch(ChangeWatch):
    def __init__(self, world: "World") -> None:
        self.make_watch, self.timer = world._make, world.timer
        self.silent = lambda path: world.silent
        super().__init__(str(world.path), world)


class World(JobFiles):
    """A watch over a real directory, with everything else in a test's hand.

    `looks` are those at everything, which take `cost_s`, or at some jobs; both raise an `error`.
    """

    def __init__(self, path: Path) -> None:
        super().__init__("", "")
        self.path = path
        self.fd = os.open(path, os.O_RDONLY)
        self.timer = Timer(1000.0)
        self.looks: list[str | set[JobId]] = []
        self.cost_s = 0.0
        self.error: OSError | None = None
        self.watches: list[FakeWatch] = []
        self.refusal: OSError | None = None
        self.silent: str | None = None
        self.changes = WorldWatch(self)

    def sweep(self, directory: int) -> None:
        self.timer.now += self.cost_s
        self._note("all")

    def check(self, directory: int, jids: Iterable[JobId]) -> int:
        self._note(set(jids))
        return 0

    def _note(self, what: str | set[JobId]) -> None:
        self.looks.append(what)
        if self.error is not None:
            raise self.error

    def _make(self, path: str, wanted: Callable[[str], bool]) -> FakeWatch:
        assert path == str(self.path)
        assert [wanted(name) for name in (f"{jid()}.json", "other.json")] == [True, False]
        if self.refusal is not None:
            raise self.refusal
        status = os.fstat(self.fd)
        self.watches.append(FakeWatch(FileId(status.st_dev, status.st_ino)))
        return self.watches[-1]

    def look(self) -> str | set[JobId] | None:
        before = len(self.looks)
        self.changes.look(self.fd)
        found = self.looks[before:]
        assert len(found) <= 1
        return found[0] if found else None


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    os.close(made.fd)


@pytest.fixture
def begun(world: World) -> World:
    assert world.changes.is_due
    assert world.changes.begin()
    assert not world.changes.is_due
    assert [world.look(), world.look()] == ["all", None]
    return world


def named(*numbers: int) -> set[str]:
    return {f"{jid(number)}.json" for number in numbers}


def test_notified_files_are_read_and_all_files_at_intervals(begun: World) -> None:
    begun.watches[0].names = named(1, 2)
    assert [begun.look(), begun.look()] == [{jid(1), jid(2)}, None]
    for _ in range(3):
        begun.timer.now += SWEEP_S - 1
        begun.watches[0].names = named(1)
        assert begun.look() == {jid(1)}
        begun.timer.now += 1
        assert begun.look() == "all"
    begun.watches[0].names = named(*range(MANY_NAMES))  # there may have been more
    assert begun.look() == "all"


def test_full_checks_never_take_much_of_the_time(world: World) -> None:
    world.changes.begin()
    world.cost_s = 2.0
    assert world.look() == "all"
    world.timer.now += 2.0 / WATCHED_SHARE - 1
    assert world.look() is None
    world.timer.now += 1
    assert world.look() == "all"


def test_a_check_that_failed_is_repeated(begun: World) -> None:
    begun.error = PermissionError(13, "Permission denied")
    begun.watches[0].names = named(1)
    for expected in ({jid(1)}, "all", "all"):
        with pytest.raises(PermissionError):
            begun.look()
        assert begun.looks[-1] == expected
    begun.error = None
    assert [begun.look(), begun.look()] == ["all", None]


def test_a_watch_that_failed_is_not_used_for_a_while(begun: World) -> None:
    begun.watches[0].failure = "queue gone"
    assert [begun.look(), begun.look()] == ["all", "all"]
    assert begun.watches[0].closed
    assert "queue gone" in (begun.changes.note or "")
    assert not begun.changes.is_due
    begun.timer.now += SWEEP_S
    assert begun.changes.is_due
    assert begun.changes.begin()
    assert (begun.changes.note, [begun.look(), begun.look()]) == ("", ["all", None])


@pytest.mark.parametrize("is_removed", [True, False])
def test_a_directory_in_place_of_another_is_watched_at_once(world: World, is_removed: bool) -> None:
    world.changes.begin()
    if is_removed:
        world.look()
        world.watches[0].failure = watches.REMOVED
    else:
        world.watches[0].directory = FileId(0, 0)
    assert world.look() == "all"
    assert (world.watches[0].closed, world.changes.is_due, world.changes.note) == (1, True, None)


@pytest.mark.parametrize("refusal", [OSError(28, "too many watches"), OSError("too many watches")])
def test_a_refused_notification_is_reported_and_tried_again(refusal: OSError, world: World) -> None:
    world.refusal = refusal
    assert not world.changes.begin()
    assert "too many watches" in (world.changes.note or "")
    assert not world.changes.is_due
    assert [world.look(), world.look()] == ["all", "all"]


def test_a_file_system_that_tells_nothing_is_not_watched(world: World) -> None:
    world.silent = "nfs4"
    assert not world.changes.begin()
    assert not world.watches
    assert (world.changes.note or "").startswith("nfs4 does not report changes")


async def test_news_end_a_wait_and_closing_closes_the_watch(world: World) -> None:
    world.changes.begin()
    waiting = asyncio.create_task(world.changes.wait(LONG_S))
    await asyncio.sleep(0)
    assert not waiting.done()
    world.watches[0].news.set()
    await asyncio.wait_for(waiting, LONG_S / 2)
    world.changes.close()
    world.changes.close()
    assert world.watches[0].closed == 1


async def test_a_longer_pause_follows_a_costly_check(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    for world.cost_s in (0.0, 3.0):
        world.look()
        await world.changes.wait(2.0)
    assert slept == pytest.approx([2.0, 3.0 / UNWATCHED_SHARE])


MOUNTINFO = FIXTURES / "mountinfo"


@pytest.mark.parametrize(
    ("path", "kind", "silent"), ROWS["paths, what holds each, and what of that tells of no changes"]
)
def test_a_path_is_on_the_file_system_that_holds_it(
    path: str, kind: str, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "MOUNTINFO", MOUNTINFO)
    assert (file_system_of(path, MOUNTINFO.read_text()), silent_file_system(path) or "") == (kind, silent)


def test_a_link_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert file_system_of("/", "") is None
    monkeypatch.setattr(watches, "MOUNTINFO", tmp_path / "mountinfo")
    assert silent_file_system("/") is None
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to(tmp_path / "far")
    (tmp_path / "mountinfo").write_text(f"1 0 0:1 / / rw - ext4 a\n2 1 0:2 / {tmp_path / 'far'} rw - nfs b\n")
    assert silent_file_system(str(tmp_path / "near")) == "nfs"
