"""The files of jobs of jobsub that a Landscape keeps: `GET URL/job/<id>.tar.gz`, asked for one job at a time.

An archive is read in memory and never unpacked to disk. Both ends of each file are kept for recent jobs.
"""

import asyncio
import io
import tarfile
import time
from functools import partial
from posixpath import basename
from typing import NamedTuple
from urllib.parse import quote

from jobtui.backends.base import Batch, PolledSource
from jobtui.model.bounded import Bounded
from jobtui.model.clock import Nanos, time_of_seconds
from jobtui.model.health import rows_of
from jobtui.model.ids import JobId, condor_id
from jobtui.model.job_reader import FileKind, FilePart, RunFile, RunListing, Unreadable, part_of
from jobtui.model.specs import NO_ACCESS, Access, ReadWindow, SourceSpec
from jobtui.model.tables import tables_of
from jobtui.transport.http import HttpClient, HttpLimits, Response, ServerKind
from jobtui.transport.unpacking import FILE_PACKINGS, Unpacker, UnpackError

LIMITS = HttpLimits(connections=1, body_bytes=64 << 20, pauses_s=(1.0, 4.0))
UNPACKED_BYTES = 128 << 20
"""An archive with more in it is refused."""
PART_BYTES = 256 << 10
"""How many bytes are kept of the beginning of a file, and of its end."""
MOST_FILES = 500
JOBS_KEPT = 4
ARCHIVE_KIND = "application/gzip, application/x-gzip, application/octet-stream, */*;q=0.1"
FETCHLOG = ServerKind(**tables_of("jobtui.backends.fetchlog", "server"))


class _File(NamedTuple):
    """A file of an archive: its entry, its beginning and its end."""

    entry: RunFile
    head: bytes
    tail: bytes


class _Archive(NamedTuple):
    files: dict[str, _File]
    left_out: int
    note: str


class FetchLog(PolledSource):
    """One server. Its directories are addresses, `URL/job/<id>`."""

    kind = "fetchlog"
    good_for_s = 60.0
    """How long an archive counts as current: a job that runs writes more."""

    def __init__(self, url: str, access: Access = NO_ACCESS) -> None:
        self._http = HttpClient(url, FETCHLOG, access=access, limits=LIMITS)
        super().__init__(url, self._http)
        self._turn = asyncio.Lock()
        self._kept = Bounded[str, tuple[float, _Archive]](JOBS_KEPT)

    async def read(self, *, begins: bool) -> Batch:
        """Only checks that the server answers; it has no list of jobs."""
        answer = await self._http.ask("/", fine=(200, 204, 404, 405))
        if answer.is_login and b"<form" in answer.body.lower():
            raise self._http.refusal(answer)
        notes = [f"{path}: {archive.note}" for path, (_, archive) in self._kept.items() if archive.note]
        return Batch(note="; ".join(("fetchlog; asked for the files of one job at a time", *notes)))

    def directory_of(self, job_id: JobId) -> str | None:
        """Where the files of a job are; None for one that jobsub did not submit."""
        of_condor = condor_id(job_id)
        if of_condor is None or not of_condor.schedd or of_condor.proc is None:
            return None
        return f"{self.name}/job/{job_id}"

    async def list_files(self, path: str) -> RunListing:
        archive = await self._archive(path)
        files = sorted((file.entry for file in archive.files.values()), key=lambda entry: entry.name)
        return RunListing(path, tuple(files), archive.left_out, archive.note)

    async def read_file(self, path: str, name: str, *, tail: bool) -> FilePart:
        file = (await self._archive(path)).files.get(name)
        if file is None:
            raise Unreadable(f"{path}/{name}: is not among the files of the job")
        data, size = file.tail if tail else file.head, file.entry.size
        return part_of(name, data, size - len(data) if tail else 0, size, file.entry.written_at)

    async def _archive(self, path: str) -> _Archive:
        """The archive of a directory. Raises SourceError and Unreadable."""
        async with self._turn:
            known = self._kept.get(path)
            if known is not None and time.monotonic() - known[0] < self.good_for_s:
                return known[1]
            number = path.removeprefix(f"{self.name}/job/")
            asked = f"/job/{quote(number, safe='@')}.tar.gz"
            answer = await self._http.ask(asked, headers={"Accept": ARCHIVE_KIND}, fine=(200, 404))
            if answer.status == 404:
                raise Unreadable(f"{path}: it has no archive yet (404)")
            if answer.is_page:
                raise self._http.refusal(answer)
            archive = await asyncio.to_thread(_read, path, answer)
            self._kept[path] = time.monotonic(), archive
            return archive


def _read(path: str, answer: Response) -> _Archive:
    """The files of an archive, even if a proxy unpacked it. Raises Unreadable if it is none, or cut."""
    opener = next((one for head, one in FILE_PACKINGS.items() if answer.body.startswith(head)), None)
    unpacker = Unpacker(opener, UNPACKED_BYTES)
    try:
        data = b"".join(unpacker.feed(answer.body))
        unpacker.end()
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            members = [one for one in archive if not one.isdir()]
            end = data[archive.offset : archive.offset + tarfile.BLOCKSIZE]
        plain = [one for one in members if one.isfile() and not one.issparse() and basename(one.name)]
        if any(one.offset_data + one.size > len(data) for one in plain):
            raise tarfile.ReadError("its end is missing")
    except (tarfile.TarError, UnpackError, ValueError, OverflowError, RecursionError) as error:
        raise Unreadable(f"{path}: the archive cannot be read: {error}; ask again") from error
    is_cut = end != bytes(tarfile.BLOCKSIZE)  # a broken header, or nothing
    notes = ["the archive is incomplete: its end is missing, perhaps also files"] if is_cut else []
    kept = [*{basename(one.name): one for one in reversed(plain)}.values()][-MOST_FILES:]
    if lost := len(plain) - len(kept):
        notes.append(f"{lost:,} of its files are not read: of one name the first, {MOST_FILES} in all")
    made = rows_of(kept, partial(_file_of, memoryview(data)), lambda _, why: notes.append(why))
    files = {file.entry.name: file for file in made}
    return _Archive(files, len(members) - len(files) + is_cut, "; ".join(dict.fromkeys(notes)))


def _file_of(data: memoryview, member: tarfile.TarInfo) -> _File:
    body = data[member.offset_data : member.offset_data + member.size]
    written_at = time_of_seconds(member.mtime) or Nanos(0)
    entry = RunFile(basename(member.name), FileKind.FILE, member.size, written_at)
    return _File(entry, bytes(body[:PART_BYTES]), bytes(body[max(0, len(body) - PART_BYTES) :]))


def open_source(spec: SourceSpec, window: ReadWindow) -> FetchLog:
    return FetchLog(spec.target, spec.access)
