"""The run directory as a program may leave it: anything can lie there, and nothing of it may do harm."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobtui.backends.run_dir import RunDirs
from jobtui.model.job_desk import FileKind, Unreadable
from tests.builders import HOSTILE


@pytest.fixture
async def dirs() -> AsyncIterator[RunDirs]:
    found = RunDirs(most_entries=20, part_bytes=100)
    yield found
    found.close()
    found.close()


async def test_files_by_name_with_size_and_time(dirs: RunDirs, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("one\n")
    (tmp_path / "in.json").write_text("{}")
    (tmp_path / "sub").mkdir()
    os.utime(tmp_path / "run.log", ns=(5, 7_000_000_001))
    listing = await dirs.list_files(str(tmp_path))
    assert [(file.name, file.kind) for file in listing.files] == [
        ("in.json", FileKind.FILE),
        ("run.log", FileKind.FILE),
        ("sub", FileKind.DIRECTORY),
    ]
    assert (listing.files[1].size, listing.files[1].written_at) == (4, 7_000_000_001)
    assert listing.left_out == 0


async def test_a_directory_full_of_files_is_looked_at_in_part(dirs: RunDirs, tmp_path: Path) -> None:
    for number in range(25):
        (tmp_path / f"frame{number:02d}").touch()
    listing = await dirs.list_files(str(tmp_path))
    assert (len(listing.files), listing.left_out) == (20, 5)


@pytest.mark.parametrize("path", ["missing", "a\0b", "file", "x" * 5_000])
async def test_what_is_no_directory_is_told(dirs: RunDirs, tmp_path: Path, path: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unreadable) as raised:
        await dirs.list_files(f"{tmp_path}/{path}")
    assert str(tmp_path) in str(raised.value)


async def test_a_small_file_is_given_whole(dirs: RunDirs, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_bytes(b'{"a": "\xff"}')
    for tail in (False, True):
        part = await dirs.read_file(str(tmp_path), "in.json", tail=tail)
        assert (part.text, part.is_whole, part.size) == ('{"a": "\ufffd"}', True, 10)


async def test_of_a_large_file_its_beginning_or_its_last_whole_lines(dirs: RunDirs, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("".join(f"step {number:04d}\n" for number in range(1_000)))
    head = await dirs.read_file(str(tmp_path), "run.log", tail=False)
    assert head.text.startswith("step 0000\n")
    assert (len(head.text), head.begin, head.is_to_end, head.is_whole) == (100, 0, False, False)
    tail = await dirs.read_file(str(tmp_path), "run.log", tail=True)
    assert tail.text.splitlines() == [f"step {number:04d}" for number in range(991, 1_000)]
    assert (tail.begin + len(tail.text), tail.is_to_end, tail.is_whole) == (10_000, True, False)


async def test_one_line_longer_than_what_is_read(dirs: RunDirs, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("x" * 1_000)
    part = await dirs.read_file(str(tmp_path), "run.log", tail=True)
    assert part.text == "x" * 100
    assert part.begin == 900


async def test_data_is_not_shown_as_text(dirs: RunDirs, tmp_path: Path) -> None:
    (tmp_path / "frame.h5").write_bytes(b"\x89HDF\r\n\x1a\n\0\0secret")
    part = await dirs.read_file(str(tmp_path), "frame.h5", tail=False)
    assert part.is_binary
    assert part.text == ""


async def test_links_pipes_and_directories_are_named_and_never_opened(dirs: RunDirs, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    (tmp_path / "outside").write_text("outside")
    (run_dir / "link").symlink_to("../outside")
    (run_dir / "loop").symlink_to("loop")
    os.mkfifo(run_dir / "pipe")
    (run_dir / "sub").mkdir()
    listing = await dirs.list_files(str(run_dir))
    kinds = {file.name: file.kind for file in listing.files}
    assert kinds == {
        "link": FileKind.LINK,
        "loop": FileKind.LINK,
        "pipe": FileKind.OTHER,
        "sub": FileKind.DIRECTORY,
    }
    for name in kinds:
        with pytest.raises(Unreadable, match=r"is (a|not)"):
            await dirs.read_file(str(run_dir), name, tail=True)


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "..", ".", "", "a/b", "missing", "n\0l"])
async def test_no_name_leads_out(dirs: RunDirs, tmp_path: Path, name: str) -> None:
    (tmp_path / "outside").write_text("outside")
    (tmp_path / "run").mkdir()
    with pytest.raises(Unreadable):
        await dirs.read_file(str(tmp_path / "run"), name, tail=False)


async def test_a_run_directory_may_itself_be_reached_by_a_link(dirs: RunDirs, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "run.log").write_text("here")
    (tmp_path / "user").symlink_to("real")
    assert (await dirs.read_file(str(tmp_path / "user"), "run.log", tail=True)).text == "here"


@pytest.mark.parametrize(
    "name", [text for text in HOSTILE if len(text) < 100 and "\0" not in text and "/" not in text]
)
async def test_hostile_names_are_names(dirs: RunDirs, tmp_path: Path, name: str) -> None:
    try:
        (tmp_path / name).write_text("x")
    except UnicodeEncodeError:
        os.close(os.open(os.fsencode(tmp_path) + b"/\xed\xa0\x80", os.O_CREAT | os.O_WRONLY))
    (file,) = (await dirs.list_files(str(tmp_path))).files
    assert (await dirs.read_file(str(tmp_path), file.name, tail=True)).name == file.name
