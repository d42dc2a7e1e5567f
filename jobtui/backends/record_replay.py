"""What may stand beside the sources of a session: one that watches what they deliver, one in their place."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from jobtui.backends.base import Batch, Source

if TYPE_CHECKING:
    from jobtui.backends.job_reader import Told
    from jobtui.model.clock import Player
    from jobtui.model.job_reader import JobReader
    from jobtui.model.pages import LogBook


class Observer(Protocol):
    """Is told what polls gave. Must return at once, and raise nothing."""

    def delivered(self, source: Source, batch: Batch) -> None:
        """A source delivered something, perhaps nothing new."""

    def failed(self, source: Source, error: str) -> None:
        """A source could not be read."""

    def beside(self, job_reader: "JobReader") -> "JobReader":
        """What is asked in place of the `JobReader`, whose answers it may keep."""


class Replay(Protocol):
    """Stands in for the systems, as a recording does. What is built to read them is never polled."""

    def in_place_of(self, source: Source) -> Source:
        """What is polled in place of a source."""

    def job_reader(self, sources: Callable[[], Sequence[Source]], told: "Told") -> "JobReader":
        """What answers questions about one job; `told` knows of jobs that are put together."""

    def logs(self, sources: Callable[[], Sequence[Source]]) -> "LogBook":
        """The logs that can be read line by line."""

    def player(self, begin_anew: Callable[[], Awaitable[None]]) -> "Player":
        """What goes through its time. `begin_anew` lets everything be read from its beginning."""
