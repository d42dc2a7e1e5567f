"""Which sources of a session have lines to read, and how to open them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jobtui.backends.base import Source
from jobtui.model.pages import Log

if TYPE_CHECKING:
    from jobtui.backends.log_pages import LogPages

LOG_FILE = "logfile"


class SessionLogs:
    """The log files among the sources of a session, which may change while it runs."""

    def __init__(self, sources: Callable[[], Sequence[Source]]) -> None:
        self._sources = sources

    def names(self) -> tuple[str, ...]:
        """The sources that have lines to read."""
        return tuple(source.name for source in self._sources() if source.kind == LOG_FILE)

    def open(self, name: str) -> Log:
        """The log of a source; of a file by its path when no source has this name."""
        return _pages(name)

    def merged(self) -> Log:
        """The ends of all logs in the order of time."""
        from jobtui.backends.merged_log import MergedLog

        return MergedLog({name: _pages(name) for name in self.names()})


def _pages(name: str) -> "LogPages":
    # Needed first when somebody reads a log, not when the program starts
    from jobtui.backends.log_pages import LogPages

    return LogPages(Path(name))
