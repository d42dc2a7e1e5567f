"""Counts new failures. Rings, notifies and runs the user's command for jobs in trouble or awaited."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic

from textual.app import App

from jobtui.analysis.alerts import AlertFinder
from jobtui.backends.base import Batch
from jobtui.model.clock import Nanos
from jobtui.model.health import SourceError, contained
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobStatus
from jobtui.model.memory import MemoryOverview
from jobtui.model.numbers import counted
from jobtui.model.settings import KIND, Alarms
from jobtui.model.verdicts import Code
from jobtui.render.memory import sites_words
from jobtui.render.terminal import notification_sequence
from jobtui.render.text import show
from jobtui.screens.export import run_quietly, write_sequence
from jobtui.screens.shared import Shared
from jobtui.store.store import Store

SITES_S = 300.0
LOOK_S = 2.0
"""How often it checks: time alone may make a job late."""
TIMEOUT_S = 30.0


def toggle_awaited(shared: Shared, chosen: Sequence[JobId]) -> str:
    """Wait for the end of these jobs, or stop if all are waited for. Returns what to tell the user."""
    live = [job_id for job_id in chosen if (job := shared.live.jobs.get(job_id)) and job.status.is_live]
    about, is_one = live or chosen, len(live or chosen) == 1
    name = show(about[0]) if is_one else counted(len(about), "job")
    if not live:
        return f"already ended: {name}" if chosen else ""
    ends = f"{name} ends" if is_one else f"each of {name} ends"
    if shared.awaited.issuperset(live):
        shared.awaited.difference_update(live)
        return f"no notification when {ends}"
    shared.awaited.update(live)
    return f"you will be notified when {ends}"


class AlarmCommand:
    """Runs the user's command on new trouble: its words as configured, never through a shell.

    Once it has failed it is listed among the sources of `store`.
    """

    def __init__(self, command: Sequence[str], store: Store, timeout_s: float = TIMEOUT_S) -> None:
        self.name = f"alarm command: {os.path.basename(command[0])}"
        self._command = tuple(command)
        self._store = store
        self._timeout_s = timeout_s
        self._has_failed = False

    async def run(self, facts: Mapping[str, str]) -> None:
        """Run it with these variables added to the environment, and note how it ended."""
        why = await run_quietly(self._command, facts, self._timeout_s)
        if why is not None:
            self._has_failed = True
            self._store.add_source(self.name, KIND)
            self._store.fail(self.name, f"{self._command[0]}: {why}; see [alarm] in the configuration file")
        elif self._has_failed:
            self._store.apply(self.name, Batch(count=1))


class Alarm:
    """Runs even while the screens are paused. Trouble during its rest is reported together afterwards."""

    def __init__(self, app: App[None], shared: Shared, wishes: Alarms, began: Nanos) -> None:
        self._app = app
        self._shared = shared
        self._wishes = wishes
        self._command = AlarmCommand(wishes.command, shared.live) if wishes.command else None
        self._trouble = AlertFinder(began, only_failures=not wishes)
        self._trouble.note(shared.live.jobs)
        self._waiting: dict[JobId, None] = {}
        self._alerted_at: float | None = None
        self._sites_at, self._deviates = 0.0, False
        shared.live.subscribe(lambda changes: self._trouble.note(changes.jobs))
        app.set_interval(LOOK_S, self.look)

    def look(self) -> None:
        self._report_ends()
        if self._shared.overview is not None and monotonic() >= self._sites_at:
            self._sites_at = monotonic() + SITES_S
            self._app.run_worker(self._look_at_sites(self._shared.overview), group="sites")
        live = self._shared.live
        found = self._trouble.look(live.jobs, self._shared.clock.now(), now_at=live.now_at)
        self._shared.new_failures += sum(live.jobs[one].status is JobStatus.FAILED for one in found)
        if not self._wishes:
            return
        self._waiting.update(dict.fromkeys(found))
        is_resting = self._alerted_at is not None and monotonic() - self._alerted_at < self._wishes.rest_s
        if not self._waiting or is_resting:
            return
        self._alerted_at = monotonic()
        jobs, self._waiting = tuple(self._waiting), {}
        if self._wishes.bell:
            self._ring(f"{counted(len(jobs), 'job')} failed or stuck: {show(jobs[0])}")
        if self._command is not None:
            self._app.run_worker(self._run(self._command, jobs), group="alarm")

    def _report_ends(self) -> None:
        """Report which awaited jobs have ended: in the terminal, on the desktop and to the command."""
        awaited, jobs = self._shared.awaited, self._shared.live.jobs
        for job_id in sorted(awaited):
            job = jobs.get(job_id)
            if job is None or not job.status.is_live:
                awaited.discard(job_id)
                if self._command is not None:
                    self._app.run_worker(self._run(self._command, (job_id,)), group="alarm")
                words = f"{show(job_id)} {job.status.value if job is not None else 'is no longer known'}"
                self._app.notify(words, timeout=30, markup=False)
                self._ring(words)

    async def _look_at_sites(self, overview: Callable[[Nanos], MemoryOverview]) -> None:
        """Say once that sites deviate from their past, and not again until none does."""
        # `seen` says what is wrong with the memory
        with contained("asking the memory"), suppress(SourceError):
            sites = (await asyncio.to_thread(overview, self._shared.clock.now())).sites
            if sites and not self._deviates:
                self._app.notify(sites_words(sites), severity="warning", timeout=30, markup=False)
                if self._wishes.bell:
                    self._ring(sites_words(sites))
            self._deviates = bool(sites)

    def _ring(self, words: str) -> None:
        self._app.bell()
        write_sequence(self._app, notification_sequence(words, os.environ))

    async def _run(self, command: AlarmCommand, jobs: tuple[JobId, ...]) -> None:
        # Imported here, as few have a command
        from jobtui.analysis.explain.verdict import explain
        from jobtui.session.evidence import Gatherer

        shared = self._shared
        gatherer = Gatherer(shared.live, shared.job_reader, shared.clock.now(), shared.reach)
        code, confidence = Code.UNKNOWN, 0.0
        with contained("explaining"):  # the command runs whatever is known
            verdict = explain(await gatherer.whole(jobs[0]))
            code, confidence = verdict.code, verdict.confidence
        await command.run(
            {
                "TROUBLE_JOB": show(jobs[0]),
                "TROUBLE_VERDICT": code.value,
                "TROUBLE_CONFIDENCE": f"{confidence:.2f}",
                "TROUBLE_JOBS": str(len(jobs)),
            }
        )
