"""Which sources of a session have lines to read, and how to open them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from jobtui.backends.base import Source
from jobtui.backends.registry import LOG_FILE, of_kind
from jobtui.model.clock import Offsets
from jobtui.model.patterns import regex

if TYPE_CHECKING:
    from jobtui.logs.merged import Mergeable
    from jobtui.model.pages import Log

COPIES = regex(r"/agent-sbatch/[^/]+/?$")
"""The directory of a cluster in which the supervisor keeps copies of an agent's log."""
OVER_SSH = regex(r"ssh://[^/]+/.")
"""The address of a file on another host."""


@runtime_checkable
class DirectoryLogs(Protocol):
    @property
    def directories(self) -> tuple[str, ...]: ...


class SessionLogs:
    """The log files among the sources of a session, which may change while it runs."""

    def __init__(
        self, sources: Callable[[], Sequence[Source]], offsets: Callable[[], Offsets] = dict
    ) -> None:
        self._sources = sources
        self._offsets = offsets

    def names(self) -> tuple[str, ...]:
        return (*self._files(), *self._streams())

    def open(self, name: str) -> "Mergeable":
        """A stream by its name, a file by its path or address, copies by their directory."""
        if self._has_journals or "=" in name:
            from jobtui.logs.journal import open_stream

            if (stream := open_stream(self._sources(), name)) is not None:
                return stream
        # Needed when somebody reads a log, not when the program starts
        is_remote = OVER_SSH.match(name) is not None
        if is_remote or COPIES.search(name):
            from jobtui.backends.agent_copies import CopiedLines
            from jobtui.logs.lists import ListedLog, RemoteLines

            return ListedLog(name, RemoteLines(name) if is_remote else CopiedLines(Path(name)))
        from jobtui.backends.logfile import LogFile
        from jobtui.logs.pages import LogPages

        files = (one for one in self._sources() if isinstance(one, LogFile) and one.name == name)
        return LogPages(Path(name), next((one.clock_of_lines for one in files), None))

    def merged(self, names: Sequence[str] | None = None) -> "Log":
        from jobtui.logs.merged import MergedLog

        streams = frozenset(self._streams())
        wanted = self._files() if names is None else names
        files = {name: self.open(name) for name in wanted if name not in streams}
        if not self._has_journals:
            return MergedLog(files)
        from jobtui.logs.journal import merged_journals

        return MergedLog({**files, **merged_journals(self._sources(), names)}, offsets=self._offsets)

    @property
    def _has_journals(self) -> bool:
        return any(of_kind(source.kind).is_journal for source in self._sources())

    def _files(self) -> list[str]:
        names: list[str] = []
        for source in self._sources():
            if isinstance(source, DirectoryLogs):
                names += source.directories
            elif LOG_FILE.made(source):
                names.append(source.name)
        return names

    def _streams(self) -> tuple[str, ...]:
        if not self._has_journals:
            return ()
        from jobtui.logs.journal import stream_names

        return stream_names(self._sources())
