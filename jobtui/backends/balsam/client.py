"""Asking a Balsam server: only GETs, lists page by page; its events kept on disk between runs.

What it works around (seen with Balsam 0.7.0a24):

- collections end with a slash; without it the answer is a redirect, behind a proxy to the wrong scheme;
- events by the scheduler's id are those of all jobs of the site: what is to narrow asks for the batch job;
- events by batch job come in pages in which each takes as many places as its site has batch jobs: `offset`
  goes on by `limit`, short pages are not the end, and repeats are dropped by id;
- parameters it does not know are ignored without a word, so only those in `PARAMETERS` are sent;
- a token that has expired is answered like one that is wrong.

A file of SQLite for each server and user, in the user's state directory, for its owner alone. It holds what
the server said and up to when that is whole. It is used after the server has answered, and never in place of
asking it: the server is asked from where the file ends, with overlap. A fault of the file is one line, and
costs no more than the cache.
"""

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import urlsplit

from jobtui.backends.balsam.records import SYSTEM, Decoded, decode_page
from jobtui.model.changes import StateChange
from jobtui.model.clock import SECOND, Nanos, SystemClock, seconds_between, time_of_mail
from jobtui.model.ids import named, system_job_id
from jobtui.model.numbers import whole
from jobtui.transport.http import Answer, HttpClient, Limits, ServerKind
from jobtui.transport.worker import Worker

if TYPE_CHECKING:
    import sqlite3

    from jobtui.transport.http import Transport


LIMITS = Limits(silence_s=40.0, whole_s=80.0, connections=2)
"""A sound server may take 30 s. One connection is for polls, one for what a person asks for meanwhile."""
PAGE_ROWS = 5_000
"""Rows asked for at once: half a second of the server's time at most, and little enough to decode at once."""
LARGE_BYTES = 1 << 16
"""A body from this size on is decoded in a thread."""

BALSAM = ServerKind(
    "Balsam",
    login="type `jobtui login balsam`, or `balsam login`",
    forbidden="the token may not read this",
    address="is this the address of a Balsam server?",
)

PARAMETERS: Mapping[str, frozenset[str]] = {
    "/events/": frozenset(
        {
            "id", "job_id", "batch_job_id", "scheduler_id", "tags", "from_state", "to_state",
            "timestamp_after", "timestamp_before", "ordering", "limit", "offset",
        }
    ),
    "/jobs/": frozenset(
        {
            "id", "parent_id", "app_id", "site_id", "last_update_before", "last_update_after", "state",
            "tags", "ordering", "limit", "offset",
        }
    ),
    "/batch-jobs/": frozenset({"id", "site_id", "state", "scheduler_id", "ordering", "limit", "offset"}),
    "/sites/": frozenset({"id", "limit", "offset"}),
    "/apps/": frozenset({"id", "site_id", "limit", "offset"}),
    "/sessions/": frozenset(),
    "/transfers/": frozenset({"state", "job_state", "limit", "offset"}),
}  # fmt: skip
"""What may be asked of each list. Others would be ignored, and all rows come back."""

Parameters = Mapping[str, str | int | Sequence[str] | Sequence[int]]
Row = TypeVar("Row")
GetToken = Callable[[], str | None]


class BalsamClient:
    """Asks one server. `token` is asked for anew for each request, as it may be renewed meanwhile.

    `label` is what tells it from other servers that are watched, "" for the only one.
    """

    def __init__(
        self,
        url: str,
        token: GetToken,
        transport: "Transport | None" = None,
        *,
        label: str = "",
        limits: Limits = LIMITS,
    ) -> None:
        self.name = shown_address(url)
        self.label = label
        self.system = named(SYSTEM, label)
        """What the ids of its jobs begin with."""
        self._http = HttpClient(
            url,
            BALSAM,
            name=self.name,
            login=lambda: {"Authorization": f"Bearer {found}"} if (found := token()) else {},
            limits=limits,
            transport=transport,
        )
        self.ahead_s = 0.0
        """How far the server's clock is ahead of this one, to a second, by its newest answer."""

    async def rows(self, path: str, kind: type[Row], parameters: Parameters) -> Decoded[Row]:
        """One page of a list. Raises SourceError."""
        unknown = parameters.keys() - PARAMETERS[path]
        if unknown:
            raise ValueError(f"{path} takes no {', '.join(sorted(unknown))}")
        answer = await self._asked(path, parameters)
        try:
            if len(answer.body) < LARGE_BYTES:
                return decode_page(kind, answer.body, f"{self.name}{path}")
            # Others have their turn meanwhile
            return await asyncio.to_thread(decode_page, kind, answer.body, f"{self.name}{path}")
        except ValueError as error:
            raise self._http.refusal(answer) from error

    async def pages(
        self, path: str, kind: type[Row], parameters: Parameters, most: int = PAGE_ROWS
    ) -> AsyncIterator[Decoded[Row]]:
        """Every page of a list. Raises SourceError."""
        offset = 0
        while True:
            page = await self.rows(path, kind, {**parameters, "limit": most, "offset": offset})
            yield page
            offset += most
            if not page.received or offset >= page.count * self._places(path, parameters, page, most):
                return

    @staticmethod
    def _places(path: str, parameters: Parameters, page: Decoded[Row], most: int) -> int:
        if path != "/events/" or not parameters.keys() & {"batch_job_id", "scheduler_id"}:
            return 1
        return max(1, -(-min(most, page.count) // max(1, page.received))) + 1

    async def get(self, path: str, parameters: Parameters) -> bytes:
        """The body of an answer that is fine. Raises SourceError for any other."""
        return (await self._asked(path, parameters)).body

    async def _asked(self, path: str, parameters: Parameters) -> Answer:
        lists = {key: [given] if isinstance(given, str | int) else given for key, given in parameters.items()}
        said = [(key, str(value)) for key, given in lists.items() for value in given]
        answer = await self._http.ask(path, said)
        told = time_of_mail(answer.headers.get("date") or "")
        if told is not None:
            self.ahead_s = seconds_between(SystemClock().now(), told)
        return answer

    async def aclose(self) -> None:
        await self._http.aclose()


def shown_address(url: str) -> str:
    parts = urlsplit(url.rstrip("/"))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


VERSION = 1
SCHEMA = """
CREATE TABLE events (id INTEGER, job INTEGER, at INTEGER, before TEXT, after TEXT, nodes REAL, detail TEXT,
                     PRIMARY KEY (id, at)) WITHOUT ROWID;
CREATE INDEX events_by_time ON events (at);
CREATE TABLE covered (one INTEGER PRIMARY KEY CHECK (one = 1), since INTEGER, until INTEGER);
"""
KEPT_S = 14 * 24 * 3600
"""What is older than the newest by more goes, however few there are."""
BUSY_S = 0.5
"""How long another jobtui may hold the file."""
ROWS_AT_ONCE = 2_000
LARGEST_DETAIL = 4_000
"""Characters of what an event says beside its states; of more only the event is kept."""


class CacheError(Exception):
    """The cache cannot be used. The text is one line that says why and what to do."""


class Stretch(NamedTuple):
    """From when until when all events are there."""

    since: Nanos
    until: Nanos


def cache_path(server: str, owner: str) -> str:
    from platformdirs import user_state_path  # costs 20 ms

    mark = hashlib.sha256(f"{server}\n{owner}".encode()).hexdigest()[:16]
    return str(user_state_path("jobtui") / f"balsam-{mark}.sqlite3")


class EventCache:
    """The events of one server in the file at `path`, at most `most`. A thread of its own does the work."""

    def __init__(self, path: str, source: str, system: str, most: int) -> None:
        self.path = path
        self._source = source
        self._system = system
        self._most = most
        self._worker = Worker("balsam cache")
        self._database: sqlite3.Connection | None = None

    async def covered(self) -> Stretch | None:
        """From when until when all events are kept; None for no time. Raises CacheError."""
        return await self._run(self._covered)

    async def ends(self, count: int) -> list[StateChange]:
        """The oldest and the newest events, so many of each. Raises CacheError."""
        asked = "SELECT * FROM events ORDER BY at {} LIMIT ?"
        orders = [asked.format(order) for order in ("ASC", "DESC")]
        return await self._run(lambda: [one for order in orders for one in self._changes(order, (count,))])

    async def between(self, since: Nanos, after: tuple[int, int]) -> list[StateChange]:
        """Some events from a time on, in the order of time, those behind `after` (a time, an id).

        An empty list when there are no more. Raises CacheError.
        """
        asked = "SELECT * FROM events WHERE at >= ? AND (at, id) > (?, ?) ORDER BY at, id LIMIT ?"
        return await self._run(lambda: list(self._changes(asked, (since, *after, ROWS_AT_ONCE))))

    async def add(self, changes: Iterable[StateChange]) -> None:
        """Keep events; those that are kept already stay as they are. Raises CacheError."""
        rows = [_row(change) for change in changes]
        if rows:
            await self._run(lambda: self._add(rows))

    async def cover(self, stretch: Stretch) -> None:
        """All events of this stretch were added: it and what it touches are whole. Raises CacheError."""
        await self._run(lambda: self._cover(stretch))

    async def forget(self) -> None:
        """Let everything go: it is not what the server says any more. Raises CacheError."""
        await self._run(self._forget)

    async def aclose(self) -> None:
        await self._worker.finish(self._close)

    async def _run(self, call: Callable[[], "_T"]) -> "_T":
        return await self._worker.run(lambda: self._guarded(call))

    def _guarded(self, call: Callable[[], "_T"]) -> "_T":
        import sqlite3  # only who wants a cache pays for it

        try:
            return call()
        except (sqlite3.Error, OSError, ValueError, TypeError) as error:
            self._close()
            raise CacheError(
                f"the cache {self.path} cannot be used ({error}): delete it to begin anew"
            ) from error

    def _open(self) -> "sqlite3.Connection":
        import sqlite3

        if self._database is not None:
            return self._database
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        # Made before SQLite does, as that asks for no mode; its journals take that of the file
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        os.chmod(self.path, 0o600)
        database = sqlite3.connect(self.path, timeout=BUSY_S, check_same_thread=False)
        self._database = database
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise ValueError(f"a newer jobtui wrote it, in form {version}")
        if version < VERSION:
            database.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
        return database

    def _covered(self) -> Stretch | None:
        row = self._open().execute("SELECT since, until FROM covered").fetchone()
        return None if row is None else Stretch(Nanos(int(row[0])), Nanos(int(row[1])))

    def _changes(self, asked: str, values: tuple[int, ...]) -> Iterator[StateChange]:
        for number, job, at, before, after, nodes, detail in self._open().execute(asked, values):
            yield StateChange(
                int(number), system_job_id(self._system, int(job)), Nanos(int(at)), str(before), str(after),
                self._source, None if nodes is None else float(nodes), _detail(detail),
            )  # fmt: skip

    def _add(self, rows: "list[_Row]") -> None:
        with self._open() as database:  # a transaction
            database.executemany("INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def _cover(self, stretch: Stretch) -> None:
        before = self._covered()
        if before is not None and before.since <= stretch.until and stretch.since <= before.until:
            stretch = Stretch(min(before.since, stretch.since), max(before.until, stretch.until))
        with self._open() as database:  # a transaction
            oldest = self._oldest_kept(database, stretch)
            database.execute("DELETE FROM events WHERE at < ?", (oldest,))
            values = (max(oldest, stretch.since), stretch.until)
            database.execute("INSERT OR REPLACE INTO covered VALUES (1, ?, ?)", values)

    def _oldest_kept(self, database: "sqlite3.Connection", stretch: Stretch) -> int:
        asked = "SELECT at FROM events ORDER BY at DESC LIMIT 1 OFFSET ?"
        surplus = database.execute(asked, (self._most,)).fetchone()
        oldest = stretch.until - KEPT_S * 1_000_000_000
        return oldest if surplus is None else max(oldest, int(surplus[0]) + 1)

    def _forget(self) -> None:
        with self._open() as database:  # a transaction
            database.execute("DELETE FROM events")
            database.execute("DELETE FROM covered")

    def _close(self) -> None:
        database, self._database = self._database, None
        if database is None:
            return
        import sqlite3

        with suppress(sqlite3.Error):  # every transaction has ended: nothing is lost
            database.close()


_T = TypeVar("_T")
_Row = tuple[int, int, int, str, str, float | None, str | None]


def _row(change: StateChange) -> _Row:
    detail = json.dumps(change.detail) if change.detail else None
    kept = detail if detail is None or len(detail) <= LARGEST_DETAIL else None
    job = whole(change.job_id.rpartition("/")[2], 0)
    return change.id, job, change.at, change.before, change.after, change.nodes, kept


def _detail(text: object) -> dict[str, object] | None:
    found = json.loads(text) if isinstance(text, str) else None
    return found if isinstance(found, dict) else None


CHECKED = 20
"""Oldest and newest events by which the server is recognized, so many of each."""
LATE_S = 3600
"""How much later than others events may come that were not there when the rest was kept."""

Ask = Callable[[Sequence[int]], Awaitable[dict[int, Nanos]]]
"""Asks the server for the times of some events by their ids."""


class Recall:
    """Gives what is kept from a time on, part by part, and keeps what comes. `fault` says why it does not."""

    def __init__(self, cache: EventCache | None) -> None:
        self._cache = cache
        self._after = (-1, -1)
        self._stretch: Stretch | None = None
        self._is_distrusted = False
        self.fault = ""

    def begin(self, *, distrusted: bool = False) -> None:
        """Let the next part be the first; what is distrusted is let go of then."""
        self._after, self._stretch, self._is_distrusted = (-1, -1), None, distrusted

    @property
    def is_used(self) -> bool:
        return self._cache is not None

    def ask_from(self, since: Nanos) -> Nanos:
        """From when on the server is to be asked: from `since`, or later where what is kept is whole."""
        return since if self._stretch is None else max(since, Nanos(self._stretch.until - LATE_S * SECOND))

    async def part(self, since: Nanos, ask: Ask) -> list[StateChange]:
        """The next events that are kept; none when there are no more. Raises SourceError."""
        cache = self._cache
        if cache is None:
            return []
        try:
            if self._stretch is None and not await self._still_holds(cache, since, ask):
                return []
            found = await cache.between(since, self._after)
        except CacheError as error:
            self._give_up(error)
            return []
        if found:
            self._after = (found[-1].at, found[-1].id)
        return found

    async def _still_holds(self, cache: EventCache, since: Nanos, ask: Ask) -> bool:
        """Whether what is kept goes back far enough, and is what this server says; else it is let go of."""
        stretch = await cache.covered()
        if stretch is None or (stretch.since > since and not self._is_distrusted):
            return False
        known = await cache.ends(CHECKED)
        told = {} if self._is_distrusted else await ask([change.id for change in known])
        if not told or any(told.get(change.id, change.at) != change.at for change in known):
            await cache.forget()
            self._is_distrusted = False
            return False
        self._stretch = stretch
        return True

    async def keep(self, changes: Sequence[StateChange], whole: Stretch | None = None) -> None:
        """Keep events; `whole` is a stretch of which by now all are kept."""
        if self._cache is None:
            return
        try:
            await self._cache.add(changes)
            if whole is not None and whole.since <= whole.until:
                await self._cache.cover(whole)
        except CacheError as error:
            self._give_up(error)

    def _give_up(self, error: CacheError) -> None:
        self._cache, self._stretch, self.fault = None, None, str(error)

    async def aclose(self) -> None:
        if self._cache is not None:
            await self._cache.aclose()
