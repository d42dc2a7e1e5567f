"""Going through recorded time, as screens see it. See `backends.recording.player`."""

from typing import Protocol

from jobtui.model.clock import Nanos


class Player(Protocol):
    """Where in recorded time everything is. Moving changes what all sources deliver."""

    @property
    def at(self) -> Nanos:
        """The time it is at."""
        ...

    @property
    def begins_at(self) -> Nanos:
        """The earliest time there is anything of."""
        ...

    @property
    def ends_at(self) -> Nanos:
        """The end of what was recorded."""
        ...

    @property
    def speed(self) -> int:
        """How many seconds go by in one; 0 while it stands."""
        ...

    def play(self) -> None:
        """Let time go on, faster each time that it does already, and then stand; at the end it stands."""
        ...

    def tick(self, passed_s: float) -> None:
        """So much time has passed here."""
        ...

    async def go(self, at: Nanos) -> None:
        """Be at another time, as near as there is one."""
        ...

    async def go_to_change(self, *, forward: bool) -> None:
        """Be where something was delivered next, or before. At the last of them it stays where it is."""
        ...
