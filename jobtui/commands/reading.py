"""Reading for one-shot commands: only the sources that a question needs, once, and no further than it needs.

It can take its time: progress goes to stderr on a terminal, and ctrl+c ends the reading and not the command,
which then prints what there is and says that it is partial.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from jobtui.backends.base import Announced, Source, SourceError
from jobtui.backends.discovery import Surroundings, discover, looked_for
from jobtui.backends.registry import (
    JOB_KINDS,
    KINDS,
    LOG_KINDS,
    TOLD_KINDS,
    TRACE_KINDS,
    TRACE_SETTINGS,
    Window,
    announce,
    build,
    gives_jobs,
    gives_logs,
    gives_spans,
    keeps_scripts,
)
from jobtui.backends.window import Until
from jobtui.commands.clusters import KIND as COPIES_KIND
from jobtui.commands.clusters import copies_below, users_asked_for
from jobtui.commands.context import Context
from jobtui.commands.exits import Exit
from jobtui.commands.progress import show_progress
from jobtui.commands.sites import KIND as SITE_LOGS_KIND
from jobtui.commands.sites import site_logs
from jobtui.commands.streams import complain
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.condor_ids import condor_id
from jobtui.model.health import Skip, SourceHealth, SourceState
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobDetail
from jobtui.model.specs import SourceSpec, told_apart
from jobtui.session import Session

if TYPE_CHECKING:
    from jobtui.backends.staging import Witness

WHOLE_BYTES = 16 << 20
"""A log up to this size is read whole for a question about one job: its agents began long before it."""
STRETCH_BYTES = 16 << 20
"""If more than this follows a job's last run, reading ends when the run has been over for SLACK_S."""
SLACK_S = 600
"""How much is read before the submission of a run and after its end, seconds."""
JOURNAL = "journal"
OTLP_LISTEN = "otlp_listen"
JOURNAL_WINDOW_S = 2 * 3600
"""How far back a journal is read when no job is asked for, seconds."""
RUNS_WITHIN_S = 24 * 3600
"""Earlier runs of a job are read out of a journal when they were submitted so long before the last."""


@runtime_checkable
class ListsJobs(Protocol):
    """A source that can name its jobs without reading them."""

    async def job_ids(self) -> list[JobId]:
        """The id of every job. Raises SourceError."""
        ...


class Reader:
    """A session that a command fills step by step with what it needs."""

    def __init__(self, context: Context, session: Session, specs: Sequence[SourceSpec]) -> None:
        self.context = context
        self.session = session
        self.specs = tuple(specs)
        self.partial = False
        self.logs_read = False

    @property
    def now(self) -> Nanos:
        """The present time, or the one that `--at` says."""
        return self.context.clock.now()

    @property
    def sources(self) -> tuple[SourceHealth, ...]:
        """The sources that were read."""
        return self.session.store.sources()

    @property
    def nothing_read(self) -> bool:
        """Whether not one of the sources could be read."""
        return bool(self.sources) and all(source.state is SourceState.DOWN for source in self.sources)

    def add_job_sources(self) -> None:
        """Take in the sources that know of jobs; nothing is read yet."""
        if not any(source.kind in JOB_KINDS for source in self.session.sources):
            for spec in self.specs:
                if gives_jobs(spec):
                    self.session.add(build(spec, Window(since=self.context.since)))

    @property
    def roots(self) -> tuple[str, ...]:
        """The database roots that are configured."""
        return tuple(spec.target for spec in self.specs if spec.setting == "srdb")

    async def read_agents(self) -> None:
        """Read what the logs say of agents, as far as is usual."""
        await self.read_logs(None)

    async def read_jobs(self) -> None:
        """Read every job there is; out of logs alone when no source knows of jobs."""
        self.add_job_sources()
        if self.session.sources:
            await self.watched(self.session.catch_up())
        else:
            await self.read_logs(None)

    async def look_up(self, job_id: JobId) -> JobDetail | None:
        """Everything stored about one job, without reading others."""
        self.add_job_sources()
        if condor_id(job_id) is not None and any(s.kind in TOLD_KINDS for s in self.session.sources):
            await self.watched(self.session.catch_up(TOLD_KINDS))
        return await self.session.look_up(job_id)

    async def job_ids(self) -> list[str]:
        """The id of every job, without reading their records where that can be helped."""
        ids: list[str] = list(self.session.store.jobs)
        for source in self.session.sources:
            if isinstance(source, ListsJobs):
                with suppress(SourceError):
                    ids += await source.job_ids()
        return ids

    async def read_logs(self, detail: JobDetail | None, *, to_end: bool = False) -> None:
        """Read the logs as far as a question about this job needs, or their ends when there is none.

        With `to_end` they can be followed afterwards.
        """
        if self.logs_read:
            return
        self.logs_read = True
        for spec in self.specs:
            if gives_logs(spec):
                self.session.add(await self._log(spec, detail, to_end=to_end))
        await self.watched(self.session.catch_up(LOG_KINDS))
        await self._read_copies(detail)
        await self._read_site_logs()

    async def open_archives(self) -> None:
        """Take in the sources that keep scripts, and see which of them are there."""
        self.add_job_sources()
        specs = [spec for spec in self.specs if keeps_scripts(spec)]
        for spec in specs:
            self.session.add(build(spec))
        await self.watched(self.session.catch_up({KINDS[spec.setting] for spec in specs}))

    async def read_traces(self, *, look_at_all: bool = False) -> None:
        """Read files of spans; servers are there to be asked. With `look_at_all` see what each is worth.

        Without it nothing listens: what is sent to us is sent to the dashboard.
        """
        for spec in self.specs:
            if gives_spans(spec) and (look_at_all or spec.setting != OTLP_LISTEN):
                self.session.add(build(spec, _window_of_traces(self.context)))
        wanted = frozenset(KINDS[name] for name in TRACE_SETTINGS) if look_at_all else TRACE_KINDS
        kinds = {source.kind for source in self.session.sources if source.kind in wanted}
        if kinds:
            await self.watched(self.session.catch_up(kinds))

    async def _read_copies(self, detail: JobDetail | None) -> None:
        """Read what the supervisor keeps of cluster agents' logs, of the users who are asked for."""
        users = users_asked_for(self.session, detail)
        if users() and not self.partial:
            for root in self.roots:
                self.session.add(copies_below(root, users))
            await self.watched(self.session.catch_up([COPIES_KIND]))

    async def _read_site_logs(self) -> None:
        """Read what the sites of Balsam servers wrote, where that can be reached."""
        if self.session.store.sites() and not self.partial:
            source = site_logs(self.session, self.specs, self.context.config.mounts)
            if await source.is_reachable():
                self.session.add(source)
                await self.watched(self.session.catch_up([SITE_LOGS_KIND]))
            else:
                await source.aclose()

    async def follow_logs(self) -> None:
        """Go on reading the logs until cancelled."""
        await self.session.run(LOG_KINDS)

    async def _log(self, spec: SourceSpec, detail: JobDetail | None, *, to_end: bool) -> Source:
        if spec.setting == JOURNAL:
            return self._journal(spec, detail, to_end=to_end)
        size = _size(spec.target)
        window = window_for(self.context, size, detail)
        source = build(spec, window)
        until, now = self.context.until, self.context.clock.now()
        is_open = until is None or until >= now
        if is_open and window.since is not None and self.context.since is None and not to_end:
            until = await _early_end(source, window.since, size, detail) or until
        return source if until is None else Until(source, until)

    def _journal(self, spec: SourceSpec, detail: JobDetail | None, *, to_end: bool) -> Source:
        source = build(spec, journal_window(self.context, detail))
        until = self.context.until
        ended_at = detail.job.ended_at if detail and not detail.job.status.is_live else None
        if until is None and self.context.since is None and ended_at is not None and not to_end:
            until = Nanos(ended_at + SLACK_S * SECOND)
        return source if until is None else Until(source, until)

    async def watched(
        self, reading: Coroutine[object, object, None], words: Callable[[], str] | None = None
    ) -> None:
        """Do some reading that can be seen and stopped; what was read until then stays.

        `words` say how far it has come, where records do not tell.
        """
        task = asyncio.ensure_future(reading)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, task.cancel)
        progress = asyncio.ensure_future(show_progress(words or self._progress))
        try:
            await task
        except asyncio.CancelledError:
            self.partial = True
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            progress.cancel()
            with suppress(asyncio.CancelledError):
                await progress

    def _progress(self) -> str:
        return f"{sum(source.records for source in self.sources):,} records"

    def settle(self, code: Exit) -> Exit:
        """Name on stderr what was not read; `code`, or NO_SOURCE when nothing could be."""
        down = [source for source in self.sources if source.state is SourceState.DOWN]
        for source in down:
            complain(source.error or f"{source.name}: cannot be read")
        for source in self.sources:
            if source.note:
                complain(f"{source.name}: {source.note}")
            if source.skipped and source.last_skips:
                skip = source.last_skips[-1]
                complain(f"{source.name}: {source.skipped} skipped, such as {_skip_text(skip)}")
        if self.partial:
            complain("interrupted: what is printed is partial")
        return Exit.NO_SOURCE if self.nothing_read else code


def _skip_text(skip: Skip) -> str:
    """What was skipped and why, without saying twice where."""
    return skip.why if skip.where in skip.why else f"{skip.where}: {skip.why}"


def configured(context: Context) -> tuple[SourceSpec, ...]:
    """The sources to read: those that are configured, else those that are found."""
    found = context.config.sources or tuple(finding.spec for finding in discover(surroundings()))
    return told_apart(found)


def surroundings() -> Surroundings:
    """Where this process runs."""
    try:
        directory = os.getcwd()
    except OSError:  # it was removed
        directory = os.sep
    return Surroundings(os.environ, directory, os.path.expanduser("~"))


def in_session(context: Context, body: Callable[[Reader], Awaitable[Exit]]) -> Exit:
    """Run a command's body with a reader over the configured sources; without any, say so."""
    warn(context)
    specs = configured(context)
    if not specs:
        return no_source()
    return asyncio.run(within(context, specs, body))


def warn(context: Context) -> None:
    """Say on stderr what is odd about the settings."""
    for warning in context.config.warnings:
        complain(warning)


def no_source() -> Exit:
    """Say on stderr that there is nothing to read, and where was looked."""
    what_next = "`jobtui init` finds more, such as Slurm and archives; to look around try `jobtui demo`"
    complain(f"no source is configured, and there is no {looked_for()}; {what_next}")
    return Exit.NO_SOURCE


async def within(
    context: Context,
    specs: Iterable[SourceSpec],
    body: Callable[[Reader], Awaitable[Exit]],
    witness: "Witness | None" = None,
) -> Exit:
    """Run a command's body with a reader over these sources; a witness is told what they deliver."""
    async with Session((), context.clock, stage=context.stage, witness=witness) as session:
        return await body(Reader(context, session, tuple(specs)))


def window_for(context: Context, size: int, detail: JobDetail | None) -> Window:
    """Which part of a log of `size` bytes is to be read for a question about a job."""
    if context.since is not None:
        return Window(since=context.since)
    if size <= WHOLE_BYTES:
        return Window(whole=True)
    last = detail.runs[-1] if detail and detail.runs else None
    queued_at = last.queued_at if last else None
    return Window() if queued_at is None else Window(since=Nanos(queued_at - SLACK_S * SECOND))


def journal_window(context: Context, detail: JobDetail | None) -> Window:
    """Which part of a journal is to be read for a question about a job, or about none."""
    if context.since is not None:
        return Window(since=context.since)
    queued = [run.queued_at for run in detail.runs if run.queued_at is not None] if detail else []
    begin = context.clock.now() - JOURNAL_WINDOW_S * SECOND
    if queued:
        begin = min(begin, max(min(queued), max(queued) - RUNS_WITHIN_S * SECOND) - SLACK_S * SECOND)
    return Window(since=Nanos(max(1, begin)))


def sources_to_watch(
    context: Context, specs: Iterable[SourceSpec], detail: JobDetail | None
) -> list[Announced]:
    """Sources for the dashboard; logs from where the job needs them that it is opened at, else their ends.

    They are made when the first paint is over, those that give jobs first.
    """
    in_order = sorted(specs, key=gives_jobs, reverse=True)
    return [announce(spec, partial(_watched, context, spec, detail)) for spec in in_order]


def _window_of_traces(context: Context) -> Window:
    return Window(since=context.since, until=context.until)


def _watched(context: Context, spec: SourceSpec, detail: JobDetail | None) -> Source:
    if gives_spans(spec):
        return build(spec, _window_of_traces(context))
    if spec.setting == JOURNAL:
        source = build(spec, journal_window(context, detail))
    elif context.since is not None or detail is not None:
        source = build(spec, window_for(context, _size(spec.target), detail))
    else:
        source = build(spec)
    if context.until is not None and gives_logs(spec):
        return Until(source, context.until)
    return source


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return 0


async def _early_end(source: Source, since: Nanos, size: int, detail: JobDetail | None) -> Nanos | None:
    """When to end the reading of a large log: after the job's last run, if very much was written since."""
    from jobtui.backends.logfile import LogFile

    ended_at = detail.job.ended_at if detail and not detail.job.status.is_live else None
    if ended_at is None or not isinstance(source, LogFile):
        return None
    try:
        offset = await source.offset_at(since)
    except SourceError:
        return None  # polling it will say the same
    if offset is None or size - offset <= STRETCH_BYTES:
        return None
    return Nanos(ended_at + SLACK_S * SECOND)
