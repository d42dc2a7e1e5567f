"""Sources that deliver what a recording holds of them, up to the time that its clock shows."""

import asyncio
from functools import reduce
from typing import Any

from jobtui.backends.base import Batch, SourceUnreachable
from jobtui.backends.recording.codec import COUNTS, LISTS, What
from jobtui.backends.recording.tape import Entry, Tape
from jobtui.backends.worker import Worker
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail, Run

AT_ONCE = 50
"""Entries that are delivered at a time."""


class ReplayClock:
    """The time that a recording is at. Whoever waits for it to move on is woken."""

    def __init__(self, at: Nanos) -> None:
        self._at = at
        self._moved = asyncio.Event()

    def now(self) -> Nanos:
        """The time it is at."""
        return self._at

    def set(self, at: Nanos) -> None:
        """Be at another time."""
        self._at = at
        self._moved.set()
        self._moved = asyncio.Event()

    async def moved(self) -> None:
        """Return when it is at another time."""
        await self._moved.wait()


class ReplayedSource:
    """A source as it was. `number` is that in the tape, None for one of which nothing was kept."""

    def __init__(
        self, tape: Tape, worker: Worker, clock: ReplayClock, kind: str, name: str, number: int | None
    ) -> None:
        self.kind = kind
        self.name = name
        self.number = number
        self._tape = tape
        self._worker = worker
        self._clock = clock
        self._seq = -1
        self._read_to: Nanos | None = None

    async def poll(self, cursor: str | None) -> Batch:
        """What was delivered next, up to the time of the clock. Raises SourceError as the source did."""
        return await self._worker.run(lambda: self._next(anew=cursor is None))

    async def changed(self, timeout_s: float) -> None:
        """Return when the clock is at another time than at the last poll; nothing else is waited for."""
        while self._clock.now() == self._read_to:
            await self._clock.moved()

    async def aclose(self) -> None:
        """Hold nothing: the tape is closed by who opened it."""

    async def answer(self, what: What, key: str) -> Any:
        """What it answered to a question by the time of the clock, None when it was not asked."""
        number, until = self.number, self._clock.now()
        if number is None:
            return None
        found = await self._worker.run(lambda: self._tape.answer(what, number, key, until))
        return None if found is None else found.value

    async def asked(self, what: What) -> list[str]:
        """What it was asked for."""
        number = self.number
        return [] if number is None else await self._worker.run(lambda: self._tape.keys(what, number))

    def _next(self, *, anew: bool) -> Batch:
        if anew:
            self._seq = -1
        self._read_to = self._clock.now()
        if self.number is None:
            return Batch(cursor="")
        until = self._read_to
        early = self._tape.early_jobs(self.number, until) if self._seq < 0 else ()
        entries = self._tape.delivered(self.number, max(0, self._seq), until, AT_ONCE)
        more = len(entries) == AT_ONCE
        taken = entries[: _up_to_gone(entries)]
        more = more or len(taken) < len(entries)
        self._seq = taken[-1].seq if taken else max(0, self._seq)
        if taken and taken[-1].what is What.FAILURE and not more:
            raise SourceUnreachable(str(taken[-1].value))
        batches = [Batch(cursor="", jobs=early, count=0)] + [
            one.value for one in taken if one.what is What.BATCH
        ]
        merged: dict[str, Any] = reduce(_merge, map(_parts, batches))
        return Batch(cursor=str(self._seq), more=more, **merged)


class ReplayedJobs(ReplayedSource):
    """One that can tell everything stored about a job."""

    async def detail(self, job_id: JobId) -> JobDetail | None:
        """The whole record as it was read last, else what was delivered of the job; None without both."""
        return await self._worker.run(lambda: self._detail(job_id))

    async def job_ids(self) -> list[JobId]:
        """Every job of which something is known by itself."""
        if self.number is None:
            return []
        number = self.number
        return await self._worker.run(lambda: self._tape.job_ids(number))

    def _detail(self, job_id: JobId) -> JobDetail | None:
        if self.number is None:
            return None
        found = self._tape.answer(What.DETAIL, self.number, job_id, self._clock.now())
        if found is not None:
            detail: JobDetail | None = found.value
            return detail
        job = self._tape.last_job(self.number, job_id, self._clock.now())
        return None if job is None else JobDetail(job=job, runs=(_run_of(job),), history=(), native={})


def _run_of(job: Job) -> Run:
    """The present run of a job, as far as the job itself tells of it."""
    shared = {name: getattr(job, name) for name in Run.__struct_fields__ if name in Job.__struct_fields__}
    return Run(number=max(1, job.runs), **shared)


def _parts(batch: Batch) -> dict[str, Any]:
    return {name: getattr(batch, name) for name in (*LISTS, *COUNTS, "note")}


def _merge(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Two batches in one; of what is told twice the later holds."""
    return {
        **{name: one[name] + other[name] for name in (*LISTS, *COUNTS)},
        "note": other["note"] if other["note"] is not None else one["note"],
    }


def _up_to_gone(entries: list[Entry]) -> int:
    """How many of these can be one batch: what is gone in one may be there again in the next."""
    ends = (at + 1 for at, one in enumerate(entries) if one.what is What.BATCH and one.value.gone)
    return next(ends, len(entries))
