"""Moves the clock of a recording, and has everything read anew where it is moved back."""

import asyncio
from collections.abc import Awaitable, Callable

from jobtui.backends.recording.replayed import ReplayClock
from jobtui.backends.recording.tape import Tape
from jobtui.backends.worker import Worker
from jobtui.model.clock import SECOND, Nanos

SPEEDS = (1, 10, 60, 600)
"""Seconds that go by in one, each after the other; then it stands."""


class TapePlayer:
    """See `model.playing.Player`. `begin_anew` lets all that is known be read from its beginning again."""

    def __init__(
        self, tape: Tape, worker: Worker, clock: ReplayClock, begin_anew: Callable[[], Awaitable[None]]
    ) -> None:
        self._tape = tape
        self._worker = worker
        self._clock = clock
        self._begin_anew = begin_anew
        self._reading = asyncio.Lock()
        self._asked = 0
        self.speed = 0
        self.begins_at = min(tape.begins_at or tape.about.at, clock.now())
        self.ends_at = max(tape.ends_at or tape.about.at, clock.now())

    @property
    def at(self) -> Nanos:
        """The time it is at."""
        return self._clock.now()

    def play(self) -> None:
        """Let time go on, faster each time, and then stand."""
        following = dict(zip((0, *SPEEDS), (*SPEEDS, 0), strict=True))
        self.speed = following[self.speed] if self.at < self.ends_at else 0

    def tick(self, passed_s: float) -> None:
        """Let the time go by that passed here; at the end it stands."""
        if not self.speed:
            return
        self._clock.set(min(self.ends_at, Nanos(self.at + round(passed_s * self.speed * SECOND))))
        if self.at >= self.ends_at:
            self.speed = 0

    async def go(self, at: Nanos) -> None:
        """Be at another time, as near as there is one."""
        before, wanted = self.at, min(max(at, self.begins_at), self.ends_at)
        if wanted == before:
            return
        self._clock.set(wanted)
        if wanted < before:
            await self._read_anew()

    async def _read_anew(self) -> None:
        """Read everything anew; who asked before and still waits need not."""
        self._asked += 1
        nth = self._asked
        async with self._reading:
            if nth == self._asked:
                await self._begin_anew()

    async def go_to_change(self, *, forward: bool) -> None:
        """Be where something was delivered next, or before."""
        at = await self._worker.run(lambda: self._tape.next_change(self.at, forward=forward))
        if at is not None:
            await self.go(at)
