"""Reads for commands: only the sources that a question needs, once, and no further than it needs.

Reading may take long: progress goes to stderr on a terminal, and ctrl+c ends the reading but not the command,
which then prints what there is and says that it is partial.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from jobtui.analysis.keys import CLUSTER_MODE, slurm_of
from jobtui.backends import registry
from jobtui.backends.base import Observer, Source, Unopened
from jobtui.backends.discovery import LOOKED_FOR, DiscoveryScope, discover
from jobtui.commands.context import Context, of_specs, spelled
from jobtui.commands.streams import Exit, clear_progress, complain
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.health import SourceHealth, SourceState, progress
from jobtui.model.ids import JobId, condor_id, is_quasi_jid, named, split_jid
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.numbers import whole
from jobtui.model.secrets import mask_text
from jobtui.model.settings import ClusterAccess
from jobtui.model.specs import ReadWindow, SourceSpec
from jobtui.model.traces import JOB_ATTRIBUTES
from jobtui.session import Session
from jobtui.store.store import Changes
from jobtui.transport.files import look_quietly

if TYPE_CHECKING:
    from jobtui.analysis.explain.case import Evidence
    from jobtui.backends.balsam.site_logs import SiteDirectories, SiteLogs
    from jobtui.memory.database import Memory
    from jobtui.model.job_reader import ClusterStatus

WHOLE_BYTES = 16 << 20
"""A log up to this size is read whole for a question about one job: its agents began long before it."""
SLACK_S = 600
"""How much is read before the submission of a run and after its end, seconds."""
JOURNAL_WINDOW_S = 2 * 3600
"""How far back a journal is read when no job is asked for, seconds."""
JOURNAL_ENTRIES, SINCE_ENTRIES = 5_000, 10_000
"""How many of the last rows of an engine of logs are read for one question, without and with a time."""
RUNS_WITHIN_S = 24 * 3600
"""Earlier runs of a job are read from a journal only if submitted within this time before the last."""
ONCE_S = 3600.0
"""How often a cluster is asked for its nodes by a command, which ends sooner: once."""
PROGRESS_AFTER_S = 1.0
PROGRESS_EVERY_S = 0.2

Got = TypeVar("Got")


class Reader:
    """A session that a command fills step by step with what it needs."""

    def __init__(self, context: Context, session: Session, specs: Sequence[SourceSpec]) -> None:
        self.context = context
        self.session = session
        self.specs = tuple(specs)
        self.partial = False
        self.logs_read = False
        self.entries = JOURNAL_ENTRIES
        self.follows = False
        """Whether logs are followed afterwards: then all are read to the end."""
        self._read_too: list[SourceSpec] = []

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags with which a command reads the same in this shell."""
        return (*spelled(self.context.config, None), *of_specs(self._read_too))

    @property
    def now(self) -> Nanos:
        return self.context.clock.now()

    def now_of(self, job: Job) -> Nanos:
        return self.session.store.now_at(job.source, self.now)

    def record_of(self, job: Job) -> dict[str, object]:
        """A job as JSON has it, with its profile where several are read."""
        from jobtui.render.json_output import job_record  # tables need none

        profile = self.session.store.profile_of(job.source)
        return {**job_record(job, self.now_of(job)), **({"profile": profile} if profile else {})}

    @property
    def sources(self) -> tuple[SourceHealth, ...]:
        return self.session.store.sources()

    @property
    def nothing_read(self) -> bool:
        return bool(self.sources) and all(source.is_unread for source in self.sources)

    def add_job_sources(self, most: int | None = None) -> None:
        """Add the sources that know of jobs; nothing is read yet."""
        if not any(registry.of_kind(source.kind).gives & registry.Gives.JOBS for source in self.sources):
            for spec in self.specs:
                if registry.gives(spec, registry.Gives.JOBS):
                    self._make(spec, ReadWindow(since=self.context.since, most=most))

    def _make(self, spec: SourceSpec, window: ReadWindow | None = None) -> None:
        self.session.make(registry.announce(spec, partial(registry.build, spec, window)))

    async def read_too(self, kind: registry.SourceType, path: Path) -> None:
        """Read a file that was named in place of a job, as if a flag named it."""
        if all((known.name, known.kind) != (str(path), kind.kind) for known in self.session.sources):
            spec = SourceSpec(kind.setting, str(path))
            self._make(spec)
            self._read_too.append(spec)
            await self.catch_up([kind.kind])

    async def read_jobs(self, newest: int | None = None) -> bool:
        """Read jobs, of Sirepo only the newest if so; out of logs alone when no source knows of jobs.

        True if there are more.
        """
        self.add_job_sources(newest)
        if not self.session.sources:
            await self.read_logs(None)
        elif newest is not None:
            await self.catch_up((registry.SIREPO_DB.kind,), newest)
            await self.catch_up({source.kind for source in self.sources} - {registry.SIREPO_DB.kind})
        else:
            await self.catch_up()
        return any(source.is_first_read for source in self.sources)

    async def look_up(self, job_id: JobId) -> JobDetail | None:
        self.add_job_sources()
        known = {source.name for source in self.session.sources}
        for spec in self.specs:
            if registry.gives(spec, registry.Gives.FILES) and spec.target not in known:
                self._make(spec)
        if condor_id(job_id) is not None:
            kinds = {one.kind for one in self.session.sources}
            await self.catch_up({kind for kind in kinds if registry.of_kind(kind).in_parts})
        return await self.session.look_up(job_id)

    async def slurm_of(self, job: Job, noted: "ClusterStatus | None") -> Job | None:
        """The Slurm job that a job of Sirepo runs as, if Slurm is read, too."""
        if job.mode != CLUSTER_MODE or not any(map(registry.SLURM.made, self.session.sources)):
            return None
        await self.catch_up((registry.SLURM.kind,))
        number = noted.status.slurm_id if noted is not None else None
        return slurm_of(job, self.session.store.jobs.values(), number)

    async def gather(self, job: Job, detail: JobDetail | None) -> "Evidence":
        from jobtui.session.evidence import Gatherer, with_memory  # only questions about one job need it

        is_recorded = self.context.replay is not None and not job.needs_logs
        if job.status.is_live and (job.system == registry.BALSAM.kind or is_recorded):
            await self.read_jobs()  # allocations, sites and what a recorded job waited for come with all jobs
        await self.read_logs(detail)
        gatherer = Gatherer.of(self.session)
        noted = await gatherer.noted(job)
        await self.slurm_of(job, noted)
        slurm_id = noted.status.slurm_id if noted is not None else None
        found = await gatherer.gather(job.id, detail, slurm_id)
        found = gatherer.with_good(await with_memory(found, self.session.job_reader()))
        return await gatherer.with_killer(found)

    async def read_logs(self, detail: JobDetail | None, newest: int | None = None) -> None:
        """Read the logs as far as a question about this job needs (see `ReadWindow.about`), or their ends."""
        if self.logs_read:
            return
        self.logs_read = True
        for spec in self.specs:
            if registry.gives(spec, registry.Gives.LOGS):
                self.session.make(registry.announce(spec, partial(self._log, spec, detail, newest)))
        await self.catch_up(registry.kinds_that_give(registry.Gives.LOGS))
        await self._read_copies(detail)
        await self._read_site_logs()

    async def open_archives(self) -> None:
        """Add the sources that keep scripts, and check which can be reached."""
        self.add_job_sources()
        specs = [
            spec
            for spec in self.specs
            if registry.gives(spec, registry.Gives.SCRIPTS | registry.Gives.FILES)
            and not registry.gives(spec, registry.Gives.JOBS)
        ]
        for spec in specs:
            self._make(spec)
        await self.catch_up({registry.of_setting(spec.setting).kind for spec in specs})

    async def read_traces(self, *, look_at_all: bool = False) -> None:
        """Read files of spans; servers can then be asked. With `look_at_all` check each of them.

        Without it nothing listens: spans are sent to the dashboard only. A recording has what came.
        """
        look_at_all = look_at_all or self.context.replay is not None
        for spec in self.specs:
            if registry.gives(spec, registry.Gives.SPANS) and (look_at_all or not registry.OTLP.names(spec)):
                self._make(spec, ReadWindow(since=self.context.since, until=self.context.until))
        kinds = registry.kinds_that_give(registry.Gives.SPANS)
        await self.catch_up({kind for kind in kinds if look_at_all or not registry.of_kind(kind).is_asked})

    async def _read_copies(self, detail: JobDetail | None) -> None:
        session = self.session
        if detail is not None:
            is_there = CLUSTER_MODE in (detail.job.mode, *(run.mode for run in detail.runs))
            users: dict[str, None] = {detail.job.owner: None} if is_there else {}
        else:
            of_jobs = (job.owner for job in session.store.jobs.values() if job.mode == CLUSTER_MODE)
            uids = (one.uid for one in session.store.correlation.agents() if one.driver == "SbatchDriver")
            users = dict.fromkeys((*of_jobs, *uids))
        if users:
            read_copies(self.session, users)
            await self.catch_up([registry.AGENT_COPIES.kind])

    async def _read_site_logs(self) -> None:
        if self.session.store.sites():
            source = site_logs(self.session, self.specs)
            if await source.is_reachable():
                self.session.add(source)
                await self.catch_up([registry.SITE_LOGS.kind])
            else:
                await source.aclose()

    def _log(self, spec: SourceSpec, detail: JobDetail | None, newest: int | None) -> Source:
        """A log as far as a question about a job needs it; a part of a log ends soon after the job."""
        is_open = self.context.since is None and not self.follows
        until, window = self.context.until, window_for(self.context, spec, detail)
        ended_at = detail.job.ended_at if detail and not detail.job.status.is_live else None
        if is_open and ended_at is not None and not window.whole and (until is None or until >= self.now):
            until = Nanos(ended_at + SLACK_S * SECOND)
        parts = split_jid(detail.job.id) if detail and not is_quasi_jid(detail.job.id) else None
        usual = self.entries if self.context.since is None else SINCE_ENTRIES
        most = newest or usual if parts or (is_open and detail is None) else None
        about = parts.simulation_id if parts else ""
        window = window._replace(until=until, most=most, about=about, agents=newest is None)
        return registry.build(spec, window)

    async def catch_up(self, kinds: Iterable[str] | None = None, most: int | None = None) -> None:
        await self.watched(self.session.catch_up(kinds, most))

    async def watched(
        self, reading: Coroutine[object, object, Got], words: Callable[[], str] | None = None
    ) -> Got | None:
        """Read with progress, until ctrl+c: then, and later, the result is None. What was read stays.

        `words` say how far it has come, where records do not tell.
        """
        if self.partial:
            reading.close()
            return None
        task = asyncio.ensure_future(reading)
        loop = asyncio.get_running_loop()

        def interrupt(*_: object) -> None:
            self.partial = True  # even if all is read: the loop forgets a signal without a handler
            loop.call_soon_threadsafe(task.cancel)

        if (before := signal.getsignal(signal.SIGINT)) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, interrupt)
        shown = asyncio.ensure_future(show_progress(words or (lambda: f"{progress(self.sources)} records")))
        try:
            return await task
        except asyncio.CancelledError:
            self.partial = True
            return None
        finally:
            shown.cancel()
            with suppress(asyncio.CancelledError):
                await shown
            if before is not signal.SIG_IGN:
                signal.signal(signal.SIGINT, signal.default_int_handler)

    def settle(self, code: Exit) -> Exit:
        """Name on stderr what was not read. Returns `code`, or NO_SOURCE if nothing could be read."""
        down = [source for source in self.sources if source.state is SourceState.DOWN]
        for source in down:
            complain(source.error or f"{source.name}: cannot be read")
        for source in self.sources:
            for part in source.failing:
                complain(f"{source.name}: {part.words}")
            if source.note:
                complain(f"{source.name}: {source.note}")
            if source.skipped and source.last_skips:
                skip = source.last_skips[-1]
                where = "" if skip.where in skip.why else f"{skip.where}: "
                complain(f"{source.name}: {source.skipped} skipped, such as {where}{skip.why}")
        if self.partial:
            complain("interrupted: the output is partial")
        return Exit.NO_SOURCE if self.nothing_read else code


async def show_progress(words: Callable[[], str]) -> None:
    """Say how far it has come until cancelled, once it has taken a second; nothing off a terminal."""
    if not sys.stderr.isatty():
        return
    start = time.monotonic()
    await asyncio.sleep(PROGRESS_AFTER_S)
    try:
        while True:
            spent = time.monotonic() - start
            sys.stderr.write(f"\r\x1b[Kreading: {words()}, {spent:.0f} s (ctrl+c: print what there is)")
            sys.stderr.flush()
            await asyncio.sleep(PROGRESS_EVERY_S)
    finally:
        clear_progress()


def configured(context: Context) -> tuple[SourceSpec, ...]:
    return registry.with_labels(context.config.sources or tuple(one.spec for one in discover(surroundings())))


def surroundings() -> DiscoveryScope:
    try:
        directory = os.getcwd()
    except OSError:  # it was removed
        directory = os.sep
    return DiscoveryScope(os.environ, directory, os.path.expanduser("~"))


def in_session(
    context: Context, body: Callable[[Reader], Awaitable[Exit]], observer: "Observer | None" = None
) -> Exit:
    """Run a command's body with a reader over the configured sources; without any, say so."""
    warn(context)
    specs = configured(context)
    if not specs and file_named(" ".join(context.words)) is None:
        return no_source()
    return asyncio.run(within(context, specs, body, observer))


def file_named(text: str) -> Path | None:
    path = os.path.expanduser(text)
    return Path(path) if os.path.isfile(path) else None


def in_filtered(
    context: Context, parse: Callable[[str], Got], body: Callable[[Reader, Got], Awaitable[Exit]]
) -> Exit:
    """Run a command's body with the filter of the command line; USAGE if it is wrong."""
    from jobtui.analysis.filter_syntax import FilterError  # few commands take one

    text = " ".join(context.words)
    try:
        passes = parse(text)
    except FilterError as error:
        return complain(f"filter: {error}: {marked(text, error.start, error.end)}", Exit.USAGE)
    return in_session(context, lambda reader: body(reader, passes))


def marked(text: str, start: int, end: int) -> str:
    """A text with its mistake between marks; masked and without marks if it holds a secret.

    Marks would separate the name of a secret from its value, so that neither is recognized.
    """
    masked = mask_text(text)
    return f"{text[:start]}>>>{text[start:end]}<<<{text[end:]}" if masked == text else masked


def warn(context: Context) -> None:
    for warning in context.config.warnings:
        complain(warning)


def no_source() -> Exit:
    complain(f"no source is configured, and none was found: looked for {LOOKED_FOR}; type one of")
    complain("    jobtui init                                # find what is here, such as Slurm and archives")
    complain("    jobtui --srdb DIR --log supervisor=FILE    # read these")
    complain("    jobtui demo                                # look around in a simulated job system")
    return Exit.NO_SOURCE


async def within(
    context: Context,
    specs: Sequence[SourceSpec],
    body: Callable[[Reader], Awaitable[Got]],
    observer: "Observer | None" = None,
) -> Got:
    """Run a command's body with a reader over these sources; an observer gets what they give."""
    async with _session(context, specs, (), observer) as session:
        return await body(Reader(context, session, specs))


def _session(
    context: Context, specs: Sequence[SourceSpec], sources: Sequence[Unopened], observer: "Observer | None"
) -> Session:
    session = Session(sources, context.clock, replay=context.replay, observer=observer)
    roots = tuple(spec.target for spec in specs if registry.SIREPO_DB.names(spec))
    session.reach = ClusterAccess(context.config.mounts, context.config.hosts, roots)
    session.store.name_profiles(context.config.profile_of_source)
    session.memory = partial(_open_memory, context.memory) if context.remembers else None
    session.store.traces.job_attributes = context.config.job_attributes or JOB_ATTRIBUTES
    return session


def _open_memory(path: Path | None) -> "Memory":
    from jobtui.memory.database import Memory  # the first paint does not need it

    return Memory(path)


def session_to_watch(
    context: Context,
    specs: Sequence[SourceSpec],
    detail: JobDetail | None = None,
    observer: "Observer | None" = None,
) -> Session:
    """A session that stays open; logs are read from where the opened job needs them. Sources are made after
    the first paint, those that give jobs first. Those that only jobs lead to are added when they are known.
    """
    in_order = sorted(specs, key=lambda spec: registry.gives(spec, registry.Gives.JOBS), reverse=True)
    announced = [registry.announce(spec, partial(_watched, context, spec, detail)) for spec in in_order]
    session = _session(context, specs, announced, observer)
    watch_sites(session, specs)
    watch_clusters(session)
    return session


async def until_ended(*work: Awaitable[object], for_s: float | None = None) -> None:
    """Run several tasks until one ends, a signal comes, or the time is over. Raises what a task raises."""
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
    working = [asyncio.ensure_future(one) for one in work]
    for task in working:
        task.add_done_callback(lambda _: ended.set())
    with suppress(TimeoutError):
        async with asyncio.timeout(for_s):
            await ended.wait()
    for task in working:
        task.cancel()
    for result in await asyncio.gather(*working, return_exceptions=True):
        if isinstance(result, Exception):
            raise result


def limits_of(
    context: Context, usual_mb: int, least_mb: int, why_not_at: str
) -> tuple[int, float | None] | Exit:
    """How many MB to keep and how long to run, by the flags; the exit code if something is wrong."""
    from jobtui.analysis.times import parse_duration  # few commands are given one

    warn(context)
    if isinstance(context.clock, FixedClock):
        return complain(why_not_at, Exit.USAGE)
    megabytes, wanted = whole(context.flag("limit"), usual_mb), context.flag("for")
    for_s = parse_duration(wanted) if wanted is not None else None
    if megabytes < least_mb or (wanted is not None and not for_s):
        return complain(f"--limit needs at least {least_mb} MB, --for a time such as 8h", Exit.USAGE)
    return (megabytes, for_s) if configured(context) else no_source()


def window_for(context: Context, spec: SourceSpec, detail: JobDetail | None) -> ReadWindow:
    """Which part of a log or a journal is to be read for a question about a job."""
    if context.since is not None:
        return ReadWindow(since=context.since)
    runs = detail.runs if detail else ()
    if not registry.of_setting(spec.setting).is_journal:
        queued_at = runs[-1].queued_at if runs else None
        since = None if queued_at is None else Nanos(queued_at - SLACK_S * SECOND)
        log = look_quietly(Path(spec.target))
        return ReadWindow(since=since, whole=log is None or log.size <= WHOLE_BYTES)
    queued = [run.queued_at for run in runs if run.queued_at is not None]
    begin = context.clock.now() - JOURNAL_WINDOW_S * SECOND
    if queued:
        begin = min(begin, max(min(queued), max(queued) - RUNS_WITHIN_S * SECOND) - SLACK_S * SECOND)
    return ReadWindow(since=Nanos(max(1, begin)))


def _watched(context: Context, spec: SourceSpec, detail: JobDetail | None) -> Source:
    is_about_job = detail is not None and not registry.gives(spec, registry.Gives.SPANS)
    is_bounded = context.since is not None or is_about_job or registry.of_setting(spec.setting).is_journal
    window = window_for(context, spec, detail) if is_bounded else ReadWindow()
    return registry.build(spec, window._replace(until=context.until))


def read_copies(session: Session, users: Mapping[str, None]) -> None:
    """Read the copies of the logs of agents on a cluster, for these users; more may be added."""
    from jobtui.backends.agent_copies import AgentCopies  # few sites have a cluster

    for root in session.reach.roots:
        session.add(AgentCopies(Path(root), lambda: tuple(users)))


def watch_clusters(session: Session) -> None:
    """Read the copies of agents' logs once the session knows of a job on a cluster."""
    users: dict[str, None] = {}

    def see(changes: Changes) -> None:
        is_first = not users
        changed = filter(None, map(session.store.jobs.get, changes.jobs))
        users.update(dict.fromkeys(job.owner for job in changed if job.mode == CLUSTER_MODE))
        if is_first and users:
            read_copies(session, users)

    if session.reach.roots:
        session.store.subscribe(see)


LOOK_EVERY_S = 60.0
"""How often it is checked whether a site can be reached."""


def site_logs(session: Session, specs: Sequence[SourceSpec]) -> "SiteLogs":
    # Few have a Balsam, and the first paint needs none of it
    from jobtui.analysis.paths import reached
    from jobtui.backends.balsam.site_logs import SiteDirectories, SiteLogs

    systems = {
        spec.target: named(registry.BALSAM.setting, spec.label)
        for spec in specs
        if registry.BALSAM.names(spec)
    }

    def site_directories() -> "tuple[SiteDirectories, ...]":
        return tuple(
            SiteDirectories(systems[site.source], tuple(reached(site.path, None, session.reach)))
            for site in session.store.sites()
            if site.source in systems
        )

    return SiteLogs(site_directories)


def watch_sites(session: Session, specs: Sequence[SourceSpec]) -> None:
    """Read the logs of Balsam's sites once one is known that can be reached."""
    looking: set[asyncio.Task[None]] = set()

    async def add_when_reached() -> None:
        source = site_logs(session, specs)
        while not await source.is_reachable():  # noqa: ASYNC110 - nothing tells when something is mounted
            await asyncio.sleep(LOOK_EVERY_S)
        session.add(source)

    def see(changes: Changes) -> None:
        if session.store.sites():
            unsubscribe()
            looking.add(asyncio.get_running_loop().create_task(add_when_reached()))

    if any(registry.BALSAM.names(spec) for spec in specs):
        unsubscribe = session.store.subscribe(see)
