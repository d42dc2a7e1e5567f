"""Answers about one job out of the sources of a session and from the disk. See `model.job_desk`."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from jobtui.backends.base import DetailSource, RewindableSource, Source, SourceError
from jobtui.backends.window import unwrapped
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId
from jobtui.model.job_desk import FilePart, LinePlace, Noted, Reached, RunListing, Unreadable
from jobtui.model.jobs import JobDetail
from jobtui.model.lines import RawLine
from jobtui.model.scripts import Answer, Wanted

if TYPE_CHECKING:
    from jobtui.backends.remote_dirs import RemoteDirs
    from jobtui.backends.run_dir import RunDirs

OVER_SSH = "ssh://"
EXPECTED_CHARACTERS = 200
"""How much of a line's text must still stand where it was."""
Told = Callable[[JobId], Awaitable[JobDetail | None]]


async def nothing_told(job_id: JobId) -> JobDetail | None:
    """No job is put together."""
    return None


@runtime_checkable
class HasEntries(Protocol):
    """A journal that can be asked for the entry behind a record. `backends.journal.source.Journal` is one."""

    async def lines_at(self, source: str, cursor: str, most: int) -> tuple[RawLine, ...]:
        """The line of an entry, and those that its process wrote next. Raises SourceError."""
        ...

    async def continuations(
        self, source: str, wanted: Mapping[str, int], ends: Callable[[str], bool]
    ) -> dict[str, list[str]]:
        """What follows some entries of a stream in their processes. Raises SourceError."""
        ...


class SessionDesk:
    """A `JobDesk` on the sources of a session, which may change while it runs.

    `reach_back` is what the session does to read its logs from an earlier time on, `told` what it knows of
    jobs that are put together out of several sources.
    """

    def __init__(
        self,
        sources: Callable[[], Sequence[Source]],
        reach_back: Callable[[Nanos, Callable[[Reached], None]], Awaitable[bool]],
        told: Told = nothing_told,
    ) -> None:
        self._told = told
        self._sources = sources
        self._reach_back = reach_back
        self._dirs: RunDirs | None = None
        self._remote: RemoteDirs | None = None

    def close(self) -> None:
        """Release the thread that reads run directories. It can be asked again; may be called twice."""
        if self._dirs is not None:
            self._dirs.close()

    def begins_after(self, at: Nanos) -> bool:
        """Whether a log was read from later than `at` only, and could be read from there."""
        return any(
            source.begins_after(at) for source in self._sources() if isinstance(source, RewindableSource)
        )

    async def reach_back(self, at: Nanos, progress: Callable[[Reached], None]) -> bool:
        """Read the logs again from `at` on; whether that was needed and done. Raises Unreadable."""
        try:
            return await self._reach_back(at, progress)
        except SourceError as error:
            raise Unreadable(str(error)) from error

    async def detail(self, job_id: JobId) -> JobDetail | None:
        """Everything stored about a job, from the first source that has it. Raises Unreadable."""
        if (told := await self._told(job_id)) is not None:
            return told
        problem: SourceError | None = None
        for source in self._sources():
            if not isinstance(source, DetailSource):
                continue
            try:
                if found := await source.detail(job_id):
                    return found
            except SourceError as error:
                problem = problem or error
        if problem is not None:
            raise Unreadable(str(problem)) from problem
        return None

    async def lines_behind(self, step: LinePlace, most: int) -> tuple[RawLine, ...]:
        """The line of a step and what continues its record. Raises Unreadable."""
        from jobtui.backends.logfile import LogFile  # the first paint does not need it

        if step.cursor is not None:
            return await self._entries_behind(step, step.cursor, most)
        file = next(
            (source for source in map(unwrapped, self._sources()) if source.name == step.source), None
        )
        if not isinstance(file, LogFile):
            return ()
        expected = step.text[:EXPECTED_CHARACTERS]
        number = step.line if step.line > 0 else None
        try:
            found = await file.lines_around(step.offset, 0, most - 1, line=number, expect=expected)
        except SourceError as error:
            raise Unreadable(str(error)) from error
        return record_of(found)

    async def _entries_behind(self, step: LinePlace, cursor: str, most: int) -> tuple[RawLine, ...]:
        """The same out of the journals that may have the entry."""
        problem: SourceError | None = None
        for source in map(unwrapped, self._sources()):
            if source.kind != "journald" or not isinstance(source, HasEntries):
                continue
            try:
                if found := await source.lines_at(step.source, cursor, most - 1):
                    return record_of(found)
            except SourceError as error:
                problem = problem or error
        if problem is not None:
            raise Unreadable(str(problem)) from problem
        return ()

    async def list_files(self, path: str) -> RunListing:
        """The entries of a run directory. Raises Unreadable."""
        return await self._dirs_of(path).list_files(path)

    async def read_file(self, path: str, name: str, *, tail: bool) -> FilePart:
        """The beginning of a file of a run directory, or its end. Raises Unreadable."""
        return await self._dirs_of(path).read_file(path, name, tail=tail)

    async def noted_on_cluster(self, paths: Iterable[str]) -> Noted | None:
        """What the agent on a cluster noted of a run."""
        from jobtui.backends.cluster_state import read_noted  # few jobs run on a cluster

        return await read_noted(self, paths)

    async def script(self, wanted: Wanted) -> Answer:
        """The script with which a job was submitted, out of the first place that has it."""
        from jobtui.backends.archive.finding import find_script  # few sites keep scripts

        return await find_script(self._sources(), wanted)

    def _dirs_of(self, path: str) -> "RunDirs | RemoteDirs":
        """What reads a directory; one on a cluster is named by an address."""
        if not path.startswith(OVER_SSH):
            if self._dirs is None:
                from jobtui.backends.run_dir import RunDirs  # the first paint does not need it

                self._dirs = RunDirs()
            return self._dirs
        if self._remote is None:
            from jobtui.backends.remote_dirs import RemoteDirs  # few look so far

            self._remote = RemoteDirs()
        return self._remote


def record_of(lines: Sequence[RawLine]) -> tuple[RawLine, ...]:
    """The first line, and those after it up to the next one that begins a record."""
    from jobtui.formats.parser import LINE  # the first paint does not need it

    ends = (at for at, raw in enumerate(lines) if at and LINE.match(raw.text))
    return tuple(lines[: next(ends, len(lines))])
