"""Rings the bell and runs the user's command when jobs newly fail or need a person."""

from collections.abc import Awaitable, Callable, Mapping
from time import monotonic

from textual.app import App

from jobtui.analysis.alerts import Trouble
from jobtui.model.ids import JobId
from jobtui.model.settings import Alarms
from jobtui.render.text import show
from jobtui.screens.shared import Shared
from jobtui.store.store import Changes

LOOK_S = 2.0
"""How often it checks: time alone may make a job late."""

Tell = Callable[[Mapping[str, str]], Awaitable[None]]
"""Runs the command with these variables."""


class Alarm:
    """Runs during a pause of the screens too. Trouble during its rest is reported together afterwards."""

    def __init__(self, app: App[None], shared: Shared, wishes: Alarms, tell: Tell | None) -> None:
        self._app = app
        self._shared = shared
        self._wishes = wishes
        self._tell = tell
        self._trouble = Trouble(shared.clock.now())
        self._waiting: dict[JobId, None] = {}
        self._told_at: float | None = None
        shared.live.subscribe(self._note)
        app.set_interval(LOOK_S, self.look)

    def _note(self, changes: Changes) -> None:
        self._trouble.note(changes.jobs)

    def look(self) -> None:
        live = self._shared.live
        found = self._trouble.look(live.jobs, self._shared.clock.now(), now_at=live.now_at)
        self._waiting.update(dict.fromkeys(found))
        is_resting = self._told_at is not None and monotonic() - self._told_at < self._wishes.rest_s
        if not self._waiting or is_resting:
            return
        self._told_at = monotonic()
        jobs, self._waiting = tuple(self._waiting), {}
        if self._wishes.bell:
            self._app.bell()
        if self._tell is not None:
            self._app.run_worker(self._run(self._tell, jobs), group="alarm")

    async def _run(self, tell: Tell, jobs: tuple[JobId, ...]) -> None:
        # Imported here, as few have a command
        from jobtui.analysis.explain.verdict import explain
        from jobtui.session.evidence import Gatherer

        shared = self._shared
        gatherer = Gatherer(shared.live, shared.job_reader, shared.clock.now(), shared.reach)
        verdict = explain(await gatherer.whole(jobs[0]))
        await tell(
            {
                "TROUBLE_JOB": show(jobs[0]),
                "TROUBLE_VERDICT": verdict.code.value,
                "TROUBLE_CONFIDENCE": f"{verdict.confidence:.2f}",
                "TROUBLE_JOBS": str(len(jobs)),
            }
        )
