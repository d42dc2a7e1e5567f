"""A session: the configured sources, their pollers and the store that they fill.

The dashboard and the one-shot commands use it. It does not know about a terminal.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Self

from jobtui.analysis.correlation import EmptyCorrelation
from jobtui.backends import base
from jobtui.model import health
from jobtui.model.clock import Clock, Nanos, Offsets, SystemClock
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobDetail, newest
from jobtui.model.logs import Reached
from jobtui.model.settings import NOWHERE, Alarms
from jobtui.store.poller import Poller, read_again
from jobtui.store.store import Store

if TYPE_CHECKING:
    from jobtui.backends.base import Observer
    from jobtui.backends.job_reader import JobReader
    from jobtui.memory.database import Memory
    from jobtui.model.memory import MemoryOverview
    from jobtui.model.pages import SourceLogs
    from jobtui.recording.replay import RecordingReplay, ReplayPlayer
    from jobtui.session.traces import SessionTraces

HEAD_START_S = 0.05
"""How long each announced source reads before the next is made: making a source imports its backend."""


class Session:
    """Sources, their pollers and the store that they fill. An async context manager that closes the sources.

    An `observer` gets everything that they deliver. A `replay` delivers in their place.
    """

    def __init__(
        self,
        sources: Sequence[base.Source | base.Unopened],
        clock: Clock | None = None,
        *,
        replay: "RecordingReplay | None" = None,
        observer: "Observer | None" = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.reach = NOWHERE
        self.alarms = Alarms()
        """What to do when a job begins to need a person, as configured."""
        self.memory: Callable[[], Memory] | None = None
        """Opens the memory of finished runs; None if that is not about the systems read here."""
        self.store = Store(EmptyCorrelation(), self.clock)
        self._replay = replay
        self._observer = observer
        self._pollers: list[Poller] = []
        self._polling: dict[Poller, asyncio.Task[None]] = {}
        self._reaching = asyncio.Lock()
        self._group: asyncio.TaskGroup | None = None
        self._announced: deque[base.Unopened] = deque()
        self._nodes_every_s: float | None = None
        self._traces: SessionTraces | None = None
        self._job_reader: JobReader | None = None
        for source in sources:
            self.add(source)

    def add(self, source: base.Source | base.Unopened) -> None:
        if isinstance(source, base.Unopened):
            self.store.add_source(source.name, source.kind)
            self._announced.append(source)
            return
        read = source if self._replay is None else self._replay.in_place_of(source)
        if isinstance(read, base.NodeSource):
            read.ask_for_nodes(self._nodes_every_s)
        poller = self._poller(read, self.store)
        self._pollers.append(poller)
        if self._group is not None:
            self._polling[poller] = self._group.create_task(poller.run())

    def _poller(self, source: base.Source, store: Store) -> Poller:
        _share(source, lambda: self._pollers)
        if isinstance(source, base.PolledSource):
            source.clock = self.clock  # so that what it judges itself is judged as of the same time
        return Poller(source, store, observer=self._observer)

    def make(self, announced: base.Unopened) -> Poller | None:
        """Make a source and add it; None if that failed, which costs only this source."""
        with health.contained(f"opening {announced.kind}") as opening:
            self.add(announced.make())
            return self._pollers[-1]
        self.store.add_source(announced.name, announced.kind)
        self.store.fail(announced.name, opening.words)
        return None

    @property
    def sources(self) -> tuple[base.Source, ...]:
        """The sources. Those that were only announced are made now."""
        while self._announced:
            self.make(self._announced.popleft())
        return tuple(poller.source for poller in self._pollers)

    @property
    def traces(self) -> "SessionTraces":
        if self._traces is None:
            from jobtui.session.traces import SessionTraces  # the first paint does not need it

            self._traces = SessionTraces(self.store, lambda: self.sources, self.clock)
        return self._traces

    def ask_for_nodes(self, every_s: float | None) -> None:
        """Set how often clusters are asked for their nodes, as each answer costs them; None stops this."""
        self._nodes_every_s = every_s
        for poller in self._pollers:
            if isinstance(poller.source, base.NodeSource):
                poller.source.ask_for_nodes(every_s)

    async def catch_up(self, kinds: Iterable[str] | None = None, most: int | None = None) -> None:
        """Read all sources (of these kinds) at the same time until each has no more for now.

        Or, with `most`, until it gave that many records.
        """
        while self._announced:
            self.make(self._announced.popleft())
        await asyncio.gather(*(poller.catch_up(most) for poller in self._of_kinds(kinds)))

    async def run(self, kinds: Iterable[str] | None = None) -> None:
        """Keep the store up to date with every source (of these kinds) until cancelled."""
        asyncio.get_running_loop().set_exception_handler(health.FAULTS.in_loop)
        try:
            async with asyncio.TaskGroup() as group:
                for poller in self._of_kinds(kinds):
                    self._polling[poller] = group.create_task(poller.run())
                self._group = group
                while self._announced:
                    if (made := self.make(self._announced.popleft())) is not None:
                        await asyncio.wait({self._polling[made]}, timeout=HEAD_START_S)
        finally:
            self._group = None
            self._polling.clear()

    async def reach_back(self, at: Nanos, progress: Callable[[Reached], None] = lambda reached: None) -> bool:
        """Read the logs again from `at` on if one was read only from a later time. True if it was done.

        The store changes when all has been read, so nothing is missing meanwhile. What only the old
        correlation knows, as it can no longer be read, is added. A source that is down stays as it is. Raises
        SourceError, and changes nothing, if another source fails or if it is too much (see `read_again`).
        """
        async with self._reaching:
            logs = [(p, p.source) for p in self._pollers if isinstance(p.source, base.RewindableSource)]
            if not any(source.begins_after(at) for _, source in logs):
                return False
            again = Store(EmptyCorrelation(), self.clock)
            again.name_profiles(self.store.profiles)
            old = [poller for poller, _ in logs]
            fresh = [self._poller(source.starting_at(at), again) for _, source in logs]
            for poller in fresh:
                _share(poller.source, lambda: fresh)  # what the others have read is not known to `again`
            held: asyncio.Task[object] | None = None
            try:
                await read_again(fresh, again, progress)
                if self._group is not None:  # which ends with the last of its tasks
                    held = self._group.create_task(asyncio.Event().wait())
                await self._hold(old)
                await read_again(fresh, again, progress)
                down = self._down_in(again)
            except BaseException:
                # too much to read, or cancelled: the files must not stay open
                self._put_in_place(old, old)
                await asyncio.gather(*(_close(poller.source) for poller in fresh))
                if held is not None:
                    held.cancel()
                raise
            now = [was if was.source.name in down else new for was, new in zip(old, fresh, strict=True)]
            self._put_in_place(old, now)
            self.store.take_over(again)
            if held is not None:
                held.cancel()
            unused = [poller for poller in (*old, *fresh) if poller not in now]
            await asyncio.gather(*(_close(poller.source) for poller in unused))
            return True

    def _down_in(self, again: Store) -> frozenset[str]:
        """The sources that are down, read again. Raises SourceError where what one gave would be lost."""
        down = {one.name: one.error for one in again.sources() if one.state is health.SourceState.DOWN}
        for one in self.store.sources():
            if one.name in down and one.state is not health.SourceState.DOWN:
                raise health.SourceError(f"{one.name}: {down[one.name]}")
        return frozenset(down)

    async def _hold(self, pollers: Sequence[Poller]) -> None:
        """Stop these pollers until they, or their successors, are started."""
        tasks = [task for poller in pollers if (task := self._polling.get(poller)) is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def start_over(self) -> None:
        """Read a recording again from its beginning, because its clock was set back."""
        assert self._replay is not None
        async with self._reaching:
            old = list(self._pollers)
            again = Store(EmptyCorrelation(), self.clock)
            again.name_profiles(self.store.profiles)
            again.traces.job_attributes = self.store.traces.job_attributes
            fresh = [self._poller(self._replay.in_place_of(poller.source), again) for poller in old]
            await asyncio.gather(*(poller.catch_up() for poller in fresh))
            self._put_in_place(old, fresh)
            self.store.become(again)

    def job_reader(self) -> "JobReader":
        if self._replay is not None:
            return self._replay.job_reader(lambda: self.sources, self.store.detail)
        if self._job_reader is None:
            from jobtui.backends.job_reader import JobReader

            memory = self.memory
            recall = None if memory is None else lambda *asked: memory().of_job(*asked)
            self._job_reader = JobReader(
                lambda: self.sources,
                self.reach_back,
                self.store.detail,
                recall,
                open_log=lambda name: self.logs().open(name),
                observer=self._observer,
            )
        return self._job_reader

    def overview(self) -> "Callable[[Nanos], MemoryOverview] | None":
        memory = self.memory
        return None if memory is None else lambda now: memory().overview(now)

    def player(self) -> "ReplayPlayer | None":
        """Moves through recorded time; None if the systems are live."""
        return None if self._replay is None else self._replay.player(self.start_over)

    def logs(self, offsets: "Callable[[], Offsets]" = dict) -> "SourceLogs":
        """The logs that can be read line by line. `offsets` gives the differences between clocks of hosts."""
        if self._replay is not None:
            return self._replay.logs(lambda: self.sources)
        from jobtui.logs.catalog import SessionLogs

        return SessionLogs(lambda: self.sources, offsets)

    def _put_in_place(self, old: Sequence[Poller], fresh: Sequence[Poller]) -> None:
        others = [poller for poller in self._pollers if poller not in old]
        self._pollers = [*others, *fresh]
        for before, after in zip(old, fresh, strict=True):
            _share(after.source, lambda: self._pollers)
            after.store = self.store
            task = self._polling.get(before)
            if task is not None and self._group is not None and (after is not before or task.done()):
                del self._polling[before]
                task.cancel()
                self._polling[after] = self._group.create_task(after.run())

    def _of_kinds(self, kinds: Iterable[str] | None) -> list[Poller]:
        wanted = None if kinds is None else frozenset(kinds)
        return [poller for poller in self._pollers if wanted is None or poller.source.kind in wanted]

    async def look_up(self, job_id: JobId) -> JobDetail | None:
        """Everything stored about one job, without reading any other. The store gets it as from a poll.

        If a source, or the record, cannot be read, its health says so and the next source is asked. If one
        has the job, others of its kind are asked too: two roots may hold the same id.
        """
        if (detail := self.store.detail(job_id)) is not None:
            return base.with_files(detail, self.sources)
        details: list[JobDetail] = []
        kind = None
        for source in self.sources:
            if not isinstance(source, base.DetailSource) or kind not in (None, source.kind):
                continue
            skip: health.Skip | None = None
            with health.contained("looking up a job") as asking:
                try:
                    found = await source.detail(job_id)
                except (health.SourceMissing, health.SourceDenied, health.SourceUnreachable) as error:
                    self.store.fail(source.name, str(error))
                    continue
                except health.SourceError as error:
                    skip = health.Skip(job_id, str(error))
            if asking.fault is not None:
                skip = health.Skip(job_id, asking.words)
            if skip is not None:
                self.store.apply(source.name, base.Batch(skipped=(skip,), skip_count=1))
                continue
            jobs = (found.job,) if found else ()
            changes = found.changes if found else ()
            sites = (found.site,) if found and found.site else ()
            failing = found.failing or None if found else None
            batch = base.Batch(jobs=jobs, changes=changes, sites=sites, count=len(jobs), failing=failing)
            self.store.apply(source.name, batch)
            if found:
                details.append(found)
                kind = source.kind
        return newest(details)

    async def aclose(self) -> None:
        if self._job_reader is not None:
            self._job_reader.close()
        await asyncio.gather(*(_close(source) for source in self.sources))

    async def __aenter__(self) -> Self:
        asyncio.get_running_loop().set_exception_handler(health.FAULTS.in_loop)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def _share(source: base.Source, pollers: Callable[[], Iterable[Poller]]) -> None:
    """Let a source see the others that are polled with it, so that each thing is reported only once."""
    if isinstance(source, base.SeesOthers):
        source.others = lambda: tuple(poller.source for poller in pollers())


async def _close(source: base.Source) -> None:
    with health.contained(f"closing {source.kind}"):
        await source.aclose()
