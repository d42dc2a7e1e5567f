"""The memory of finished runs, one file of the user, and every question to it.

`run` has a row for each run. `tally` has what is counted: of each day, and under day 0 of all, how many runs
of a signature have a value in a field; signature 0 is all runs, 1 those that failed, field 0 no field at all.
Rows of one field and day are next to each other, so an answer reads a few stretches and never the runs.
`kind` has how long like runs took: `tally` has how much longer than that, as sums of logarithms.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from jobtui.analysis import recurrence
from jobtui.analysis.signature import signature
from jobtui.analysis.statistics import expected
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import numbered, system_job_id
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.memory import FIELDS, Compared, Deviation, JobMemory, MemoryOverview, Seen, Share
from jobtui.model.numbers import storable
from jobtui.model.secrets import mask_text
from jobtui.model.tables import home_of, text_of
from jobtui.recording.database import DAMAGED, Layout, RecordingError, limit_time, opened

FILE_NAME = "memory.jobtui"
MEMORY = Layout(
    0x6A_6F_62_6D, 1, text_of("jobtui.memory", "schema.sql"), "memory", "jobtui remember starts one",
    "only one at a time can; jobtui remember --forget removes it", "remembers",
)  # fmt: skip
ALL, FAILED, WHOLE = 0, 1, 0
"""The signatures that stand for all and for failed runs, and the day that stands for all days."""
NUMBERS: Mapping[str, int] = {name: number for number, name in enumerate(FIELDS, 1)}
SHOWN_DAYS = 14
"""The days of a trend, and of the shares of a signature in a list."""
NEW_DAYS = 7
"""A failure first seen within this is new, if the memory knows as many days before."""
MOST_DAYS, OLDEST_DAYS = 400, 3_650
"""The newest days with a failure that are compared, and how far back they may be."""
CANDIDATES = 3
MOST_SHOWN, MOST_FOUND = 15, 1_000
"""Signatures that are shown without --lines, and the most that a text finds."""
LIKE_RUNS = 600
SHARE_FIELDS = ("host", "node")
SITES = ("host", "system")
MOST_SHARES = 10
CHANGED = ("host", "app", "version", "user")
ALL_RUNS = "all"

Runs = range | tuple[str, str]
"""Those of some days, or those with a value in a field."""


def kept(text: str) -> str:
    """A text as the memory keeps it: masked, and without what UTF-8 cannot hold."""
    return storable(mask_text(text))


def hash_of(job_id: str) -> int:
    """A number to find a job by, whatever label its cluster has now; several jobs may have the same."""
    from hashlib import blake2b

    parts = numbered(job_id)
    text = job_id if parts is None else system_job_id(parts.system, parts.number)
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=7).digest(), "big")


class Memory:
    """Answers out of a memory. Raises RecordingError if it cannot be read.

    Each question opens the file, so that it may be removed or made at any time, from any thread.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or Path(home_of("DATA"), "jobtui", FILE_NAME)

    @property
    def is_there(self) -> bool:
        return self.path.exists()

    @contextmanager
    def _reading(self) -> Iterator["_Reading"]:
        with closing(opened(self.path, MEMORY)) as db:
            limit_time(db)
            try:
                yield _Reading(db)
            except DAMAGED as error:
                raise RecordingError(
                    f"{self.path}: cannot be read: {error}; jobtui remember --forget removes it"
                ) from error

    def of_job(self, job: Job, text: str, now: Nanos) -> JobMemory:
        """What the memory knows of a job that failed with this text, or is live; nothing without a memory."""
        if not self.is_there:
            return JobMemory(now)
        with self._reading() as reading:
            seen = reading.seen(signature(kept(text)), now) if text else None
            if seen is not None and seen.count == 1 and hash_of(seen.job) == hash_of(job.id):
                seen = None  # it is this failure
            if not job.status.is_live:
                return JobMemory(now, seen)
            waits, lengths, wholes = reading.like(kept(recurrence.kind_of(job)))
            if job.status is JobStatus.PENDING:
                passed_s = job.waited_s(now) or 0.0
                return JobMemory(now, seen, expected(waits, passed_s), expected(wholes, passed_s))
            return JobMemory(now, seen, None, expected(lengths, job.elapsed_s(now) or 0.0))

    def signatures(self, now: Nanos, text: str = "", most: int = MOST_SHOWN) -> tuple[Seen, ...]:
        """Failures, the most frequent of the last days first; of a job or with a text, if given."""
        with self._reading() as reading:
            marks = reading.marks_of(kept(text)) if text else None
            ranked = map(reading.text_of, reading.ranked(now, marks, most))
            found = [reading.seen(text, now, SHOWN_DAYS) for text in ranked]
        return tuple(one for one in found if one is not None)

    def overview(self, now: Nanos, most: int = MOST_SHOWN) -> MemoryOverview:
        return MemoryOverview(self.signatures(now, most=most), self.shares(now), self.deviations(now))

    def shares(self, now: Nanos) -> tuple[Share, ...]:
        """Hosts and nodes where more runs fail than elsewhere, in the last weeks."""
        today = recurrence.day_of(now)
        with self._reading() as reading:
            return reading.shares(range(today - recurrence.BASELINE_DAYS, today + 1))

    def deviations(self, now: Nanos) -> tuple[Deviation, ...]:
        """Sites that deviate from their own past; none without a memory."""
        if not self.is_there:
            return ()
        today = recurrence.day_of(now)
        with self._reading() as reading:
            return recurrence.sustained([one for name in SITES for one in reading.deviations(name, today)])

    def compared(self, before: Runs, now: Runs) -> Compared:
        with self._reading() as reading:
            one, other = (
                reading.stretch(runs) if isinstance(runs, range) else reading.having(*runs)
                for runs in (before, now)
            )
        return Compared(one.runs, other.runs, recurrence.changes(one, other))


RunTimes = tuple[int, int, float]
"""The begin of a run, the time its length was known, both in seconds since the epoch, and the length."""


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


class _Reading:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def _rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return self._db.execute(sql, values).fetchall()

    def _one(self, sql: str, *values: object) -> Any:
        found = self._db.execute(sql, values).fetchone()
        return None if found is None else found[0]

    def _word(self, number: int) -> str:
        return str(self._one("SELECT text FROM word WHERE id = ?", number) or "")

    def text_of(self, mark: int) -> str:
        return str(self._one("SELECT text FROM signature WHERE id = ?", mark) or "")

    def _on(self, days: Iterable[int], field: int, mark: int, *values: int) -> dict[int, dict[int, int]]:
        """The number of runs by value and day; the value is 0 for field 0."""
        values = values or (0,)
        sql = (
            "SELECT value, day, runs FROM tally WHERE field = ? AND signature = ?"
            f" AND day IN ({_listed(days)}) AND value IN ({_listed(values)})"
        )
        found: dict[int, dict[int, int]] = {value: {} for value in values}
        for value, day, runs in self._rows(sql, field, mark):
            found[value][day] = runs
        return found

    @cached_property
    def _begin(self) -> int:
        return self._one("SELECT min(day) FROM tally WHERE field = 0 AND day > 0") or 0

    @cached_property
    def _values(self) -> int:
        sql = "SELECT count(*) FROM tally WHERE field = ? AND day = 0 AND signature = 0"
        return sum(self._one(sql, field) for field in NUMBERS.values())

    def seen(self, text: str, now: Nanos, most_days: int = MOST_DAYS) -> Seen | None:
        """A signature, with what is linked to it on its newest days; None if it was never seen."""
        sql = "SELECT id, example, job, first, last FROM signature WHERE text = ?"
        if not (rows := self._rows(sql, text)):
            return None
        ((mark, example, job, *times),) = rows
        first, last = (Nanos(at * SECOND) for at in times)
        count = self._on((WHOLE,), 0, mark)[0].get(WHOLE, 0)
        sql = "SELECT count(*) FROM tally WHERE field = ? AND day = 0 AND signature = ?"
        since = range(recurrence.day_of(first), recurrence.day_of(last) + 1)[-OLDEST_DAYS:]
        days = self._on(since, 0, mark)[0]
        own = dict(sorted(days.items())[-most_days:])
        return Seen(
            signature=text,
            first=first,
            last=last,
            count=count,
            users=self._one(sql, NUMBERS["user"], mark),
            where=self._where(mark, own) if count >= recurrence.LEAST else (),
            example=example,
            job=job,
            days=tuple(days.get(recurrence.day_of(now) - ago, 0) for ago in range(SHOWN_DAYS - 1, -1, -1)),
            is_new=recurrence.day_of(first) > recurrence.day_of(now) - NEW_DAYS
            and self._begin < recurrence.day_of(first) - NEW_DAYS,
        )

    def _where(self, mark: int, own: Mapping[int, int]) -> tuple[Share, ...]:
        """What runs of a signature have more often than other runs of the same days."""
        every = self._on(own, 0, ALL)[0]
        tallies = []
        for name, field in NUMBERS.items():
            sql = (
                "SELECT value FROM tally WHERE field = ? AND day = 0 AND signature = ?"
                " ORDER BY runs DESC LIMIT ?"
            )
            values = [value for (value,) in self._rows(sql, field, mark, CANDIDATES)]
            mine, having = self._on(own, field, mark, *values), self._on(own, field, ALL, *values)
            tallies += [
                recurrence.on_same_days(name, self._word(value), own, mine[value], every, having[value])
                for value in values
            ]
        return recurrence.unusual(tallies, self._values)

    def marks_of(self, text: str) -> list[int]:
        """The signatures of a job, else those that hold a text or are made of it."""
        of_any = "job = ? OR instr(job, '@') = 0 OR instr(?, '@') = 0"
        sql = f"SELECT DISTINCT signature FROM run WHERE hash = ? AND signature > ? AND ({of_any})"
        if found := self._rows(sql, hash_of(text), FAILED, text, text):
            return [mark for (mark,) in found]
        sql = "SELECT id FROM signature WHERE instr(lower(text), lower(?)) OR text = ? LIMIT ?"
        return [mark for (mark,) in self._rows(sql, text, signature(text), MOST_FOUND)]

    def ranked(self, now: Nanos, marks: Sequence[int] | None, most: int) -> list[int]:
        """Signatures by their number in the last days, then in all. `marks` limits them."""
        recent: Counter[int] = Counter()
        sql = "SELECT signature, runs FROM tally WHERE field = 0 AND day = ? AND signature > ?"
        for day in range(recurrence.day_of(now) - SHOWN_DAYS + 1, recurrence.day_of(now) + 1):
            for mark, runs in self._rows(sql, day, FAILED):
                recent[mark] += runs
        if marks is None:
            sql = (
                "SELECT signature FROM tally WHERE field = 0 AND day = 0 AND signature > ?"
                " ORDER BY runs DESC LIMIT ?"
            )
            marks = [*recent, *(mark for (mark,) in self._rows(sql, FAILED, most) if mark not in recent)]
        return sorted(marks, key=lambda mark: -recent[mark])[:most]

    def like(self, kind: str) -> tuple[list[RunTimes], list[RunTimes], list[RunTimes]]:
        """How long the newest like runs waited, ran, and took in all."""
        number = self._one("SELECT id FROM kind WHERE text = ?", kind)
        sql = "SELECT ended, waited, ran FROM run WHERE kind = ? ORDER BY ended DESC LIMIT ?"
        waits, lengths, wholes = [], [], []
        for ended, waited, ran in self._rows(sql, number, LIKE_RUNS):
            if ran is None:
                continue
            started = round(ended - ran)
            lengths.append((started, ended, ran))
            if waited is not None:
                queued = round(started - waited)
                waits.append((queued, started, waited))
                wholes.append((queued, ended, waited + ran))
        return waits, lengths, wholes

    def _sums(self, name: str, mark: int, days: range) -> dict[str, tuple[int, int, float, float]]:
        """By value of a field, on some days: the runs, and how much longer than usual they took."""
        sql = (
            "SELECT word.text, runs, timed, slow, squares FROM (SELECT value, sum(runs) AS runs,"
            " sum(timed) AS timed, total(slow) AS slow, total(squares) AS squares FROM tally"
            f" WHERE field = ? AND day IN ({_listed(days)}) AND signature = ? GROUP BY value)"
            " JOIN word ON word.id = value"
        )
        return {text: (runs, timed or 0, *sums) for text, runs, timed, *sums in
                self._rows(sql, NUMBERS[name], mark)}  # fmt: skip

    def shares(self, days: range) -> tuple[Share, ...]:
        tallies = []
        for name in SHARE_FIELDS:
            every = {value: sums[0] for value, sums in self._sums(name, ALL, days).items()}
            bad = Counter({value: sums[0] for value, sums in self._sums(name, FAILED, days).items()})
            of, count = sum(every.values()), bad.total()
            tallies += [
                recurrence.Frequency(name, value, bad[value], runs, count - bad[value], of - runs)
                for value, runs in every.items()
            ]
        return recurrence.unusual(tallies, len(tallies), MOST_SHARES)

    def deviations(self, name: str, today: int) -> Iterator[Deviation]:
        days: dict[int, dict[int, recurrence.Day]] = {}
        sql = (
            "SELECT value, signature, runs, waited, wait FROM tally"
            " WHERE field = ? AND day = ? AND signature <= ?"
        )
        for day in range(today - recurrence.BASELINE_DAYS - recurrence.DEVIANT_DAYS, today + 1):
            for value, mark, runs, waited, wait in self._rows(sql, NUMBERS[name], day, FAILED):
                known = days.setdefault(value, {}).get(day, recurrence.Day())
                whole = recurrence.Day(runs, known.failed, waited or 0, wait or 0)
                one = known._replace(failed=runs) if mark else whole
                days[value][day] = one
        for value, of_site in days.items():
            yield from recurrence.deviation(name, self._word(value), of_site, today)

    def stretch(self, days: range) -> recurrence.RunCounts:
        every, failed = (sum(self._on(days, 0, mark)[0].values()) for mark in (ALL, FAILED))
        counts: dict[tuple[str, str], int] = {(ALL_RUNS, ""): every}
        bad = {(ALL_RUNS, ""): failed}
        slow: dict[tuple[str, str], tuple[int, float, float]] = {}
        for name in CHANGED:
            of_all = self._sums(name, ALL, days)
            if name == "host" and not of_all:  # as of schedulers, which tell the node
                name, of_all = "node", self._sums("node", ALL, days)
            for value, (runs, *sums) in of_all.items():
                counts[name, value], slow[name, value] = runs, (int(sums[0]), sums[1], sums[2])
            bad |= {(name, value): sums[0] for value, sums in self._sums(name, FAILED, days).items()}
        sql = "SELECT signature, runs FROM tally WHERE field = 0 AND day = ? AND signature > ?"
        marks: Counter[int] = Counter()
        for day in days:
            for mark, runs in self._rows(sql, day, FAILED):
                marks[mark] += runs
        counts |= self._texts(marks)
        return recurrence.RunCounts(every, counts, bad, slow)

    def _texts(self, marks: Mapping[int, int]) -> dict[tuple[str, str], int]:
        sql = f"SELECT id, text FROM signature WHERE id IN ({_listed(marks)})"
        return {("signature", text): marks[mark] for mark, text in self._rows(sql)}

    def having(self, name: str, value: str) -> recurrence.RunCounts:
        word = self._one("SELECT id FROM word WHERE text = ?", kept(value))
        sql = (
            "SELECT signature, runs, timed, slow, squares FROM tally"
            " WHERE field = ? AND day = 0 AND value = ?"
        )
        found = {mark: (runs, *sums) for mark, runs, *sums in self._rows(sql, NUMBERS[name], word)}
        every, timed, slow, squares = found.pop(ALL, (0, 0, 0.0, 0.0))
        failed, *_ = found.pop(FAILED, (0,))
        counts = self._texts({mark: runs for mark, (runs, *_) in found.items()})
        key = (ALL_RUNS, "")
        lengths = (timed or 0, slow or 0.0, squares or 0.0)
        return recurrence.RunCounts(every, {**counts, key: every}, {key: failed}, {key: lengths})
