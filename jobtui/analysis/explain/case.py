"""What is known about one job when it is to be explained. Plain data, gathered elsewhere."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from jobtui.analysis.explain.flow import FINAL_WORDS, Mark, gaps, mark_of
from jobtui.analysis.flapping import Flapping
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.heard import Writer
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus, Run
from jobtui.model.ops import Agent, Component, Op, Step
from jobtui.model.verdicts import Usual

STATUS_WORDS: Mapping[str, JobStatus] = {
    "completed": JobStatus.COMPLETED,
    "error": JobStatus.FAILED,
    "canceled": JobStatus.CANCELED,
    "missing": JobStatus.MISSING,
    "job_run_purged": JobStatus.PURGED,
}
"""What the supervisor's words for the end of a run mean."""

NEAR_BYTES = 1 << 20
"""How far from its lines a damaged place of a log may still concern a run."""
LIVES_ON_S = 10.0
"""How long a supervisor may take to stop; what it writes later shows that it went on."""
NEWER_S = 2.0
"""How much later than a record's run an op must be to belong to a newer one; records have whole seconds."""


class Coverage(NamedTuple):
    """Which kinds of sources were read for a case, and what is wrong with them.

    `faults` say in words what could not be read or is missing. `supervisor_end` is the time of the last line
    of a supervisor, None where its lines carry no time. `begun` names logs read from a time on only,
    `behind` those of which more is to be read now. `writers` are the last writers of supervisors' logs,
    `damaged` the places that cannot be read, both by source.
    """

    has_records: bool
    has_supervisor: bool
    has_server: bool
    has_agent: bool
    supervisor_end: Nanos | None = None
    faults: tuple[str, ...] = ()
    begun: tuple[tuple[str, Nanos], ...] = ()
    behind: tuple[str, ...] = ()
    writers: Mapping[str, Writer] = MappingProxyType({})
    damaged: Mapping[str, tuple[int, ...]] = MappingProxyType({})


class Case(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One job. `runs` and `ops` are oldest first. `behind` holds the whole text of records by (source, line).

    `restarted_ops` are the ops that are older than a restart of their supervisor, by key: the restart.
    `usual` tells how long steps take here, by the mark at their end, `length` how long whole runs do.
    `agents` are those of the job's ops, `flapping` tells that the latest run's agent died again and again.
    `slurm` is the job of Slurm that it runs as.
    """

    job_id: JobId
    now: Nanos
    coverage: Coverage
    job: Job | None = None
    runs: tuple[Run, ...] | None = None
    ops: tuple[Op, ...] = ()
    agents: tuple[Agent, ...] = ()
    behind: Mapping[tuple[str, int], str] = msgspec.field(default_factory=dict)
    restarted_ops: Mapping[int, Step] = msgspec.field(default_factory=dict)
    usual: Mapping[Mark, Usual] = msgspec.field(default_factory=dict)
    slurm: Job | None = None
    length: Usual | None = None
    flapping: Flapping | None = None

    @cached_property
    def run(self) -> Op | None:
        """The op of the latest run; None when the record tells of a later run than all that were read."""
        found = self._newest_run
        return None if found is None or self.is_log_old else found

    @cached_property
    def _newest_run(self) -> Op | None:
        return next((op for op in reversed(self.ops) if op.name == "run"), None)

    @cached_property
    def is_log_old(self) -> bool:
        """Whether the record tells of a later run than those in the logs."""
        job, run = self.job, self._newest_run
        if job is None or job.queued_at is None or run is None or run.created_at is None:
            return False
        return seconds_between(run.created_at, job.queued_at) > NEWER_S

    @cached_property
    def is_run_doubtful(self) -> bool:
        """Whether the run read last may be an earlier one: its lines have no times, others are missing."""
        job, run = self.job, self.run
        if job is None or run is None or run.created_at is not None:
            return False
        return sum(op.name == "run" for op in self.ops) < job.runs

    @cached_property
    def later(self) -> tuple[Op, ...]:
        """Ops that came after the latest run was asked for."""
        run = self.run
        return tuple(op for op in self.ops if run is not None and op.key > run.key)

    @cached_property
    def status(self) -> JobStatus:
        """What the job is doing: as its record says, unless the logs tell of a newer run."""
        if self.job is not None and not self.is_record_old:
            return self.job.status
        run = self.run
        if run is None:
            return JobStatus.UNKNOWN
        if self.last(Mark.FOUND_GONE) is not None:
            return JobStatus.CANCELED
        word = run.result or next((op.result for op in self.later if op.name == "run_status"), None)
        if word is not None and word in STATUS_WORDS:
            return STATUS_WORDS[word]
        if run.error:
            return JobStatus.FAILED
        return JobStatus.RUNNING if self.has_word_of("running") else JobStatus.PENDING

    @cached_property
    def is_record_old(self) -> bool:
        """Whether the logs tell of a run that the record does not know yet."""
        job, run = self.job, self._newest_run
        if job is None or run is None or run.created_at is None:
            return False
        written = max((at for at in (job.written_at, job.updated_at, job.queued_at) if at), default=None)
        return written is not None and seconds_between(written, run.created_at) > NEWER_S

    @property
    def is_sbatch(self) -> bool:
        """Whether the job runs on a cluster."""
        if self.job is not None and self.job.mode:
            return self.job.mode == "sbatch"
        return self.run is not None and self.run.driver == "SbatchDriver"

    def has_word_of(self, status: str) -> bool:
        """Whether news of the run said this status."""
        return self.run is not None and any(step.step == f"status {status}" for step in self.run.steps)

    def last(self, *marks: Mark) -> Step | None:
        """The last step of the latest run that is one of these."""
        steps = self.run.steps if self.run is not None else ()
        return next((step for step in reversed(steps) if mark_of(step) in marks), None)

    @property
    def restart(self) -> Step | None:
        """The first restart of the supervisor after the latest run was asked for."""
        told = self.restarted_ops.get(self.run.key) if self.run is not None else None
        return told or self.last(Mark.RESTARTED)

    def later_step(self, *marks: Mark) -> Step | None:
        """The last such step of the ops that came after the latest run."""
        steps = [step for op in self.later for step in op.steps if mark_of(step) in marks]
        return steps[-1] if steps else None

    def since(self, step: Step | None) -> float | None:
        """Seconds since a step; None where its line has no time."""
        return None if step is None or step.at is None else max(0.0, seconds_between(step.at, self.now))

    @property
    def last_step(self) -> Step | None:
        """The last step of the latest run."""
        return self.run.steps[-1] if self.run is not None and self.run.steps else None

    @cached_property
    def gaps(self) -> tuple[str, ...]:
        """What the latest run's lines lack, in words: steps without the one that must come before them."""
        return () if self.run is None else gaps(self.run)

    @cached_property
    def damaged(self) -> tuple[str, ...]:
        """The logs with places near the latest run's lines that cannot be read."""
        return tuple(dict.fromkeys(self._damaged()))

    def _damaged(self) -> Iterator[str]:
        steps = [step for op in (self.run, *self.later) if op is not None for step in op.steps]
        for source, places in self.coverage.damaged.items():
            own = [step.offset for step in steps if step.source == source]
            if own and any(min(own) - NEAR_BYTES < place < max(own) + NEAR_BYTES for place in places):
                yield source

    def is_supervisor_heard_after(self, step: Step) -> bool:
        """Whether the process that wrote a line is known to have gone on for a while."""
        writer = self.coverage.writers.get(step.source)
        if writer is None or writer.pid is None or writer.end is None or step.at is None:
            return False
        return writer.since <= step.offset and seconds_between(step.at, writer.end) >= LIVES_ON_S

    @property
    def agent_seen(self) -> bool:
        """Whether anything the run's own agent wrote could be read."""
        return self.run is not None and any(
            step.component in (Component.AGENT, Component.JOB_CMD) for step in self.run.steps
        )

    @property
    def ended_in_log(self) -> Step | None:
        """The line that tells the end of the latest run."""
        steps = self.run.steps if self.run is not None else ()
        return next((step for step in reversed(steps) if step.step in FINAL_WORDS), None)

    @property
    def begun_late(self) -> tuple[tuple[str, Nanos], ...]:
        """The logs that were read from a time within the latest run on; none when its first line was seen."""
        job = self.job if not self.is_record_old else None
        if self.last(Mark.CREATED) is not None or (job is not None and not job.runs):
            return ()
        asked = job.queued_at if job is not None else None
        return tuple(one for one in self.coverage.begun if asked is None or one[1] > asked)

    @property
    def is_log_behind(self) -> bool:
        """Whether the supervisor's log ends before the record was last written: it is cut off or rotated."""
        job, end = self.job, self.coverage.supervisor_end
        if job is None or end is None or job.written_at is None:
            return False
        return seconds_between(end, job.written_at) > NEWER_S
