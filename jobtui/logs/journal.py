"""Streams of a journal for a screen: pages from any position, the end at once, whatever the size.

It only holds some stretches of lines and the counts of the histogram. Positions come from the time of
receipt, so a position of another reader, or of a record, is found again. A journal has no search by text, so
a search reads all of it, in pieces after and before the reader's position. No method blocks.

A log is opened by the name of its stream, `sirepo_job_supervisor@v3`, or by a journal and what is wanted of
it as journalctl takes it: `ssh://v7 CONTAINER_NAME=srj-p-VUlhaMOD`, with `+` between groups.
"""

import asyncio
import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Iterable, Iterator, Sequence
from contextlib import aclosing, suppress
from typing import NamedTuple, TypeVar

import msgspec

from jobtui.backends.base import Source
from jobtui.backends.journal import records
from jobtui.backends.journal.client import Following, JournalReader
from jobtui.backends.journal.source import WINDOW_S, Journal, MakeReader, maker_of
from jobtui.formats.levels import level_of
from jobtui.logs.search import Search
from jobtui.model import pages
from jobtui.model.clock import SECOND, TIME_LENGTH, Nanos, latest
from jobtui.model.health import SourceError
from jobtui.model.journal import (
    ORDINAL_BITS,
    At,
    AtCursor,
    Begin,
    Cursor,
    JournalEntry,
    Match,
    Matches,
    Slice,
    Tail,
    position_at,
    time_at,
)
from jobtui.model.specs import parse_journal
from jobtui.transport.blocks import RAW_LINE_BYTES

GOES_ON = "continued below"
"""The note on a piece of a line that docker has split at 16 KiB. Each piece is a line of its own: if they
were joined, all but the first would be beyond what is shown of a line (`RAW_LINE_BYTES`)."""

Shown = tuple[JournalEntry, pages.LogLine]
Kept = tuple[Cursor, pages.LogLine]


class Selection:
    """Which entries are shown, and under which names. `streams` None: all that are wanted of the journal."""

    def __init__(
        self,
        names: records.StreamNames,
        wanted: records.WantedStreams,
        streams: Sequence[records.Stream] | None,
        matches: Matches,
    ) -> None:
        self.matches = matches
        self._names = names
        self._wanted = wanted
        self._streams = None if streams is None else frozenset(streams)
        self._mixed = streams is None or len(streams) > 1
        units = {
            records.DOCKER_UNIT if s.kind is records.StreamKind.CONTAINER else s.name for s in streams or ()
        }
        self._units = None if streams is None else units

    def line(self, entry: JournalEntry) -> pages.LogLine | None:
        """The line of an entry, without a position yet; None if the entry is not shown."""
        stream = self._wanted.stream_of(entry)
        if stream is not None and (self._streams is None or stream in self._streams):
            return line_of(entry, self._names.name_of(stream) if self._mixed else "")
        gap = records.suppressed(entry)
        if gap is None or (self._units is not None and gap.what not in self._units):
            return None
        host = entry.host.partition(".")[0]
        return pages.LogLine(
            position=0,
            end=1,
            text=records.gap_words(gap)[:RAW_LINE_BYTES],
            size=entry.size,
            level=pages.Level.WARNING,
            at=entry.sent_at or entry.at,
            origin=f"{gap.what}@{host}",
            stamped=True,
            is_gap=True,
        )


def placed_after(shown: Sequence[Shown], after: int) -> list[Kept]:
    placed: list[Kept] = []
    for entry, line in shown:
        after = records.position_after(after, entry.at)
        placed.append((entry.cursor, _at_position(line, after)))
    return placed


def placed_before(shown: Sequence[Shown], limit: int) -> list[Kept]:
    """The lines with positions, all before `limit`; the last line comes last."""
    placed = placed_after(shown, -1)
    for nth in range(len(placed) - 1, -1, -1):
        cursor, line = placed[nth]
        if line.position < limit:
            break
        limit -= 1
        placed[nth] = cursor, _at_position(line, limit)
    return placed


def matches_of(streams: Sequence[records.Stream]) -> Matches:
    """The matches to ask a journal for these streams, and for gaps in them."""
    hosts = dict.fromkeys(stream.host for stream in streams)
    said: list[tuple[Match, ...]] = [
        ((records.IDENTIFIER, records.JOURNALD), *(((records.HOST, host),) if host else ())) for host in hosts
    ]
    return (*dict.fromkeys(stream.matches for stream in streams), *said)


def line_of(entry: JournalEntry, origin: str) -> pages.LogLine:
    own = latest(entry.message[:TIME_LENGTH], entry.at)
    shown = entry.message[:RAW_LINE_BYTES]
    notes = [] if entry.size else ["no message"]
    if len(shown) < len(entry.message):
        notes.append(f"{entry.size:,} bytes in this line")
    if (lines := shown.rstrip("\n").count("\n") + 1) > 1:
        notes.append(f"{lines} lines")
    if entry.size and entry.is_begun:
        notes.append(GOES_ON)
    return pages.LogLine(
        position=0,
        end=1,
        text=shown,
        size=entry.size,
        level=level_of(shown),
        at=own if own is not None else entry.sent_at or entry.at,
        origin=origin,
        note=", ".join(notes),
        stamped=own is None,
    )


def _at_position(line: pages.LogLine, position: int) -> pages.LogLine:
    return msgspec.structs.replace(line, position=position, end=position + 1)


PASSAGE_LINES = 6_000
"""How many lines of one stretch are held; those farthest from the reader are dropped first."""


class Chunk(NamedTuple):
    """Adjacent lines; `cursor` is where to read on, None if nothing was found."""

    kept: list[Kept]
    cursor: Cursor | None
    at_edge: bool

    @property
    def lines(self) -> list[pages.LogLine]:
        return [line for _, line in self.kept]


class JournalPassage:
    """Adjacent lines. `first` and `last` are where to read on; None if there is nothing yet.

    `at_begin`: the journal has nothing before it.
    """

    def __init__(self, piece: Chunk, first: Cursor | None, last: Cursor | None, *, at_begin: bool) -> None:
        self.kept = list(piece.kept)
        self.first = first
        self.last = last
        self.at_begin = at_begin

    @property
    def begin(self) -> int:
        return self.kept[0][1].position if self.kept else 0

    @property
    def end(self) -> int:
        return self.kept[-1][1].end if self.kept else 0

    def lines(self, begin: int, end: int) -> tuple[pages.LogLine, ...]:
        return tuple(line for _, line in self.kept[begin:end])

    def index(self, position: int) -> int:
        """Which line holds `position`, or is the first one after it."""
        return bisect_right(self.kept, position, key=lambda kept: kept[1].end)

    def append(self, piece: Chunk) -> None:
        self.kept += piece.kept
        self.last = piece.cursor or self.last

    def cut_begin(self) -> None:
        if (surplus := len(self.kept) - PASSAGE_LINES) > 0:
            del self.kept[:surplus]
            self.first, self.at_begin = self.kept[0][0], False


SLICE_ENTRIES = 200
"""Entries made into lines before other tasks run."""
SEARCHED_ENTRIES = 1_000

T = TypeVar("T")


async def _readable(answer: Awaitable[T]) -> T:
    try:
        return await answer
    except SourceError as error:
        raise pages.LogUnreadable(str(error)) from error


def whole_microseconds(entries: Sequence[JournalEntry]) -> Sequence[JournalEntry]:
    """Entries without the first ones, as more of the same microsecond may come before them.

    Their positions count from the beginning of a microsecond. All of them if there is only one.
    """
    for index, entry in enumerate(entries):
        if entry.at != entries[0].at:
            return entries[index:]
    return entries


COUNTED_ENTRIES = 1_000
STRETCHES_KEPT = 4_000
"""How many stretches are counted; the oldest are dropped."""


HITS_KEPT = 200_000


class JournalSearch(Search):
    limit_s = 30.0

    def __init__(self, log: "JournalPages", query: pages.Query, around: int) -> None:
        super().__init__(query, pages.Hits(around, wide=True), HITS_KEPT)
        self._log = log
        self._up = self._down = around
        self._last: Cursor | None = None
        self._above: list[pages.LogLine] = []
        self._held: list[pages.LogLine] = []
        """Lines at the upper ends, searched once the lines above them are known."""

    async def _search_all(self) -> None:
        onward, back = self._log.pieces(At(time_at(self._down)), -1), self._log.back_from(self._up)
        async with aclosing(onward), aclosing(back):
            sides = [back, onward]  # what is above must come first
            while sides and not self._stopping:
                for pieces in tuple(sides):
                    if (piece := await anext(pieces, None)) is None:
                        sides.remove(pieces)
                    else:
                        await self._search(piece, back=pieces is back)
                self._stop_when_full()

    async def _search_new(self) -> None:
        if self._log.extent.end <= self._down:
            return
        start = At(time_at(self._down)) if self._last is None else AtCursor(self._last)
        after = -1 if self._last is None else self._down - 1
        async with aclosing(self._log.pieces(start, after)) as pieces:
            async for piece in pieces:
                await self._search(piece)
                if self._stopping:
                    return

    async def _search(self, piece: Chunk, *, back: bool = False) -> None:
        begin, end = (0, self._up) if back else (self._down, BEHIND_ALL)
        kept = [line for line in piece.lines if begin <= line.position < end]
        if back:
            self._above = kept if self._up == self._down else self._above
            above, held = [] if piece.at_edge else kept, self._held
            kept, self._held = (kept + held, []) if piece.at_edge else (held, kept)
        else:
            above, self._above = self._above, [*self._above, *kept][-SEARCHED_ENTRIES:]
        found: list[int] = []
        if kept:
            program = self._new_program()
            found = await self._worker.run(lambda: program.positions(kept, above))
        extent = self._log.extent
        if back:
            self._up = kept[0].position if kept else self._up
            self.hits.add_below(found, min(self._up, extent.begin) if piece.at_edge else self._up)
        else:
            self._last = piece.cursor or self._last
            self._down = kept[-1].end if kept else self._down
            self.hits.add_above(found, max(self._down, extent.end) if piece.at_edge else self._down)


FIRST_ENTRIES = 1_001
"""How many last entries are read at first; the first of them is left out."""
PIECE = 250
"""Entries read at once for a page."""
TAKEN = 2_000
"""How many new entries are taken at once."""
BEHIND_ALL: int = 1 << 200
TAKES = 5
"""How often more are taken in one look."""


class JournalPages(pages.Log):
    """The selected entries of the journal that `make_reader` opens, at first the last ones."""

    def __init__(
        self, name: str, make_reader: MakeReader, selection: Selection, first: int = FIRST_ENTRIES
    ) -> None:
        self._first = first
        self.name = name
        self.selection = selection
        self._make_reader = make_reader
        self._reader: JournalReader | None = None
        self._is_closed = False
        self._tail: JournalPassage | None = None
        self._near: JournalPassage | None = None
        """The lines around the position that was last read, if that is not the end."""
        self._following: Following | None = None
        self._begin: int | None = None
        self._stretches: deque[pages.Stretch] = deque(maxlen=STRETCHES_KEPT)
        self._counted_from: int | None = None
        """From this position on entries are counted in `_stretches`; None while the end is unknown."""
        self._counted_after: int = 0
        """The end when counting backwards began; later entries were counted as they came."""
        self._counted: Cursor | None = None
        self._is_counted = self._is_complete = False
        self._looking = asyncio.Lock()
        self._reading = asyncio.Lock()
        self._event = ""

    @property
    def reader(self) -> JournalReader:
        if self._is_closed:
            raise pages.LogUnreadable("the log is closed")
        if self._reader is None:
            self._reader = self._make_reader()
        return self._reader

    async def forward(self, start: Begin | At | AtCursor, count: int, after: int) -> Chunk:
        """Up to `count` entries from `start` on, their lines at positions after `after`."""
        found = await self._noted(self.reader.forward(start, self.selection.matches, count))
        return Chunk(placed_after(await self.shown(found.entries), after), found.cursor, found.at_edge)

    async def backward(self, start: Tail | At | AtCursor, count: int, limit: int) -> Chunk:
        """Up to `count` entries before `start`, their lines at positions before `limit`."""
        found = await self._noted(self.reader.backward(start, self.selection.matches, count))
        entries = found.entries if found.at_edge else whole_microseconds(found.entries)
        cursor = entries[0].cursor if entries else found.cursor
        return Chunk(placed_before(await self.shown(entries), limit), cursor, found.at_edge)

    async def _noted(self, answer: Awaitable[Slice]) -> Slice:
        found = await _readable(answer)
        self._event = found.note or self._event
        return found

    async def pieces(
        self, start: Begin | At | AtCursor, position: int, *, back: bool = False
    ) -> AsyncGenerator[Chunk, None]:
        """Piece after piece from `start` on, their lines after `position`; with `back` before both."""
        held: list[JournalEntry] = []
        async with aclosing(self.reader.stream(start, self.selection.matches, back=back)) as entries:
            some: list[JournalEntry] | None = held
            while some is not None:
                some = await _readable(anext(entries, None))
                held += some or ()
                if some is not None and len(held) <= SEARCHED_ENTRIES:
                    continue
                whole = held if some is None else held[: len(whole_microseconds(held[::-1]))]
                held = held[len(whole) :]
                shown = await self.shown(whole[::-1] if back else whole)
                lines = placed_before(shown, position) if back else placed_after(shown, position)
                position = lines[0 if back else -1][1].position if lines else position
                yield Chunk(lines, whole[-1].cursor if whole else None, some is None)

    def back_from(self, position: int) -> AsyncGenerator[Chunk, None]:
        limit = position + (1 << ORDINAL_BITS)
        return self.pieces(At(time_at(limit)), limit, back=True)

    async def shown(self, entries: Sequence[JournalEntry]) -> list[Shown]:
        """The shown entries with their lines. Other tasks run in between."""
        found: list[Shown] = []
        for at in range(0, len(entries), SLICE_ENTRIES):
            some = entries[at : at + SLICE_ENTRIES]
            found += [(entry, line) for entry in some if (line := self.selection.line(entry)) is not None]
            await asyncio.sleep(0)
        return found

    async def look(self) -> pages.Extent:
        async with self._looking:
            if self._tail is not None:
                await self._take(self._tail)
                return self.extent
            piece = await self.backward(Tail(), self._first, BEHIND_ALL)
            last = piece.kept[-1][0] if piece.kept else None
            tail = JournalPassage(piece, piece.cursor, last, at_begin=piece.at_edge)
            while not tail.kept and not tail.at_begin:
                await self._extend_back(tail)
            self._counted_from = self._counted_after = tail.end
            self._tail = tail
            return self.extent

    @property
    def extent(self) -> pages.Extent:
        if self._tail is None:
            return pages.Extent(0, 0)
        begin = self._tail.begin if self._tail.at_begin else min(self._begin or 0, self._tail.begin)
        return pages.Extent(begin, self._tail.end, self._event)

    async def _take(self, tail: JournalPassage) -> None:
        if self._following is None:  # a single look does not follow
            start = AtCursor(tail.kept[-1][0]) if tail.kept else Begin()
            self._following = self.reader.follow(start, self.selection.matches)
        for _ in range(TAKES):
            found = await _readable(self._following.take(TAKEN))
            if found.lost:
                self._event = "entries were dropped before they were read"
            kept = placed_after(await self.shown(found.entries), tail.end - 1)
            piece = Chunk(kept, kept[-1][0] if kept else None, found.at_edge)
            tail.append(piece)
            self._stretches.extend(pages.stretches_of(piece.lines))
            tail.cut_begin()
            if found.at_edge:
                return

    async def changed(self, timeout_s: float) -> None:
        if self._tail is None:
            await asyncio.sleep(timeout_s)
        elif self._following is not None:  # else the next look begins to follow
            with suppress(SourceError):
                await self._following.changed(timeout_s)

    async def before(self, position: int, count: int) -> pages.Page:
        async with self._reading:
            part = await self._part_at(position)
            while (stop := part.index(position)) < count and not part.at_begin:
                # The first entry that was read is left out
                await self._extend_back(part, max(PIECE, count - stop + 1))
            begin = max(0, stop - count)
            page = pages.Page(part.lines(begin, stop), part.at_begin and begin == 0)
            if part is self._tail:
                part.cut_begin()
            elif len(part.kept) > PASSAGE_LINES:
                del part.kept[PASSAGE_LINES:]
                part.last = part.kept[-1][0]
            return page

    async def after(self, position: int, count: int) -> pages.Page:
        async with self._reading:
            part = await self._part_at(position)
            while len(part.kept) - part.index(position) < count and part is not self._tail:
                start: Begin | AtCursor = AtCursor(part.last) if part.last is not None else Begin()
                piece = await self.forward(start, PIECE, part.end - 1)
                part.append(piece)
                if self._tail is not None and (part.end >= self._tail.begin or piece.at_edge):
                    part = self._joined(part, self._tail)
            begin = part.index(position)
            at_end = part is self._tail and begin + count >= len(part.kept)
            page = pages.Page(part.lines(begin, begin + count), at_end)
            part.cut_begin()
            return page

    async def _part_at(self, position: int) -> JournalPassage:
        """The stretch that holds `position`; a new one if there is none."""
        if self._tail is None:
            await self.look()
        tail = self._tail
        assert tail is not None
        if position >= tail.begin or not tail.kept:
            return tail
        if (near := self._near) is not None and near.begin <= position < near.end:
            return near
        start = Begin() if position <= (self._begin or 0) else At(time_at(position))
        piece = await self.forward(start, PIECE, -1)
        first = piece.kept[0][0] if piece.kept else piece.cursor
        part = JournalPassage(piece, first, piece.cursor, at_begin=isinstance(start, Begin))
        while (not part.kept or part.begin > position) and not part.at_begin and part.first is not None:
            await self._extend_back(part)
        if part.end >= tail.begin:
            return self._joined(part, tail)
        self._near = part
        return part

    def _joined(self, part: JournalPassage, tail: JournalPassage) -> JournalPassage:
        """A stretch that has reached the end of the journal becomes a part of it."""
        at = bisect_left(part.kept, tail.begin or part.end, key=lambda kept: kept[1].position)
        tail.kept[:0] = part.kept[:at]
        tail.first, tail.at_begin = part.first, part.at_begin
        self._near = None
        return tail

    async def _extend_back(self, part: JournalPassage, count: int = PIECE) -> None:
        start: Tail | AtCursor = AtCursor(part.first) if part.first is not None else Tail()
        before = part.first
        piece = await self.backward(start, min(count, TAKEN), part.begin if part.kept else BEHIND_ALL)
        if part.first == before:  # else lines were dropped in between, and it is asked again
            part.kept[:0] = piece.kept
            part.first, part.at_begin = piece.cursor or part.first, piece.at_edge

    async def work(self) -> bool:
        if self._begin is None:
            first = await self.forward(Begin(), 1, -1)
            self._begin = first.lines[0].position if first.kept else position_at(Nanos(0))
            return True
        end = self._counted_after
        if self._is_counted or self._counted_from is None:
            return False
        # A little more is counted, backwards
        start = Tail() if self._counted is None else AtCursor(self._counted)
        piece = await self.backward(start, COUNTED_ENTRIES, self._counted_from)
        lines = [line for line in piece.lines if line.position < end]
        self._stretches.extendleft(reversed(pages.stretches_of(lines)))
        self._counted_from = piece.lines[0].position if piece.kept else self._counted_from
        self._counted, self._is_complete = piece.cursor, piece.at_edge
        is_far = time_at(self._counted_from) < time_at(end) - WINDOW_S * SECOND
        is_full = len(self._stretches) >= STRETCHES_KEPT
        self._is_counted = piece.at_edge or is_far or is_full or piece.cursor is None
        return not self._is_counted

    def overview(self) -> pages.Overview:
        return pages.overview_of(self._stretches, time_at(self.extent.end), complete=self._is_complete)

    async def position_of_time(self, at: Nanos) -> int | None:
        page = await self.after(position_at(at), 1)
        return page.lines[0].position if page.lines else None

    async def next_error(self, position: int, *, forward: bool) -> int | None:
        onward = self.pieces(At(time_at(position)), -1)
        found = onward if forward else self.back_from(min(position, self.extent.end))
        async with aclosing(found):
            async for piece in found:
                for line in piece.lines if forward else reversed(piece.lines):
                    is_wanted = line.position > position if forward else line.position < position
                    if is_wanted and line.level is pages.Level.ERROR:
                        return line.position
        return None

    def search(self, query: pages.Query, around: int) -> pages.LogSearch:
        return JournalSearch(self, query, around)

    async def aclose(self) -> None:
        following, self._following = self._following, None
        if following is not None:
            await following.aclose()
        self._is_closed = True
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.aclose()


_QUERY = re.compile(r"(?P<journal>.+?) (?P<words>[A-Z_][A-Z0-9_]*=.*)", re.DOTALL)
_ANY = records.WantedStreams(["*"], ["*"], ["*"])


def journals_of(sources: Iterable[Source]) -> Iterator[Journal]:
    return (source for source in sources if isinstance(source, Journal))


def stream_names(sources: Iterable[Source]) -> tuple[str, ...]:
    """Every known stream once, services before containers."""
    found: dict[str, records.Stream] = {}
    for journal in journals_of(sources):
        for name, stream in journal.streams.items():
            found.setdefault(name, stream)
    return tuple(sorted(found, key=lambda name: (found[name].kind is records.StreamKind.CONTAINER, name)))


def open_stream(sources: Iterable[Source], name: str) -> JournalPages | None:
    """The log of a stream, or of what a name asks a journal for; None for any other name."""
    known = list(journals_of(sources))
    for journal in known:
        if (stream := journal.streams.get(name)) is not None:
            return _pages(journal, name, [stream])
    found = _QUERY.fullmatch(name)
    groups: list[tuple[Match, ...]] = []
    for words in found["words"].split(" + ") if found else ():
        pairs = [word.partition("=") for word in words.split(" ") if word]
        groups.append(tuple((field, value) for field, equals, value in pairs if equals))
    if found is None or not all(groups):
        return None
    try:
        target = parse_journal(found["journal"]).target
    except ValueError:
        return None
    make = next((journal.make_reader for journal in known if journal.name == target), maker_of(target))
    return JournalPages(name, make, Selection(records.StreamNames(target), _ANY, None, tuple(groups)))


def merged_journals(sources: Iterable[Source], chosen: Sequence[str] | None) -> dict[str, JournalPages]:
    """For each journal a log of those of its streams that were chosen; None: of all, also those to come."""
    found: dict[str, JournalPages] = {}
    taken: set[str] = set()
    for journal in journals_of(sources):
        if chosen is None:
            found[journal.name] = _pages(journal, journal.name, None)
            continue
        names = [name for name in chosen if name in journal.streams and name not in taken]
        taken.update(names)
        if names:
            streams = [journal.streams[name] for name in names]
            found[journal.name] = _pages(journal, journal.name, streams)
    return found


def open_matching(journal: Journal, matches: Matches, first: int = FIRST_ENTRIES) -> JournalPages:
    """The log of what is wanted of a journal and matches, from any of its streams."""
    selection = Selection(journal.names, journal.wanted, None, matches)
    return JournalPages(journal.name, journal.make_reader, selection, first)


def _pages(journal: Journal, name: str, streams: Sequence[records.Stream] | None) -> JournalPages:
    matches = journal.matches if streams is None else matches_of(streams)
    selection = Selection(journal.names, journal.wanted, streams, matches)
    return JournalPages(name, journal.make_reader, selection)
