"""A change of a log file is told of, by the kernel or by looking; nothing wakes anybody in vain."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest

from jobtui.backends import inotify, log_watch
from jobtui.backends.log_watch import FileNews, Watch
from jobtui.backends.worker import Worker
from tests.waiting import LONG_S, wait_until


class Watched:
    """A watch on `path`, and how often it looked."""

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
        """Whether it is another than the one known."""
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
        """Let it go."""
        self.watch.close()
        self.worker.close()


@pytest.fixture(params=["told", "silent"])
def telling(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether the kernel tells of changes here."""
    if request.param == "silent":
        monkeypatch.setattr(log_watch, "silent_file_system", lambda _: "nfs")
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
    assert loop.time() - begun > 3 * log_watch.GAP_S
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
    def none_left(_: inotify.Inotify, path: str, what: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(inotify.Inotify, "add", none_left)
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
    before, news = queues(), FileNews([path])
    assert news.arm()
    waiting = asyncio.create_task(news.wait(LONG_S))
    await asyncio.sleep(0)
    assert queues() == before + 1
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert queues() == before
    assert news.arm()
    append(path)
    assert await news.wait(LONG_S)
    news.close()
    assert queues() == before
