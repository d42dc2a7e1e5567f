"""Entries of a journal into log records, each process's lines through a parser of its own."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator

import msgspec

from jobtui.backends.journal.gaps import suppressed
from jobtui.backends.journal.places import Places
from jobtui.backends.journal.split_lines import SplitLines
from jobtui.backends.journal.streams import Stream, StreamKind, StreamNames, Wanted
from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.journal import Gap, JournalEntry
from jobtui.model.logs import LogRecord

PARSERS_KEPT = 1_000
"""Processes whose last lines are remembered; those that wrote longest ago are forgotten."""
WRITTEN_WITHIN = 2 * SECOND
"""Up to here a line was received when it was written: its own clock has whole seconds only."""

_Process = tuple[Stream, str, int | None]


class EntryRecords:
    """Takes the entries of one journal in order."""

    def __init__(self, wanted: Wanted, names: StreamNames) -> None:
        self._wanted = wanted
        self._names = names
        self._parsers: OrderedDict[_Process, LogParser] = OrderedDict()
        self._places: dict[Stream, Places] = {}
        self._lines = SplitLines()

    def take(self, entries: Iterable[JournalEntry]) -> tuple[list[LogRecord], list[Gap], int]:
        """The records in these entries, the gaps they tell of, and how many of them are wanted ones."""
        records: list[LogRecord] = []
        gaps: list[Gap] = []
        wanted = 0
        for entry in self._lines.joined(entries):
            stream = self._wanted.stream_of(entry)
            if stream is not None:
                wanted += 1
                records += self._records(entry, stream)
            elif gap := suppressed(entry):
                gaps.append(gap)
        return records, gaps, wanted

    def _records(self, entry: JournalEntry, stream: Stream) -> Iterator[LogRecord]:
        place = self._place(stream, entry.at)
        container = stream.name if stream.kind is StreamKind.CONTAINER else None
        # A container's process has another number on the host than in it: that of docker itself
        pid = None if container else entry.pid
        at = entry.sent_at or entry.at
        found = self._parser(stream, entry).read_message(entry.message, place, 0, at, pid)
        for nth, record in enumerate(found):
            yield msgspec.structs.replace(
                record,
                at=record.at if record.container else _written_at(record.at, at),
                container=record.container or container,
                cursor=entry.cursor,
                identity=identity_of(entry, nth),
            )

    def _place(self, stream: Stream, at: Nanos) -> int:
        places = self._places.get(stream)
        if places is None:
            if len(self._places) >= PARSERS_KEPT:
                del self._places[next(iter(self._places))]
            places = self._places[stream] = Places()
        return places.next(at)

    def _parser(self, stream: Stream, entry: JournalEntry) -> LogParser:
        process = (stream, entry.boot, None if stream.kind is StreamKind.CONTAINER else entry.pid)
        parser = self._parsers.get(process)
        if parser is None:
            parser = self._parsers[process] = LogParser(self._names.name_of(stream))
            if len(self._parsers) > PARSERS_KEPT:
                self._parsers.popitem(last=False)
        else:
            self._parsers.move_to_end(process)
        return parser


def identity_of(entry: JournalEntry, nth: int = 0) -> int:
    """The same for an entry wherever it was read: collected copies get new cursors. Of this process only."""
    if entry.monotonic_us is None or not entry.boot:
        return hash((entry.host, entry.at, entry.pid, entry.message, nth))
    return hash((entry.machine, entry.boot, entry.monotonic_us, entry.message, nth))


def _written_at(own: Nanos | None, received: Nanos) -> Nanos:
    """When a line was written: in the second that it says, more exactly where it was received at once."""
    if own is None:
        return received
    return Nanos(min(received, own + SECOND - 1_000)) if own <= received < own + WRITTEN_WITHIN else own
