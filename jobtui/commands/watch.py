"""`jobtui --plain` on a terminal: what goes on, line by line, for ears and for braille.

A screen reader reads what is written, once, from the beginning; a screen that is painted again and again says
the same all over, or changes under the reader's cursor. So nothing is painted, no clock ticks and no sign
stands for a word: each change is one line, the state first, then whose and which job, the id last.
"""

import asyncio
import signal
from collections import Counter
from collections.abc import Iterable

from jobtui.analysis.flags import needs_person, waits_for
from jobtui.analysis.news import News
from jobtui.commands.context import Context
from jobtui.commands.exits import Exit
from jobtui.commands.printing import print_lines
from jobtui.commands.reading import configured, no_source, sources_to_watch, warn
from jobtui.model.clock import Nanos
from jobtui.model.health import SourceState
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.words import counted
from jobtui.render.status import WORDS
from jobtui.render.text import clock_time, show
from jobtui.session import Session
from jobtui.store.store import NO_CHANGES, Changes

TOLD_EVERY_S = 1.0
"""Changes are told at most this often."""
MOST_AT_FIRST = 20
"""Jobs told in the beginning; the others are counted."""
MOST_AT_ONCE = 50
"""Changes told at a time; of more it is said how many."""
LIVE = (JobStatus.RUNNING, JobStatus.PENDING)


def run(context: Context) -> Exit:
    """Tell what goes on until interrupted."""
    warn(context)
    specs = configured(context)
    if not specs:
        return no_source()
    session = Session(sources_to_watch(context, specs, None), context.clock, stage=context.stage)
    asyncio.run(_watch(session, context))
    return Exit.FINE


async def _watch(session: Session, context: Context) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with session:
        await session.catch_up()
        teller = Teller(session, context)
        reading = asyncio.ensure_future(session.run())
        while not ended.is_set() and not reading.done():
            try:
                async with asyncio.timeout(TOLD_EVERY_S):
                    await ended.wait()
            except TimeoutError:
                print_lines(teller.more())
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


class Teller:
    """Says in lines what is there, and then what becomes of it."""

    def __init__(self, session: Session, context: Context) -> None:
        self._store = session.store
        self._clock = context.clock
        self._news = News()
        self._changes = NO_CHANGES
        self._states: dict[str, SourceState] = {}
        self._store.subscribe(self._note)
        print_lines(self._beginning())

    def _note(self, changes: Changes) -> None:
        self._changes |= changes

    def _beginning(self) -> Iterable[str]:
        now = self._clock.now()
        jobs = self._news.of(self._store.jobs.values(), now)
        counts = Counter(job.status for job in jobs)
        told = ", ".join(f"{counts[status]:,} {WORDS[status]}" for status in JobStatus if counts[status])
        yield f"{counted(len(jobs), 'job')}: {told}." if jobs else "No jobs."
        yield from self._sources()
        wanted = [job for job in jobs if job.status in LIVE]
        wanted.sort(key=lambda job: (not needs_person(job, now), -(job.updated_at or 0)))
        yield from (job_words(job, now) for job in wanted[:MOST_AT_FIRST])
        if len(wanted) > MOST_AT_FIRST:
            more = len(wanted) - MOST_AT_FIRST
            yield f"and {more:,} more that run or wait: jobtui jobs --plain lists them."
        yield "What changes follows line by line; ctrl+c ends it."

    def more(self) -> Iterable[str]:
        """What changed since it was last asked, and who came to need a person by the time alone."""
        now = self._clock.now()
        changes, self._changes = self._changes, NO_CHANGES
        self._news.forget(changes.gone)
        jobs = [job for job_id in changes.jobs if (job := self._store.job(job_id)) is not None]
        live = (job for job in self._store.jobs.values() if job.status in LIVE)
        told = self._news.of(jobs, now) + self._news.of(live, now)
        yield from (f"{clock_time(now)}Z {job_words(job, now)}" for job in told[:MOST_AT_ONCE])
        if len(told) > MOST_AT_ONCE:
            yield f"{clock_time(now)}Z and {len(told) - MOST_AT_ONCE:,} more jobs changed."
        yield from (f"{clock_time(now)}Z {line}" for line in self._sources())

    def _sources(self) -> Iterable[str]:
        """Sources that went down or came back."""
        for source in self._store.sources():
            before = self._states.get(source.name)
            self._states[source.name] = source.state
            if source.state is SourceState.DOWN and before is not SourceState.DOWN:
                yield f"source {show(source.name)} is down: {show(source.reason or 'no reason told')}"
            elif before is SourceState.DOWN and source.state is not SourceState.DOWN:
                yield f"source {show(source.name)} is back"


def job_words(job: Job, now: Nanos) -> str:
    """A job in one line without signs: how it stands, what it is, whose, what it suffers from, its id."""
    stand = f"needs a person, {WORDS[job.status]}" if needs_person(job, now) else WORDS[job.status]
    name = " ".join(filter(None, (job.name or "unnamed", job.model)))
    why = waits_for(job, now) or job.error or job.message or ""
    parts = [f"{stand}: {show(name)}", f"of {show(job.owner)}" if job.owner else "", show(why)]
    return f"{', '.join(filter(None, parts))}. Id {show(job.id)}"
