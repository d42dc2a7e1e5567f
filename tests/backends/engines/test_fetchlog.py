"""The files of jobs that a Landscape keeps: in lists, in logs, in the failing line, and what may be wrong."""

import gzip
import io
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from jobtui.backends.fetchlog import FetchLog
from jobtui.model.health import SourceError
from jobtui.model.ids import JobId
from jobtui.model.job_reader import Unreadable
from jobtui.model.specs import Access
from jobtui.transport.http import Limits
from tests.carried import carried
from tests.commands.running import Runner
from tests.condor import SCHEDD, event, executing, submitted
from tests.loopback import response, served

URL = "https://landscape.test/fetchlog"
JOB = f"7.0@{SCHEDD}"
TOKEN = "token-of-the-experiment"
OUTPUT = 'setup done\nTraceback (most recent call last):\n  File "a.py", line 1\nValueError: no such beam\n'


def archive(files: dict[str, str], **more: str) -> bytes:
    """An archive with these files, and with links, as fetchlog sends it."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(text.encode()), 1_795_207_000
            tar.addfile(member, io.BytesIO(text.encode()))
        for name, target in more.items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)
    return data.getvalue()


FILES = archive({f"{JOB}/beam.out": OUTPUT, f"{JOB}/beam.err": "x" * 300_000}, passwd="/etc/passwd")


def kept(body: bytes = FILES, status: int = 200, **headers: str) -> tuple[FetchLog, list[str]]:
    asked: list[str] = []
    said = {"content-type": "application/gzip"} | {n.replace("_", "-"): v for n, v in headers.items()}

    def answer(request: httpx.Request) -> httpx.Response:
        assert (request.method, request.headers["authorization"]) == ("GET", f"Bearer {TOKEN}")
        asked.append(request.url.path)
        return response(status, body, said)

    return carried(FetchLog(URL, Access(bearer=TOKEN)), httpx.MockTransport(answer), Limits()), asked


async def test_the_files_of_a_job_are_asked_for_once_and_read_in_parts() -> None:
    server, asked = kept()
    path = server.directory_of(JobId(JOB))
    assert path == f"{URL}/job/{JOB}"
    listing = await server.list_files(path)
    assert [(file.name, file.size) for file in listing.files] == [("beam.err", 300_000), ("beam.out", 93)]
    assert listing.left_out == 1
    whole = await server.read_file(path, "beam.out", tail=True)
    assert (whole.text, whole.is_whole) == (OUTPUT, True)
    tail = await server.read_file(path, "beam.err", tail=True)
    assert (tail.is_whole, tail.is_to_end, tail.size) == (False, True, 300_000)
    with pytest.raises(Unreadable, match="is not among the files"):
        await server.read_file(path, "../passwd", tail=False)
    assert asked == [f"/fetchlog/job/{JOB}.tar.gz"]
    await server.aclose()


def test_only_jobs_of_jobsub_have_files_there() -> None:
    server, _ = kept()
    for other in ("7.0", f"7@{SCHEDD}", "slurm/7", "vn9mPEFC-abcdefgh-animation"):
        assert server.directory_of(JobId(other)) is None


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((b"{}", 404), "there is no archive of it (404)"),
        ((b"{}", 403), "the token is of another experiment"),
        ((FILES[:200], 200), "cut off"),
        ((gzip.compress(gzip.decompress(FILES)[:1_000]), 200), "the archive cannot be read"),
        ((b"no archive", 200), "the archive cannot be read"),
        ((gzip.compress(bytes(200 << 20)), 200), "times as large"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_each_fault_is_one_clear_line(answer: tuple[bytes, int], words: str) -> None:
    server, _ = kept(*answer)
    with pytest.raises((Unreadable, SourceError)) as raised:
        await server.list_files(f"{URL}/job/{JOB}")
    assert words in str(raised.value)
    assert TOKEN not in str(raised.value)
    assert "\n" not in str(raised.value)


async def test_an_archive_that_a_proxy_has_unpacked_is_read_too() -> None:
    server, _ = kept(FILES, content_encoding="gzip")
    assert len((await server.list_files(f"{URL}/job/{JOB}")).files) == 2


def test_the_failing_line_and_the_log_are_of_its_files(run: Runner, tmp_path: Path) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return response(200, FILES) if request.url.path == f"/job/{JOB}.tar.gz" else response(404)

    ended = event(5, "2026-11-20 10:02:00Z", "Job terminated.", "\t(1) Normal termination (return value 1)")
    log = tmp_path / "job.log"
    log.write_text(submitted() + executing() + ended)
    with served(SimpleNamespace(answer=answer)) as url:
        flags = ("--condor-log", log, "--fetchlog", url)
        document: Any = run("explain", JOB, "--json", *flags).json
        assert "no such beam" in document["sentence"]
        assert document["cause"]["source"] == f"{url}/job/{JOB}/beam.out"
        printed = run("logs", JOB, "--json", *flags).json["lines"]
        assert any("no such beam" in line["text"] for line in printed)
        doctor = run("doctor", "--json", *flags).json["checks"]
    assert [check["state"] for check in doctor if check["kind"] == "fetchlog"] == ["ok"]
