"""`wait ID`: wait until a job is over, has failed, or needs a person."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from jobtui.analysis.explain.survey import beside_of, samples
from jobtui.analysis.flags import needs_person, waits_for
from jobtui.analysis.time_words import duration, parse_duration
from jobtui.commands.context import Context
from jobtui.commands.exits import Exit
from jobtui.commands.printing import print_lines, print_not_found
from jobtui.commands.reading import Reader, in_session
from jobtui.commands.resolve import resolve
from jobtui.commands.streams import complain
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.verdicts import RELIABLE, Concern
from jobtui.render.text import show

LOOK_S = 1.0
"""How often a job is looked at that nothing tells of: it may be late by now."""

Reached = Callable[[Job, Reader], bool]


def _is_stuck(job: Job, reader: Reader) -> bool:
    """Whether a live job needs a person, by its record or by what logs tell."""
    return needs_person(job, reader.now) or _lost(job, reader) is not None


def _lost(job: Job, reader: Reader) -> str | None:
    """What has become of a job whose record still says that it is live, where logs tell that for sure."""
    store = reader.session.store
    if not job.status.is_live:
        return None
    beside = partial(beside_of, store)
    (found,) = samples(store.correlation, (job,), store.sources(), reader.now, beside)
    is_bad = found.verdict.concern in (Concern.FAILED, Concern.STUCK)
    return found.verdict.sentence if is_bad and found.verdict.confidence >= RELIABLE else None


UNTIL: Mapping[str, Reached] = {
    "done": lambda job, reader: not job.status.is_live,
    "failed": lambda job, reader: job.status is JobStatus.FAILED,
    "stuck": _is_stuck,
}
"""What may be waited for."""
DEFAULT_UNTIL = "done"


def run(context: Context) -> Exit:
    """Wait. FINE for a job that ended well, FAILED for another end, ATTENTION for stuck, or out of time."""
    try:
        wanted, timeout_s = until_of(_until(context)), timeout_of(context.flag("timeout"))
    except ValueError as error:
        complain(str(error))
        return Exit.USAGE
    return in_session(context, lambda reader: _wait(reader, wanted, timeout_s))


def _until(context: Context) -> str | None:
    """What the flag asks for, which is a time for other commands, and in files for all."""
    given = context.config.settings["until"]
    return given.values[-1] if given.values and given.origin == "--until" else None


def until_of(text: str | None) -> tuple[str, ...]:
    """What is waited for, any of them. Raises ValueError for an unknown word."""
    words = tuple(word for word in (text or DEFAULT_UNTIL).split(",") if word)
    unknown = [word for word in words if word not in UNTIL]
    if unknown or not words:
        raise ValueError(f'"{text}" cannot be waited for, only {", ".join(UNTIL)}')
    return words


def timeout_of(text: str | None) -> float | None:
    """How long to wait in seconds, None for ever. Raises ValueError for what is no length of time."""
    if text is None:
        return None
    seconds = parse_duration(text)
    if seconds is None:
        raise ValueError(f'"{text}" is no length of time: expected such as 90s, 10m, 2h30m')
    return seconds


async def _wait(reader: Reader, wanted: tuple[str, ...], timeout_s: float | None) -> Exit:
    found = await resolve(reader, reader.context.words[0])
    if found.job is None:
        return print_not_found("wait", {"job": None}, found, reader)
    end = None if timeout_s is None else time.monotonic() + timeout_s
    if "stuck" in wanted and found.job.status.is_live:
        await reader.read_logs(found.detail, to_end=True)
    job = await _watch(reader, found.job.id, wanted, end)
    if job is None:
        complain(f"{found.job.id} is still {_state(reader, found.job.id)} after {duration(timeout_s)}")
        return reader.settle(Exit.ATTENTION)
    print_lines([f"{show(job.id)} {job.status.value}{_reason(job, reader)}"])
    return reader.settle(_code(job, reader))


async def _watch(reader: Reader, job_id: JobId, wanted: tuple[str, ...], end: float | None) -> Job | None:
    """The job when one of these holds, None when time is out."""
    store, changed = reader.session.store, asyncio.Event()
    unsubscribe = store.subscribe(lambda changes: changed.set() if job_id in changes.jobs else None)
    reading = asyncio.ensure_future(reader.session.run())
    try:
        while True:
            job = store.job(job_id)
            if job is not None and any(UNTIL[word](job, reader) for word in wanted):
                return job
            left_s = LOOK_S if end is None else min(LOOK_S, end - time.monotonic())
            if left_s <= 0 or reading.done():
                return None
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), left_s)
            changed.clear()
    finally:
        unsubscribe()
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading


def _state(reader: Reader, job_id: JobId) -> str:
    job = reader.session.store.job(job_id)
    return "not known" if job is None else job.status.value


def _reason(job: Job, reader: Reader) -> str:
    words = job.error or (waits_for(job, reader.now) if job.status.is_live else None) or _lost(job, reader)
    return f": {show(words)}" if words else ""


def _code(job: Job, reader: Reader) -> Exit:
    if job.status.is_live:
        return Exit.ATTENTION if _is_stuck(job, reader) else Exit.FINE
    return Exit.FINE if job.status is JobStatus.COMPLETED else Exit.FAILED
