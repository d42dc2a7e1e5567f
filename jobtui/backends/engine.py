"""Engines that keep logs and are asked by time: pages, following, and a journal made of them.

Rows are ordered by time and id. An engine orders by time only, so pages end where an instant ends. Rows that
come late, with an earlier time than rows already given, are found for `LATE_S`: following asks for that time
again, and knows what it gave.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from jobtui.backends.journal.client import HostStarts, JournalReader, Lane, check_field, checked
from jobtui.backends.journal.records import OP_HAS, START_HAS, agents_named, ops_named
from jobtui.formats.journal_export import entry_of_export
from jobtui.formats.json_values import PIECE_BYTES, Document, as_dict, decoded
from jobtui.model.bounded import Bounded
from jobtui.model.clock import LATEST_S, SECOND, Clock, Nanos
from jobtui.model.health import rows_of
from jobtui.model.journal import (
    At,
    AtCursor,
    Begin,
    Cursor,
    FollowStart,
    JournalEntry,
    Match,
    Matches,
    Slice,
    Start,
    Tail,
)
from jobtui.model.numbers import whole
from jobtui.model.specs import ReadWindow

LATE_S = 30
"""Rows that come this late are still found."""
PERIOD_S = 3.0
"""How often an engine is asked for new rows."""
TAILED_PERIOD_S = 15.0
"""The same while it announces new rows: late rows are then found only this often."""
TOGETHER_S = 1
"""How far before the newest row late ones are asked for, and how often at most."""
PAGE_ROWS = 1_000
SPARE_ROWS = 20
"""How many more than a page are asked for, as the last instant of an answer may be incomplete."""
INSTANT_ROWS = 10_000
"""The most rows of one answer, and so of one and the same time."""
FORWARD_ROWS = 100_000
"""About as many rows are read from a time on; of more only the last INSTANT_ROWS."""
WORDS_MOST = 500
"""The most words to ask for at once; those learnt first are dropped."""
EVERYTHING = ReadWindow()
GIVEN_KEPT = 20_000
"""How many given rows are remembered; rows of earlier times are not asked for again."""
AHEAD_S = 5
"""A row whose time is this far in the future is reported."""
DOUBTS_KEPT = 5
TOO_MANY_AT_ONCE = "more rows have the same time than one query returns: some are missing"
INSTANT_NS = 1_000_000
"""The step to the next time: some engines do not distinguish times within a millisecond."""


class EngineRow(NamedTuple):
    """One hit or line; `id` distinguishes those of one time."""

    at: Nanos
    id: str
    body: Document

    @property
    def cursor(self) -> Cursor:
        return Cursor(f"{self.at}/{self.id}")


def key_of(cursor: str) -> tuple[Nanos, str]:
    """The time and id in a cursor; the beginning for what is none."""
    at, _, identity = cursor.partition("/")
    number = whole(at, 0)
    return (Nanos(number), identity) if number < LATEST_S * SECOND else (Nanos(0), "")


@dataclass(slots=True)
class ReadingState:
    """What an engine keeps between the pages of one reading, such as a point in time."""

    point: str = ""
    after: object = None


class RowQuery(NamedTuple):
    """Rows from `begin` to `end`, both included; up to `most`, the newest first with `back`.

    `without` are ids that are not wanted, as far as the engine can leave them out. With `words` a row has one
    of each group in its text.
    """

    begin: Nanos | None
    end: Nanos | None
    matches: Matches
    most: int = PAGE_ROWS
    back: bool = False
    without: Collection[str] = ()
    walk: ReadingState | None = None
    words: Collection[Collection[str]] = ()


def united(matches: Matches) -> Iterator[list[tuple[str, list[str]]]]:
    """The fields of each group with their values; groups that differ only in their first value are one."""
    alike: dict[tuple[str, tuple[Match, ...]], list[str]] = {}
    for (field, value), *rest in matches:
        alike.setdefault((field, tuple(rest)), []).append(value)
    for (field, others), values in alike.items():
        yield [(field, values), *((name, [value]) for name, value in others)]


class Rows(NamedTuple):
    """Rows in the order asked for. `is_partial`: the engine left some out, and may have them later."""

    rows: list[EngineRow]
    is_all: bool
    is_partial: bool = False


STREAM_FIELDS = ("_SYSTEMD_UNIT", "SYSLOG_IDENTIFIER", "CONTAINER_NAME")
"""The fields of a journal that tell whose an entry is."""


class Doubts:
    """What an engine did not give, in words, with counts; the last few kinds."""

    def __init__(self) -> None:
        self._counts = Bounded[str, int](DOUBTS_KEPT)
        self._empty: set[str] = set()

    def add(self, words: str) -> None:
        self._counts[words] = self._counts.get(words, 0) + 1

    def note_values(self, field: str, *, is_known: bool, names: Mapping[str, tuple[str, ...]]) -> str:
        """The names that no row has, when a preset fits none of the fields that tell whose a row is."""
        (self._empty.discard if is_known else self._empty.add)(field)
        fields = [one for one in STREAM_FIELDS if one in names]
        if not self._empty.issuperset(fields):
            return ""
        self._empty.clear()
        return ", ".join(names[one][0] for one in fields)

    @property
    def words(self) -> str:
        counts = self._counts.items()
        return "; ".join(f"{words} ({count} times)" if count > 1 else words for words, count in counts)


class Engine(Protocol):
    """One index, or the streams of one query. All methods raise SourceError and nothing else."""

    name: str
    doubts: Doubts
    clock: Clock

    async def rows(self, asked: RowQuery) -> Rows: ...

    async def values(self, field: str) -> tuple[str, ...]: ...

    def fields(self, row: EngineRow, wanted: Collection[str] | None = None) -> Mapping[str, str]:
        """A row as fields of a journal entry, those of the wanted ones that it has."""

    async def aclose(self) -> None: ...


@runtime_checkable
class TailEngine(Protocol):
    def tail(self, matches: Matches) -> AsyncGenerator[bool, None]:
        """Whether there are new rows, first when it begins. Raises SourceError, also at its end."""


async def document_of(body: bytes) -> Document:
    """The JSON object of an answer, {} if it is none. Other tasks run while a large one is decoded."""
    try:
        return as_dict(decoded(body) if len(body) < PIECE_BYTES else await asyncio.to_thread(decoded, body))
    except ValueError:
        return {}


Key = tuple[Nanos, str]


async def page_of(
    engine: Engine, start: Start, matches: Matches, most: int, *, back: bool
) -> tuple[list[EngineRow], Cursor | None, bool]:
    """Up to `most` rows from a cursor on, or before it, in the order of their times, the cursor after them,
    and whether there are no more.
    """
    after: Key | None = key_of(start.cursor) if isinstance(start, AtCursor) else None
    at = start.time if isinstance(start, At) else after[0] if after else None
    if back and isinstance(start, At):
        at = Nanos(start.time - 1)
    found: dict[Key, EngineRow] = {}
    seen = set[str]()  # what was given of an instant with more rows, also on the other side of the cursor
    is_all = False
    while not is_all and (len(found) <= most or seen):
        begin, end = (None, at) if back else (at, None)
        asked = max(PAGE_ROWS if found or seen else 0, most + SPARE_ROWS) + len(seen)
        got = await engine.rows(RowQuery(begin, end, matches, min(INSTANT_ROWS, asked), back, seen))
        is_all, rows = got.is_all or not got.rows, got.rows
        if not is_all:
            at, ids = rows[-1].at, {row.id for row in rows}
            if rows[0].at != at:
                rows, seen = [row for row in rows if row.at != at], set()  # that instant may not be whole
            elif len(seen) >= INSTANT_ROWS or ids <= seen:
                engine.doubts.add(TOO_MANY_AT_ONCE)
                at, seen = Nanos(at + (-1 if back else INSTANT_NS)), set()
            else:
                seen |= ids
        for row in rows:
            key = (row.at, row.id)
            if after is None or (key < after if back else key > after):
                found[key] = row
    ordered = [found[key] for key in sorted(found)]
    kept = ordered[-most:] if back else ordered[:most]
    stand = kept[0 if back else -1].cursor if kept else Cursor(f"{after[0]}/{after[1]}") if after else None
    return kept, stand, is_all and len(ordered) <= most


def _note_ahead(engine: Engine, times: Iterable[Nanos]) -> None:
    if max(times, default=0) > engine.clock.now() + AHEAD_S * SECOND:
        engine.doubts.add("records with times in the future: the clock of a host is ahead of this one")


def entries_of(engine: Engine, rows: list[EngineRow]) -> list[JournalEntry]:
    """The rows as entries; one that cannot be understood is counted as missing."""

    def made(row: EngineRow) -> JournalEntry | None:
        fields = {**engine.fields(row), "__CURSOR": row.cursor, "__REALTIME_TIMESTAMP": str(row.at // 1_000)}
        written = {name.encode(): text.encode("utf-8", "replace") for name, text in fields.items()}
        return entry_of_export(written)

    entries = rows_of(rows, made, lambda _, why: engine.doubts.add(f"a row is not understood: {why}"))
    return [entry for entry in entries if entry is not None]


class EngineFollowing:
    """Rows as they can be found, each once, from a cursor on. A `TailEngine` says when there are new ones;
    late ones are asked for every TAILED_PERIOD_S. With a `window`, too many rows are not all read.
    """

    def __init__(
        self, engine: Engine, start: FollowStart, matches: Matches = (), window: ReadWindow | None = None
    ) -> None:
        self.engine, self._is_bounded = engine, window is not None
        self._only = window and (window.most or PAGE_ROWS)
        """Of how many rows the last are read next; None while all are."""
        self._may_be_all = window is not None and window.most is None
        self._in_a_row = 0
        self._cut_at = Nanos(0)
        window = window or EVERYTHING
        self._matches = matches
        self._until, self._about, self._agents = window.until, window.about, window.agents
        self._asked = Bounded[str, None](WORDS_MOST)
        """The words of which a row has one, the job's own last; none where all rows are read."""
        self._after = key_of(start.cursor) if isinstance(start, AtCursor) else None
        begin = start.time if isinstance(start, At) else self._after[0] if self._after else Nanos(0)
        self._begin = self._floor = begin
        self._given: dict[str, Nanos] = {}
        self._hole: Nanos | None = None
        """The time from which rows may be missing: a complete answer is read again from there."""
        self._newest: Key = self._after or (begin, "")
        self._walk = ReadingState()
        self._news = asyncio.Event()
        self._is_at_edge = False
        self._tail: Lane | None = None
        self._late_asked_at = 0.0

    async def take(self, most: int) -> Slice:
        self._news.clear()
        if self._tail is not None and self._tail.task.done():
            self._tail.task.result()
        now_s, lane = asyncio.get_running_loop().time(), self._tail
        if lane is not None and lane.at_edge and self._is_at_edge and now_s < self._late_asked_at:
            if not lane.held:
                return Slice((), None, True, note=self._words)
            self._begin = max(self._begin, Nanos(self._newest[0] - TOGETHER_S * SECOND))
        elif self._is_at_edge:
            self._late_asked_at = now_s + TAILED_PERIOD_S
        if lane is not None:
            lane.held.clear()
        rows, at_edge = await self.rows(most)
        entries = tuple(entries_of(self.engine, rows))
        return Slice(entries, None, at_edge, note=self._words, begins_at=self._cut_at)

    @property
    def _words(self) -> str:
        if self._tail is None or self._tail.fault is None:
            return self.engine.doubts.words
        why = str(self._tail.fault).removeprefix(f"{self.engine.name}: ")
        asked = f"new rows are asked for every {PERIOD_S:g} s, because the server does not send them ({why})"
        return "; ".join(filter(None, (self.engine.doubts.words, asked)))

    async def _sent(self, engine: TailEngine) -> AsyncGenerator[Slice, None]:
        async with aclosing(engine.tail(self._matches)) as tail:
            async for has_more in tail:
                yield Slice((), None, True, has_more)

    @property
    def next_start(self) -> AtCursor | None:
        at, identity = self._newest
        return AtCursor(EngineRow(at, identity, {}).cursor) if at else None

    async def rows(self, most: int) -> tuple[list[EngineRow], bool]:
        """Up to `most` rows that were not given yet, and whether there are no more for now."""
        if self._only is not None and (newest := await self._last(self._only)) is not None:
            return newest, self._is_at_edge
        given = [one for one, at in self._given.items() if at > self._begin - INSTANT_NS]
        question = RowQuery(
            self._begin or None, self._until, self._matches, most, walk=self._walk,
            without=given, words=[tuple(self._asked)] if self._asked else [],
        )  # fmt: skip
        found = await self.engine.rows(question)
        self._learn(found.rows)
        fresh = self._fresh(found.rows)
        if found.is_partial and self._hole is None:
            self._hole = self._begin
        self._note([(row.at, row.id) for row in fresh])
        self._is_at_edge = found.is_all or not found.rows
        self._in_a_row += len(found.rows)
        if self._is_at_edge:
            self._walk, self._in_a_row = ReadingState(), 0
            self._begin = self._late_from()
        else:
            last = found.rows[-1].at
            if not fresh and last <= self._begin:
                self.engine.doubts.add(TOO_MANY_AT_ONCE)
                last = Nanos(last + INSTANT_NS)
            self._begin = last
        if self._is_at_edge and self._hole is not None and not found.is_partial:
            self._begin, self._hole, self._is_at_edge = max(self._hole, self._floor), None, False
        if self._is_bounded and self._in_a_row > 2 * FORWARD_ROWS:
            self._only = INSTANT_ROWS
        return fresh, self._is_at_edge

    async def _last(self, most: int) -> list[EngineRow] | None:
        """The last rows; following goes on from them. None if it can read them all."""
        self._only, self._walk, self._in_a_row = None, ReadingState(), 0
        asked = RowQuery(self._begin or None, self._until, self._matches, min(most, INSTANT_ROWS), back=True)
        made, found = await self._about_job(asked) if self._about else ([], await self.engine.rows(asked))
        is_cut = bool(found.rows) and not found.is_all
        if is_cut and self._may_be_all:
            self._may_be_all = False
            newest, oldest, count = found.rows[0].at, found.rows[-1].at, len(found.rows)
            if (newest - self._begin) * count <= (newest - oldest) * FORWARD_ROWS:
                return None
            return await self._last(INSTANT_ROWS)
        if is_cut:
            self._floor = self._cut_at = found.rows[-1].at
            self.engine.doubts.add(f"of the rows since then, only the last {len(found.rows):,} were read")
        rows = sorted({row.id: row for row in self._fresh([*made, *found.rows])}.values())
        self._note([(row.at, row.id) for row in rows])
        self._is_at_edge = not found.is_partial
        self._begin = self._late_from() if self._is_at_edge else self._newest[0]
        return rows

    def _fresh(self, rows: Iterable[EngineRow]) -> list[EngineRow]:
        wanted = (row for row in rows if self._after is None or (row.at, row.id) > self._after)
        return [row for row in wanted if row.id not in self._given]

    async def _about_job(self, question: RowQuery) -> tuple[list[EngineRow], Rows]:
        """The rows that made ops of the job, and the last ones that name it or these ops."""
        self._asked[self._about] = None
        made = (await self.engine.rows(question._replace(words=[[OP_HAS], [self._about]]))).rows
        self._learn(made)
        found = await self.engine.rows(question._replace(words=[tuple(self._asked)]))
        if not any(self._about in self._text(row) for row in (*made, *found.rows)):
            self._asked.clear()
            self.engine.doubts.add(f"no row has the word {self._about}: rows without it were read")
            return [], await self.engine.rows(question)
        also = ", its agents or a start of the supervisor" if self._agents else ""
        self.engine.doubts.add(f"only rows with a word that names the job or its ops{also} were read")
        # Of an op that is not among the last rows it is not known whether it has ended
        named = {op for row in found.rows for op in ops_named(self._text(row))}
        return [
            row for row in made if found.is_all or not named.isdisjoint(ops_named(self._text(row)))
        ], found

    def _text(self, row: EngineRow) -> str:
        return self.engine.fields(row, ("MESSAGE",)).get("MESSAGE", "")

    def _learn(self, rows: Iterable[EngineRow]) -> None:
        """From now on ask also for the ops that rows name, and for their agents if these are wanted."""
        always = (START_HAS, self._about) if self._agents else (self._about,)
        for row in rows if self._asked else ():
            text = self._text(row)
            agents = agents_named(text) if self._agents and self._about in text else ()
            self._asked.update(dict.fromkeys([*ops_named(text), *agents, *always]))

    def _note(self, keys: Collection[Key]) -> None:
        now = self.engine.clock.now()
        for at, identity in keys:
            self._given[identity] = at
            if at <= now:
                self._newest = max(self._newest, (at, identity))
        _note_ahead(self.engine, [at for at, _ in keys])
        late = min(self._late_from(), self._begin if self._hole is None else self._hole)
        self._given = {one: at for one, at in self._given.items() if at >= late}
        if (surplus := len(self._given) - GIVEN_KEPT) > 0:
            in_order = sorted(self._given, key=lambda one: self._given[one])
            self._floor = Nanos((self._given[in_order[surplus - 1]] // INSTANT_NS + 1) * INSTANT_NS)
            self._given = {one: self._given[one] for one in in_order[surplus:]}

    def _late_from(self) -> Nanos:
        return max(self._floor, Nanos(self._newest[0] - LATE_S * SECOND))

    async def changed(self, timeout_s: float) -> None:
        if not self._is_at_edge:
            return
        if self._tail is None and isinstance(engine := self.engine, TailEngine):
            self._tail = Lane(lambda _: self._sent(engine), At(self._begin), (), None, self._news)
        with suppress(TimeoutError):
            async with asyncio.timeout(min(timeout_s, PERIOD_S)):
                await self._news.wait()
                await asyncio.sleep(TOGETHER_S)

    async def aclose(self) -> None:
        self._news.set()
        if self._tail is not None:
            self._tail.task.cancel()
            await asyncio.gather(self._tail.task, return_exceptions=True)


class EngineJournal(JournalReader):
    """What an engine keeps, read as a journal. Following begins with the `window`."""

    def __init__(self, make_engine: Callable[[], Engine], window: ReadWindow = EVERYTHING) -> None:
        self._engine, self._window = make_engine(), window
        self.newest = window.most
        self.name = self._engine.name

    async def forward(self, start: Begin | At | AtCursor, matches: Matches, most: int) -> Slice:
        return await self._page(start, matches, most, back=False)

    async def backward(self, start: Tail | At | AtCursor, matches: Matches, most: int) -> Slice:
        return await self._page(start, matches, most, back=True)

    async def _page(self, start: Start, matches: Matches, most: int, *, back: bool) -> Slice:
        engine = self._engine
        rows, stand, at_edge = await page_of(engine, start, checked(matches, self.name), most, back=back)
        _note_ahead(engine, [row.at for row in rows])
        return Slice(tuple(entries_of(engine, rows)), stand, at_edge, note=engine.doubts.words)

    async def values(self, *fields: str) -> dict[str, tuple[str, ...]]:
        for field in fields:
            check_field(field, self.name)
        found = await asyncio.gather(*map(self._engine.values, fields))
        return dict(zip(fields, found, strict=True))

    def follow(self, start: FollowStart | HostStarts, matches: Matches) -> EngineFollowing:
        start = start.for_new if isinstance(start, HostStarts) else start
        return EngineFollowing(self._engine, start, checked(matches, self.name), self._window)

    async def aclose(self) -> None:
        await self._engine.aclose()
