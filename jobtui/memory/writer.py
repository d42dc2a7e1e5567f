"""Writes finished runs to the memory, each once, and counts them. A full memory drops the oldest."""

import os
from contextlib import suppress
from math import log, log1p
from pathlib import Path

from jobtui.analysis.recurrence import day_of
from jobtui.analysis.signature import LONGEST_EXAMPLE, signature
from jobtui.memory.database import ALL, FAILED, MEMORY, NUMBERS, WHOLE, hash_of, kept
from jobtui.model.clock import SECOND
from jobtui.model.memory import FIELDS, EndedRun
from jobtui.model.tables import text_of
from jobtui.recording.database import SIDE_FILES
from jobtui.recording.writer import BatchWriter, DatabaseWriter

MOST_WORDS, MOST_SIGNATURES = 500_000, 100_000
"""The most values and signatures. A run with a further one counts among all runs only."""
LONGEST_WORD = 200
CACHED = 100_000
CUT_AT_ONCE = 20_000
LEAST_TIMED = 5
"""The fewest like runs to compare the length of another run with."""

Sums = list[float]
"""Runs; compared runs, the sum of how much slower they were and of its squares; known waits and their sum."""
ADD = text_of("jobtui.memory", "add.sql")


class MemoryWriter(DatabaseWriter):
    """Writes the memory of this user, a new one if there is none, up to `most_bytes`."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.let_go = 0
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        super().__init__(path, MEMORY, goes_on=True)

    def close(self) -> None:
        """Close it without leaving WAL mode, because others may read it."""
        self.discard()

    def _count(self) -> None:
        self._words: dict[str, int] = {"": 0}
        self._signatures: dict[str, int] = {"": 0}
        self._kinds: dict[str, list[float]] = {}
        self._sums: dict[tuple[int, int, int, int], Sums] = {}
        self._times: dict[int, tuple[int, int, str]] = {}
        self._full = {name: self._rows_of(name) for name in ("word", "signature")}

    def _rows_of(self, table: str) -> int:
        ((rows,),) = self._db.execute(f"SELECT count(*) FROM {table}")
        return int(rows)

    @property
    def kept_bytes(self) -> int:
        ((size,),) = self._db.execute(
            "SELECT (page_count - freelist_count) * page_size"
            " FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()"
        )
        return int(size)

    def add(self, one: EndedRun) -> bool:
        """Add a run, within `together` and before `flush`; whether it is new."""
        ended = one.ended_at // SECOND
        kind = self._kind(one.kind)
        mark = self._mark(one) if one.is_failed else 0
        values = [self._number(getattr(one, name)) for name in FIELDS]
        key, user = hash_of(job := kept(one.id)), self._number(one.user)
        known = self._db.execute("SELECT user FROM run WHERE hash = ? AND ended = ?", (key, ended)).fetchall()
        if known:
            key = hash_of(f"{job} of {one.user}")  # one of another cluster ended in the same second
        row = (job, key, ended, kind, self._number(one.verdict), mark, *values, one.waited_s, one.ran_s)
        sql = f"INSERT OR IGNORE INTO run VALUES (NULL, {', '.join('?' * len(row))})"
        if (user,) in known or not self._db.execute(sql, row).rowcount:
            return False
        if mark > FAILED:
            first, last, latest = self._times.get(mark, (ended, ended, job))
            self._times[mark] = (min(first, ended), *max((last, latest), (ended, job)))
        marks = (ALL, *((FAILED,) if one.is_failed else ()), *((mark,) if mark > FAILED else ()))
        slow, wait = self._slow(one), None if one.waited_s is None else log1p(one.waited_s)
        tallied = [(0, 0), *((field, value) for field, value in enumerate(values, 1) if value)]
        for day in (WHOLE, day_of(one.ended_at)):
            for at in marks:
                of_all = (slow, wait) if at == ALL else (None, None)
                for field, value in tallied:
                    self._tally((field, day, at, value), *of_all)
        return True

    def _tally(self, key: tuple[int, int, int, int], slow: float | None, wait: float | None) -> None:
        sums = self._sums.get(key)
        if sums is None:
            sums = self._sums[key] = [0, 0, 0.0, 0.0, 0, 0.0]
        sums[0] += 1
        if slow is not None:
            sums[1] += 1
            sums[2] += slow
            sums[3] += slow * slow
        if wait is not None:
            sums[4] += 1
            sums[5] += wait

    def _slow(self, one: EndedRun) -> float | None:
        """The logarithm of the ratio of the length of a good run to the usual length of like runs."""
        if one.ran_s is None or one.is_failed:
            return None
        known, length = self._kinds[one.kind], log(max(one.ran_s, 1.0))
        runs, mean = known[1], known[2]
        known[1], known[2] = runs + 1, mean + (length - mean) / (runs + 1)
        return length - mean if runs >= LEAST_TIMED else None

    def _kind(self, text: str) -> int:
        known = self._kinds.get(text)
        if known is None:
            name = kept(text)
            self._db.execute("INSERT OR IGNORE INTO kind VALUES (NULL, ?, 0, 0)", (name,))
            (row,) = self._db.execute("SELECT id, runs, ran FROM kind WHERE text = ?", (name,))
            known = self._kinds[text] = list(row)
        return int(known[0])

    def _number(self, text: str) -> int:
        if (known := self._words.get(text)) is not None:
            return known
        name = kept(text)[:LONGEST_WORD]
        number = self._numbered("word", name, (name,), MOST_WORDS)
        if len(self._words) < CACHED:
            self._words[text] = number
        return number

    def _mark(self, one: EndedRun) -> int:
        text = kept(one.text)
        name = signature(text)
        if (known := self._signatures.get(name)) is not None:
            return known
        ended = one.ended_at // SECOND
        row = (name, text[:LONGEST_EXAMPLE], kept(one.id), ended, ended)
        self._signatures[name] = self._numbered("signature", name, row, MOST_SIGNATURES)
        return self._signatures[name]

    def _numbered(self, table: str, name: str, row: tuple[object, ...], most: int) -> int:
        """The number of a text, or 0 if it is new and there is no room. 1 is never a signature."""
        found = self._db.execute(f"SELECT id FROM {table} WHERE text = ?", (name,)).fetchone()
        if found is not None:
            return int(found[0])
        if self._full[table] >= most:
            return 0
        self._full[table] += 1
        ((last,),) = self._db.execute(f"SELECT coalesce(max(id), {FAILED}) FROM {table}")
        self._db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * (len(row) + 1))})", (last + 1, *row))
        return int(last) + 1

    def flush(self) -> None:
        """Write the counts, within `together`, and drop the oldest runs of a full memory."""
        self._db.executemany(ADD, ((*key, *sums) for key, sums in self._sums.items()))
        self._sums.clear()
        sql = (
            "UPDATE signature SET first = min(first, ?), job = iif(? >= last, ?, job), last = max(last, ?)"
            " WHERE id = ?"
        )
        times = ((first, last, job, last, mark) for mark, (first, last, job) in self._times.items())
        self._db.executemany(sql, times)
        self._times.clear()
        kinds = ((runs, mean, number) for number, runs, mean in self._kinds.values())
        self._db.executemany("UPDATE kind SET runs = ?, ran = ? WHERE id = ?", kinds)
        if len(self._kinds) > CACHED:
            self._kinds.clear()
        if self.kept_bytes > self._most_bytes:
            self._cut()

    def _cut(self) -> None:
        """Drop the runs that were written first, and the counts of the days before them."""
        oldest = "SELECT id, ended FROM run ORDER BY id LIMIT 1 OFFSET ?"
        (found,) = self._db.execute(oldest, (CUT_AT_ONCE,)).fetchall() or [None]
        if found is None:
            return
        self.let_go += self._db.execute("DELETE FROM run WHERE id < ?", (found[0],)).rowcount
        day = day_of(found[1] * SECOND)
        for field in (0, *NUMBERS.values()):
            self._db.execute("DELETE FROM tally WHERE field = ? AND day > 0 AND day < ?", (field, day))
            gone = "signature IN (SELECT id FROM signature WHERE last < ?)"
            self._db.execute(f"DELETE FROM tally WHERE field = ? AND day = 0 AND {gone}", (field, found[1]))
        self._db.execute("DELETE FROM signature WHERE last < ?", (found[1],))
        self._signatures = {"": 0}
        self._full["signature"] = self._rows_of("signature")


class MemoryThread(BatchWriter[EndedRun]):
    _writer: MemoryWriter

    def __init__(self, writer: MemoryWriter) -> None:
        super().__init__(writer, "remembering")

    def write_one(self, one: EndedRun) -> None:
        self._writer.add(one)

    def write_end(self) -> None:
        self._writer.flush()

    def close(self, timeout_s: float = 10.0) -> None:
        super().close(timeout_s)
        self._writer.close()


def forget(path: Path) -> bool:
    """Remove a memory and the files that SQLite keeps beside it; whether there was one. Raises OSError."""
    for side in SIDE_FILES:
        with suppress(FileNotFoundError):
            os.unlink(f"{path}{side}")
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True
