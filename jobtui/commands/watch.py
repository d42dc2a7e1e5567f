"""`jobtui --plain` on a terminal and `wait ID`: changes line by line, and the end of one job.

A screen reader reads text once, from the beginning; a screen that is repainted makes it repeat everything, or
changes under its cursor. So nothing is repainted, no clock ticks and words are used instead of signs: each
change is one line, the state first, then user and job, the id last.
"""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress

from jobtui.analysis.alerts import JobAlerts
from jobtui.analysis.explain.verdict import explain
from jobtui.analysis.flags import needs_person, waits_for
from jobtui.analysis.times import duration, parse_duration
from jobtui.commands.context import Context
from jobtui.commands.find import SHOWN, print_not_found, resolve
from jobtui.commands.jobs import in_order
from jobtui.commands.printing import print_lines
from jobtui.commands.reader import Reader, in_session, session_to_watch, until_ended
from jobtui.commands.streams import Exit, complain
from jobtui.model.clock import Nanos
from jobtui.model.health import FAULTS, SourceState, contained
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.numbers import counted
from jobtui.model.specs import SourceSpec
from jobtui.render.styles import WORDS
from jobtui.render.text import clock_time, show
from jobtui.session import Session
from jobtui.session.evidence import Gatherer
from jobtui.store.store import NO_CHANGES, Changes

REPORT_EVERY_S = 1.0
"""Changes are printed at most this often."""


async def watch(context: Context, specs: Sequence[SourceSpec]) -> None:
    async with session_to_watch(context, specs) as session:
        await session.catch_up()
        origin = WatchPrinter(session, context)

        async def tell() -> None:
            while True:
                await asyncio.sleep(REPORT_EVERY_S)
                lines: list[str] = []
                with contained("printing changes"):
                    lines += origin.more()
                print_lines(lines)

        await until_ended(session.run(), tell())


class WatchPrinter:
    """Prints the present jobs in lines, and then each change."""

    def __init__(self, session: Session, context: Context) -> None:
        self._store = session.store
        self._clock = context.clock
        self._most = SHOWN if context.most is None else context.most  # shown at a time
        self._news = JobAlerts()
        self._changes = NO_CHANGES
        self._states: dict[str, SourceState] = {}
        self._store.subscribe(self._note)
        print_lines(self._beginning())

    def _note(self, changes: Changes) -> None:
        self._changes |= changes

    def _now_of(self, job: Job) -> Nanos:
        return self._store.now_at(job.source, self._clock.now())

    def _beginning(self) -> Iterable[str]:
        jobs = self._news.of(self._store.jobs.values(), self._now_of)
        counts = Counter(job.status for job in jobs)
        summary = ", ".join(f"{counts[status]:,} {WORDS[status]}" for status in JobStatus if counts[status])
        yield f"{counted(len(jobs), 'job')}: {summary}." if jobs else "No jobs."
        yield from self._sources()
        wanted = in_order((job for job in jobs if job.status.is_live), self._now_of)
        shown = wanted[: self._most]
        yield from FAULTS.each("printing changes", shown, lambda job: job_words(job, self._now_of(job)))
        if len(wanted) > self._most:
            yield f"and {len(wanted) - self._most:,} more run or wait: jobtui jobs --plain lists them."
        yield "Changes follow, one a line; ctrl+c ends."

    def more(self) -> Iterable[str]:
        """Lines for jobs that changed since the last call, or need a person as time passed."""
        now = self._clock.now()
        changes, self._changes = self._changes, NO_CHANGES
        self._news.forget(changes.gone)
        jobs = [job for job_id in changes.jobs if (job := self._store.job(job_id)) is not None]
        live = (job for job in self._store.jobs.values() if job.status.is_live)
        news = in_order(self._news.of(jobs, self._now_of) + self._news.of(live, self._now_of), self._now_of)
        yield from FAULTS.each(
            "printing changes",
            news[: self._most],
            lambda job: f"{clock_time(now)}Z {job_words(job, self._now_of(job))}",
        )
        if len(news) > self._most:
            yield f"{clock_time(now)}Z and {len(news) - self._most:,} more jobs changed."
        yield from (f"{clock_time(now)}Z {line}" for line in self._sources())

    def _sources(self) -> Iterable[str]:
        for source in self._store.sources():
            before = self._states.get(source.name)
            self._states[source.name] = source.state
            if source.state is SourceState.DOWN and before is not SourceState.DOWN:
                yield f"source {show(source.name)} is down: {show(source.reason or 'no reason given')}"
            elif before is SourceState.DOWN and source.state is not SourceState.DOWN:
                yield f"source {show(source.name)} is up again"


def job_words(job: Job, now: Nanos) -> str:
    """A job in one line without signs: its state, name, user, trouble and id."""
    stand = f"needs a person, {WORDS[job.status]}" if needs_person(job, now) else WORDS[job.status]
    name = " ".join(filter(None, (job.name or "unnamed", job.model)))
    why = waits_for(job, now) or job.error or job.message or ""
    parts = [f"{stand}: {show(name)}", f"of {show(job.owner)}" if job.owner else "", show(why)]
    return f"{', '.join(filter(None, parts))}. Id {show(job.id)}"


LOOK_S = 1.0
"""How often a job without news is checked: it may be late by now."""

UNTIL = ("done", "failed", "stuck")
"""What a user can wait for."""


async def _is_stuck(job: Job, reader: Reader) -> bool:
    return needs_person(job, reader.now_of(job)) or await _lost(job, reader) is not None


async def _lost(job: Job, reader: Reader) -> str | None:
    """The end of a job whose record still says that it is live, if logs prove it."""
    if not job.status.is_live:
        return None
    verdict = explain(await Gatherer.of(reader.session).gather(job.id))
    return verdict.sentence if verdict.is_reliably_bad else None


def run_wait(context: Context) -> Exit:
    """Wait. FINE for a job that ended well, FAILED for another end, ATTENTION for stuck, or out of time."""
    given = context.config.settings["until"]  # which is a time for other commands, and in files for all
    text = (given.values[-1] if given.values and given.origin == "--until" else "") or "done,stuck"
    wanted = tuple(word for word in text.split(",") if word)
    if not wanted or not set(wanted) <= set(UNTIL):
        return complain(f'"{text}" cannot be waited for; expected some of {", ".join(UNTIL)}', Exit.USAGE)
    length = context.flag("timeout")
    timeout_s = None if length is None else parse_duration(length)
    if length is not None and timeout_s is None:
        return complain(f'"{length}" is not a duration; expected one such as 90s, 10m or 2h30m', Exit.USAGE)
    return in_session(context, lambda reader: _wait(reader, wanted, timeout_s))


async def _wait(reader: Reader, wanted: tuple[str, ...], timeout_s: float | None) -> Exit:
    reader.follows = "stuck" in wanted
    found = await resolve(reader, reader.context.words[0])
    if found.job is None:
        return print_not_found({"job": None}, found, reader)
    end = None if timeout_s is None else time.monotonic() + timeout_s
    if reader.follows and found.job.status.is_live:
        await reader.read_logs(found.detail)
    job = await _until_reached(reader, found.job.id, wanted, end)
    if job is None:
        last = reader.session.store.job(found.job.id)
        state = "not known" if last is None else last.status.value
        after = "" if timeout_s is None else f" after {duration(timeout_s)}"  # else it was interrupted
        complain(f"{found.job.id} is still {state}{after}")
        return reader.settle(Exit.ATTENTION)
    print_lines([f"{show(job.id)} {job.status.value}{await _reason(job, reader)}"])
    if job.status.is_live:
        return reader.settle(Exit.ATTENTION if await _is_stuck(job, reader) else Exit.FINE)
    return reader.settle(Exit.FINE if job.status is JobStatus.COMPLETED else Exit.FAILED)


async def _until_reached(
    reader: Reader, job_id: JobId, wanted: tuple[str, ...], end: float | None
) -> Job | None:
    store, changed, state = reader.session.store, asyncio.Event(), ""
    unsubscribe = store.subscribe(lambda changes: changed.set() if job_id in changes.jobs else None)
    reading = asyncio.ensure_future(reader.session.run())
    try:
        while True:
            job = store.job(job_id)
            if job is not None:
                is_done, has_failed = not job.status.is_live, job.status is JobStatus.FAILED
                is_stuck = "stuck" in wanted and await _is_stuck(job, reader)
                if is_stuck or ("done" in wanted and is_done) or ("failed" in wanted and has_failed):
                    return job
            if job is not None and sys.stderr.isatty():
                before, state = state, f"{job.status.value}{await _reason(job, reader)}"
                if state != before:
                    complain(f"waiting for {job_id} to be {' or '.join(wanted)}: {state}")
            left_s = LOOK_S if end is None else min(LOOK_S, end - time.monotonic())
            if left_s <= 0 or reading.done() or reader.partial:
                return None
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await changed.wait()
            changed.clear()
    finally:
        unsubscribe()
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading


async def _reason(job: Job, reader: Reader) -> str:
    waits = waits_for(job, reader.now_of(job)) if job.status.is_live else None
    words = job.error or waits or await _lost(job, reader)
    return f": {show(words)}" if words else ""
