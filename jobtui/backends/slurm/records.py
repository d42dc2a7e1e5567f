"""The jobs of a cluster: the queue as it is now, joined with what accounting says about ended jobs.

The queue counts for live jobs; it also has ended jobs, for some minutes. Accounting counts for how a job
ended. Used by one thread only.
"""

import operator
import signal
from collections.abc import Callable, Mapping
from sys import intern

import msgspec

from jobtui.backends.base import Batch, skipping
from jobtui.backends.slurm.client import CommandAnswer
from jobtui.formats.slurm import SACCT, SQUEUE, Row, accounted_job, pieces_of, queued_job
from jobtui.model.clock import SECOND, Nanos, seconds_between
from jobtui.model.health import Skip, rows_of
from jobtui.model.ids import jid_of_run_dir, system_job_id
from jobtui.model.jobs import SLURM, Job, JobStatus
from jobtui.model.numbers import whole
from jobtui.model.slurm import HANGUP, LEFT, SlurmExit, SlurmJob, reason_of, words_of

OF_SIREPO = "sirepo"
"""The tag of a job that Sirepo submitted, with its id in Sirepo."""
BY_SHELL = 128
"""A shell gives this and the signal's number as exit code when a signal ended the last command."""
SHOWN_CODES = 128
"""sacct subtracts this from exit codes that are not smaller."""
OUT_OF_MEMORY = 125
"""What Slurm writes in place of a signal for a job that was out of memory."""
SIGNALS = {number.value: number.name for number in signal.Signals}


def key_of(job: SlurmJob) -> str:
    """The key of a job while it exists: the rest of an array has the array's own number."""
    return job.array if job.is_rest and job.array else job.id


def job_of(job: SlurmJob, source: str, label: str = SLURM, left: str = "") -> Job:
    """The job in the form of all systems: its app is the partition, its model the id as Slurm writes it.

    `left` says in words that it left the queue and its end was not seen.
    """
    status = JobStatus.UNKNOWN if left else job.status
    reason = reason_of(job.reason or "None")
    waits = status is JobStatus.PENDING
    times = (job.ended_at, job.started_at, job.submitted_at)
    sirepo = jid_of_run_dir(job.directory) if job.directory else None
    phase = canceled_words(job) if job.status is JobStatus.CANCELED else words_of("phases", job.state)
    return Job(
        id=system_job_id(label, key_of(job)),
        system=SLURM,
        status=status,
        native_status=intern(job.state),
        source=source,
        owner=intern(job.user),
        name=job.name or None,
        app=intern(job.partition),
        model=job.id,
        mode="array" if job.array else "",
        queued_at=job.submitted_at,
        started_at=job.started_at,
        updated_at=next((at for at in times if at is not None), None),
        ended_at=None if left else job.ended_at,
        runs=job.restarts + (job.started_at is not None),
        message=left or (reason.words if job.status is JobStatus.PENDING else phase),
        error=error_of(job),
        alert=reason.words if waits and reason.is_stuck else None,
        limit_s=job.limit_s if job.state == "TIMEOUT" else None,
        host=job.nodes or None,
        plan=intern(job.qos) or None,
        tags=f"{OF_SIREPO}:{sirepo}" if sirepo else "",
        allocation=" ".join(dict.fromkeys(filter(None, (job.raw, job.array)))),
        reason=intern(job.reason),
        exit=str(job.exit) if job.exit is not None else "",
    )


def canceled_words(job: SlurmJob) -> str:
    if job.state == "REVOKED":
        return "revoked: another cluster of its federation has it"
    if not job.canceled_by:
        return "canceled"
    by = "root" if job.canceled_by == "0" else job.canceled_by
    return f"canceled by {f'user id {by}' if by.isdecimal() else by}"


def error_of(job: SlurmJob) -> str | None:
    if job.status is not JobStatus.FAILED:
        return None
    if job.state == "TIMEOUT":
        return f"over its time limit of {job.limit_s / 60:g} min" if job.limit_s else "over its time limit"
    if why := words_of("ended_as", job.state):
        return why
    if job.not_started:
        return f"not started: {job.not_started}"
    word = job.reason.partition(":")[0]
    return exit_words(job.exit) or words_of("ended", word) or "no reason is given"


def exit_words(exit_: SlurmExit | None) -> str:
    if exit_ is None or not any(exit_):
        return ""
    if exit_.signal == OUT_OF_MEMORY:
        return words_of("ended_as", "OUT_OF_MEMORY") or ""
    if exit_.signal:
        return f"killed by signal {signal_name(exit_.signal)}"
    if exit_.code > BY_SHELL and (name := SIGNALS.get(exit_.code - BY_SHELL)):
        return f"exit code {exit_.code} (signal {exit_.code - BY_SHELL}, {name})"
    return f"exit code {exit_.code}" if exit_.code else ""


def signal_name(number: int) -> str:
    return f"{number} ({SIGNALS[number]})" if number in SIGNALS else str(number)


MOST_ENDED = 50_000
"""How many ended jobs are kept, the newest, and how many that left the queue and whose end is unknown."""
UNSEEN_S = 180
"""How long accounting may take to know the end of a job that has left the queue."""
UNSEEN = "it left the queue; how it ended is not known"
QUEUE, ACCOUNTS, EARLIER = "squeue", "sacct", "squeue before"
ENDED = (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELED)
SETTLED_S = 10.0
"""slurmctld knows the end of a job at once: an answer this much later cannot show the job as live."""
GOES_ON = frozenset({"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED"})
"""States of a job that has not ended. A job that completes or is requeued may already have an end."""

TABLES: Mapping[str, tuple[tuple[str, ...], Callable[[Row], SlurmJob | None]]] = {
    QUEUE: (tuple(SQUEUE), queued_job), ACCOUNTS: (tuple(SACCT), accounted_job)
}  # fmt: skip

_Sent = tuple[SlurmJob | None, SlurmJob | None, bool, bool, SlurmJob | None, int, Job]
"""What a job was made from: its rows in the queue and in accounting, whether it left, whether that is long
ago, what one of them contradicts, and how often it had run before; and the job. One flat tuple, so that the
garbage collector does not track it."""


class ClusterJobs:
    def __init__(self, source: str, label: str) -> None:
        self._source = source
        self._label = label
        self.queue: dict[str, SlurmJob] = {}
        """What is in the queue, by the key of each; for some minutes also what has ended."""
        self._ended: dict[str, SlurmJob] = {}
        self._left: dict[str, Nanos] = {}
        self.queue_at = Nanos(0)
        """When the queue was asked for last, 0 before it was."""
        self._disputed: dict[str, SlurmJob] = {}
        """What the other command says of jobs on whose state they disagree, or the queue said before."""
        self._farther: dict[str, SlurmJob] = {}
        """The queue's own word on jobs that were farther by it than they are now."""
        self._sent: dict[str, _Sent] = {}
        self._runs: dict[str, set[Nanos]] = {}
        self._components: dict[str, SlurmJob] = {}
        self._seen: dict[str, dict[str, tuple[int, SlurmJob]]] = {QUEUE: {}, ACCOUNTS: {}}
        self._unseen: set[str] = set()
        self._bad: dict[str, dict[str, Skip]] = {QUEUE: {}, ACCOUNTS: {}}
        self.priorities: dict[str, int] = {}
        """Those of the jobs that are pending, as the queue had them last."""
        self.newest: Nanos | None = None
        """The latest time in accounting."""
        self.has_accounting = True
        self.is_cut = False
        """Whether the queue is longer than is read."""
        self.has_let_go = False
        """Whether jobs were dropped, as there are more than are kept."""
        self.wants_accounting = False
        """Whether a job has ended that accounting does not yet show as ended."""

    def forget(self) -> Batch:
        self._sent.clear()
        self._bad = {name: {} for name in self._bad}
        return self._news(0, [], 0)

    def take_queue(self, answer: CommandAnswer, now: Nanos) -> Batch:
        self.queue_at = now
        self.priorities = {}
        jobs, skips, recovered = self._read(answer, QUEUE)
        fresh = {key_of(job): job for job in jobs}
        self._components |= {job.raw: job for job in jobs if "+" in job.id}
        self.is_cut = answer.is_cut
        if answer.is_cut:  # a missing job may be in the part that was not read
            fresh = {**self.queue, **fresh}
        for key, job in fresh.items():
            if (before := self.queue.get(key)) is not job:
                self._note_runs(key, before, job, self._ended.get(key))
                before = self._farther.pop(key, before)
                self._farther |= {key: before} if before is not None and _goes_back(before, job) else {}
        for key, job in self.queue.items():
            if key not in fresh and (job.status.is_live or key not in self._ended):
                self._left.setdefault(key, now)
        self._left = {key: at for key, at in self._left.items() if key not in fresh}
        kept = {key: self.queue[key] for key in self._left if key in self.queue}
        self.queue = {**kept, **fresh}
        self._settle_left(now)
        # accounting does not say yet how a job ended; it never lists some that never began
        self.wants_accounting = any(
            (key in self._left or not job.status.is_live)
            and now - (self._left.get(key) or job.ended_at or now) <= UNSEEN_S * SECOND
            and not self._is_reported(key)
            for key, job in self.queue.items()
        )
        return self._news(len(jobs), skips, recovered)

    def take_accounts(self, answer: CommandAnswer, now: Nanos) -> Batch:
        jobs, skips, recovered = self._read(answer, ACCOUNTS)
        for job in jobs:
            if not answer.is_cut:
                times = (job.submitted_at, job.started_at, job.ended_at, self.newest)
                self.newest = max((at for at in times if at is not None and at <= now), default=None)
            # accounting does not know that a job is a component of another if that was canceled in the queue
            part = self._components.get(job.id)
            if part is not None and part.submitted_at == job.submitted_at:
                job = msgspec.structs.replace(job, id=part.id)
            key = key_of(job)
            known = self._ended.get(key)
            self._note_runs(key, known, job, self.queue.get(key))
            if known is not None and is_older(job, known):
                continue  # the runs before a job's last are listed as well
            if job.ended_at is not None and not job.status.is_live:
                self._ended[key] = job
            elif known is not None and is_older(known, job):
                del self._ended[key]
        self._settle_left(now)
        if len(self._ended) > MOST_ENDED:
            self.has_let_go = True
            newest = sorted(self._ended.items(), key=lambda item: item[1].ended_at or 0)[-MOST_ENDED:]
            self._ended = dict(newest)
        self.wants_accounting = False
        return self._news(len(jobs), skips, recovered)

    def _note_runs(self, key: str, *jobs: SlurmJob | None) -> None:
        """Remember when a job was submitted before it was requeued: number, name and user are the same."""
        runs = [(at, job) for job in jobs if job is not None and (at := job.submitted_at) is not None]
        for at, job in runs:
            _, last = max(runs, key=operator.itemgetter(0))
            if is_older(job, last) and (job.name, job.user) == (last.name, last.user):
                self._runs.setdefault(key, set()).add(at)

    def _read(self, answer: CommandAnswer, command: str) -> tuple[list[SlurmJob], list[Skip], int]:
        """The jobs of an answer; for unchanged rows the same objects as before.

        Also the rows that make no sense for the first time, and how many rows make sense again.
        """
        where, (fields, make) = f"{self._source}: {command}", TABLES[command]
        rows, skips = pieces_of(answer.printed, answer.separator, len(fields), where)
        before, jobs, seen = self._seen[command], [], {}
        bad: dict[str, Skip] = {skip.why: skip for skip in skips}

        def made(row: tuple[str, ...]) -> None:
            known = before.get(row[0])
            digest = hash(row[:-1] if command == QUEUE else row)  # priorities change all the time
            is_same = known is not None and known[0] == digest
            job = known[1] if known is not None and is_same else make(dict(zip(fields, row, strict=True)))
            if job is not None:
                jobs.append(job)
                seen[row[0]] = digest, job
                if command == QUEUE and job.status is JobStatus.PENDING:
                    self.priorities[key_of(job)] = whole(row[-1], 0)
            elif "." not in row[0] or command == QUEUE:
                raise ValueError("is not a job: its id or state is not understood")

        def skip(row: tuple[str, ...], why: str) -> None:
            row_name = " ".join(row[0].split())[:80] or "a row"
            bad[row_name] = Skip(f"{where} {row_name}", why)

        for _ in rows_of(rows, made, skip, ValueError):
            pass
        self._seen[command] = seen
        were_bad, self._bad[command] = self._bad[command], bad
        fresh = [skip for row_name, skip in bad.items() if row_name not in were_bad]
        return jobs, fresh, len(were_bad.keys() - bad.keys())

    def _settle_left(self, now: Nanos) -> None:
        """Drop jobs that left the queue as soon as accounting knows their end."""
        for key in [key for key in self._left if self._is_reported(key)]:
            del self._left[key]
            self.queue.pop(key, None)
        for key in [key for key, job in self.queue.items() if key in self._left and job.is_rest]:
            del self._left[key], self.queue[key]
        for key in list(self._left)[: max(0, len(self._left) - MOST_ENDED)]:  # those that left first
            self.has_let_go = True
            del self._left[key], self.queue[key]
        self._unseen = {
            key for key, at in self._left.items() if not self.has_accounting or now - at > UNSEEN_S * SECOND
        }
        both = self.queue.keys() & self._ended.keys() - self._left.keys()
        ended = {  # its end there counts even after the queue has dropped it
            key: job
            for key, job in self._disputed.items()
            if not job.status.is_live and key in self._ended.keys() - self.queue.keys()
        }
        found = ((key, disputing(self.queue[key], self._ended[key], self.queue_at)) for key in both)
        self._farther = {key: job for key, job in self._farther.items() if key in self.queue}
        self._disputed = ended | self._farther | {key: job for key, job in found if job is not None}

    def _is_reported(self, key: str) -> bool:
        queued, ended = self.queue.get(key), self._ended.get(key)
        return ended is not None and (queued is None or not is_older(ended, queued))

    def _news(self, count: int, skips: list[Skip], recovered: int) -> Batch:
        now = {**self._ended, **self.queue}
        jobs: list[Job] = []

        def tell(key: str) -> None:
            queued, ended = self.queue.get(key), self._ended.get(key)
            disputing = self._disputed.get(key)
            runs = len(self._runs.get(key, ()))
            basis = queued, ended, key in self._left, key in self._unseen, disputing, runs
            known = self._sent.get(key)
            if known is not None and all(map(operator.is_, known, basis)):
                return
            job = self._job(key)
            if known is None or known[-1] != job:
                jobs.append(job)
            self._sent[key] = (*basis, job)

        def lose(key: str, why: str) -> None:
            skips.append(Skip(f"{self._source}: job {key}", why))

        for _ in rows_of(now, tell, lose):
            pass
        gone = [key for key in self._sent if key not in now]
        for key in gone:
            del self._sent[key]
            self._runs.pop(key, None)
        self._components = {raw: job for raw, job in self._components.items() if job.id in now}
        ids = tuple(system_job_id(self._label, key) for key in gone)
        return skipping(Batch(jobs=tuple(jobs), gone=ids, recovered=recovered, count=count), skips)

    def _job(self, key: str) -> Job:
        queued, ended = self.queue.get(key), self._ended.get(key)
        made = present(queued, ended if key not in self._left else None)
        earlier = len(self._runs.get(key, ()))
        made = msgspec.structs.replace(made, restarts=earlier) if earlier > made.restarts else made
        is_open = key in self._unseen and made.status.is_live
        job = job_of(made, self._source, self._label, UNSEEN if is_open else "")
        if key in self._disputed:
            other = self._disputed[key]
            return disputed(job, other, self._label, EARLIER if other is self._farther.get(key) else "")
        if key in self._left and job.status.is_live:
            return msgspec.structs.replace(job, message=LEFT)
        return job


def present(queued: SlurmJob | None, ended: SlurmJob | None) -> SlurmJob:
    """A job as it is now, from slurmctld, from accounting, or from both if they tell the end of one run.

    sacct subtracts 128 from exit codes above 127, so the code of slurmctld counts.
    """
    if queued is None or ended is None or queued.status.is_live or ended.status.is_live:
        known = queued or ended
        assert known is not None
        return known
    return queued if is_older(ended, queued) else msgspec.structs.replace(
        queued, state=ended.state, exit=queued.exit or ended.exit, canceled_by=ended.canceled_by,
        cluster=ended.cluster, started_at=ended.started_at, ended_at=ended.ended_at,
        is_whole=queued.is_whole and queued.exit is not None,
    )  # fmt: skip


def disputing(queued: SlurmJob, ended: SlurmJob, asked_at: Nanos) -> SlurmJob | None:
    """The contradiction between slurmctld, as of when it was asked, and accounting about one run; None if
    there is none. It is the statement that `present` leaves out.
    """
    if ended.ended_at is None or ended.status.is_live or ended.submitted_at != queued.submitted_at:
        return None
    if not queued.status.is_live:
        exits = {as_accounted(one.exit) for one in (queued, ended) if one.exit}
        return queued if queued.state != ended.state else ended if len(exits) > 1 else None
    is_settled = seconds_between(ended.ended_at, asked_at) > SETTLED_S
    return ended if queued.state in GOES_ON and is_settled else None


def as_accounted(exit_: SlurmExit) -> SlurmExit:
    """How sacct writes the end of a program: code 1 for signal 1, and larger codes less 128."""
    return SlurmExit(1) if exit_ == HANGUP else SlurmExit(exit_.code % SHOWN_CODES, exit_.signal)


def disputed(job: Job, other: SlurmJob, label: str, command: str = "") -> Job:
    is_accounted = job.status.is_live or other.state == job.native_status
    command = command or (ACCOUNTS if is_accounted else QUEUE)
    return msgspec.structs.replace(job, others=(job_of(other, f"{job.source}: {command}", label),))


def is_older(ended: SlurmJob, queued: SlurmJob) -> bool:
    """Whether a row of accounting is about an earlier job of that number, or an earlier run of the job."""
    if ended.submitted_at is None or queued.submitted_at is None:
        return False
    return ended.submitted_at < queued.submitted_at


def _goes_back(before: SlurmJob, job: SlurmJob) -> bool:
    """Whether a row of the queue is older than one before it: a requeue has another time of submission."""
    if job.submitted_at is None or job.submitted_at != before.submitted_at:
        return is_older(job, before)
    is_another_run = (job.started_at or 0) > (before.started_at or job.started_at or 0)
    began = (JobStatus.RUNNING, *ENDED) if job.status is JobStatus.PENDING else ENDED
    return job.status.is_live and before.status in began and not is_another_run
