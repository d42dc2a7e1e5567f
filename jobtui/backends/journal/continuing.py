"""Entries that continue a record: what its process wrote next, up to the next record."""

from collections.abc import Callable, Iterable, Mapping

from jobtui.model.journal import JournalEntry
from jobtui.model.pages import Place

CONTINUING_ENTRIES = 100
"""Entries of one record at most."""
ENTRIES_READ = 100_000
"""Entries that are looked at for one question."""

_Process = tuple[str, int | None]


class Continuations:
    """Takes the entries of one stream in order; `found` has what follows the wanted ones, by cursor."""

    def __init__(self, wanted: Mapping[str, Place], ends: Callable[[str], bool]) -> None:
        self.found: dict[str, list[str]] = {}
        self._wanted = set(wanted)
        self._ends = ends
        self._open: dict[_Process, list[str]] = {}
        self._read = 0

    @property
    def is_done(self) -> bool:
        """Whether no more can come, or enough was looked at."""
        return (not self._wanted and not self._open) or self._read >= ENTRIES_READ

    def take(self, entries: Iterable[JournalEntry]) -> None:
        """Go on with these."""
        for entry in entries:
            self._read += 1
            self._take(entry, (entry.boot, entry.pid))

    def _take(self, entry: JournalEntry, process: _Process) -> None:
        if entry.cursor in self._wanted:
            self._wanted.remove(entry.cursor)
            self._open[process] = self.found[entry.cursor] = []
            return
        texts = self._open.get(process)
        if texts is None:
            return
        if self._ends(entry.message) or len(texts) >= CONTINUING_ENTRIES:
            del self._open[process]
        else:
            texts.append(entry.message)
