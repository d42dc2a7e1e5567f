"""How changed files are noticed: by the kernel, by looking, and on which file systems."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import pytest

from jobtui.backends.sirepo.client import JobFiles
from jobtui.backends.sirepo.source import MANY_NAMES, UNWATCHED_SHARE, WATCHED_SHARE, ChangeWatch
from jobtui.model.ids import JobId
from jobtui.transport import watch as watches
from jobtui.transport.files import FileId
from jobtui.transport.watch import (
    OVERFLOWN,
    REMOVED,
    DirectoryWatch,
    Watch,
    file_system_of,
    silent_file_system,
)
from jobtui.transport.worker import Worker
from tests.backends.db_files import jid
from tests.loopback import Timer
from tests.waiting import LONG_S, stop, wait_for, wait_until


class Seen:
    def __init__(self, path: Path) -> None:
        self.watch = DirectoryWatch(str(path), lambda name: name.endswith(".json"))
        self.names: set[str] = set()

    def told(self) -> set[str]:
        self.names |= self.watch.take()
        return self.names


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "watched"
    path.mkdir()
    return path


@pytest.fixture
def seen(folder: Path) -> Iterator[Seen]:
    made = Seen(folder)
    yield made
    made.watch.close()


def test_writing_renaming_and_removing_are_told_of(folder: Path, seen: Seen) -> None:
    (folder / "new.json").write_text("1")
    wait_for(lambda: seen.told() == {"new.json"})
    (folder / "b.tmp").write_text("2")
    (folder / "b.tmp").rename(folder / "b.json")
    wait_for(lambda: seen.told() == {"new.json", "b.json"})
    seen.names.clear()
    (folder / "new.json").unlink()
    wait_for(lambda: seen.told() == {"new.json"})
    assert seen.watch.failure is None


async def test_names_nobody_wants_wake_nobody(folder: Path, seen: Seen) -> None:
    waiting = asyncio.create_task(seen.watch.wait(LONG_S))
    for number in range(20):
        (folder / f"{number}.tmp").write_text("")
    (folder / "below").mkdir()
    (folder / "below" / "deep.json").write_text("")
    await asyncio.wait([waiting], timeout=5 * watches.STEP_S)
    assert not waiting.done()
    (folder / "last.json").write_text("")
    await asyncio.wait_for(waiting, LONG_S / 2)
    assert seen.told() == {"last.json"}


def test_it_says_which_directory_it_watches(folder: Path, seen: Seen) -> None:
    status = folder.stat()
    assert seen.watch.directory == FileId(status.st_dev, status.st_ino)


@pytest.mark.parametrize("how", ["removed", "renamed"])
def test_a_directory_that_is_no_more_in_its_place_is_a_failure(how: str, folder: Path, seen: Seen) -> None:
    if how == "removed":
        shutil.rmtree(folder)
    else:
        folder.rename(folder.with_name("elsewhere"))
    folder.mkdir()
    wait_for(lambda: not seen.told() and seen.watch.failure == REMOVED)


def test_a_name_that_is_no_text_is_told_of_or_a_failure(folder: Path, seen: Seen) -> None:
    (folder / "odd\udcff.json").write_text("")
    wait_for(lambda: seen.told() == {"odd\udcff.json"})


def test_more_than_the_kernel_can_hold_is_a_failure(folder: Path) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    paths = [folder / "a.json", folder / "b.json"]
    for path in paths:
        path.touch()
    watch = DirectoryWatch(str(folder), lambda name: True)
    for number in range(most + 10):  # which nobody reads meanwhile; equal ones in a row are one
        os.utime(paths[number % 2])
    watch.take()
    assert watch.failure == OVERFLOWN
    watch.close()


def test_a_directory_that_is_not_there_is_an_oserror(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        Seen(tmp_path / "nowhere")


async def test_closing_ends_a_wait_for_a_directory_and_is_no_failure(folder: Path) -> None:
    before, seen = queues(), Seen(folder)
    waiting = asyncio.create_task(seen.watch.wait(LONG_S))
    await asyncio.sleep(0)
    seen.watch.close()
    seen.watch.close()
    await asyncio.wait_for(waiting, LONG_S / 2)
    assert seen.watch.failure is None
    assert queues() == before


class Watched:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.looks = 0
        self.known = self.now()
        self.worker = Worker("test watch")
        self.watch = Watch(self.worker, [path], self.is_changed)

    def now(self) -> tuple[int, int, int] | None:
        """What is there."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return (status.st_ino, status.st_size, status.st_mtime_ns)

    def is_changed(self) -> bool:
        self.looks += 1
        return self.now() != self.known

    async def sees(self, change: Callable[[], object]) -> None:
        """Make a change while it waits; returns when it has been told of."""
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
def telling(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether the kernel tells of changes here."""
    if request.param == "silent":
        monkeypatch.setattr(watches, "silent_file_system", lambda _: "nfs")
    return str(request.param)


@pytest.fixture
async def watched(tmp_path: Path, telling: str) -> AsyncIterator[Watched]:
    """A log with a line, and a watch on it."""
    path = tmp_path / "a.log"
    path.write_text("first\n")
    watched = Watched(path)
    yield watched
    watched.close()


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write("more\n")


async def test_growth_again_and_again(watched: Watched) -> None:
    for _ in range(5):
        await watched.sees(lambda: append(watched.path))


async def test_rotation_and_what_is_written_then(watched: Watched) -> None:
    await watched.sees(lambda: watched.path.rename(watched.path.with_suffix(".1")))
    await watched.sees(watched.path.touch)
    await watched.sees(lambda: append(watched.path))
    await watched.sees(watched.path.unlink)
    await watched.sees(lambda: append(watched.path))


async def test_a_file_put_in_its_place(watched: Watched) -> None:
    for number in range(3):
        other = watched.path.with_name(f"other{number}")
        other.write_text("second, and longer\n" * (number + 1))
        await watched.sees(partial(other.rename, watched.path))
        await watched.sees(lambda: append(watched.path))
    await watched.sees(lambda: os.truncate(watched.path, 0))


async def test_through_a_link_that_is_set_anew(tmp_path: Path, telling: str) -> None:
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "real.log").write_text(name * len(name))
    link = tmp_path / "link.log"
    link.symlink_to("x/real.log")
    watched = Watched(link)
    await watched.sees(lambda: append(tmp_path / "x/real.log"))

    def turn() -> None:
        fresh = tmp_path / "fresh"
        fresh.symlink_to("y/real.log")
        fresh.rename(link)

    await watched.sees(turn)
    await watched.sees(lambda: append(tmp_path / "y/real.log"))
    await watched.sees((tmp_path / "y/real.log").unlink)
    await watched.sees(lambda: append(tmp_path / "y/real.log"))
    watched.close()


async def test_a_directory_that_is_not_there_yet(tmp_path: Path, telling: str) -> None:
    path = tmp_path / "later" / "a.log"
    watched = Watched(path)

    def make() -> None:
        path.parent.mkdir()
        path.touch()

    await watched.sees(make)
    await watched.sees(lambda: append(path))
    watched.close()


async def test_what_happened_between_two_waits_is_told_at_once(watched: Watched) -> None:
    await watched.sees(lambda: append(watched.path))
    append(watched.path)
    await asyncio.wait_for(watched.watch.changed(LONG_S), LONG_S / 2)
    assert watched.now() != watched.known


async def test_nothing_looks_while_nothing_happens(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.touch()
    watched = Watched(path)
    await watched.watch.changed(1.5)
    assert watched.looks == 1
    waiting = asyncio.create_task(watched.watch.changed(1.5))
    for number in range(50):  # beside it, which is none of its matter
        append(tmp_path / f"{number}.log")
        await asyncio.sleep(0)
    await waiting
    assert watched.looks == 2
    watched.close()


async def test_many_changes_are_told_of_now_and_then(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.touch()
    watched = Watched(path)
    told = 0
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while told < 5:
        append(path)
        await watched.watch.changed(LONG_S)
        told, watched.known = told + 1, watched.now()
    assert loop.time() - begun > 3 * watches.GAP_S
    watched.close()


async def test_closing_ends_a_wait(watched: Watched) -> None:
    waiting = asyncio.create_task(watched.watch.changed(LONG_S))
    await wait_until(lambda: watched.looks)
    watched.close()
    watched.close()
    await asyncio.wait_for(waiting, LONG_S / 2)
    await watched.watch.changed(LONG_S)


async def test_a_wait_can_be_cancelled_and_begun_again(watched: Watched) -> None:
    for _ in range(3):
        watched.looks = 0
        waiting = asyncio.create_task(watched.watch.changed(LONG_S))
        await wait_until(lambda: watched.looks)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await watched.sees(lambda: append(watched.path))


async def test_nothing_stays_open(tmp_path: Path) -> None:
    def held() -> int:
        return len(os.listdir("/proc/self/fd"))

    path = tmp_path / "a.log"
    path.touch()
    before = held()
    for _ in range(20):
        watched = Watched(path)
        await watched.sees(lambda: append(path))
        await watched.sees(path.unlink)
        await watched.sees(path.touch)
        watched.close()
    assert held() <= before + 1


async def test_without_any_more_watches_it_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: watches.Inotify, path: str, what: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(watches.Inotify, "add", none_left)
    path = tmp_path / "a.log"
    path.touch()
    watched = Watched(path)
    await watched.sees(lambda: append(path))
    watched.close()


def queues() -> int:
    """How many queues of the kernel this process has."""
    names = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return sum("inotify" in os.readlink(name) for name in names if os.path.lexists(name))


async def test_who_stops_waiting_holds_nothing_and_may_come_again(tmp_path: Path) -> None:
    """A user may have but so many queues: fs.inotify.max_user_instances."""
    path = tmp_path / "a.log"
    path.write_text("first\n")
    before, watched = queues(), Watched(path)
    waiting = asyncio.create_task(watched.watch.changed(LONG_S))
    await wait_until(lambda: queues() == before + 1)
    await stop(waiting)
    assert queues() == before
    await watched.sees(lambda: append(path))
    watched.close()
    assert queues() == before


SWEEP_S = 30.0


class FakeFiles(JobFiles):
    """Notes what was looked at: everything, or which jobs. A sweep takes `cost_s`."""

    def __init__(self, timer: Timer) -> None:
        super().__init__("", "")
        self._timer = timer
        self.looks: list[str | set[JobId]] = []
        self.cost_s = 0.0
        self.error: OSError | None = None

    def sweep(self, directory: int) -> None:
        self._timer.now += self.cost_s
        self._note("all")

    def check(self, directory: int, jids: Iterable[JobId]) -> None:
        self._note(set(jids))

    def _note(self, what: str | set[JobId]) -> None:
        self.looks.append(what)
        if self.error is not None:
            raise self.error


class FakeWatch(DirectoryWatch):
    """A watch that tells what a test lets it tell."""

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


class World:
    """A watch over a real directory, with everything else in a test's hand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDONLY)
        self.timer = Timer(1000.0)
        self.files = FakeFiles(self.timer)
        self.watches: list[FakeWatch] = []
        self.refusal: OSError | None = None
        self.silent: str | None = None
        self.changes = ChangeWatch(
            str(path), self.files, self._make, lambda path: self.silent, self.timer, SWEEP_S
        )

    def _make(self, path: str, wanted: Callable[[str], bool]) -> FakeWatch:
        assert path == str(self.path)
        assert wanted(f"{jid()}.json")
        assert not wanted("other.json")
        if self.refusal is not None:
            raise self.refusal
        status = os.fstat(self.fd)
        self.watches.append(FakeWatch(FileId(status.st_dev, status.st_ino)))
        return self.watches[-1]

    def begin(self) -> bool:
        return self.changes.begin()

    def look(self) -> str | set[JobId] | None:
        before = len(self.files.looks)
        self.changes.look(self.fd)
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
    assert world.changes.is_due
    assert world.begin()
    assert not world.changes.is_due
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
    assert "queue gone" in (world.changes.note or "")
    assert not world.changes.is_due
    world.timer.now += SWEEP_S
    assert world.changes.is_due
    assert world.begin()
    assert world.changes.note == ""
    assert [world.look(), world.look()] == ["all", None]


def test_a_removed_directory_is_watched_again_at_once(world: World) -> None:
    world.begin()
    world.look()
    world.watches[0].failure = REMOVED
    assert world.look() == "all"
    assert world.changes.is_due
    assert world.changes.note is None


def test_another_directory_in_its_place_is_noticed(world: World) -> None:
    world.begin()
    world.watches[0].directory = FileId(0, 0)
    assert world.look() == "all"
    assert (world.watches[0].closed, world.changes.is_due) == (1, True)


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
    assert text in (world.changes.note or "")
    assert not world.changes.is_due
    assert [world.look(), world.look()] == ["all", "all"]


def test_a_file_system_that_tells_nothing_is_not_watched(world: World) -> None:
    world.silent = "nfs4"
    assert not world.begin()
    assert not world.watches
    assert (world.changes.note or "").startswith("nfs4 does not tell of changes")


def test_closing_closes_the_watch(world: World) -> None:
    world.begin()
    world.changes.close()
    world.changes.close()
    assert world.watches[0].closed == 1


async def test_news_end_the_waiting(world: World) -> None:
    world.begin()
    waiting = asyncio.create_task(world.changes.wait(LONG_S))
    await asyncio.sleep(0)
    assert not waiting.done()
    world.watches[0].news.set()
    await asyncio.wait_for(waiting, LONG_S / 2)


async def test_dear_looks_without_notification_are_kept_apart(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    world.look()
    await world.changes.wait(2.0)
    world.files.cost_s = 3.0
    world.look()
    await world.changes.wait(2.0)
    assert slept == pytest.approx([2.0, 3.0 / UNWATCHED_SHARE])


MOUNTINFO = (Path(__file__).parents[1] / "fixtures" / "mountinfo").read_text()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/etc", "ext4"),
        ("/srv/sirepo", "nfs4"),
        ("/srv/sirepo/db", "nfs4"),
        ("/srv/sirepo/local/db", "xfs"),
        ("/srv/sirepolocal", "ext4"),
        ("/home/me/far away/db", "fuse.sshfs"),
        ("/mnt/scratch", "lustre"),
        ("/proc/1", "proc"),
    ],
)
def test_the_mount_that_holds_a_path(path: str, kind: str) -> None:
    assert file_system_of(path, MOUNTINFO) == kind


def test_nothing_mounted_is_nothing_known() -> None:
    assert file_system_of("/", "") is None


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/sirepo/db", "nfs4"),
        ("/home/me/far away", "fuse.sshfs"),
        ("/mnt/x", "lustre"),
        ("/srv/sirepo/local", None),
        ("/win", None),
        ("/tmp", None),
    ],
)
def test_which_file_systems_are_silent(
    path: str, kind: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mountinfo").write_text(MOUNTINFO)
    monkeypatch.setattr(watches, "MOUNTINFO", tmp_path / "mountinfo")
    assert silent_file_system(path) == kind


def test_where_mounts_are_not_told_of_notification_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "MOUNTINFO", tmp_path / "none")
    assert silent_file_system("/") is None


def test_a_link_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to(tmp_path / "far")
    (tmp_path / "mountinfo").write_text(
        f"1 0 0:1 / / rw - ext4 a rw\n2 1 0:2 / {tmp_path / 'far'} rw - nfs b rw\n"
    )
    monkeypatch.setattr(watches, "MOUNTINFO", tmp_path / "mountinfo")
    assert silent_file_system(str(tmp_path / "near")) == "nfs"
