"""Answers about one job out of the sources of a session and from the disk. See `model.job_reader`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from functools import wraps
from socket import gethostname
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from jobtui.backends import base
from jobtui.backends.registry import LOG_FILE
from jobtui.model import job_reader as answers
from jobtui.model.clock import Nanos
from jobtui.model.health import FAULTS, SourceError
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail, newest
from jobtui.model.journal import JournalEntry, is_host
from jobtui.model.logs import RawLine, Reached
from jobtui.model.memory import JobMemory
from jobtui.model.numbers import read_json
from jobtui.model.ops import Step
from jobtui.model.pages import Log, LogUnreadable
from jobtui.model.scripts import Answer, Wanted
from jobtui.transport.worker import Worker

if TYPE_CHECKING:
    from jobtui.backends.sirepo.run_dir import RunDirs
    from jobtui.transport.remote_dir import RemoteDirs

Asked = ParamSpec("Asked")
Answered = TypeVar("Answered")
OVER_SSH = "ssh://"
MESSAGES_WITHIN_S = 10.0
"""How long a journal may take to give what was written around the end of a job."""


def _answering(
    ask: Callable[Concatenate["JobReader", Asked], Awaitable[Answered]],
) -> Callable[Concatenate["JobReader", Asked], Coroutine[Any, Any, Answered]]:
    """A question that cannot be answered raises Unreadable and nothing else, also for a fault of ours.

    A recorded answer is used if there is one. Each answer, or why there is none, goes to the observer.
    """

    @wraps(ask)
    async def answer(self: "JobReader", /, *asked: Asked.args, **named: Asked.kwargs) -> Answered:
        given = (*asked, *named.values())
        try:
            replayed = None if self._replayed is None else self._replayed(ask.__name__, given)
            found: Answered = await (ask(self, *asked, **named) if replayed is None else replayed)
        except Exception as error:
            is_known = isinstance(error, answers.Unreadable | LogUnreadable | SourceError)
            words = str(error) if is_known else FAULTS.note(error, "answering about a job").words
            self._report(ask.__name__, given, words)
            if isinstance(error, answers.Unreadable):
                raise
            raise answers.Unreadable(words) from error
        self._report(ask.__name__, given, found)
        return found

    return answer


class JobReader:
    """Answers questions about one job from the sources of a session, which may change while it runs.

    `reach_back` lets the session read its logs from an earlier time on, `detail_of` gives what it knows of
    jobs put together out of several sources, `recall` what is remembered of runs, `open_log` opens logs.
    `replayed` gives the recorded answer, None for what is never recorded; an `observer` gets each answer.
    """

    def __init__(
        self,
        sources: Callable[[], Sequence[base.Source]],
        reach_back: Callable[[Nanos, Callable[[Reached], None]], Awaitable[bool]],
        detail_of: base.DetailOf = lambda job_id: None,
        recall: Callable[[Job, str, Nanos], JobMemory] | None = None,
        *,
        open_log: Callable[[str], Log] | None = None,
        replayed: Callable[[str, Sequence[Any]], Awaitable[Any] | None] | None = None,
        observer: base.Observer | None = None,
    ) -> None:
        self._replayed, self._observer = replayed, observer
        self._detail_of = detail_of
        self._recall, self._open_log = recall, open_log
        self._held: dict[str, Log] = {}
        self._holders = 0
        self._worker = Worker("memory")
        self._sources = sources
        self._reach_back = reach_back
        self._dirs: RunDirs | None = None
        self._remote: RemoteDirs | None = None

    def _report(self, name: str, asked: Sequence[Any], answer: object) -> None:
        if self._observer is not None:
            self._observer.replied(name, asked, answer)

    def close(self) -> None:
        """Release the thread that reads run directories. It can be asked again; may be called twice."""
        if self._dirs is not None:
            self._dirs.close()

    def begins_after(self, at: Nanos) -> bool:
        """Whether a log was read only from after `at`, and could be read from there."""
        logs = (source for source in self._sources() if isinstance(source, base.RewindableSource))
        return any(log.begins_after(at) for log in logs)

    @_answering
    async def reach_back(self, at: Nanos, progress: Callable[[Reached], None]) -> bool:
        """Read the logs again from `at` on. True if that was needed and done.

        A cancelled call changes nothing. If it would have to read more than a limit, it raises Unreadable.
        """
        return await self._reach_back(at, progress)

    @_answering
    async def detail(self, job_id: JobId) -> JobDetail | None:
        """Everything stored about a job; None if no source has it."""
        if (detail := self._detail_of(job_id)) is not None:
            return base.with_files(detail, self._sources())
        problem: SourceError | None = None
        details: list[JobDetail] = []
        kind = None
        for source in self._sources():
            if not isinstance(source, base.DetailSource) or kind not in (None, source.kind):
                continue
            try:
                if found := await source.detail(job_id):
                    details.append(found)
                    kind = source.kind
            except SourceError as error:
                problem = problem or error
        if problem is not None and not details:
            raise problem
        return newest(details)

    @asynccontextmanager
    async def holding_logs(self) -> AsyncIterator[None]:
        """While this lasts, a log stays open from one line to the next: a packed one is unpacked once."""
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            while not self._holders and self._held:
                await self._held.popitem()[1].aclose()

    @_answering
    async def lines_behind(self, step: Step, most: int) -> tuple[RawLine, ...]:
        """The line of a step and those that continue its record, up to `most` lines.

        Empty if the log has another line there now, or if its source has no lines.
        """
        from jobtui.formats.parser import split  # the first paint does not need it

        if step.cursor is not None:
            return await self._entries_behind(step, step.cursor, most)
        is_file = any(source.name == step.source and LOG_FILE.made(source) for source in self._sources())
        if self._open_log is None or not is_file:
            return ()
        async with self.holding_logs():
            if (log := self._held.get(step.source)) is None:
                log = self._held[step.source] = self._open_log(step.source)
            with suppress(LogUnreadable):  # the line may be in a rotated file
                await log.look()
            position = await log.position_of(step.offset, step.text)
            found = () if position is None else (await log.after(position, most)).lines
        end = next((nth for nth, line in enumerate(found) if nth and split(line.text)), len(found))
        first, begin = step.line if step.line > 0 else None, step.offset - (position or 0)
        return tuple(
            RawLine(None if first is None else first + nth, begin + line.position, line.text)
            for nth, line in enumerate(found[:end])
        )

    async def _entries_behind(self, step: Step, cursor: str, most: int) -> tuple[RawLine, ...]:
        from jobtui.backends.journal.source import Journal  # the first paint does not need it

        problem: SourceError | None = None
        for source in self._sources():
            if not isinstance(source, Journal):
                continue
            try:
                found = await source.continuations(step.source, {cursor: step.offset}, most)
                if texts := found.get(cursor):
                    return tuple(RawLine(None, 0, text) for text in texts[:most])
            except SourceError as error:
                problem = problem or error
        if problem is not None:
            raise problem
        return ()

    @_answering
    async def list_files(self, path: str) -> answers.RunListing:
        return await self._dirs_of(path).list_files(path)

    @_answering
    async def read_file(self, path: str, name: str, *, tail: bool) -> answers.FilePart:
        return await self._dirs_of(path).read_file(path, name, tail=tail)

    @_answering
    async def noted_on_cluster(self, paths: Sequence[str]) -> answers.ClusterStatus | None:
        """The agent's status file of a run on a cluster, from the first of these directories that has one."""
        for path in paths:
            try:
                part = await self.read_file(path, answers.STATUS_FILE, tail=False)
                status = answers.sbatch_status(read_json(part.text))
            except (answers.Unreadable, ValueError):
                continue
            if status is not None:
                return answers.ClusterStatus(status, path)
        return None

    @_answering
    async def host_messages(
        self, host: str, journal: str, begin: Nanos, end: Nanos
    ) -> tuple[JournalEntry, ...]:
        """What the kernel, systemd, Docker and Slurm wrote on a host between two times of its clock.

        `journal` is the configured journal of the host; "" asks the journals that are sources.
        """
        from jobtui.backends.journal.source import Journal, maker_of, messages_of  # few ask
        from jobtui.formats.causes import load_kills

        if not journal and (host == "localhost" or is_host(gethostname(), host)):
            journal = "local"
        sources = (source for source in self._sources() if isinstance(source, Journal))
        makers = [maker_of(journal)] if journal else [source.make_reader for source in sources]
        if not makers:
            where = host or "its host"
            raise answers.Unreadable(f"no journal of {where} is configured: name it under [hosts]")
        found: list[JournalEntry] = []
        problems = []
        for make in makers:
            reader, writers = make(), load_kills().writers
            try:
                async with asyncio.timeout(MESSAGES_WITHIN_S):
                    found += await messages_of(reader, writers, host, begin, end, is_its_own=bool(journal))
            except (SourceError, TimeoutError) as error:
                problems.append(str(error) or f"{reader.name}: no answer in {MESSAGES_WITHIN_S:g} s")
            finally:
                await reader.aclose()
        if len(problems) == len(makers):
            raise answers.Unreadable(problems[0])
        return tuple(found)

    @_answering
    async def remembered(self, job: Job, text: str, now: Nanos) -> JobMemory:
        """What is known of finished runs: those that failed with this text, "" for none, and like ones."""
        if (recall := self._recall) is None:
            return JobMemory(now)
        return await self._worker.run(lambda: recall(job, text, now))

    @_answering
    async def script(self, wanted: Wanted) -> Answer:
        """The script with which a job was submitted, and the result of each source that was searched."""
        from jobtui.backends.archive.search import find_script  # few sites keep scripts

        return await find_script(self._sources(), wanted)

    def _dirs_of(self, path: str) -> "RunDirs | RemoteDirs | base.FileServer":
        """What reads a directory; one on a cluster or a server of files is named by an address."""
        servers = (source for source in self._sources() if isinstance(source, base.FileServer))
        if server := next((one for one in servers if path.startswith(f"{one.name}/")), None):
            return server
        if not path.startswith(OVER_SSH):
            if self._dirs is None:
                from jobtui.backends.sirepo.run_dir import RunDirs  # the first paint does not need it

                self._dirs = RunDirs()
            return self._dirs
        if self._remote is None:
            from jobtui.transport.remote_dir import RemoteDirs  # few look so far

            self._remote = RemoteDirs()
        return self._remote
