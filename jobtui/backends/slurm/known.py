"""What is known of a cluster's jobs: the queue as it is, joined with what accounting says of the ended ones.

The queue counts for what is live; it has ended jobs too, for some minutes. Accounting counts for how a job
ended. Touched by one thread only.
"""

import operator
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from jobtui.backends.slurm.commands import Answer
from jobtui.backends.slurm.rows import job_of, key_of
from jobtui.formats.slurm_tables import SACCT, SQUEUE, Row, accounted_job, pieces_of, queued_job
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import Skip
from jobtui.model.ids import JobId, system_job_id
from jobtui.model.jobs import Job
from jobtui.model.slurm import SlurmJob

MOST_ENDED = 50_000
"""Ended jobs that are kept, the newest of them; and as many that left the queue, their end not told yet."""
UNSEEN_S = 180
"""How long accounting may take to tell of the end of a job that has left the queue."""
UNSEEN = "it left the queue, and how it ended is not known"
NAMED_SKIPS = 20
QUEUE, ACCOUNTS = "squeue", "sacct"

Make = Callable[[Row], SlurmJob | None]

_Sent = tuple[SlurmJob | None, SlurmJob | None, bool, bool, int, Job]
"""What a job was made of: from the queue, from accounting, whether it left, whether that is long ago, and how
often it had run before; and the job. One flat tuple, in which no cycles of garbage are looked for."""


class News(msgspec.Struct):
    """What is new since it was asked before: jobs, ids of those that are no more, and what made no sense."""

    jobs: list[Job]
    gone: list[JobId]
    skipped: tuple[Skip, ...] = ()
    skip_count: int = 0
    recovered: int = 0
    count: int = 0


class _Read(NamedTuple):
    """The jobs of an answer, and which of its rows made no sense, those that are new and those mended."""

    jobs: list[SlurmJob]
    fresh: list[Skip]
    recovered: int


class Known:
    """The jobs of one cluster."""

    def __init__(self, source: str, label: str) -> None:
        self._source = source
        self._label = label
        self._queue: dict[str, SlurmJob] = {}
        self._ended: dict[str, SlurmJob] = {}
        self._left: dict[str, Nanos] = {}
        self._sent: dict[str, _Sent] = {}
        self._runs: dict[str, set[Nanos]] = {}
        self._seen: dict[str, dict[str, tuple[int, SlurmJob]]] = {QUEUE: {}, ACCOUNTS: {}}
        self._unseen: set[str] = set()
        self._bad: dict[str, dict[str, Skip]] = {QUEUE: {}, ACCOUNTS: {}}
        self.cluster = ""
        """The cluster's name, as soon as accounting has told it."""
        self.newest: Nanos | None = None
        """The latest time that accounting has told."""
        self.has_accounting = True
        self.is_cut = False
        """Whether the queue is longer than is read."""
        self.has_let_go = False
        """Whether jobs were let go of, as there are more than are kept."""
        self.wants_accounting = False
        """Whether a job has ended of which accounting has not told yet."""

    def forget(self) -> News:
        """Everything that is known, as if it were new."""
        self._sent.clear()
        self._bad = {name: {} for name in self._bad}
        return self._news(_Read([], [], 0))

    def take_queue(self, answer: Answer, now: Nanos) -> News:
        """Learn from an answer of squeue."""
        read = self._read(answer, QUEUE, tuple(SQUEUE), queued_job)
        fresh = {key_of(job): job for job in read.jobs}
        self.is_cut = answer.is_cut
        if answer.is_cut:  # what is missing may be in the part that was not read
            fresh = {**self._queue, **fresh}
        for key, job in fresh.items():
            if (before := self._queue.get(key)) is not job:
                self._note_runs(key, before, job, self._ended.get(key))
        for key, job in self._queue.items():
            if key not in fresh and (job.status.is_live or key not in self._ended):
                self._left.setdefault(key, now)
        self._left = {key: at for key, at in self._left.items() if key not in fresh}
        kept = {key: self._queue[key] for key in self._left if key in self._queue}
        self._queue = {**kept, **fresh}
        self._settle_left(now)
        self.wants_accounting = any(map(self._is_untold, self._queue.values()))
        return self._news(read)

    def take_accounts(self, answer: Answer, now: Nanos) -> News:
        """Learn from an answer of sacct."""
        read = self._read(answer, ACCOUNTS, tuple(SACCT), accounted_job)
        for job in read.jobs:
            self.cluster = self.cluster or job.cluster
            if not answer.is_cut:
                times = (job.submitted_at, job.started_at, job.ended_at, self.newest)
                self.newest = max((at for at in times if at is not None and at <= now), default=None)
            self._take_account(key_of(job), job)
        self._settle_left(now)
        self._let_go()
        self.wants_accounting = False
        return self._news(read)

    def _take_account(self, key: str, job: SlurmJob) -> None:
        """Learn of one run of a job; those before it are told of as well."""
        known = self._ended.get(key)
        self._note_runs(key, known, job, self._queue.get(key))
        if known is not None and _is_older(job, known):
            return
        if job.ended_at is not None and not job.status.is_live:
            self._ended[key] = job
        elif known is not None and _is_older(known, job):
            del self._ended[key]

    def _note_runs(self, key: str, *told: SlurmJob | None) -> None:
        """Remember when a job was submitted before it was requeued: number, name and user are the same."""
        runs = [job for job in told if job is not None and job.submitted_at is not None]
        last = max(runs, key=_submitted, default=None)
        for job in runs:
            if last is not None and _is_older(job, last) and (job.name, job.user) == (last.name, last.user):
                self._runs.setdefault(key, set()).add(_submitted(job))

    def _read(self, answer: Answer, command: str, fields: tuple[str, ...], make: Make) -> _Read:
        """The jobs of an answer; of rows that are as they were the same objects as before."""
        where = f"{self._source}: {command}"
        found = pieces_of(answer.printed, answer.separator, len(fields), where)
        before, jobs, seen = self._seen[command], [], {}
        bad: dict[str, Skip] = {skip.why: skip for skip in found.skips}
        for row in found.rows:
            known = before.get(row[0])
            is_same = known is not None and known[0] == hash(row)
            job = known[1] if known is not None and is_same else make(dict(zip(fields, row, strict=True)))
            if job is not None:
                jobs.append(job)
                seen[row[0]] = hash(row), job
            elif "." not in row[0] or command == QUEUE:
                place = " ".join(row[0].split())[:80] or "a row"
                bad[place] = Skip(f"{where} {place}", "is no job: its id or state makes no sense")
        self._seen[command] = seen
        were_bad, self._bad[command] = self._bad[command], bad
        fresh = [skip for place, skip in bad.items() if place not in were_bad]
        return _Read(jobs, fresh, len(were_bad.keys() - bad.keys()))

    def _settle_left(self, now: Nanos) -> None:
        """Let go of what left the queue as soon as accounting tells its end."""
        for key in [key for key in self._left if self._is_told(key)]:
            del self._left[key]
            self._queue.pop(key, None)
        for key in [key for key, job in self._queue.items() if key in self._left and job.is_rest]:
            del self._left[key], self._queue[key]
        for key in list(self._left)[: max(0, len(self._left) - MOST_ENDED)]:  # those that left first
            self.has_let_go = True
            del self._left[key], self._queue[key]
        self._unseen = {
            key for key, at in self._left.items() if not self.has_accounting or now - at > UNSEEN_S * SECOND
        }

    def _is_told(self, key: str) -> bool:
        queued, ended = self._queue.get(key), self._ended.get(key)
        return ended is not None and (queued is None or not _is_older(ended, queued))

    def _is_untold(self, job: SlurmJob) -> bool:
        """Whether accounting has still to tell how a job ended."""
        key = key_of(job)
        return (not job.status.is_live or key in self._left) and not self._is_told(key)

    def _let_go(self) -> None:
        if len(self._ended) > MOST_ENDED:
            self.has_let_go = True
            newest = sorted(self._ended.items(), key=lambda item: item[1].ended_at or 0)[-MOST_ENDED:]
            self._ended = dict(newest)

    def _news(self, read: _Read) -> News:
        now = {**self._ended, **self._queue}
        jobs: list[Job] = []
        for key in now:
            queued, ended = self._queue.get(key), self._ended.get(key)
            basis = queued, ended, key in self._left, key in self._unseen, len(self._runs.get(key, ()))
            known = self._sent.get(key)
            if known is not None and all(map(operator.is_, known, basis)):
                continue
            job = self._job(key)
            if known is None or known[-1] != job:
                jobs.append(job)
            self._sent[key] = (*basis, job)
        gone = [key for key in self._sent if key not in now]
        for key in gone:
            del self._sent[key]
            self._runs.pop(key, None)
        return News(
            jobs,
            [system_job_id(self._label, key) for key in gone],
            tuple(read.fresh[:NAMED_SKIPS]),
            len(read.fresh),
            read.recovered,
            len(read.jobs),
        )

    def _job(self, key: str) -> Job:
        made = self._made(key)
        earlier = len(self._runs.get(key, ()))
        made = msgspec.structs.replace(made, restarts=earlier) if earlier > made.restarts else made
        is_open = key in self._unseen and made.status.is_live
        return job_of(made, self._source, self._label, UNSEEN if is_open else "")

    def _made(self, key: str) -> SlurmJob:
        """What the queue and accounting say together."""
        queued, ended = self._queue.get(key), self._ended.get(key)
        if queued is None:
            assert ended is not None
            return ended
        if key in self._left or ended is None or queued.status.is_live or _is_older(ended, queued):
            return queued
        return joined(queued, ended)


def joined(queued: SlurmJob, ended: SlurmJob) -> SlurmJob:
    """An ended job as the queue still has it, with what only accounting tells."""
    return msgspec.structs.replace(
        queued, state=ended.state, exit=ended.exit, canceled_by=ended.canceled_by, cluster=ended.cluster,
        started_at=ended.started_at, ended_at=ended.ended_at,
    )  # fmt: skip


def _is_older(ended: SlurmJob, queued: SlurmJob) -> bool:
    """Whether accounting tells of an earlier job of that number, or of an earlier run of the job."""
    if ended.submitted_at is None or queued.submitted_at is None:
        return False
    return ended.submitted_at < queued.submitted_at


def _submitted(job: SlurmJob) -> Nanos:
    assert job.submitted_at is not None
    return job.submitted_at
