"""Reading the logs back to where a job began, in words. No widgets."""

import asyncio
from collections.abc import Callable
from time import monotonic

from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import SourceState
from jobtui.model.ids import JobId, numbered
from jobtui.model.job_desk import Reached, Unreadable
from jobtui.render.sources import labels
from jobtui.render.text import Zone, clock_time, date_time, show
from jobtui.screens.base import Board

SLACK_S = 600
"""How much is read before the submission of a run, seconds: its agent was started before it."""
LOG_KINDS = frozenset({"logfile", "journald"})
PATIENCE_S = 10.0
"""How long is waited for logs that were not read at all yet."""
DAY = 86_400 * SECOND
MB = 1_000_000
TELL_S = 0.25
"""How often it is said how far reading is."""
STOPS = "· esc stops"


class Reaching:
    """Whether the logs were read from early enough, and reading them again where not."""

    def __init__(self, board: Board, changed: Callable[[], None]) -> None:
        self._board = board
        self._changed = changed
        self._back_to: Nanos | None = None
        self._problem = ""
        self._told_at = 0.0
        self.words = ""
        """What goes on, while it does; safe to show."""

    async def reach(self, queued_at: Nanos | None) -> None:
        """Read the logs back to a run that was queued then, if that is needed."""
        self._tell("")
        if queued_at is None:
            return
        await self._logs_begun()
        if not self._board.desk.begins_after(queued_at):
            return
        at = Nanos(max(0, queued_at - SLACK_S * SECOND))
        self._problem = "They were not read further back, as that was stopped."
        begun = f"reading the logs back to {self._time(at)}"
        self._tell(f"{begun} … {STOPS}")
        try:
            if await self._board.desk.reach_back(at, lambda reached: self._tell_share(begun, reached)):
                self._back_to = at if self._back_to is None else min(at, self._back_to)
            self._problem = ""
        except Unreadable as error:
            self._problem = f"They were not read back to {self._time(at)}: {show(str(error))}."
        finally:
            self._tell("")

    @property
    def goes_on(self) -> bool:
        """Whether logs are being read back."""
        return bool(self.words)

    def _tell_share(self, begun: str, reached: Reached) -> None:
        """Say how much was read, a few times a second."""
        now = monotonic()
        if now - self._told_at < TELL_S:
            return
        self._told_at = now
        if reached.size:
            read, size = (f"{count / MB:,.0f}" for count in (reached.read, reached.size))
            self._tell(f"{begun}: {read} of {size} MB {STOPS}")
        else:
            self._tell(f"{begun}: {reached.records:,} records {STOPS}")

    async def _logs_begun(self) -> None:
        """Return when every log was read a first time, or does not come."""
        news = asyncio.Event()
        unsubscribe = self._board.live.subscribe(lambda changes: news.set())
        try:
            async with asyncio.timeout(PATIENCE_S):
                while any(
                    source.kind in LOG_KINDS and source.state is SourceState.STARTING
                    for source in self._board.live.sources()
                ):
                    await news.wait()
                    news.clear()
        except TimeoutError:
            return
        finally:
            unsubscribe()

    def _tell(self, words: str) -> None:
        if words != self.words:
            self.words = words
            self._changed()

    def _time(self, at: Nanos) -> str:
        """A time of day, with its date when it is of another day."""
        now = self._board.now()
        words = clock_time(at)[:-3] if now - at < DAY else date_time(at)[:-3]
        return f"{words}{Zone.mark()}"

    def silence(self, job_id: JobId, number: int | None) -> tuple[str, ...]:
        """What is said where no op is known: what was read, and what was not; safe to show.

        `number` is the run that was chosen. Other systems than Sirepo tell of states, without a log.
        """
        if (other := numbered(job_id)) is not None:
            return (f"{show(other.system)} has told of no change of its state.",)
        if self.words:
            return (f"No op of it yet: {self.words}",)
        sources = self._board.store.sources()
        logs = [
            (label, source)
            for source, label in zip(sources, labels(sources), strict=True)
            if source.kind in LOG_KINDS
        ]
        if not logs:
            return ("No log is read, so that nothing is known of what happened to it.",)
        what = "this job" if number is None else f"run {number}"
        told = [f"No op of {what} in what was read of the logs:"]
        for label, source in logs:
            state = source.error if source.state is SourceState.DOWN else source.note
            told.append(f"{show(label)}: {show(state) if state else 'read as a whole'}")
        if self._problem:
            told.append(self._problem)
        elif self._back_to is not None:
            told.append(f"They were read back to {self._time(self._back_to)} for this.")
        return tuple(told)
