"""One session: the sources a configuration names, a store, and what keeps them together.

The dashboard and the one-shot commands are both thin users of it. Knows nothing of a terminal.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from jobtui.analysis.late_correlate import LateCorrelator
from jobtui.backends.base import (
    Announced,
    Batch,
    DetailSource,
    RewindableSource,
    Source,
    SourceDenied,
    SourceError,
    SourceMissing,
    SourceUnreachable,
)
from jobtui.model.alarms import Alarms
from jobtui.model.clock import Clock, Nanos, SystemClock
from jobtui.model.health import Skip
from jobtui.model.ids import JobId
from jobtui.model.job_desk import Reached
from jobtui.model.jobs import JobDetail
from jobtui.store.poller import Poller
from jobtui.store.rereading import read_again
from jobtui.store.store import Store

if TYPE_CHECKING:
    from jobtui.backends.ad_library import AdLibrary
    from jobtui.backends.job_desk import SessionDesk
    from jobtui.backends.staging import Stage, Witness
    from jobtui.model.clocks import Offsets
    from jobtui.model.job_desk import JobDesk
    from jobtui.model.pages import LogBook
    from jobtui.model.playing import Player
    from jobtui.model.trace_desk import TraceDesk

HEAD_START_S = 0.05
"""How long each announced source reads before the next is made: making one imports what reads it."""


class Session:
    """Sources, their pollers and the store they fill. An async context manager that closes the sources.

    A `witness` is told what they deliver; on a `stage` others deliver in their place.
    """

    def __init__(
        self,
        sources: Sequence[Source | Announced],
        clock: Clock | None = None,
        *,
        strict: bool = False,
        stage: "Stage | None" = None,
        witness: "Witness | None" = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.hosts: Mapping[str, str] = {}
        """The journals of docker hosts and clusters, as configured, by the name of the host."""
        self.mounts: Mapping[str, str] = {}
        """Directories of this machine by those on clusters that are mounted there, as configured."""
        self.job_attributes: tuple[str, ...] = ()
        """The attributes in which spans name a job, as configured; none: the usual ones."""
        self.alarms = Alarms()
        """What is to happen when a job newly needs a person, as configured."""
        self.store = Store(LateCorrelator(), self.clock)
        self._strict = strict
        self._stage = stage
        self._witness = witness
        self._pollers: list[Poller] = []
        self._polling: dict[Poller, asyncio.Task[None]] = {}
        self._reaching = asyncio.Lock()
        self._group: asyncio.TaskGroup | None = None
        self._announced: deque[Announced] = deque()
        self._traces: TraceDesk | None = None
        self._desk: SessionDesk | None = None
        self._ads: AdLibrary | None = None
        for source in sources:
            self.add(source)

    def add(self, source: Source | Announced) -> None:
        """Take in one more source; it is closed with the others."""
        if isinstance(source, Announced):
            self.store.add_source(source.name, source.kind)
            self._announced.append(source)
            return
        poller = self._poller(source if self._stage is None else self._stage.cast(source), self.store)
        self._pollers.append(poller)
        if self._group is not None:
            self._polling[poller] = self._group.create_task(poller.run())

    def _poller(self, source: Source, store: Store) -> Poller:
        return Poller(source, store, strict=self._strict, witness=self._witness)

    def _make_next(self) -> Poller:
        self.add(self._announced.popleft().make())
        return self._pollers[-1]

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources it reads; those that were only announced are made now."""
        while self._announced:
            self._make_next()
        return tuple(poller.source for poller in self._pollers)

    @property
    def traces(self) -> "TraceDesk":
        """Answers about traces, out of every source and what the store knows."""
        if self._traces is None:
            from jobtui.store.trace_desk import SessionTraces  # the first paint does not need it

            self._traces = SessionTraces(self.store, lambda: self.sources, self.clock)
        return self._traces

    async def catch_up(self, kinds: Iterable[str] | None = None) -> None:
        """Read every source (of these kinds) until it has no more for now, side by side."""
        while self._announced:
            self._make_next()
        await asyncio.gather(*(poller.catch_up() for poller in self._of_kinds(kinds)))

    async def run(self, kinds: Iterable[str] | None = None) -> None:
        """Keep the store up to date with every source (of these kinds) until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for poller in self._of_kinds(kinds):
                    self._polling[poller] = group.create_task(poller.run())
                self._group = group
                while self._announced:
                    task = self._polling[self._make_next()]
                    await asyncio.wait({task}, timeout=HEAD_START_S)
        finally:
            self._group = None
            self._polling.clear()

    async def reach_back(self, at: Nanos, progress: Callable[[Reached], None] = lambda reached: None) -> bool:
        """Read the logs again, from `at` on, if one was read from later only; whether it was done.

        What is known is replaced when all of it has been read, so that nothing is missing meanwhile. Raises
        SourceError, and changes nothing, when that is too much (see `store.rereading`).
        """
        async with self._reaching:
            logs = [(p, p.source) for p in self._pollers if isinstance(p.source, RewindableSource)]
            if not any(source.begins_after(at) for _, source in logs):
                return False
            again = Store(LateCorrelator(), self.clock)
            fresh = [self._poller(source.starting_at(at), again) for _, source in logs]
            try:
                await read_again(fresh, again, progress)
            except BaseException:
                # too much, or cancelled by who no longer wants to know: the files are not to stay open
                await asyncio.gather(*(poller.source.aclose() for poller in fresh))
                raise
            await self._replace([poller for poller, _ in logs], fresh, again)
            return True

    async def begin_anew(self) -> None:
        """Read a recording from its beginning, and know nothing but that: its clock was set back."""
        assert self._stage is not None
        async with self._reaching:
            old = list(self._pollers)
            again = Store(LateCorrelator(), self.clock)
            fresh = [self._poller(self._stage.cast(poller.source), again) for poller in old]
            await asyncio.gather(*(poller.catch_up() for poller in fresh))
            self._put_in_place(old, fresh)
            self.store.become(again)

    def desk(self) -> "JobDesk":
        """What answers questions about one job."""
        if self._stage is not None:
            return self._stage.desk(lambda: self.sources, self.told)
        if self._desk is None:
            from jobtui.backends.job_desk import SessionDesk

            self._desk = SessionDesk(lambda: self.sources, self.reach_back, self.told)
        return self._desk if self._witness is None else self._witness.beside(self._desk)

    def player(self) -> "Player | None":
        """What goes through recorded time; None where the systems themselves are read."""
        return None if self._stage is None else self._stage.player(self.begin_anew)

    def logs(self, offsets: "Callable[[], Offsets]" = dict) -> "LogBook":
        """The logs that can be read line by line. `offsets` tells how far apart the clocks of hosts are."""
        if self._stage is not None:
            return self._stage.logs(lambda: self.sources)
        from jobtui.backends.log_book import SessionLogs

        return SessionLogs(lambda: self.sources, offsets)

    async def _replace(self, old: list[Poller], fresh: list[Poller], again: Store) -> None:
        self._put_in_place(old, fresh)
        self.store.take_over(again)
        await asyncio.gather(*(poller.source.aclose() for poller in old))

    def _put_in_place(self, old: list[Poller], fresh: list[Poller]) -> None:
        """Let these poll in place of those."""
        self._pollers = [poller for poller in self._pollers if poller not in old] + fresh
        for poller in fresh:
            poller.feed_into(self.store)
        for before, after in zip(old, fresh, strict=True):
            if (task := self._polling.pop(before, None)) is not None and self._group is not None:
                task.cancel()
                self._polling[after] = self._group.create_task(after.run())

    def _of_kinds(self, kinds: Iterable[str] | None) -> list[Poller]:
        if kinds is None:
            return list(self._pollers)
        wanted = frozenset(kinds)
        return [poller for poller in self._pollers if wanted is None or poller.source.kind in wanted]

    @property
    def ads(self) -> "AdLibrary":
        """What evaluates expressions in job ads, where it is installed."""
        if self._ads is None:
            from jobtui.backends.ad_library import AdLibrary, directory_of_library  # few ads have any

            self._ads = AdLibrary(directory_of_library())
        return self._ads

    async def told(self, job_id: JobId) -> JobDetail | None:
        """All about a job that the store put together, expressions with their values; None for any other."""
        if (told := self.store.detail(job_id)) is None:
            return None
        from jobtui.analysis.ad_inquiry import inquiry_of, questions_in, with_values

        inquiry = inquiry_of(self.store.facts_of(job_id), self.clock.now())
        answers = await self.ads.answers(questions_in(inquiry)) if inquiry else None
        return told if answers is None else with_values(told, inquiry, answers)

    async def look_up(self, job_id: JobId) -> JobDetail | None:
        """Everything stored about one job, without reading any other; the store learns it as if by a poll.

        A source that cannot be read, or the record alone, is noted in its health, and the next one is asked.
        """
        if (told := await self.told(job_id)) is not None:
            return told
        for source in self.sources:
            if not isinstance(source, DetailSource):
                continue
            try:
                found = await source.detail(job_id)
            except (SourceMissing, SourceDenied, SourceUnreachable) as error:
                self.store.fail(source.name, str(error))
                continue
            except SourceError as error:
                skip = Skip(job_id, str(error))
                self.store.apply(source.name, Batch(cursor="", skipped=(skip,), skip_count=1))
                continue
            jobs = (found.job,) if found else ()
            changes = found.changes if found else ()
            sites = (found.site,) if found and found.site else ()
            batch = Batch(cursor="", jobs=jobs, changes=changes, sites=sites, count=len(jobs))
            self.store.apply(source.name, batch)
            if found:
                return found
        return None

    async def detail(self, job_id: JobId) -> JobDetail | None:
        """Everything stored about a job, from the first source that has it. Raises SourceError."""
        if (told := await self.told(job_id)) is not None:
            return told
        for source in self.sources:
            if isinstance(source, DetailSource) and (found := await source.detail(job_id)):
                return found
        return None

    async def aclose(self) -> None:
        """Release what the sources hold, and what answers questions about jobs."""
        if self._desk is not None:
            self._desk.close()
        if self._ads is not None:
            await self._ads.aclose()
        await asyncio.gather(*(source.aclose() for source in self.sources))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
