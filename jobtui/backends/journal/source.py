"""A journal as a source of log records: which streams, since when, and what is missing."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import pairwise

from jobtui.backends.base import Batch, PolledSource, skipping
from jobtui.backends.journal import records
from jobtui.backends.journal.client import PAGE_ENTRIES, Following, HostStarts, JournalReader
from jobtui.formats.parser import split
from jobtui.model import journal
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.health import Skip, SourceError
from jobtui.model.logs import LogRecord
from jobtui.model.specs import ReadWindow, SourceSpec

KIND = "journald"
WINDOW_S = 2 * 3600
"""How far back reading begins by default."""
BATCH_ENTRIES = 250
"""Entries of one batch: a screen may have to wait for so many when ten hosts write much at once."""
SLICE_ENTRIES = 50
"""Entries that are parsed before other tasks run."""
REFRESH_S = 30.0
"""How often the journal is asked which units and containers there are: some may be new."""
GIVEN_KEPT = 50_000
"""Entries remembered as given; at this number the journal is asked again."""
CONTINUING_ENTRIES = 100
"""The most entries of one record."""
ENTRIES_READ = 100_000
"""The most entries read for one question."""

MakeReader = Callable[[], JournalReader]


class Journal(PolledSource):
    """The wanted streams of the journal that `make_reader` opens. `since` is where to begin.

    None begins two hours ago; 0 reads all of it. `name` is the journal as it was configured, `site` where.
    """

    def __init__(
        self,
        name: str,
        make_reader: MakeReader,
        *,
        wanted: records.WantedStreams | None = None,
        since: Nanos | None = None,
        kind: str = KIND,
        site: str = "",
    ) -> None:
        super().__init__(name)
        self.kind = kind
        self.make_reader = make_reader
        self.wanted = wanted or records.WantedStreams()
        self.gaps = records.Gaps()
        self._since = since
        self.names = records.StreamNames(name, site)
        self._reader = make_reader()
        self._following: Following | None = None
        self._matches: journal.Matches = ()
        self._asked_at = 0.0
        self._asked_from: journal.FollowStart | HostStarts = journal.Begin()
        self._given: set[journal.Cursor] = set()
        self._repeated: frozenset[journal.Cursor] = frozenset()
        self._records = records.EntryRecords(self.wanted, self.names)
        self.condition = journal.JournalCondition()
        self.newest_at: Nanos | None = None

    @property
    def streams(self) -> Mapping[str, records.Stream]:
        return self.names.known

    @property
    def matches(self) -> journal.Matches:
        return self._matches or self.wanted.matches({})

    def begins_after(self, at: Nanos) -> bool:
        return self.until is None and at < self._begin()

    def starting_at(self, at: Nanos) -> "Journal":
        begin = min(at, self._begin())
        make, site = self.make_reader, self.names.site
        fresh = Journal(self.name, make, wanted=self.wanted, since=begin, kind=self.kind, site=site)
        fresh.gaps, fresh.clock, fresh.until = self.gaps, self.clock, self.until
        return fresh

    def _begin(self) -> Nanos:
        if self._since is None:
            self._since = Nanos(max(0, self.clock.now() - WINDOW_S * SECOND))
        return self._since

    async def read(self, *, begins: bool) -> Batch:
        try:
            found = await self._found(begins=begins)
        except SourceError as error:
            self.gaps.failed(self.clock.now(), str(error).removeprefix(f"{self.name}: "))
            raise
        self.gaps.reached(self.clock.now())
        return await self._batch(found)

    async def _found(self, *, begins: bool) -> journal.Slice:
        if self._following is None or begins:
            await self._ask()
            begin = self._begin()
            self._records = records.EntryRecords(self.wanted, self.names)
            self._given.clear()
            self._repeated = frozenset()
            self._asked_from = journal.At(begin) if begin else journal.Begin()
            await self._follow_from(self._asked_from)
        elif self.timer() - self._asked_at >= REFRESH_S or len(self._given) > GIVEN_KEPT:
            # There may be new streams: these are read since the last time it was asked
            before = self._matches
            await self._ask()
            if self._matches != before:
                self._repeated = frozenset(self._given)
                await self._follow_from(self._asked_from)
            else:
                self._given.clear()
                self._asked_from = self._following.next_start or self._asked_from
        if self._following is None:
            raise SourceError(f"{self.name}: is closed")
        return await self._following.take(BATCH_ENTRIES)

    async def _batch(self, found: journal.Slice) -> Batch:
        fresh = [entry for entry in found.entries if entry.cursor not in self._repeated]
        gaps: list[journal.Gap] = []
        if found.lost:
            start = self.newest_at if self.newest_at is not None else self._begin()
            end = found.entries[0].at if found.entries else self.clock.now()
            words = "the journal dropped entries before they were read"
            gaps.append(journal.Gap(start, max(start, end), words))
        if found.at_edge:
            self._repeated = frozenset()
        taken: list[LogRecord] = []
        count = 0
        for at in range(0, len(fresh), SLICE_ENTRIES):
            more, missing, wanted = self._records.take(fresh[at : at + SLICE_ENTRIES])
            taken += more
            gaps += missing
            count += wanted
            await asyncio.sleep(0)
        for gap in gaps:
            self.gaps.add(gap)
        self._given.update(entry.cursor for entry in fresh)
        if fresh:
            self.newest_at = max(self.newest_at or Nanos(0), fresh[-1].at)
        why = [*map(records.gap_words, gaps), *self._records.lost]
        self._records.lost.clear()
        batch = Batch(
            records=tuple(taken),
            count=count,
            more=not found.at_edge,
            note=self._note(found.note),
            begins_at=max(self._begin(), found.begins_at) or None,
        )
        return skipping(batch, [Skip(self.name, one) for one in why])

    def _note(self, note: str) -> str | None:
        begin = self._begin()
        whole = Nanos(begin // SECOND * SECOND)
        began = f"read from {to_rfc3339(whole)} on; anything earlier was not read" if begin else ""
        return "; ".join(filter(None, (began, self.condition.note, note, self.gaps.words)))

    async def continuations(
        self, source: str, wanted: Mapping[str, int], most: int = ENTRIES_READ
    ) -> dict[str, list[str]]:
        """Some entries of a stream, each with those after it of its process, up to one that begins a record.
        `wanted` are their cursors with their positions. About `most` entries are read in one go. Empty for an
        entry that is gone, or a stream of another journal. Raises SourceError.
        """
        stream = self.names.known.get(source)
        if stream is None or not wanted:
            return {}
        if self._reader.newest is None:
            return await self._read_continuations(stream.matches, wanted, most)
        # An engine is not asked for what is between lines far from each other, such as an op's first and last
        positions = sorted(wanted.values())
        end = max(pairwise((*positions, positions[-1])), key=lambda two: two[1] - two[0])[0]
        found: dict[str, list[str]] = {}
        for is_early in (True, False):
            if near := {cursor: at for cursor, at in wanted.items() if (at <= end) is is_early}:
                found |= await self._read_continuations(stream.matches, near, self._reader.newest)
        return found

    async def _read_continuations(
        self, matches: tuple[journal.Match, ...], wanted: Mapping[str, int], most: int
    ) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        left, read = set(wanted), 0
        following: dict[tuple[str, int | None], list[str]] = {}
        start, page = journal.At(journal.time_at(min(wanted.values()))), 2 * len(wanted) + CONTINUING_ENTRIES
        stream = self._reader.stream(start, (matches,), page=min(page, PAGE_ENTRIES))
        async with contextlib.aclosing(stream) as entries:
            async for some in entries:
                for entry in some:
                    process = entry.boot, entry.pid
                    texts = following.get(process)
                    if entry.cursor in left:
                        left.remove(entry.cursor)
                        following[process] = found[entry.cursor] = [entry.message]
                    elif texts is not None and (split(entry.message) or len(texts) > CONTINUING_ENTRIES):
                        del following[process]
                    elif texts is not None:
                        texts.append(entry.message)
                read += len(some)
                if not (left or following) or read >= most:
                    break
        return found

    async def sample_lines(self, until: Nanos | None, most: int) -> list[bytes]:
        """About `most` last lines of its streams in what is read, before `until`. Raises SourceError."""
        start = journal.Tail() if until is None else journal.At(until)
        entries = await _back_to(self._begin(), self._reader, start, self.matches, most)
        wanted = (entry for entry in reversed(entries) if self.wanted.stream_of(entry) is not None)
        whole = records.SplitLines().joined(wanted)
        return [line for entry in whole for line in entry.message.encode("utf-8", "replace").split(b"\n")]

    async def matches_named(self, name: str, is_unit: Callable[[str, str], bool]) -> journal.Matches:
        """What to ask it for HOST, UNIT or UNIT@HOST, nothing if it knows none. Raises SourceError."""
        values = await self._reader.values(*self.wanted.open_fields, records.HOST)
        unit, _, host = name.removesuffix(f".{self.names.site}").rpartition("@")
        hosts = [(records.HOST, one) for one in values[records.HOST] if host in (one, one.partition(".")[0])]
        unit = unit if hosts else name
        wanted = self.wanted.matches({field: (*known, unit) for field, known in values.items()})
        named = [group for group in wanted if not unit or is_unit(group[0][1].replace("@", "-"), unit)]
        alone = ((records.CONTAINER, unit),)
        named += [one for one in self.wanted.matches({records.CONTAINER: (unit,)}) if one == alone]
        return tuple((*group, host) for host in hosts for group in named) or tuple(named)

    async def _ask(self) -> None:
        values = await self._reader.values(*self.wanted.open_fields)
        self.condition = await self._reader.condition()
        self._matches = self.wanted.matches(values)
        self._asked_at = self.timer()

    async def _follow_from(self, start: journal.FollowStart | HostStarts) -> None:
        before, self._following = self._following, None
        if before is not None:
            await before.aclose()
        self._following = self._reader.follow(start, self._matches)

    async def changed(self, timeout_s: float) -> None:
        with contextlib.suppress(SourceError):  # it was closed; the next poll reports a break
            if self._following is not None:
                await self._following.changed(timeout_s)
                return
        await super().changed(timeout_s)

    async def aclose(self) -> None:
        await super().aclose()
        following, self._following = self._following, None
        if following is not None:
            await following.aclose()
        await self._reader.aclose()


async def _back_to(
    begin: Nanos, reader: JournalReader, start: journal.Tail | journal.At, matches: journal.Matches, most: int
) -> list[journal.JournalEntry]:
    """The entries before `start` that came since `begin`, the newest first; about `most` of many."""
    found: list[journal.JournalEntry] = []
    async with contextlib.aclosing(reader.stream(start, matches, back=True)) as entries:
        async for some in entries:
            found += [entry for entry in some if entry.at >= begin]
            if some[-1].at < begin or len(found) >= most:
                break
    return found


MOST_MESSAGES = 10_000


async def messages_of(
    reader: JournalReader, writers: Iterable[str], host: str, begin: Nanos, end: Nanos, *, is_its_own: bool
) -> list[journal.JournalEntry]:
    """The last of what these wrote on a host between two times of its clock. `kernel` is the kernel.

    `is_its_own`: it is the journal of this host, whatever its name is there. Raises SourceError,
    also where it cannot tell: it holds nothing of the host, or begins later.
    """
    every = (await reader.values(records.HOST))[records.HOST]
    names = [one for one in every if not host or journal.is_host(one, host)] or (every if is_its_own else ())
    if not names:
        raise SourceError(f"{reader.name}: has no entry of {host or 'any host'}, as far as it can be read")
    on = [((records.HOST, name),) for name in names] if len(names) < len(every) else [()]
    fields = [("_TRANSPORT", one) if one == "kernel" else (records.IDENTIFIER, one) for one in writers]
    matches = tuple((field, *more) for field in fields for more in on)
    found = await _back_to(begin, reader, journal.At(end), matches, MOST_MESSAGES)
    if not found and not (await reader.backward(journal.At(begin), (), 1)).entries:
        raise SourceError(f"{reader.name}: the entries of that time are gone")
    return found[:MOST_MESSAGES]


def maker_of(target: str) -> MakeReader:
    if target.startswith(("http://", "https://")):
        from jobtui.backends.journal.gatewayd import GatewayJournal

        return partial(GatewayJournal, target)
    from jobtui.backends.journal.journalctl import JournalctlReader

    return partial(JournalctlReader, target)


def open_source(spec: SourceSpec, window: ReadWindow) -> Journal:
    return journal_of(spec, window, maker_of(spec.target), KIND)


def journal_of(spec: SourceSpec, window: ReadWindow, make_reader: MakeReader, kind: str) -> Journal:
    """The wanted streams of a journal: Sirepo's, or those of the named units."""
    units, since = spec.units, Nanos(0) if window.whole else window.since
    names = [unit.removesuffix(".service") for unit in units]
    wanted = records.WantedStreams(units, names) if units else None
    return Journal(spec.target, make_reader, wanted=wanted, since=since, kind=kind, site=spec.profile)
