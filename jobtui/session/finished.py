"""Finds the finished runs of a session, with their verdicts, for the memory."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from jobtui.analysis.explain.verdict import explain
from jobtui.analysis.recurrence import finished
from jobtui.analysis.signature import failure_text
from jobtui.model.clock import Nanos
from jobtui.model.faults import contained
from jobtui.model.ids import JobId
from jobtui.model.job_reader import Unreadable
from jobtui.model.jobs import SIREPO, Job, JobStatus
from jobtui.model.memory import Finished
from jobtui.session import Session
from jobtui.session.evidence import MOST_JOBS_READ, Gatherer
from jobtui.store.store import Changes

OVER = frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELED})
"""The statuses that the memory keeps. How a missing or purged job ended is not known."""
JOBS_BETWEEN_RESTS = 64


class FinishedRuns:
    """Notes which jobs of a session change; `take` passes those that have finished to `put`.

    While `is_full`, it waits.
    """

    def __init__(
        self, session: Session, put: Callable[[Finished], None], is_full: Callable[[], bool] = lambda: False
    ) -> None:
        self._session, self._put, self._is_full = session, put, is_full
        self._due: dict[JobId, None] = dict.fromkeys(session.store.jobs)
        self._known: dict[JobId, Nanos | None] = {}
        self._changed = asyncio.Event()
        self._failed, self._gatherer = 0, Gatherer.of(session)
        session.store.subscribe(self._note)

    def _note(self, changes: Changes) -> None:
        for job_id in changes.gone:
            self._known.pop(job_id, None)
        self._due.update(dict.fromkeys(changes.jobs))
        self._changed.set()

    async def follow(self) -> None:
        """Pass on the runs that finish, until cancelled."""
        while True:
            self._changed.clear()
            await self.take()
            await self._changed.wait()

    async def take(self) -> None:
        """Look at all jobs that changed."""
        number = 0
        self._gatherer = Gatherer.of(self._session)
        while self._due:
            job_id = next(iter(self._due))
            del self._due[job_id]
            with contained("remembering"):
                await self._look_at(job_id)
            number += 1
            if number % JOBS_BETWEEN_RESTS == 0:
                await asyncio.sleep(0)
            while self._is_full():  # noqa: ASYNC110 - nothing tells when it is written
                await asyncio.sleep(0.1)

    async def _look_at(self, job_id: JobId) -> None:
        job = self._session.store.job(job_id)
        if job is None or job.is_quasi:
            return
        if job_id not in self._known and job.system == SIREPO and job.runs > 1:
            await self._earlier_runs(job)
        known = self._known.setdefault(job_id, None)
        if job.status not in OVER or known == (ended := job.ended_at or job.updated_at):
            return
        self._known[job_id] = ended
        job = self._session.store.with_agent(job)
        verdict, text = job.status.value, ""
        if job.status is not JobStatus.COMPLETED:
            evidence = await self._fresh_gatherer().gather(job_id, wants_chain=False)
            found = explain(evidence)
            verdict, text = found.code.value, failure_text(job, found)
        if (one := finished(job, verdict, text)) is not None:
            self._put(one)

    async def _earlier_runs(self, job: Job) -> None:
        """Pass on the earlier runs of a job, which are in its record."""
        with suppress(Unreadable):
            detail = await self._session.job_reader().detail(job.id)
            for run in detail.runs[:-1] if detail is not None else ():
                if run.status in OVER:
                    failed = run.status is JobStatus.FAILED
                    text = (run.error or run.alert or run.native_status) if failed else ""
                    one = finished(job, run.status.value, text, run)
                    if one is not None:
                        self._put(one)

    def _fresh_gatherer(self) -> Gatherer:
        """A gatherer that may still read outputs."""
        self._failed += 1
        if self._failed % MOST_JOBS_READ == 0:
            self._gatherer = Gatherer.of(self._session)
        return self._gatherer
