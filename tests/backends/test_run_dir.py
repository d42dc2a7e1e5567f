"""The run directory as a program may leave it, here and on a cluster: nothing of it may do harm."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest

from jobtui.backends.job_reader import SessionJobReader
from jobtui.backends.sirepo import run_dir
from jobtui.backends.sirepo.run_dir import RunDirs
from jobtui.model.clock import SECOND
from jobtui.model.job_reader import FileKind, Unreadable
from jobtui.transport import remote_dir as remote_dirs
from jobtui.transport.remote_dir import RemoteDirs
from tests.analysis.captured import ROOT
from tests.backends.journal.ssh_rig import SshClient, Sshd, needs_sshd
from tests.builders import HOSTILE
from tests.waiting import LONG_S


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


async def test_the_lines_before_a_part_are_counted_as_the_file_grows_or_is_written_again(
    dirs: RunDirs, tmp_path: Path
) -> None:
    log = tmp_path / "run.log"
    for count, width in [(5, 8), (50, 8), (70, 8), (70, 11), (9, 30), (90, 30)]:
        log.write_text("".join(f"{number:0{width}}\n" for number in range(count)))
        part = await dirs.read_file(str(tmp_path), "run.log", tail=True)
        assert part.lines_before == int(part.text.split("\n")[0])


async def test_lines_are_not_counted_where_that_is_too_much_to_read(
    dirs: RunDirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_dir, "COUNTED_BYTES", 100)
    (tmp_path / "run.log").write_text("line\n" * 100)
    assert (await dirs.read_file(str(tmp_path), "run.log", tail=True)).lines_before is None


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


async def test_a_database_may_be_reached_by_a_link(dirs: RunDirs, tmp_path: Path) -> None:
    (run := tmp_path / "real" / "user" / "UID" / "app" / "SIM" / "model").mkdir(parents=True)
    (run / "run.log").write_text("here")
    (tmp_path / "db").symlink_to("real")
    path = tmp_path / "db" / "user" / "UID" / "app" / "SIM" / "model"
    assert (await dirs.read_file(str(path), "run.log", tail=True)).text == "here"


@pytest.mark.parametrize("link", ["model", "SIM", "app", "UID"])
async def test_no_link_is_followed_where_a_job_can_make_one(dirs: RunDirs, tmp_path: Path, link: str) -> None:
    (other := tmp_path / "other" / "app" / "SIM" / "model").mkdir(parents=True)
    (other / "shadow").write_text("x")
    path = tmp_path / "user" / "UID" / "app" / "SIM" / "model"
    at = next(place for place in (path, *path.parents) if place.name == link)
    at.parent.mkdir(parents=True)
    real = {"model": other, "SIM": other.parent, "app": other.parent.parent, "UID": tmp_path / "other"}
    at.symlink_to(real[link])
    with pytest.raises(Unreadable, match="is a link"):
        await dirs.list_files(str(path))
    with pytest.raises(Unreadable, match="is a link"):
        await dirs.read_file(str(path), "shadow", tail=True)


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


HOSTILE_NAMES = "a'b\"c\\d!e $(touch owned) `touch owned`; touch owned"
SCRATCH = ROOT / "sbatch" / "scratch" / "jdoe" / "sirepo-dev" / "user" / "3pMDuIiL" / "myapp"
RUN_DIR = SCRATCH / "3pMDuIiL-e1oQ9PPU-activityAnimation"


@needs_sshd
async def test_a_run_directory_is_listed_and_its_files_are_read(server: Sshd) -> None:
    dirs = RemoteDirs()
    where = server.address_of(RUN_DIR)
    listing = await dirs.list_files(where)
    assert [file.name for file in listing.files] == sorted(os.listdir(RUN_DIR))
    assert (listing.path, listing.left_out) == (where, 0)
    for file in listing.files:
        status = (RUN_DIR / file.name).stat()
        assert (file.kind, file.size) == (FileKind.FILE, status.st_size)
        assert abs(file.written_at - status.st_mtime_ns) < SECOND
    for tail in (False, True):
        part = await dirs.read_file(where, "run.bash", tail=tail)
        assert part.text == (RUN_DIR / "run.bash").read_text()
        assert part.is_whole


@needs_sshd
async def test_what_is_noted_of_a_run_is_found_over_ssh(server: Sshd) -> None:
    async def never(*_: object) -> bool:
        return False

    job_reader = SessionJobReader(tuple, never)
    noted = await job_reader.noted_on_cluster(["/no/such/directory", server.address_of(RUN_DIR)])
    assert noted is not None
    assert (noted.status.slurm_id, noted.status.state) == ("12", "completed")
    assert await job_reader.noted_on_cluster(["/no/such/directory", server.address_of("/tmp")]) is None


@needs_sshd
async def test_large_files_are_read_in_part(
    server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_dirs, "PART_BYTES", 100)
    (tmp_path / "run.log").write_text("".join(f"line {number:04}\n" for number in range(1_000)))
    where, dirs = server.address_of(tmp_path), RemoteDirs()
    tail = await dirs.read_file(where, "run.log", tail=True)
    assert tail.text.splitlines()[-1] == "line 0999"
    assert tail.text.startswith("line ")
    assert (tail.begin + len(tail.text), tail.is_to_end) == (10_000, True)
    head = await dirs.read_file(where, "run.log", tail=False)
    assert (head.text[:9], head.begin, head.is_to_end) == ("line 0000", 0, False)


@needs_sshd
async def test_hostile_names_run_nothing_and_odd_files_are_not_opened(server: Sshd, tmp_path: Path) -> None:
    place = tmp_path / HOSTILE_NAMES
    place.mkdir()
    (place / HOSTILE_NAMES).write_text("in it")
    (place / "-n").write_text("an option")
    (place / "link").symlink_to("/etc/passwd")
    os.mkfifo(place / "pipe")
    (place / "data").write_bytes(b"a\0b")
    where, dirs = server.address_of(place), RemoteDirs()
    kinds = {file.name: file.kind for file in (await dirs.list_files(where)).files}
    assert kinds == {
        HOSTILE_NAMES: FileKind.FILE, "-n": FileKind.FILE, "data": FileKind.FILE,
        "link": FileKind.LINK, "pipe": FileKind.OTHER,
    }  # fmt: skip
    assert (await dirs.read_file(where, HOSTILE_NAMES, tail=True)).text == "in it"
    assert (await dirs.read_file(where, "-n", tail=False)).text == "an option"
    assert (await dirs.read_file(where, "data", tail=False)).is_binary
    for name in ("link", "pipe"):
        with pytest.raises(Unreadable, match="not a regular file"):
            await dirs.read_file(where, name, tail=True)
    for name in ("../x", "", ".", ".."):
        with pytest.raises(Unreadable, match="not the name of a file"):
            await dirs.read_file(where, name, tail=True)
    assert not [name for _, names, _ in os.walk(tmp_path) for name in names if name == "owned"]
    assert not os.path.exists("owned")  # noqa: ASYNC240 - a test may look


@needs_sshd
async def test_what_is_not_there_says_so(server: Sshd, tmp_path: Path) -> None:
    dirs = RemoteDirs()
    with pytest.raises(Unreadable, match="No such file"):
        await dirs.list_files(server.address_of(tmp_path / "none"))
    with pytest.raises(Unreadable, match="No such file"):
        await dirs.read_file(server.address_of(tmp_path), "none", tail=True)


@needs_sshd
async def test_an_answer_is_good_for_a_while(
    server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dirs, where = RemoteDirs(), server.address_of(tmp_path)
    before = [file.name for file in (await dirs.list_files(where)).files]
    (tmp_path / "new").write_text("x")
    assert [file.name for file in (await dirs.list_files(where)).files] == before
    monkeypatch.setattr(remote_dirs, "GOOD_FOR_S", 0.0)
    assert "new" in [file.name for file in (await dirs.list_files(where)).files]


WRONG = {
    "nobody": ("echo 'ssh: Could not resolve hostname cori: Name or service not known' >&2; exit 255",
               "no host is called cori"),
    "a password": ("echo 'jdoe@cori: Permission denied (publickey,password).' >&2; exit 255", "cori"),
    "a banner only": ("echo 'Welcome to cori'; exit 0", "cori"),
    "noise": ("head -c 3000000 /dev/zero", "cori"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
async def test_what_goes_wrong_is_one_line(case: str, client: SshClient) -> None:
    script, says = WRONG[case]
    client.replace(script)
    with pytest.raises(Unreadable, match=says) as raised:
        await RemoteDirs().list_files("ssh://cori/scratch")
    assert "\n" not in str(raised.value)


async def test_a_banner_before_the_answer_is_not_taken_for_it(client: SshClient) -> None:
    client.replace('echo "f 1 1 noise"; for last; do :; done; sh -c "$last"')
    listing = await RemoteDirs().list_files(f"ssh://cori{quote(str(RUN_DIR))}")
    assert [file.name for file in listing.files] == sorted(os.listdir(RUN_DIR))


async def test_who_does_not_answer_is_given_up(client: SshClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_dirs, "ANSWER_S", 0.3)
    client.replace("exec sleep 60")
    with pytest.raises(Unreadable, match="no answer"):
        await asyncio.wait_for(RemoteDirs().list_files("ssh://cori/scratch"), LONG_S)


@pytest.mark.parametrize(
    "where", ["ssh://cori", "ssh://-oProxyCommand=x/tmp", "ssh://a:b@cori/tmp", "ssh:///tmp"]
)
async def test_what_is_no_address_is_not_run(where: str, client: SshClient, tmp_path: Path) -> None:
    client.replace(f"touch {tmp_path}/ran")
    with pytest.raises(Unreadable):
        await RemoteDirs().list_files(where)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "head", ["", "x y z", "81a4 -", "41ed 10 10", "100000000 10 10", "ffffffffffffffff 1 1"]
)
async def test_an_answer_that_makes_no_sense_is_no_file(head: str, client: SshClient) -> None:
    find_mark = """mark=$(echo "$last" | grep -o '[0-9a-f]\\{16\\}' | head -n 1)"""
    client.replace(f'for last; do :; done; {find_mark}; echo $mark; echo "{head}"')
    with pytest.raises(Unreadable, match=r"no sense|not a regular file"):
        await RemoteDirs().read_file("ssh://cori/scratch", "run.log", tail=True)
