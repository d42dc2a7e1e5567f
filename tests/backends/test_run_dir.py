"""What a job left: the lines behind a step as they are now, and its run directory, here and on a cluster."""

import asyncio
import os
from collections.abc import AsyncIterator
from inspect import getmembers, iscoroutinefunction
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from jobtui.backends.job_reader import JobReader
from jobtui.backends.logfile import LogFile
from jobtui.backends.sirepo import run_dir
from jobtui.backends.sirepo.run_dir import RunDirs
from jobtui.backends.sirepo.source import SirepoDb
from jobtui.logs.pages import LogPages
from jobtui.model.clock import SECOND, Nanos, SystemClock
from jobtui.model.health import Faults
from jobtui.model.ids import JobId
from jobtui.model.job_reader import FileKind, FilePart, RunListing, Unreadable
from jobtui.model.scripts import Wanted
from jobtui.session import Session
from jobtui.transport import remote_dir as remote_dirs
from jobtui.transport.remote_dir import RemoteDirs
from tests.analysis.captured import ROOT
from tests.analysis.explain.cases import reach_back
from tests.backends.journal.rigs import RUNS_HERE, SshClient
from tests.builders import HOSTILE, a_job, a_step, some
from tests.rows import CAPTURES, ROWS
from tests.waiting import LONG_S


class Dirs:
    """Reads directories in one of both ways, 100 bytes of a file at most."""

    def __init__(self, found: RunDirs | RemoteDirs, address: str) -> None:
        self.found, self._address = found, address

    async def files(self, path: Path | str) -> RunListing:
        return await self.found.list_files(self._of(path))

    async def part(self, path: Path | str, name: str, *, tail: bool = True) -> FilePart:
        return await self.found.read_file(self._of(path), name, tail=tail)

    def _of(self, path: Path | str) -> str:
        return f"{self._address}{quote(str(path))}" if self._address else str(path)


@pytest.fixture
async def here(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Dirs]:
    monkeypatch.setattr(run_dir, "MOST_ENTRIES", 20)
    monkeypatch.setattr(run_dir, "PART_BYTES", 100)
    found = RunDirs()
    yield Dirs(found, "")
    found.close()
    found.close()


@pytest.fixture
def there(client: SshClient, monkeypatch: pytest.MonkeyPatch) -> Dirs:
    monkeypatch.setattr(remote_dirs, "PART_BYTES", 100)
    client.replace(RUNS_HERE)
    return Dirs(RemoteDirs(), "ssh://cori")


@pytest.fixture(params=["here", "there"])
def dirs(request: pytest.FixtureRequest) -> Dirs:
    found: Dirs = request.getfixturevalue(request.param)
    return found


async def test_files_by_name_with_size_and_time(dirs: Dirs, tmp_path: Path) -> None:
    (place := tmp_path / "run").mkdir()
    (place / "run.log").write_text("one\n")
    (place / "in.json").write_text("{}")
    (place / "sub").mkdir()
    os.utime(place / "run.log", ns=(5, 7_000_000_000))
    listing = await dirs.files(place)
    assert [(file.name, file.kind) for file in listing.files] == [
        ("in.json", FileKind.FILE), ("run.log", FileKind.FILE), ("sub", FileKind.DIRECTORY),
    ]  # fmt: skip
    assert (listing.files[1].size, listing.files[1].written_at, listing.left_out) == (4, 7 * SECOND, 0)


async def test_the_lines_before_a_part_are_counted_unless_they_are_many(
    here: Dirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "run.log"
    for count, width in [(5, 8), (50, 8), (70, 8), (70, 11), (9, 30), (90, 30)]:
        log.write_text("".join(f"{number:0{width}}\n" for number in range(count)))
        part = await here.part(tmp_path, "run.log")
        assert part.lines_before == int(part.text.split("\n")[0])
    monkeypatch.setattr(run_dir, "COUNTED_BYTES", 100)  # where that is too much to read they are not
    log.write_text("line\n" * 100)
    assert (await here.part(tmp_path, "run.log")).lines_before is None


async def test_of_a_full_directory_as_many_files_are_listed_as_may_be(
    dirs: Dirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_dirs, "MOST_ENTRIES", 20)
    (place := tmp_path / "run").mkdir()
    for number in range(25):
        (place / f"frame{number:02d}").touch()
    listing = await dirs.files(place)
    assert (len(listing.files), listing.left_out) == (20, 5)


@pytest.mark.parametrize("path", ["missing", "a\0b", "file", "x" * 5_000])
async def test_a_path_that_is_not_a_directory_is_reported(here: Dirs, tmp_path: Path, path: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unreadable) as raised:
        await here.files(f"{tmp_path}/{path}")
    assert str(tmp_path) in str(raised.value)


async def test_a_missing_run_directory_raises_unreadable(dirs: Dirs, tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"No such file|not on this machine"):
        await dirs.files(tmp_path / "none")
    with pytest.raises(Unreadable, match=r"none: no such file|No such file"):
        await dirs.part(tmp_path, "none")


@pytest.mark.parametrize("tail", [False, True])
async def test_a_small_file_is_whole_and_data_is_not_text(dirs: Dirs, tmp_path: Path, tail: bool) -> None:
    (tmp_path / "in.json").write_bytes(b'{"a": "\xff"}')
    (tmp_path / "frame.h5").write_bytes(b"\x89HDF\r\n\x1a\n\0\0secret")
    part = await dirs.part(tmp_path, "in.json", tail=tail)
    assert (part.text, part.is_whole, part.size) == ('{"a": "\ufffd"}', True, 10)
    data = await dirs.part(tmp_path, "frame.h5", tail=tail)
    assert (data.is_binary, data.text) == (True, "")
    (tmp_path / "hole.log").write_bytes(b"\0" * 40 + b"KeyError: 'a'\n" + b"\0" * 20)
    assert (await dirs.part(tmp_path, "hole.log", tail=tail)).text == "\0KeyError: 'a'\n\0"


async def test_a_large_file_is_read_at_its_beginning_or_end(dirs: Dirs, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("".join(f"step {number:04d}\n" for number in range(1_000)))
    head = await dirs.part(tmp_path, "run.log", tail=False)
    assert head.text.startswith("step 0000\n")
    assert (len(head.text), head.begin, head.is_to_end, head.is_whole) == (100, 0, False, False)
    tail = await dirs.part(tmp_path, "run.log")
    assert tail.text.splitlines() == [f"step {number:04d}" for number in range(991, 1_000)]
    assert (tail.begin + len(tail.text), tail.is_to_end, tail.is_whole) == (10_000, True, False)
    (tmp_path / "long").write_text("x" * 1_000)
    line = await dirs.part(tmp_path, "long")
    assert (line.text, line.begin) == ("x" * 100, 900)


async def test_links_pipes_and_directories_are_named_and_never_opened(dirs: Dirs, tmp_path: Path) -> None:
    (place := tmp_path / "run").mkdir()
    (tmp_path / "outside").write_text("outside")
    (place / "link").symlink_to("../outside")
    (place / "loop").symlink_to("loop")
    os.mkfifo(place / "pipe")
    (place / "sub").mkdir()
    kinds = {file.name: file.kind for file in (await dirs.files(place)).files}
    assert kinds == {
        "link": FileKind.LINK, "loop": FileKind.LINK, "pipe": FileKind.OTHER, "sub": FileKind.DIRECTORY,
    }  # fmt: skip
    for name in kinds:
        with pytest.raises(Unreadable, match=r"is (a|not)"):
            await dirs.part(place, name)


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "..", ".", "", "a/b", "missing", "n\0l"])
async def test_no_name_leads_outside_the_directory(dirs: Dirs, tmp_path: Path, name: str) -> None:
    (tmp_path / "outside").write_text("outside")
    (tmp_path / "run").mkdir()
    with pytest.raises(Unreadable):
        await dirs.part(tmp_path / "run", name, tail=False)


async def test_a_database_may_be_reached_by_a_link(dirs: Dirs, tmp_path: Path) -> None:
    (run := tmp_path / "real" / "user" / "UID" / "app" / "SIM" / "model").mkdir(parents=True)
    (run / "run.log").write_text("here")
    (tmp_path / "db").symlink_to("real")
    path = tmp_path / "db" / "user" / "UID" / "app" / "SIM" / "model"
    assert (await dirs.part(path, "run.log")).text == "here"


@pytest.mark.parametrize("link", ["model", "SIM", "app", "UID"])
async def test_no_link_is_followed_where_a_job_can_make_one(here: Dirs, tmp_path: Path, link: str) -> None:
    (other := tmp_path / "other" / "app" / "SIM" / "model").mkdir(parents=True)
    (other / "shadow").write_text("x")
    path = tmp_path / "user" / "UID" / "app" / "SIM" / "model"
    at = next(place for place in (path, *path.parents) if place.name == link)
    at.parent.mkdir(parents=True)
    real = {"model": other, "SIM": other.parent, "app": other.parent.parent, "UID": tmp_path / "other"}
    at.symlink_to(real[link])
    with pytest.raises(Unreadable, match="is a link"):
        await here.files(path)
    with pytest.raises(Unreadable, match="is a link"):
        await here.part(path, "shadow")


COMMANDS = "a'b\"c\\d!e $(touch owned) `touch owned`; touch owned"
NAMES = [text for text in HOSTILE if len(text) < 100 and "\0" not in text and "/" not in text]


async def test_hostile_names_are_names(dirs: Dirs, tmp_path: Path) -> None:
    (place := tmp_path / COMMANDS).mkdir()
    for name in (*NAMES, COMMANDS, "-n"):
        try:
            (place / name).write_text("in it")
        except UnicodeEncodeError:
            if not isinstance(dirs.found, RemoteDirs):  # no answer of a cluster has such a name
                os.close(os.open(os.fsencode(place) + b"/\xed\xa0\x80", os.O_CREAT | os.O_WRONLY))
    files = (await dirs.files(place)).files
    assert len(files) == len(os.listdir(place))
    for file in files:
        assert (await dirs.part(place, file.name)).name == file.name
    assert not [one for _, names, _ in os.walk(tmp_path) for one in names if one == "owned"]
    assert not os.path.exists("owned")  # noqa: ASYNC240 - a test may look


SCRATCH = ROOT / "sbatch" / "scratch" / "jdoe" / "sirepo-dev" / "user" / "3pMDuIiL" / "myapp"
RUN_DIR = SCRATCH / "3pMDuIiL-e1oQ9PPU-activityAnimation"


async def test_the_note_of_a_job_on_its_cluster_is_found(client: SshClient) -> None:
    client.replace(RUNS_HERE)
    where, other = f"ssh://cori{quote(str(RUN_DIR))}", "ssh://cori/tmp"
    noted = some(await JobReader(tuple, reach_back).noted_on_cluster(["/no/such/directory", where]))
    assert (noted.status.slurm_id, noted.status.state) == ("12", "completed")
    assert await JobReader(tuple, reach_back).noted_on_cluster(["/no/such/directory", other]) is None


async def test_an_answer_holds_a_while(there: Dirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = [file.name for file in (await there.files(tmp_path)).files]
    (tmp_path / "new").write_text("x")
    assert [file.name for file in (await there.files(tmp_path)).files] == before
    monkeypatch.setattr(remote_dirs, "GOOD_FOR_S", 0.0)
    assert "new" in [file.name for file in (await there.files(tmp_path)).files]


@pytest.mark.parametrize(("case", "script", "says"), ROWS["faults of a host"])
async def test_each_fault_is_one_line(
    client: SshClient, monkeypatch: pytest.MonkeyPatch, case: str, script: str, says: str
) -> None:
    client.replace(script)
    if case == "no answer":
        monkeypatch.setattr(remote_dirs, "ANSWER_S", 0.3)
    with pytest.raises(Unreadable, match=says) as raised:
        await asyncio.wait_for(RemoteDirs().list_files("ssh://cori/scratch"), LONG_S)
    assert "\n" not in str(raised.value)


async def test_a_banner_before_the_answer_is_not_taken_for_it(there: Dirs, client: SshClient) -> None:
    client.replace(f'echo "f 1 1 noise"; {RUNS_HERE}')
    assert [file.name for file in (await there.files(RUN_DIR)).files] == sorted(os.listdir(RUN_DIR))


@pytest.mark.parametrize(
    "where", ["ssh://cori", "ssh://-oProxyCommand=x/tmp", "ssh://a:b@cori/tmp", "ssh:///tmp"]
)
async def test_text_that_is_not_an_address_is_not_run(where: str, client: SshClient, tmp_path: Path) -> None:
    client.replace(f"touch {tmp_path}/ran")
    with pytest.raises(Unreadable):
        await RemoteDirs().list_files(where)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "head", ["", "x y z", "81a4 -", "41ed 10 10", "100000000 10 10", "ffffffffffffffff 1 1"]
)
async def test_an_answer_that_is_not_understood_is_not_a_file(head: str, client: SshClient) -> None:
    find_mark = """mark=$(echo "$last" | grep -o '[0-9a-f]\\{16\\}' | head -n 1)"""
    client.replace(f'for last; do :; done; {find_mark}; echo $mark; echo "{head}"')
    with pytest.raises(Unreadable, match=r"not understood|not a regular file"):
        await RemoteDirs().read_file("ssh://cori/scratch", "run.log", tail=True)


LOCAL = CAPTURES / "local"
RECORD = (
    "Nov 20 20:34:36  9061     0 job_supervisor.py:10:run _Op(run, pb5u) failed\n"
    "Traceback (most recent call last):\n"
    "  File x\n"
    "Nov 20 20:34:37  9061     0 job_supervisor.py:11:run _Op(run, pb5u) next\n"
)


async def test_a_record_with_its_continuation_and_not_the_next_one_or_none(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.log"
    path.write_text(RECORD)
    file, logs = LogFile(path), [LogPages(path) for _ in range(7)]
    opened = iter(logs)
    job_reader = JobReader(lambda: (file,), reach_back, open_log=lambda name: next(opened))
    step = a_step(text="_Op(run, pb5u) failed", source=str(path), line=1, offset=0)
    lines = await job_reader.lines_behind(step, 10)
    assert [(line.line, line.text) for line in lines] == [*enumerate(RECORD.splitlines()[:3], 1)]
    async with job_reader.holding_logs():
        assert [len(await job_reader.lines_behind(step, most)) for most in (1, 2)] == [1, 2]
    assert [log._closed for log in logs] == [True, True, *[False] * 5]
    path.rename(tmp_path / "supervisor.log.1")
    assert len(await job_reader.lines_behind(step, 10)) == 3
    path.write_text("x" * 10 + "\n" + RECORD)
    assert len(await job_reader.lines_behind(step, 10)) == 3
    (tmp_path / "supervisor.log.1").unlink()
    assert await job_reader.lines_behind(step, 10) == ()
    path.unlink()
    with pytest.raises(Unreadable, match="no such file"):
        await job_reader.lines_behind(step, 10)
    await file.aclose()
    assert await JobReader(lambda: (), reach_back).lines_behind(a_step(), 10) == ()


async def test_every_line_of_a_capture_is_found_again() -> None:
    logs = [LogFile(LOCAL / "supervisor.log"), LogFile(LOCAL / "server.log")]
    async with Session([SirepoDb(LOCAL), *logs], SystemClock()) as session:
        await session.catch_up()
        job_reader = session.job_reader()
        steps = [step for op in session.store.correlation.ops() for step in op.steps]
        assert len(steps) > 100
        for step in steps[:: max(1, len(steps) // 60)]:
            first, *_ = await job_reader.lines_behind(step, 5)
            assert (first.line, first.offset) == (step.line, step.offset)


async def test_the_record_of_a_job_or_why_there_is_none(tmp_path: Path) -> None:
    job_id = JobId("DJouDZ9T-4F4EUZjI-heightWeightReport")
    db, gone = SirepoDb(LOCAL), SirepoDb(tmp_path / "none")
    detail = some(await JobReader(lambda: (db,), reach_back).detail(job_id))
    assert detail.path == f"{LOCAL}/supervisor-job/{job_id}.json"
    assert await JobReader(lambda: (gone, db), reach_back).detail(job_id) == detail
    with pytest.raises(Unreadable, match="none"):
        await JobReader(lambda: (gone,), reach_back).detail(job_id)
    await db.aclose()
    await gone.aclose()


ASKED: dict[str, tuple[Any, ...]] = {
    "reach_back": (Nanos(0), lambda reached: None),
    "detail": (JobId("a"),),
    "lines_behind": (a_step(), 5),
    "list_files": ("/run",),
    "read_file": ("/run", "a"),
    "noted_on_cluster": (None,),
    "host_messages": ("v4", "", Nanos(0), Nanos(1)),
    "remembered": (a_job(), "x", Nanos(0)),
    "script": (Wanted("1"),),
}


@pytest.mark.parametrize(
    "question", [name for name, _ in getmembers(JobReader, iscoroutinefunction) if name[0] != "_"]
)
async def test_a_fault_in_answering_is_said(question: str, expected_faults: Faults) -> None:
    def fail(*asked: object) -> Any:
        raise LookupError("hunter2")

    job_reader = JobReader(fail, fail, fail, fail)
    named = {"tail": False} if question == "read_file" else {}
    with pytest.raises(Unreadable) as raised:
        await getattr(job_reader, question)(*ASKED[question], **named)
    (fault,) = expected_faults.all()
    assert (str(raised.value), fault.stage) == (fault.words, "answering about a job")
