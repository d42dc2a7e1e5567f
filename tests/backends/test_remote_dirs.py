"""A directory on a cluster, read over ssh: a real sshd on loopback, and a stand-in that goes wrong."""

import asyncio
import os
from pathlib import Path
from urllib.parse import quote

import pytest

from jobtui.backends import remote_dirs
from jobtui.backends.job_desk import SessionDesk
from jobtui.backends.remote_dirs import RemoteDirs
from jobtui.model.clock import SECOND
from jobtui.model.job_desk import FileKind, Unreadable
from tests.analysis.captured import ROOT
from tests.backends.journal.ssh_rig import SshClient, Sshd, needs_sshd
from tests.waiting import LONG_S

HOSTILE = "a'b\"c\\d!e $(touch owned) `touch owned`; touch owned"
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

    desk = SessionDesk(tuple, never)
    noted = await desk.noted_on_cluster(["/no/such/directory", server.address_of(RUN_DIR)])
    assert noted is not None
    assert (noted.status.slurm_id, noted.status.state) == ("12", "completed")
    assert await desk.noted_on_cluster(["/no/such/directory", server.address_of("/tmp")]) is None


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
    place = tmp_path / HOSTILE
    place.mkdir()
    (place / HOSTILE).write_text("in it")
    (place / "-n").write_text("an option")
    (place / "link").symlink_to("/etc/passwd")
    os.mkfifo(place / "pipe")
    (place / "data").write_bytes(b"a\0b")
    where, dirs = server.address_of(place), RemoteDirs()
    kinds = {file.name: file.kind for file in (await dirs.list_files(where)).files}
    assert kinds == {
        HOSTILE: FileKind.FILE, "-n": FileKind.FILE, "data": FileKind.FILE,
        "link": FileKind.LINK, "pipe": FileKind.OTHER,
    }  # fmt: skip
    assert (await dirs.read_file(where, HOSTILE, tail=True)).text == "in it"
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


@pytest.mark.parametrize("head", ["", "x y z", "81a4 -", "41ed 10 10"])
async def test_an_answer_that_makes_no_sense_is_no_file(head: str, client: SshClient) -> None:
    find_mark = """mark=$(echo "$last" | grep -o '[0-9a-f]\\{16\\}' | head -n 1)"""
    client.replace(f'for last; do :; done; {find_mark}; echo $mark; echo "{head}"')
    with pytest.raises(Unreadable, match=r"no sense|not a regular file"):
        await RemoteDirs().read_file("ssh://cori/scratch", "run.log", tail=True)
