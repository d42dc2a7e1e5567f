"""Answers about traces: what the store knows, and every source that is asked. See `model.traces`.

Work on every span of a large trace is done in a thread, so that other tasks can go on.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import TypeVar

from msgspec import structs

from jobtui.analysis.traces.failures import Findings, study_trace
from jobtui.analysis.traces.job_traces import TraceLink, TraceMatches, candidates, submission_search
from jobtui.analysis.traces.tree import Tree
from jobtui.backends.base import Batch, Source, TraceSource, batch_of
from jobtui.model import traces
from jobtui.model.clock import Clock, Nanos
from jobtui.model.health import SourceError, contained
from jobtui.model.ids import TraceId
from jobtui.model.jobs import Job
from jobtui.store.poller import SPANS_AT_ONCE, apply_in_parts
from jobtui.store.store import Store

PERIOD_S = 2.0
"""How long after an answer a trace that grows is read again."""
SLOWEST_S = 30.0
"""The same for a trace that does not grow."""
SHARE = 10
"""The wait, in times of the last answer: so a large trace takes at most a tenth of its server's time.

If a source did not answer, the wait is `SLOWEST_S` at most, as this costs the server nothing.
"""
SKIPS_KEPT = 1_000

Answer = TypeVar("Answer")


class SessionTraces:
    """Answers questions about traces from every source that has traces, and from the store.

    The sources may change while it runs. Its methods raise nothing: the notes name a source that cannot be
    asked, and so does its health; the others are asked anyway.
    """

    def __init__(
        self, store: Store, sources: Callable[[], Sequence[Source]], clock: Clock, period_s: float = PERIOD_S
    ) -> None:
        self._store = store
        self._sources = sources
        self._clock = clock
        self._period_s = period_s
        self._skips: dict[tuple[str, TraceId], int] = {}

    @property
    def asks_servers(self) -> bool:
        """Whether there are trace servers, which answer only when asked."""
        return bool(self._asked())

    async def fetch(self, trace_id: TraceId) -> traces.TraceAnswer:
        """A trace, read again from every source; the store knows it then too."""
        *_, last = [answer async for answer in self._arriving(trace_id)]
        return last

    async def _answer(
        self, trace_id: TraceId, notes: tuple[str, ...], grew_at: Nanos | None = None
    ) -> traces.TraceAnswer:
        trace = self._store.traces.trace(trace_id)
        return traces.TraceAnswer(trace=trace, notes=notes, growing=await self._growing(trace, grew_at))

    async def follow(
        self, trace_id: TraceId, expects_more: Callable[[], bool] = lambda: False
    ) -> AsyncIterator[traces.TraceAnswer]:
        """A trace, and again whenever more of it is known, until it is complete."""
        grew_at: Nanos | None = None
        wait_s = self._period_s
        begun = time.monotonic()
        last: traces.TraceAnswer | None = None
        async for answer in self._arriving(trace_id):
            if last is None or _gist(answer) != _gist(last):
                yield answer
            last = answer
        assert last is not None
        while (expected := expects_more()) or await _aside(
            last.trace, partial(traces.is_waited_for, last.trace, self._clock.now(), grew_at)
        ):
            if expected:
                grew_at = self._clock.now()  # when nothing more is expected, last spans may still come
            share_s = SHARE * (time.monotonic() - begun)
            await asyncio.sleep(max(wait_s, min(share_s, SLOWEST_S) if last.notes else share_s))
            begun = time.monotonic()
            *_, answer = [answer async for answer in self._arriving(trace_id, grew_at)]
            if _size(answer) != _size(last):
                grew_at, wait_s = self._clock.now(), self._period_s
            else:
                wait_s = min(wait_s * 1.5, SLOWEST_S)
            if _gist(answer) != _gist(last):
                yield answer
            last = answer
        why = await self._growing(last.trace, grew_at)
        if why != last.growing:
            yield structs.replace(last, growing=why)

    async def _arriving(
        self, trace_id: TraceId, grew_at: Nanos | None = None
    ) -> AsyncIterator[traces.TraceAnswer]:
        """A trace as it is known, again after each answer of a source, and when all have been asked."""
        faults: dict[str, tuple[str, ...]] = {}
        if self._store.traces.size(trace_id) and self._asked():
            yield await self._answer(trace_id, ())
        async with aclosing(self._as_answered(lambda source: source.trace(trace_id))) as answers:
            async for name, found, fault in answers:
                faults[name] = (fault,) if fault else ()
                if found is not None:
                    await self._take_in(name, trace_id, found)
                    yield await self._answer(trace_id, ())
        yield await self._answer(trace_id, self._in_order(faults), grew_at)

    async def _growing(self, trace: traces.Trace | None, grew_at: Nanos | None) -> str:
        return await _aside(trace, partial(traces.growing, trace, self._clock.now(), grew_at))

    async def search(self, search: traces.TraceSearch) -> traces.TraceList:
        """The traces that match, each once, the newest first."""
        *_, last = [listed async for listed in self.searching(search)]
        return last

    async def searching(self, search: traces.TraceSearch) -> AsyncGenerator[traces.TraceList]:
        """The same, first from what is known, and again whenever one more source has answered."""
        found: dict[TraceId, traces.TraceSummary] = {}
        book = self._store.traces
        for trace_id in book.ids():  # the spans of files, and those that were received
            trace = book.trace(trace_id)
            if trace is not None and await _aside(trace, partial(traces.is_wanted, trace, search)):
                origin = next(iter(book.sources_of(trace_id)), "")
                one = await _aside(trace, partial(traces.summary_of, trace, origin))
                found[one.trace_id] = one
        notes: dict[str, tuple[str, ...]] = {}
        awaited, full = frozenset(source.name for source in self._asked()), False

        def listed() -> traces.TraceList:
            more = max(0, len(found) - search.most)
            return traces.TraceList(
                traces.newest(found.values(), search.most), self._in_order(notes), awaited, more, full
            )

        yield listed()
        async with aclosing(self._as_answered(lambda source: source.search(search))) as answers:
            async for name, answer, fault in answers:
                notes[name] = (fault,) if answer is None else answer.notes
                awaited -= {name}
                for one in answer.traces if answer is not None else ():
                    found[one.trace_id] = traces.more_complete(found.get(one.trace_id), one)
                full = full or (answer is not None and len(answer.traces) >= search.most)
                yield listed()

    async def _take_in(self, name: str, trace_id: TraceId, found: traces.Telemetry) -> None:
        """Put spans that a source gave into the store, part by part; those that it gave before count once."""
        before = self._skips.pop((name, trace_id), 0)
        if len(self._skips) >= SKIPS_KEPT:
            self._skips.clear()
        self._skips[name, trace_id] = found.skip_count
        batch = batch_of(found)
        new = max(0, batch.count - self._store.traces.size(trace_id))
        batch = structs.replace(batch, recovered=before, count=new)
        await apply_in_parts(self._store, name, batch)

    async def _as_answered(
        self, ask: Callable[[TraceSource], Awaitable[Answer]]
    ) -> AsyncGenerator[tuple[str, Answer | None, str]]:
        """The answers of all sources that can be asked, as they come: the source, and its answer or error."""
        tasks = [asyncio.create_task(self._ask(source, ask)) for source in self._asked()]
        try:
            for answered in asyncio.as_completed(tasks):
                yield await answered
        finally:
            for task in tasks:
                task.cancel()

    def _in_order(self, notes: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        """Notes by the names of sources, in the order in which sources were given."""
        return tuple(note for source in self._asked() for note in notes.get(source.name, ()))

    def _asked(self) -> list[TraceSource]:
        return [source for source in self._sources() if isinstance(source, TraceSource)]

    async def _ask(
        self, source: TraceSource, ask: Callable[[TraceSource], Awaitable[Answer]]
    ) -> tuple[str, Answer | None, str]:
        with contained(f"asking {source.kind}") as asking:
            try:
                answer = await ask(source)
            except SourceError as error:
                self._store.fail(source.name, str(error))
                return source.name, None, str(error)
        if asking.fault is not None:
            return source.name, None, f"{source.name}: {asking.words}"
        self._store.apply(source.name, Batch())
        return source.name, answer, ""


def _gist(answer: traces.TraceAnswer) -> tuple[int, str, tuple[str, ...]]:
    return _size(answer), answer.growing, answer.notes


def _size(answer: traces.TraceAnswer) -> int:
    return 0 if answer.trace is None else len(answer.trace.spans) + len(answer.trace.logs)


async def _aside(trace: traces.Trace | None, call: Callable[[], Answer]) -> Answer:
    if trace is None or len(trace.spans) < SPANS_AT_ONCE:
        await asyncio.sleep(0)
        return call()
    return await asyncio.to_thread(call)


MOST_LOOKED_AT = 12
"""The most submissions that are read, those nearest in time: each is one request to a server."""
LOOKED_AT = 20
"""How many earlier traces are searched for a good one."""


async def ways_from_job(client: SessionTraces, job: Job, names: tuple[str, ...]) -> TraceMatches:
    """The traces of a job. `names` are the attributes in which spans may hold its id."""
    if job.trace:
        return TraceMatches((TraceLink(TraceId(job.trace), "its files say that it was given this trace"),))
    by_attribute = await ways_by_attribute(client, job.id, names)
    if by_attribute.found:
        return by_attribute
    search = submission_search(job)
    if search is None:
        return by_attribute
    near = await client.search(search)
    by_time = sorted(near.traces, key=lambda one: abs((one.started_at or 0) - (job.queued_at or 0)))
    fetched = [(await client.fetch(one.trace_id)).trace for one in by_time[:MOST_LOOKED_AT]]
    return TraceMatches((), candidates(filter(None, fetched), job, names), (*by_attribute.notes, *near.notes))


async def ways_by_attribute(client: SessionTraces, job_id: str, names: tuple[str, ...]) -> TraceMatches:
    found: dict[TraceId, TraceLink] = {}
    notes: dict[str, None] = {}
    for value in traces.spellings(job_id):
        answer = await client.search(traces.TraceSearch(names=names, value=value))
        notes.update(dict.fromkeys(answer.notes))
        for one in answer.traces:
            found.setdefault(one.trace_id, TraceLink(one.trace_id, f"its spans name the job as {value}"))
        if found:
            break  # a shorter id may be that of another job
    return TraceMatches(tuple(found.values()), (), tuple(notes))


async def last_good(client: SessionTraces, this: Tree) -> Findings | None:
    """The newest earlier trace with the same root that is complete and did not fail; None without one."""
    if (root := this.root) is None:
        return None
    search = traces.TraceSearch(
        service=root.service, operation=root.name, until=root.started_at, most=LOOKED_AT
    )
    for answer in (await client.search(search)).traces:
        trace = None if answer.trace_id == this.trace_id else (await client.fetch(answer.trace_id)).trace
        found = None if trace is None else await asyncio.to_thread(study_trace, trace)
        if found is not None and not (found.has_failed or found.is_unfinished or found.tree.missing):
            return found
    return None
