"""A journal as a source of log records: which streams of it, from when on, and what of it is missing."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence

from jobtui.backends.base import Batch, SourceError
from jobtui.backends.journal.continuing import EntriesBehind
from jobtui.backends.journal.contract import Following, JournalReader
from jobtui.backends.journal.entry_records import EntryRecords
from jobtui.backends.journal.gaps import Gaps, gap_words
from jobtui.backends.journal.streams import Stream, StreamNames, Wanted
from jobtui.model.clock import SECOND, Clock, Nanos, SystemClock, to_rfc3339
from jobtui.model.health import Skip
from jobtui.model.journal import (
    At,
    Beside,
    Cursor,
    Gap,
    Head,
    JournalCondition,
    JournalEntry,
    Matches,
    Slice,
    Start,
)
from jobtui.model.lines import RawLine
from jobtui.model.logs import LogRecord
from jobtui.model.pages import Place

KIND = "journald"
WINDOW_S = 2 * 3600
"""How far back reading begins when nothing else is said."""
BATCH_ENTRIES = 250
"""Entries of one batch: what a screen may have to wait for when ten hosts have much to tell at once."""
SLICE_ENTRIES = 50
"""Entries that are parsed before others have their turn."""
REFRESH_S = 30.0
"""How often is asked which units and containers there are: new ones may have come."""
GIVEN_KEPT = 50_000
"""Entries known to have been given since that was last asked; it is asked again at so many."""
_OURS = "journal "

MakeReader = Callable[[], JournalReader]


class Journal:
    """The wanted streams of the journal that `make_reader` opens. `since` is where to begin.

    None begins two hours ago; 0 reads all of it. `name` is the journal as it was configured.
    """

    kind = KIND

    def __init__(
        self,
        name: str,
        make_reader: MakeReader,
        *,
        wanted: Wanted | None = None,
        since: Nanos | None = None,
        clock: Clock | None = None,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.make_reader = make_reader
        self.wanted = wanted or Wanted()
        self.gaps = Gaps()
        self._clock = clock or SystemClock()
        self._timer = timer
        self._since = since
        self._names = StreamNames(name)
        self._reader = make_reader()
        self._behind = EntriesBehind(make_reader, self._names)
        self._following: Following | None = None
        self._matches: Matches = ()
        self._asked_at: float | None = None
        self._asked_from: Start | None = None
        self._given: set[Cursor] = set()
        self._repeated: frozenset[Cursor] = frozenset()
        self._at: str | None = None
        self._records = EntryRecords(self.wanted, self._names)
        self._condition = JournalCondition()
        self._newest: Nanos | None = None
        self._closed = False
        self._closing = asyncio.Event()

    @property
    def streams(self) -> Mapping[str, Stream]:
        """What has been read of, by the names that records have as their source."""
        return self._names.known

    @property
    def condition(self) -> JournalCondition:
        """How the journal stood when that was last asked."""
        return self._condition

    @property
    def newest_at(self) -> Nanos | None:
        """When the newest entry that was read came in."""
        return self._newest

    @property
    def matches(self) -> Matches:
        """What the journal is asked for."""
        return self._matches or self.wanted.matches({})

    @property
    def names(self) -> StreamNames:
        """What its streams are called."""
        return self._names

    async def lines_at(self, source: str, cursor: str, most: int) -> tuple[RawLine, ...]:
        """The line of an entry of a stream, and what its process wrote next. Raises SourceError."""
        return await self._behind.lines_at(source, cursor, most)

    async def continuations(
        self, source: str, wanted: Mapping[str, Place], ends: Callable[[str], bool]
    ) -> dict[str, list[str]]:
        """What follows some entries of a stream in their processes. Raises SourceError."""
        return await self._behind.continuations(source, wanted, ends)

    def begins_after(self, at: Nanos) -> bool:
        """Whether entries of this time lie before where reading began."""
        return at < self._begin()

    def starting_at(self, at: Nanos) -> "Journal":
        """The same journal, not yet read, from this time on, or from where it was read if that is earlier."""
        fresh = Journal(
            self.name,
            self.make_reader,
            wanted=self.wanted,
            since=min(at, self._begin()),
            clock=self._clock,
            timer=self._timer,
        )
        fresh.gaps = self.gaps
        return fresh

    def _begin(self) -> Nanos:
        if self._since is None:
            self._since = Nanos(max(0, self._clock.now() - WINDOW_S * SECOND))
        return self._since

    async def poll(self, cursor: str | None) -> Batch:
        """What was written since `cursor`; None asks for the beginning. Raises SourceError."""
        if self._closed:
            raise SourceError(f"{self.name}: is closed")
        try:
            return await self._poll(cursor)
        except SourceError as error:
            # What follows it goes on behind the last entry that it gave
            self._at = cursor if self._following is not None else None
            self.gaps.failed(self._clock.now(), str(error).removeprefix(f"{self.name}: "))
            raise

    async def _poll(self, cursor: str | None) -> Batch:
        if self._following is None or cursor is None or cursor != self._at:
            await self._go_to(cursor)
        elif self._timer() - (self._asked_at or 0.0) >= REFRESH_S or len(self._given) > GIVEN_KEPT:
            await self._ask_again()
        before, self._at = self._at, None  # what is taken and not given, as this was cancelled, comes again
        found = await self._follow().take(BATCH_ENTRIES)
        self.gaps.reached(self._clock.now())
        batch = await self._batch(found, before or _OURS)
        self._at = batch.cursor
        return batch

    def _follow(self) -> Following:
        if self._following is None:
            raise SourceError(f"{self.name}: is closed")
        return self._following

    async def _batch(self, found: Slice, before: str) -> Batch:
        fresh = [entry for entry in found.entries if entry.cursor not in self._repeated]
        lost = [self._lost(found)] if found.lost else []
        if found.at_edge:
            self._repeated = frozenset()
        records, gaps, count = await self._taken(fresh)
        for gap in (*lost, *gaps):
            self.gaps.add(gap)
        self._given.update(entry.cursor for entry in fresh)
        if fresh:
            self._newest = max(self._newest or Nanos(0), fresh[-1].at)
        return Batch(
            cursor=before if found.cursor is None else f"{_OURS}{found.cursor}",
            records=tuple(records),
            skipped=tuple(Skip(self.name, gap_words(gap)) for gap in (*lost, *gaps)),
            skip_count=len(lost) + len(gaps),
            count=count,
            more=not found.at_edge,
            note=self._note(found.note),
            begins_at=self._begin() or None,
        )

    async def _taken(self, entries: Sequence[JournalEntry]) -> tuple[list[LogRecord], list[Gap], int]:
        records: list[LogRecord] = []
        gaps: list[Gap] = []
        count = 0
        for at in range(0, len(entries), SLICE_ENTRIES):
            more, missing, wanted = self._records.take(entries[at : at + SLICE_ENTRIES])
            records += more
            gaps += missing
            count += wanted
            await asyncio.sleep(0)
        return records, gaps, count

    def _lost(self, found: Slice) -> Gap:
        start = self._newest if self._newest is not None else self._begin()
        end = found.entries[0].at if found.entries else self._clock.now()
        return Gap(start, max(start, end), "the journal has let entries go that were not read")

    def _note(self, told: str) -> str | None:
        begin = self._begin()
        whole = Nanos(begin // SECOND * SECOND)
        began = f"read from {to_rfc3339(whole)} on; what is before was not read" if begin else ""
        condition = self._condition
        unread = f"{condition.unreadable} of its files cannot be read" if condition.unreadable else ""
        return "; ".join(filter(None, (began, condition.note or unread, told, self.gaps.words)))

    # Where reading stands.

    async def _go_to(self, cursor: str | None) -> None:
        """Begin, or go back to a cursor: a batch was lost, or the last poll was cancelled."""
        await self._ask()
        place = (cursor or "").removeprefix(_OURS) if (cursor or "").startswith(_OURS) else ""
        start: Start = Beside(Cursor(place)) if place else self._start
        self._records = EntryRecords(self.wanted, self._names)
        self._given.clear()
        self._repeated = frozenset()
        self._asked_from = start
        await self._follow_from(start)
        self._at = f"{_OURS}{place}"

    @property
    def _start(self) -> Start:
        begin = self._begin()
        return At(begin) if begin else Head()

    async def _ask_again(self) -> None:
        """Find out whether there are new streams; if so, read theirs since that was last asked."""
        before = self._matches
        await self._ask()
        start = self._asked_from
        if self._matches != before and start is not None:
            self._repeated = frozenset(self._given)
            await self._follow_from(start)
            return
        self._given.clear()
        place = (self._at or "").removeprefix(_OURS)
        self._asked_from = Beside(Cursor(place)) if place else self._start

    async def _ask(self) -> None:
        values = {field: await self._reader.values(field) for field in self.wanted.open_fields}
        self._condition = await self._reader.condition()
        self._matches = self.wanted.matches(values)
        self._asked_at = self._timer()

    async def _follow_from(self, start: Start) -> None:
        before, self._following = self._following, None
        if before is not None:
            await before.aclose()
        self._following = self._reader.follow(start, self._matches)

    async def changed(self, timeout_s: float) -> None:
        """Return when a poll may find something new, at the latest after `timeout_s`."""
        with contextlib.suppress(SourceError):  # it was closed; a break is told by the next poll
            if self._following is not None:
                await self._following.changed(timeout_s)
                return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), timeout_s)

    async def aclose(self) -> None:
        """Release what is held. May be called twice."""
        self._closed = True
        self._closing.set()
        following, self._following = self._following, None
        if following is not None:
            await following.aclose()
        await self._behind.aclose()
        await self._reader.aclose()
