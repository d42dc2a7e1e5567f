"""Reading the logs back to where a job began, in words. No widgets."""

import asyncio
from collections.abc import Callable

from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import SourceState
from jobtui.render.sources import labels
from jobtui.render.text import Zone, clock_time, date_time, show
from jobtui.screens.base import Board

SLACK_S = 600
"""How much is read before the submission of a run, seconds: its agent was started before it."""
LOG_KINDS = frozenset({"logfile"})
PATIENCE_S = 10.0
"""How long is waited for logs that were not read at all yet."""
DAY = 86_400 * SECOND


class Reaching:
    """Whether the logs were read from early enough, and reading them again where not."""

    def __init__(self, board: Board, changed: Callable[[], None]) -> None:
        self._board = board
        self._changed = changed
        self._back_to: Nanos | None = None
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
        self._tell(f"reading the logs back to {self._time(at)} …")
        try:
            if await self._board.desk.reach_back(at):
                self._back_to = at if self._back_to is None else min(at, self._back_to)
        finally:
            self._tell("")

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

    def silence(self, number: int | None) -> tuple[str, ...]:
        """What is said where no op is known: what was read, and what was not; safe to show."""
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
        if self._back_to is not None:
            told.append(f"They were read back to {self._time(self._back_to)} for this.")
        return tuple(told)
