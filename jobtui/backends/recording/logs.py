"""The log records of a recording as logs to be read line by line."""

from collections.abc import Callable, Sequence

from jobtui.backends.listed_log import ListedLog
from jobtui.backends.recording.replayed import ReplayClock
from jobtui.backends.recording.tape import Tape
from jobtui.backends.worker import Worker
from jobtui.formats.levels import level_of
from jobtui.model.clock import Nanos
from jobtui.model.logs import LogRecord
from jobtui.model.pages import Log, LogLine

AT_ONCE = 500
"""Entries that are read at a time."""


class TapeLogs:
    """A `LogBook` on a recording: of each log those lines whose meaning is known, as they were understood."""

    def __init__(
        self, tape: Tape, worker: Worker, clock: ReplayClock, sources: Callable[[], Sequence[int]]
    ) -> None:
        self._tape = tape
        self._worker = worker
        self._clock = clock
        self._sources = sources
        self._names: dict[str, None] = {}
        self._read: list[tuple[Nanos, LogRecord]] = []
        self._seqs: dict[int, int] = {}

    def names(self) -> tuple[str, ...]:
        """The logs of which lines were kept."""
        self.read()
        return tuple(self._names)

    def open(self, name: str) -> Log:
        """A log, as far as it was kept."""
        return ListedLog(name, TapeLines(self, self._worker, frozenset({name})))

    def merged(self, names: Sequence[str] | None = None) -> Log:
        """These logs, or all, in the order of time."""
        return ListedLog("", TapeLines(self, self._worker, None if names is None else frozenset(names)))

    def read(self) -> list[tuple[Nanos, LogRecord]]:
        """All records up to the present time of the clock, with when they came. Blocks."""
        until = self._clock.now()
        for source in self._sources():
            while entries := self._tape.delivered(source, self._seqs.get(source, 0), until, AT_ONCE):
                self._seqs[source] = entries[-1].seq
                for entry in entries:
                    records = getattr(entry.value, "records", ())
                    self._read += [(entry.at, record) for record in records]
                    self._names.update(dict.fromkeys(record.source for record in records))
        return self._read


class TapeLines:
    """The lines of some logs, the earliest first, up to the time of the clock."""

    def __init__(self, logs: TapeLogs, worker: Worker, names: frozenset[str] | None) -> None:
        self._logs = logs
        self._worker = worker
        self._names = names
        self._given = 0

    async def load(self) -> Sequence[LogLine]:
        """The lines that have come since."""
        return await self._worker.run(self._load)

    async def is_changed(self) -> bool:
        """Whether there may be more."""
        return len(await self._worker.run(self._logs.read)) > self._given

    def close(self) -> None:
        """Hold nothing."""

    def _load(self) -> Sequence[LogLine]:
        known = self._logs.read()
        begin, self._given = self._given, len(known)
        records = [r for _, r in known[begin:] if self._names is None or r.source in self._names]
        records.sort(key=lambda record: record.at or 0)
        lines = [(record, text) for record in records for text in record.text.split("\n")]
        origin = self._names is None or len(self._names) > 1
        return [
            LogLine(
                place=place, end=place + 1, text=text, size=len(text), level=level_of(text), at=record.at,
                origin=record.source if origin else "", stamped=True,
            )
            for place, (record, text) in enumerate(lines, start=begin << 16)
        ]  # fmt: skip
