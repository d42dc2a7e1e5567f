"""Entries of a journal as lines to be read on a screen, each at its place."""

from collections.abc import Sequence

from jobtui.backends.file_search import RAW_LINE_BYTES
from jobtui.backends.journal.gaps import gap_words, suppressed
from jobtui.backends.journal.places import Places, places_before
from jobtui.backends.journal.streams import (
    DOCKER_UNIT,
    HOST,
    IDENTIFIER,
    JOURNALD,
    Stream,
    StreamKind,
    StreamNames,
    Wanted,
)
from jobtui.formats.levels import level_of
from jobtui.formats.times import TIME_LENGTH, latest
from jobtui.model.clock import Nanos
from jobtui.model.journal import Cursor, JournalEntry, Match, Matches
from jobtui.model.pages import Level, LogLine, Place

GOES_ON = "goes on below"
"""Said of a piece of a line that docker has split, at 16 KiB. Each is a line of its own: joined, all but the
first piece would be beyond what is shown of a line (`RAW_LINE_BYTES`), and could not be read."""

Shown = tuple[JournalEntry, LogLine]
Kept = tuple[Cursor, LogLine]


class Selection:
    """Which entries are shown, and under which names. `streams` None: all that are wanted of the journal."""

    def __init__(
        self, names: StreamNames, wanted: Wanted, streams: Sequence[Stream] | None, matches: Matches
    ) -> None:
        self.matches = matches
        self._names = names
        self._wanted = wanted
        self._streams = None if streams is None else frozenset(streams)
        self._mixed = streams is None or len(streams) > 1
        units = {DOCKER_UNIT if s.kind is StreamKind.CONTAINER else s.name for s in streams or ()}
        self._units = None if streams is None else units

    def shown(self, entries: Sequence[JournalEntry]) -> list[Shown]:
        """The entries that are shown with their lines, which have no places yet."""
        return [(entry, line) for entry in entries if (line := self._line(entry)) is not None]

    def _line(self, entry: JournalEntry) -> LogLine | None:
        stream = self._wanted.stream_of(entry)
        if stream is not None and (self._streams is None or stream in self._streams):
            return line_of(entry, self._names.name_of(stream) if self._mixed else "")
        gap = suppressed(entry)
        if gap is None or (self._units is not None and gap.what not in self._units):
            return None
        host = entry.host.partition(".")[0]
        return _plain(entry, gap_words(gap), f"{gap.what}@{host}", is_gap=True)


def placed_behind(shown: Sequence[Shown], behind: Place) -> list[Kept]:
    """Lines at places behind `behind`."""
    places = Places(behind)
    return [(entry.cursor, _at_place(line, places.next(entry.at))) for entry, line in shown]


def placed_before(shown: Sequence[Shown], limit: Place) -> list[Kept]:
    """Lines at places before `limit`."""
    places = places_before([entry.at for entry, _ in shown], limit)
    return [
        (entry.cursor, _at_place(line, place)) for (entry, line), place in zip(shown, places, strict=True)
    ]


def matches_of(streams: Sequence[Stream]) -> Matches:
    """What a journal is asked for these streams, and for what is missing of them."""
    hosts = dict.fromkeys(stream.host for stream in streams)
    said: list[tuple[Match, ...]] = [
        ((IDENTIFIER, JOURNALD), *(((HOST, host),) if host else ())) for host in hosts
    ]
    return (*dict.fromkeys(stream.matches for stream in streams), *said)


def line_of(entry: JournalEntry, origin: str) -> LogLine:
    """The line of an entry, at no place yet."""
    own = latest(entry.message[:TIME_LENGTH], entry.at)
    return _plain(entry, entry.message, origin, own=own)


def _plain(
    entry: JournalEntry, text: str, origin: str, *, own: Nanos | None = None, is_gap: bool = False
) -> LogLine:
    shown = text[:RAW_LINE_BYTES]
    return LogLine(
        place=0,
        end=1,
        text=shown,
        size=entry.size,
        level=Level.WARNING if is_gap else level_of(shown),
        at=own if own is not None else entry.sent_at or entry.at,
        origin=origin,
        note="" if is_gap else _note(entry, shown),
        stamped=own is None,
        is_gap=is_gap,
    )


def _note(entry: JournalEntry, shown: str) -> str:
    if not entry.size:
        return "no message"
    words = [f"{entry.size:,} bytes in this line"] if len(shown) < len(entry.message) else []
    lines = shown.rstrip("\n").count("\n") + 1
    return ", ".join(
        [*words, *([f"{lines} lines"] if lines > 1 else []), *([GOES_ON] if entry.is_begun else [])]
    )


def _at_place(line: LogLine, place: Place) -> LogLine:
    return LogLine(
        place=place,
        end=place + 1,
        text=line.text,
        size=line.size,
        level=line.level,
        at=line.at,
        origin=line.origin,
        note=line.note,
        stamped=line.stamped,
        is_gap=line.is_gap,
    )
