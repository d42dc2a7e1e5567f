"""Keeps the verdict on one job current: computed when something about it changed, after what is painted."""

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from textual.dom import DOMNode

from jobtui.model.ids import JobId
from jobtui.model.job_desk import Unreadable
from jobtui.model.jobs import JobDetail
from jobtui.screens.board import Board
from jobtui.screens.job_tab import RECORD_LINES, start

if TYPE_CHECKING:
    from jobtui.analysis.explain.study import Study

LIVE_S = 5.0
"""The verdict on a live job is renewed so often although nothing changed: time alone may make it late."""


class Explaining:
    """The verdict on a job. `told` is called whenever there is another one."""

    def __init__(self, screen: DOMNode, board: Board, job_id: JobId, told: Callable[[], None]) -> None:
        self._screen = screen
        self._board = board
        self._job_id = job_id
        self._told = told
        self._detail: JobDetail | None = None
        self._slurm_id: str | None = None
        self._is_due = False
        self._works = False
        self._made_at = 0.0
        self._texts: dict[tuple[str, int, int], str] = {}
        self.study: Study | None = None
        """What is known by now; None before the first time."""

    def renew(self, detail: JobDetail | None) -> None:
        """Something about the job is another; several of these in short time are one."""
        self._detail = detail
        self._is_due = True
        if not self._works:
            self._works = True
            self._screen.call_after_refresh(start, self._screen, self._work, group="verdict")

    def note_slurm(self, slurm_id: str | None) -> None:
        """The job has this number in Slurm."""
        if slurm_id != self._slurm_id:
            self._slurm_id = slurm_id
            self.renew(self._detail)

    def tick(self) -> None:
        """Let time go on for a live job."""
        job = self._board.store.job(self._job_id)
        if job is not None and job.status.is_live and monotonic() - self._made_at >= LIVE_S:
            self.renew(self._detail)

    async def _work(self) -> None:
        # Imported here, as the first paint does not need it
        from jobtui.analysis.explain.balsam import BalsamFacts
        from jobtui.analysis.explain.next_steps import on_sources
        from jobtui.analysis.explain.study import study

        try:
            while self._is_due:
                self._is_due = False
                behind = await self._behind()
                store, now = self._board.store, self._board.now()
                runs = self._detail.runs if self._detail is not None else None
                balsam = BalsamFacts(store.changes_of(self._job_id), store.allocations(), store.sites())
                made = study(
                    store.correlation,
                    store.jobs,
                    store.sources(),
                    self._job_id,
                    now,
                    runs,
                    behind,
                    balsam,
                    self._detail,
                    self._slurm_id,
                    store.facts_of(self._job_id),
                )
                self._made_at = monotonic()
                self.study = made._replace(verdict=on_sources(made.verdict, self._board.words))
                self._told()
        finally:
            self._works = False

    async def _behind(self) -> dict[tuple[str, int], str]:
        """The whole records of the few steps of which the first line does not tell enough; read once each."""
        from jobtui.analysis.explain.gather import lines_wanted

        found = {}
        for step in lines_wanted(self._board.store.correlation.ops_of(self._job_id)):
            key = (step.source, step.line, step.offset)
            if key not in self._texts:
                try:
                    lines = await self._board.desk.lines_behind(step, RECORD_LINES)
                except Unreadable:
                    continue
                self._texts[key] = "\n".join(line.text for line in lines)
            if self._texts[key]:
                found[step.source, step.line] = self._texts[key]
        return found
