"""Makes charts of what the store knows while the screen goes on; seldom when that takes long."""

from collections.abc import Callable
from time import monotonic

from jobtui.analysis.charts import Chart, ChartKind, Known, Material, chart_turns, material_turns
from jobtui.screens.board import Board
from jobtui.screens.job_filter import JobFilter
from jobtui.screens.turns import in_turns

REST_S = 1.0
RESTS = 20
"""After charts were made comes a rest: that long, or so many times as long as it took."""


class ChartMaker:
    """The charts of the jobs that pass a filter."""

    def __init__(self, board: Board, jobs: JobFilter) -> None:
        self._board = board
        self._jobs = jobs
        self._material: Material | None = None
        self._counted: str | None = None
        self._charts: dict[ChartKind, Chart] = {}
        self._charts_of: Material | None = None
        self._due_at = 0.0
        self.is_stale = True
        """Whether something changed since the jobs were counted."""
        self.is_busy = False

    @property
    def is_due(self) -> bool:
        """Whether it is time to count again."""
        return self.is_stale and self._board.paused_at is None and monotonic() >= self._due_at

    def is_made(self, kind: ChartKind) -> bool:
        """Whether a chart is made of what was counted last, by the filter that holds."""
        is_counted = self._charts_of is self._material and self._counted == self._jobs.text
        return is_counted and kind in self._charts

    def chart(self, kind: ChartKind) -> Chart | None:
        """A chart as it was made last; where nothing changed since, it goes on until now."""
        chart = self._charts.get(kind)
        if chart is not None and not self.is_stale and self._board.paused_at is None:
            chart = self._charts[kind] = chart._replace(end=self._board.now())
        return chart

    async def make(self, kind: Callable[[], ChartKind]) -> None:
        """Count anew where that is due, and make charts until the one that is asked for is made."""
        begun, self.is_busy = monotonic(), True
        counts_anew = self.is_due
        try:
            while counts_anew or not self.is_made(kind()):
                if counts_anew or self._counted != self._jobs.text:
                    counts_anew = False
                    await self._count()
                await self._make(kind())
        finally:
            self.is_busy = False
        self._due_at = monotonic() + max(REST_S, RESTS * (monotonic() - begun))

    async def _count(self) -> None:
        """Collect what counts. What is on the screen stays until there is something newer."""
        self.is_stale, counted, store = False, self._jobs.text, self._board.store
        keeps = None if self._jobs.is_empty else self._jobs.keeper()
        known = Known(store.jobs, store.changes.histories(), store.allocations(), self._board.now())
        self._material = await in_turns(material_turns(known, keeps))
        self._counted = counted

    async def _make(self, kind: ChartKind) -> None:
        material = self._material
        if material is not None:
            chart = await in_turns(chart_turns(kind, material))
            self._charts = {**(self._charts if self._charts_of is material else {}), kind: chart}
            self._charts_of = material
