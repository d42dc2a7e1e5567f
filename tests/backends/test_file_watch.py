"""Notification of changed files, on a real directory."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobtui.backends.file_watch import REMOVED, DirectoryId, DirectoryWatch
from tests.waiting import wait_for


class Seen:
    """What a watch told so far."""

    def __init__(self, path: Path) -> None:
        self.woken = threading.Event()
        self.watch = DirectoryWatch(str(path), lambda name: name.endswith(".json"), self.woken.set)
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


def test_a_name_the_watcher_cannot_tell_is_a_failure(folder: Path, seen: Seen) -> None:
    (folder / "odd\udcff.json").write_text("")
    wait_for(lambda: seen.watch.failure is not None)
    assert seen.woken.is_set()


def test_a_directory_that_is_not_there_is_an_oserror(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        Seen(tmp_path / "nowhere")


def test_closing_ends_the_thread_and_is_no_failure(folder: Path) -> None:
    seen = Seen(folder)
    seen.watch.close()
    seen.watch.close()
    assert seen.watch.failure is None
    assert not [thread for thread in threading.enumerate() if thread.name == f"watch {folder}"]
