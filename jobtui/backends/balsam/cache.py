"""Events of one Balsam server kept on disk between runs, so that the chart of a day opens at once. Optional.

A file of SQLite for each server and user, in the user's state directory, for its owner alone. It holds what
the server said and up to when that is whole: the server is asked on from there, with overlap. What is wrong
with the file is one line, and costs no more than the cache.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from jobtui.backends.worker import Worker
from jobtui.model.changes import StateChange
from jobtui.model.clock import Nanos
from jobtui.model.ids import system_job_id

if TYPE_CHECKING:
    import sqlite3

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
    """The file for a server and a user, which tells neither."""
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
        """Close the file."""
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
        """What is older goes: there is too much of it, or it is too old."""
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
    job = int(change.job_id.rpartition("/")[2])
    return change.id, job, change.at, change.before, change.after, change.nodes, kept


def _detail(text: object) -> dict[str, object] | None:
    found = json.loads(text) if isinstance(text, str) else None
    return found if isinstance(found, dict) else None
