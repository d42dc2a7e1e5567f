"""The log records of a recording as logs to be read line by line."""

from collections.abc import Callable, Iterator, Sequence

from jobtui.backends.listed_log import ListedLog
from jobtui.backends.recording.replayed import ReplayClock
from jobtui.backends.recording.tape import Entry, Tape
from jobtui.backends.worker import Worker
from jobtui.formats.levels import level_of
from jobtui.model.clock import Nanos
from jobtui.model.logs import LogRecord
from jobtui.model.pages import Extent, Log, LogLine

ENTRIES_AT_FIRST = 5_000
"""Of each source so many entries are read at first, the newest."""
ENTRIES_AT_ONCE = 500
"""Entries that are read at a time as the clock goes on."""


class TapeLogs:
    """A `LogBook` on a recording: of each log those lines whose meaning is known, as they were understood."""

    def __init__(
        self, tape: Tape, worker: Worker, clock: ReplayClock, sources: Callable[[], Sequence[int]]
    ) -> None:
        self._tape = tape
        self._worker = worker
        self._clock = clock
        self._sources = sources

    def names(self) -> tuple[str, ...]:
        """The logs of which records were kept."""
        return self._tape.logs(self._sources())

    def open(self, name: str) -> Log:
        """A log, as far as it was kept."""
        return self._log(name, frozenset({name}))

    def merged(self, names: Sequence[str] | None = None) -> Log:
        """These logs, or all, in the order of time."""
        return self._log("", frozenset(self.names() if names is None else names))

    def _log(self, name: str, names: frozenset[str]) -> Log:
        return TapeLog(name, TapeLines(self._tape, self._worker, self._clock, self._sources(), names))


class TapeLog(ListedLog):
    """Lines up to the time of the clock: where that was set back, they are read anew."""

    def __init__(self, name: str, lines: "TapeLines") -> None:
        super().__init__(name, lines)
        self._tape_lines = lines

    async def look(self) -> Extent:
        """Take in what has come, or let go of what is not there yet. Raises LogUnreadable."""
        if self._tape_lines.is_set_back():
            self.forget()
        extent = await super().look()
        return extent._replace(event="its end only") if self._tape_lines.begins_late else extent


class TapeLines:
    """The lines of some logs, the earliest first. `begins_late` says that there are earlier ones."""

    def __init__(
        self, tape: Tape, worker: Worker, clock: ReplayClock, sources: Sequence[int], names: frozenset[str]
    ) -> None:
        self._tape = tape
        self._worker = worker
        self._clock = clock
        self._sources = sources
        self._names = names
        self._read_to: Nanos | None = None
        self._seqs: dict[int, int] = {}
        self._count = 0
        self.begins_late = False

    async def load(self) -> Sequence[LogLine]:
        """The lines that have come since. Raises SourceError."""
        return await self._worker.run(self._load)

    async def is_changed(self) -> bool:
        """Whether the clock has moved."""
        return self._clock.now() != self._read_to

    def is_set_back(self) -> bool:
        """Whether the clock is at an earlier time than what was read, which is read anew then."""
        if self._read_to is None or self._clock.now() >= self._read_to:
            return False
        self._read_to = None
        self._seqs.clear()
        self._count = 0
        self.begins_late = False
        return True

    def close(self) -> None:
        """Hold nothing: the tape is closed by who opened it."""

    def _load(self) -> Sequence[LogLine]:
        until = self._clock.now()
        entries = [entry for source in self._sources for entry in self._entries(source, until)]
        self._read_to = until
        records = [record for entry in entries for record in getattr(entry.value, "records", ())]
        chosen = sorted((r for r in records if r.source in self._names), key=lambda record: record.at or 0)
        return [self._line(record, text) for record in chosen for text in record.text.split("\n")]

    def _entries(self, source: int, until: Nanos) -> Iterator[Entry]:
        """What a source delivered since it was read last; of much the end."""
        if source not in self._seqs:
            newest = self._tape.newest(source, until, ENTRIES_AT_FIRST)
            self._seqs[source] = newest[-1].seq if newest else 0
            self.begins_late |= len(newest) == ENTRIES_AT_FIRST
            yield from newest
        while entries := self._tape.delivered(source, self._seqs[source], until, ENTRIES_AT_ONCE):
            self._seqs[source] = entries[-1].seq
            yield from entries

    def _line(self, record: LogRecord, text: str) -> LogLine:
        place, self._count = self._count, self._count + 1
        return LogLine(
            place=place, end=place + 1, text=text, size=len(text), level=level_of(text), at=record.at,
            origin=record.source if len(self._names) > 1 else "", stamped=True,
        )  # fmt: skip
