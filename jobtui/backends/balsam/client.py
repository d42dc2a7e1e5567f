"""Asking a Balsam server: only GETs, lists page by page; its events kept on disk between runs.

What it works around (seen with Balsam 0.7.0a24):

- collections end with a slash; without it the answer is a redirect, behind a proxy to the wrong scheme;
- events by the scheduler's id are those of all jobs of the site: what is to narrow asks for the batch job;
- events by batch job come in pages in which each takes as many places as its site has batch jobs: `offset`
  goes on by `limit`, short pages are not the end, and repeats are dropped by id;
- parameters it does not know are ignored without a word, and all rows come back: the tests refuse them;
- a token that has expired is answered like one that is wrong.

A file of SQLite for each server and user, in the user's state directory, for its owner alone. It holds what
the server said and up to when that is whole. It is used after the server has answered, and never in place of
asking it: the server is asked from where the file ends, with overlap. A fault of the file is one line, and
costs no more than the cache.
"""

import asyncio
import hashlib
import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from jobtui.backends.balsam.records import SYSTEM, Decoded, decode_page
from jobtui.model.changes import StateChange
from jobtui.model.clock import SECOND, Nanos, SystemClock, seconds_between, time_of_mail
from jobtui.model.ids import named, system_job_id
from jobtui.model.numbers import whole
from jobtui.transport.http import HttpClient, Limits, ServerKind
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

Parameters = Mapping[str, str | int | Sequence[str] | Sequence[int]]
Row = TypeVar("Row")


class BalsamClient:
    """Asks one server. `token` is asked for again for each request, as it may be renewed meanwhile.

    `label` is what tells it from other servers that are watched, "" for the only one.
    """

    def __init__(
        self,
        url: str,
        token: Callable[[], str | None],
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
        lists = {key: [given] if isinstance(given, str | int) else given for key, given in parameters.items()}
        said = [(key, str(value)) for key, given in lists.items() for value in given]
        answer = await self._http.ask(path, said)
        told = time_of_mail(answer.headers.get("date") or "")
        if told is not None:
            self.ahead_s = seconds_between(SystemClock().now(), told)
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
            offset, places = offset + most, 1  # that each row takes
            if path == "/events/" and parameters.keys() & {"batch_job_id", "scheduler_id"}:
                places = max(1, -(-min(most, page.count) // max(1, page.received))) + 1
            if not page.received or offset >= page.count * places:
                return

    async def aclose(self) -> None:
        await self._http.aclose()


def shown_address(url: str) -> str:
    parts = urlsplit(url.rstrip("/"))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


VERSION = 2
SCHEMA = """
DROP TABLE IF EXISTS events;
DROP TABLE IF EXISTS covered;
CREATE TABLE events (id INTEGER, at INTEGER, body BLOB, PRIMARY KEY (id, at)) WITHOUT ROWID;
CREATE INDEX events_by_time ON events (at);
CREATE TABLE covered (since INTEGER, until INTEGER);
"""
KEPT_S = 14 * 24 * 3600
"""What is older than the newest by more goes, however few there are."""
BUSY_S = 0.5
"""How long another jobtui may hold the file."""
ROWS_AT_ONCE = 2_000
LARGEST_DETAIL = 4_000
"""Bytes of an event with what it says beside its states; of more only the event is kept."""
CHECKED = 20
"""Oldest and newest events by which the server is recognized, so many of each."""
LATE_S = 3600
"""How much later than others events may come that were not there when the rest was kept."""

Ask = Callable[[Sequence[int]], Awaitable[dict[int, Nanos]]]
"""Asks the server for the times of some events by their ids."""
_T = TypeVar("_T")


class Stretch(NamedTuple):
    """From when until when all events are there."""

    since: Nanos
    until: Nanos


def cache_path(server: str, owner: str) -> str:
    from platformdirs import user_state_path  # costs 20 ms

    mark = hashlib.sha256(f"{server}\n{owner}".encode()).hexdigest()[:16]
    return str(user_state_path("jobtui") / f"balsam-{mark}.sqlite3")


class EventCache:
    """The events of one server in the file at `path`, at most `most`. A thread of its own does the work.

    `fault` says why it is used no more. `system` is what the ids of the server's jobs begin with.
    """

    def __init__(self, path: str, system: str, most: int) -> None:
        self.path = path
        self.fault = ""
        self._system = system
        self._most = most
        self._worker = Worker("balsam cache")
        self._database: sqlite3.Connection | None = None
        self._is_distrusted = False
        self._left: deque[StateChange] | None = None
        self._whole_until: Nanos | None = None

    def begin(self, *, distrusted: bool = False) -> None:
        """Let the next part be the first; what is distrusted is dropped then."""
        self._left, self._whole_until, self._is_distrusted = None, None, distrusted

    async def part(self, since: Nanos, ask: Ask) -> list[StateChange]:
        """The next events that are kept from a time on; none when there are no more. Raises SourceError."""
        if self._left is None:
            self._left = deque(await self._recalled(since, ask))
        return [self._left.popleft() for _ in range(min(ROWS_AT_ONCE, len(self._left)))]

    def ask_from(self, since: Nanos) -> Nanos:
        """From when on the server is to be asked: from `since`, or later where what is kept is whole."""
        until = self._whole_until
        return since if until is None else max(since, Nanos(until - LATE_S * SECOND))

    async def keep(self, changes: Sequence[StateChange], whole: Stretch | None = None) -> None:
        if changes:
            await self._run(lambda: self._add(changes))
        if whole is not None and whole.since <= whole.until:
            await self._run(lambda: self._cover(whole))

    async def aclose(self) -> None:
        await self._worker.finish(self._close)

    async def _recalled(self, since: Nanos, ask: Ask) -> list[StateChange]:
        """What is kept, where that goes back far enough and is what this server says; else it goes."""
        covered = await self._run(self._covered)
        if covered is None or (covered.since > since and not self._is_distrusted):
            return []
        found = await self._run(lambda: self._events(since)) or []
        ends = [*found[:CHECKED], *found[-CHECKED:]]
        told = {} if self._is_distrusted else await ask([change.id for change in ends])
        if not told or any(told.get(change.id, change.at) != change.at for change in ends):
            await self._run(self._forget)
            self._is_distrusted = False
            return []
        self._whole_until = covered.until
        return found

    async def _run(self, call: Callable[[], _T]) -> _T | None:
        """What a call gives, None once the file cannot be used."""
        import sqlite3  # only who wants a cache pays for it

        if self.fault:
            return None
        try:
            return await self._worker.run(call)
        except (sqlite3.Error, OSError, ValueError, TypeError) as error:
            self.begin()
            self.fault = f"the cache {self.path} cannot be used ({error}): delete it to start again"
            return None

    def _open(self) -> "sqlite3.Connection":
        import sqlite3

        if self._database is not None:
            return self._database
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        # Made before SQLite does, as that asks for no mode; its journals take that of the file
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        os.chmod(self.path, 0o600)
        database = self._database = sqlite3.connect(self.path, timeout=BUSY_S, check_same_thread=False)
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise ValueError(f"a newer jobtui wrote it, in form {version}")
        if version < VERSION:
            database.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
        return database

    def _covered(self) -> Stretch | None:
        row = self._open().execute("SELECT since, until FROM covered").fetchone()
        return None if row is None else Stretch(Nanos(int(row[0])), Nanos(int(row[1])))

    def _events(self, since: Nanos) -> list[StateChange]:
        rows = self._open().execute("SELECT body FROM events WHERE at >= ? ORDER BY at, id", (since,))
        kept = (msgspec.json.decode(body, type=StateChange) for (body,) in rows)
        return [
            msgspec.structs.replace(
                one, job_id=system_job_id(self._system, whole(one.job_id.rpartition("/")[2], 0))
            )
            for one in kept
        ]

    def _add(self, changes: Sequence[StateChange]) -> None:
        with self._open() as database:  # a transaction
            rows = ((change.id, change.at, _body(change)) for change in changes)
            database.executemany("INSERT OR IGNORE INTO events VALUES (?, ?, ?)", rows)

    def _cover(self, stretch: Stretch) -> None:
        before = self._covered()
        if before is not None and before.since <= stretch.until and stretch.since <= before.until:
            stretch = Stretch(min(before.since, stretch.since), max(before.until, stretch.until))
        with self._open() as database:  # a transaction
            asked = "SELECT at FROM events ORDER BY at DESC LIMIT 1 OFFSET ?"
            surplus = database.execute(asked, (self._most,)).fetchone()
            oldest = stretch.until - KEPT_S * SECOND
            oldest = oldest if surplus is None else max(oldest, int(surplus[0]) + 1)
            database.execute("DELETE FROM events WHERE at < ?", (oldest,))
            database.execute("DELETE FROM covered")
            values = (max(oldest, stretch.since), stretch.until)
            database.execute("INSERT INTO covered VALUES (?, ?)", values)

    def _forget(self) -> None:
        with self._open() as database:  # a transaction
            database.execute("DELETE FROM events")
            database.execute("DELETE FROM covered")

    def _close(self) -> None:
        import sqlite3

        with suppress(sqlite3.Error):  # every transaction has ended: nothing is lost
            if self._database is not None:
                self._database.close()
        self._database = None


def _body(change: StateChange) -> bytes:
    body = msgspec.json.encode(change)
    if len(body) <= LARGEST_DETAIL:
        return body
    return msgspec.json.encode(msgspec.structs.replace(change, detail=None))
