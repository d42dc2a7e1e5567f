"""Rings the terminal's bell, and has the user's command run, when jobs newly fail or need a person."""

from collections.abc import Awaitable, Callable, Mapping
from time import monotonic

from textual.app import App

from jobtui.analysis.trouble import Trouble
from jobtui.model.alarms import Alarms
from jobtui.model.ids import JobId
from jobtui.render.text import show
from jobtui.screens.board import Board
from jobtui.store.store import Changes

LOOK_S = 2.0
"""How often it is looked: time alone may make a job late."""

Tell = Callable[[Mapping[str, str]], Awaitable[None]]
"""Runs the command with these variables."""


class Alarm:
    """Goes on during a pause of the screens. What comes while it rests is told together afterwards."""

    def __init__(self, app: App[None], board: Board, wishes: Alarms, tell: Tell | None) -> None:
        self._app = app
        self._board = board
        self._wishes = wishes
        self._tell = tell
        self._trouble = Trouble(board.clock.now())
        self._waiting: dict[JobId, None] = {}
        self._told_at: float | None = None
        board.live.subscribe(self._note)
        app.set_interval(LOOK_S, self.look)

    def _note(self, changes: Changes) -> None:
        self._trouble.note(changes.jobs)

    def look(self) -> None:
        """Look for new trouble, and tell of it unless that was done just now."""
        found = self._trouble.look(self._board.live.jobs, self._board.clock.now())
        self._waiting.update(dict.fromkeys(found))
        is_resting = self._told_at is not None and monotonic() - self._told_at < self._wishes.rest_s
        if not self._waiting or is_resting:
            return
        self._told_at = monotonic()
        jobs, self._waiting = tuple(self._waiting), {}
        if self._wishes.bell:
            self._app.bell()
        if self._tell is not None:
            self._app.run_worker(self._run(self._tell, jobs), group="alarm", exit_on_error=False)

    async def _run(self, tell: Tell, jobs: tuple[JobId, ...]) -> None:
        # Imported here, as few have a command
        from jobtui.analysis.explain.study import study

        store = self._board.live
        now = self._board.clock.now()
        verdict = study(store.correlation, store.jobs, store.sources(), jobs[0], now, None).verdict
        await tell(
            {
                "TROUBLE_JOB": show(jobs[0]),
                "TROUBLE_VERDICT": verdict.code.value,
                "TROUBLE_CONFIDENCE": f"{verdict.confidence:.2f}",
                "TROUBLE_JOBS": str(len(jobs)),
            }
        )
