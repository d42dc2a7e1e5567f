"""Which jobs are shown: the filter that was typed, and whether mere compute calls are shown too."""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from time import thread_time
from typing import TYPE_CHECKING

import msgspec

from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job
from jobtui.render.text import show
from jobtui.screens.board import Board
from jobtui.widgets.filter_bar import Mistake

if TYPE_CHECKING:
    # Imported where it is needed, as the first paint has no filter
    from jobtui.analysis.disputes import Disputes
    from jobtui.analysis.filter import Filter, FilterContext
    from jobtui.analysis.lateness import Lateness

TRIED, ROUNDS = 200, 5
"""Jobs on which a filter is tried to learn what it costs, and in how many rounds, of which one may be odd."""


class JobFilter:
    """A filter that holds, which with a mistake in it is none."""

    def __init__(self, now: Callable[[], Nanos], context: "Callable[[], FilterContext]") -> None:
        self._now = now
        self._context = context
        self._filter: Filter | None = None
        self.text = ""
        self.shows_hidden = False

    @property
    def is_empty(self) -> bool:
        """Whether it lets every job pass that is not hidden."""
        return self._filter is None or self._filter.is_empty

    def set(self, text: str) -> Mistake | None:
        """Filter by this text, or by nothing when something is wrong with it: what it is."""
        mistake = mistake_in(text)
        self.text = "" if mistake else text.strip()
        self._filter = _parsed(self.text) if self.text else None
        return mistake

    def cost_s(self, text: str, jobs: Mapping[JobId, Job]) -> float:
        """About how many seconds it takes to look at all these jobs with a filter, tried on a few of them."""
        if mistake_in(text):
            return 0.0
        from statistics import median

        chosen, now, context = _parsed(text), self._now(), self._context()
        step = max(1, len(jobs) // TRIED)
        tried = list(islice(jobs.values(), 0, step * TRIED, step))
        spent = []
        for part in range(ROUNDS):
            some = tried[part::ROUNDS]
            begin = thread_time()  # what else the machine does is not to count
            for job in some:
                chosen.matches(job, now, context)
            spent.append((thread_time() - begin) / max(1, len(some)))
        return median(spent) * len(jobs)

    def keeper(self) -> Callable[[Job], bool] | None:
        """What tells whether a job is shown, None when all are."""
        chosen, now = self._filter, self._now
        if chosen is None or chosen.is_empty:
            return None if self.shows_hidden else lambda job: not job.is_quasi
        context = self._context()
        if not self.shows_hidden:
            return lambda job: chosen.matches(job, now(), context)
        return lambda job: chosen.matches(_as_plain(job), now(), context)


class Whereabouts:
    """Where a job runs and what started its agent; the logs know what today's records leave out."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._changed_early: list[tuple[Iterable[JobId], Nanos]] = []
        self._disputes: Disputes | None = None
        self._lateness: Lateness | None = None

    def note(self, changed: Iterable[JobId]) -> None:
        """These jobs changed."""
        if self._disputes is None or self._lateness is None:
            self._changed_early.append((changed, self._board.now()))
        else:
            self._disputes.note(changed, self._board.now())
            self._lateness.note(changed)

    def turned(self) -> set[JobId]:
        """The jobs about which sources disagree now, or that are late, and were not before, or no longer."""
        store, now = self._board.store, self._board.now()
        if self._disputes is None or self._lateness is None:
            # the first paint does not need them
            from jobtui.analysis.disputes import Disputes
            from jobtui.analysis.lateness import Lateness

            self._disputes, self._lateness = Disputes(), Lateness()
            for changed, at in self._changed_early:
                self._disputes.note(changed, at)
                self._lateness.note(changed)
            self._changed_early.clear()
        disputed = self._disputes.look(store.correlation, store.jobs, store.sources(), now)
        return disputed | self._lateness.look(store.jobs, now)

    def is_disputed(self, job: Job) -> bool:
        """Whether sources disagree about a job."""
        return self._disputes is not None and job.id in self._disputes

    def context(self) -> "FilterContext":
        """The same for filters."""
        from jobtui.analysis.filter import FilterContext

        return FilterContext(
            host_of=self.host_of,
            driver_of=self.driver_of,
            is_disputed=self.is_disputed,
            is_late=lambda job: self.late_of(job) is not None,
        )

    def late_of(self, job: Job) -> str | None:
        """How much longer than usual a job takes, None where it does not."""
        late = self._lateness.late(job, self._board.now()) if self._lateness is not None else None
        return late.words if late is not None else None

    def host_of(self, job: Job) -> str | None:
        """Its host."""
        if job.host:
            return job.host
        agent = self._board.store.correlation.agent_of(job.id)
        return agent.host if agent else None

    def driver_of(self, job: Job) -> str | None:
        """Its driver."""
        if job.driver:
            return job.driver
        agent = self._board.store.correlation.agent_of(job.id)
        return agent.driver if agent else None


def mistake_in(text: str) -> Mistake | None:
    """What is wrong with a filter, if anything."""
    if not text.strip():
        return None
    from jobtui.analysis.filter import FilterError

    try:
        _parsed(text)
    except FilterError as error:
        return Mistake(error.start, error.end, show(str(error)))
    return None


def _parsed(text: str) -> "Filter":
    from jobtui.analysis.filter import parse

    return parse(text)


def _as_plain(job: Job) -> Job:
    """A job as the filter lets it pass although it is only a compute call."""
    return msgspec.structs.replace(job, is_quasi=False) if job.is_quasi else job
