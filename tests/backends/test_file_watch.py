"""Notification of changed files, on a real directory."""

import errno
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobtui.backends import inotify
from jobtui.backends.file_watch import (
    OVERFLOWN,
    REMOVED,
    DirectoryId,
    KernelWatch,
    LibraryWatch,
    WatchMaker,
    watch_directory,
)
from tests.waiting import wait_for


class Seen:
    """What a watch told so far."""

    def __init__(self, path: Path, make: WatchMaker) -> None:
        self.woken = threading.Event()
        self.watch = make(str(path), lambda name: name.endswith(".json"), self.woken.set)
        self.names: set[str] = set()

    def told(self) -> set[str]:
        self.names |= self.watch.take()
        return self.names


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "watched"
    path.mkdir()
    return path


@pytest.fixture(params=[KernelWatch, LibraryWatch])
def make(request: pytest.FixtureRequest) -> WatchMaker:
    """Each kind of watch."""
    kind: WatchMaker = request.param
    return kind


@pytest.fixture
def seen(folder: Path, make: WatchMaker) -> Iterator[Seen]:
    made = Seen(folder, make)
    yield made
    made.watch.close()


def test_writing_renaming_and_removing_are_told_of(folder: Path, seen: Seen) -> None:
    (folder / "new.json").write_text("1")
    wait_for(lambda: seen.told() == {"new.json"})
    assert seen.woken.is_set()
    (folder / "b.tmp").write_text("2")
    (folder / "b.tmp").rename(folder / "b.json")
    wait_for(lambda: seen.told() == {"new.json", "b.json"})
    seen.names.clear()
    (folder / "new.json").unlink()
    wait_for(lambda: seen.told() == {"new.json"})
    assert seen.watch.failure is None


def test_names_nobody_wants_wake_nobody(folder: Path, seen: Seen) -> None:
    for number in range(20):
        (folder / f"{number}.tmp").write_text("")
    (folder / "below").mkdir()
    (folder / "below" / "deep.json").write_text("")
    (folder / "last.json").write_text("")
    wait_for(lambda: seen.told() == {"last.json"})


def test_it_says_which_directory_it_watches(folder: Path, seen: Seen) -> None:
    status = folder.stat()
    assert seen.watch.directory == DirectoryId(status.st_dev, status.st_ino)


@pytest.mark.parametrize("how", ["removed", "renamed"])
def test_a_directory_that_is_no_more_in_its_place_is_a_failure(how: str, folder: Path, seen: Seen) -> None:
    if how == "removed":
        shutil.rmtree(folder)
    else:
        folder.rename(folder.with_name("elsewhere"))
    folder.mkdir()
    wait_for(lambda: seen.watch.failure == REMOVED)
    assert seen.woken.is_set()


def test_a_name_that_is_no_text_is_told_of_or_a_failure(folder: Path, seen: Seen) -> None:
    (folder / "odd\udcff.json").write_text("")
    wait_for(lambda: seen.watch.failure is not None or seen.told() == {"odd\udcff.json"})
    assert seen.woken.is_set()


def test_more_than_the_kernel_can_hold_is_a_failure(folder: Path) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    paths = [folder / "a.json", folder / "b.json"]
    for path in paths:
        path.touch()
    begun, go_on = threading.Event(), threading.Event()

    def hold(name: str) -> bool:
        begun.set()
        return go_on.wait(30)

    watch = KernelWatch(str(folder), hold, lambda: None)
    os.utime(paths[0])
    wait_for(begun.is_set)
    for number in range(most + 10):  # which the watcher does not read meanwhile; equal ones in a row are one
        os.utime(paths[number % 2])
    go_on.set()
    wait_for(lambda: watch.failure == OVERFLOWN)
    watch.close()


def test_without_the_kernel_it_is_the_library(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking() -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(inotify, "_kernel", lacking)
    watch = watch_directory(str(folder), lambda _: True, lambda: None)
    assert isinstance(watch, LibraryWatch)
    watch.close()


def test_a_directory_that_is_not_there_is_an_oserror(tmp_path: Path, make: WatchMaker) -> None:
    with pytest.raises(OSError, match="nowhere"):
        Seen(tmp_path / "nowhere", make)


def test_closing_ends_the_thread_and_is_no_failure(folder: Path, make: WatchMaker) -> None:
    seen = Seen(folder, make)
    seen.watch.close()
    seen.watch.close()
    assert seen.watch.failure is None
    assert not [thread for thread in threading.enumerate() if thread.name == f"watch {folder}"]
