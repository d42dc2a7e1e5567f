"""The evidence on a job, a job of Sirepo as its rules look at it, and what a rule gives when it applies."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from jobtui.analysis.explain.flow import FINAL_WORDS, Mark, gaps, mark_of, usual_length, usual_steps
from jobtui.analysis.times import age, ago_words
from jobtui.backends.registry import SIREPO_DB, Gives, of_kind
from jobtui.model.changes import Allocation, Site, StateChange
from jobtui.model.clock import SECOND, Nanos, seconds_between, since_s
from jobtui.model.health import SourceHealth, SourceState, now_at
from jobtui.model.ids import PREFIX_LENGTH, AgentPrefix, JobId
from jobtui.model.jobs import SIREPO, Job, JobDetail, JobStatus, Pending, ReasonSeen, statuses_of
from jobtui.model.logs import CondorFact
from jobtui.model.memory import JobMemory
from jobtui.model.ops import Agent, Component, Damage, Op, Step, WritersRead, is_line_before
from jobtui.model.settings import KIND as ALARM
from jobtui.model.verdicts import Cause, Chain, Code, Fact, Killer, UsualTime, Verdict

FALLS = 3
"""An agent that ended this often within WITHIN_S flaps. A stop because it had no work does not count."""
FALLS_OF_HOST, USERS_OF_HOST = 6, 3
"""A host flaps after this many ends of its agents, of this many users."""
WITHIN_S = 900.0

Fall = tuple[Nanos, str]
"""When an agent ended by itself or did not start, and the first characters of its user's id."""


class Flapping(NamedTuple):
    """What flaps, how often its agents ended, and within how many seconds."""

    what: str
    falls: int
    span_s: float

    @property
    def words(self) -> str:
        return f"{self.what} ended {self.falls} times within {age(self.span_s)}"


class Flaps:
    """The ends of all known agents."""

    def __init__(self, agents: Iterable[Agent]) -> None:
        self._of_user: defaultdict[tuple[str, str, str], list[Fall]] = defaultdict(list)
        self._of_host: defaultdict[tuple[str, str], list[Fall]] = defaultdict(list)
        for agent in agents:
            user = agent.uid[:PREFIX_LENGTH]
            falls = [(at, user) for at in agent.falls]
            if falls:
                self._of_user[agent.driver, agent.kind, user] += falls
                if agent.host is not None:
                    self._of_host[agent.driver, agent.host] += falls

    def around(self, agent: Agent, at: Nanos) -> Flapping | None:
        """How this agent, or its host, flapped before a time; None if neither did."""
        user = agent.uid[:PREFIX_LENGTH]
        own = _recent(self._of_user.get((agent.driver, agent.kind, user), ()), at)
        if len(own) >= FALLS:
            return _flapping(f"the {agent.kind} agent of user {agent.uid}", own)
        host = _recent(self._of_host.get((agent.driver, agent.host or ""), ()), at)
        if len(host) >= FALLS_OF_HOST and len({user for _, user in host}) >= USERS_OF_HOST:
            return _flapping(f"agents on {agent.host}", host)
        return None


def _recent(falls: Sequence[Fall], at: Nanos) -> list[Fall]:
    begin = at - WITHIN_S * SECOND
    return sorted(fall for fall in falls if begin <= fall[0] <= at)


def _flapping(what: str, falls: Sequence[Fall]) -> Flapping:
    return Flapping(what, len(falls), seconds_between(falls[0][0], falls[-1][0]))


NO_FLAPS = Flaps(())


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One job: what its sources say about it, and the health of these sources. A user may have set `now`.

    `detail` is its whole record, if that was read; `unread` says in words what could not be read,
    `left_out` which outputs do not count, `origins` which source gave a stream of another name. From
    logs: `writers_read` says whose lines were read, `ops` are the job's ops, oldest first, `alike` the
    latest runs like its last one, `texts` whole records of lines by (source, line), `restarted_ops` the
    restart of the supervisor, by the key of each older op, `agents` all agents by prefix, `flaps` how
    often they ended, `chain` the runs it waits for. `slurm` is the job of Slurm that it runs as.
    `changes` are those of its state, `reasons` what it was seen to wait for, `allocations` and `sites`
    all of Balsam's, `facts` what files say about a job of HTCondor, `cause` the line of its output that
    says why it failed. Only if asked for: `killer` says who ended it, `last_lines` are the last lines of
    a stuck job, `good` is the last good job of the same user and kind before a failed one, with its ops,
    `lacks_good` is true if no job is a good run to compare it with, None if none of those read is, and not
    all were read; `remembered` is what is known about finished runs like it.
    """

    job_id: JobId
    now: Nanos
    is_now_set: bool = False
    job: Job | None = None
    detail: JobDetail | None = None
    sources: tuple[SourceHealth, ...] = ()
    origins: Mapping[str, str] = MappingProxyType({})
    unread: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    writers_read: WritersRead = WritersRead()
    ops: tuple[Op, ...] = ()
    alike: tuple[Op, ...] = ()
    texts: Mapping[tuple[str, int], str] = MappingProxyType({})
    restarted_ops: Mapping[int, Step] = MappingProxyType({})
    agents: Mapping[AgentPrefix, Agent] = MappingProxyType({})
    flaps: Flaps = NO_FLAPS
    chain: Chain = Chain()
    slurm: Job | None = None
    changes: tuple[StateChange, ...] = ()
    reasons: tuple[ReasonSeen, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    sites: tuple[Site, ...] = ()
    facts: tuple[CondorFact, ...] = ()
    cause: Cause | None = None
    killer: Killer | None = None
    last_lines: tuple[Fact, ...] = ()
    good: tuple[Job, tuple[Op, ...]] | None = None
    lacks_good: bool | None = False
    remembered: JobMemory | None = None

    def origin_of(self, source: str) -> str:
        """The source to which the name in a line or record belongs: a journal gives many streams."""
        return self.origins.get(source, source)

    def now_at(self, source: str, *parts: str) -> Nanos:
        """The time by the clock of a source when it was last read, with all of these parts."""
        return now_at(self.sources, self.origin_of(source), self.now, *parts)


STATUS_WORDS = statuses_of(SIREPO)

NEAR_BYTES = 1 << 20
"""A damaged part of a log within this distance of a run's lines may concern the run."""
NEAR_S = 60.0
"""The same by time, as a rotation makes offsets useless."""
SETTLED_S = 10.0
"""Anything newer may not have reached the other source. A supervisor that stops is silent after this."""
NEWER_S = 2.0
"""An op that begins this much later than the record's run is a newer run; records have whole seconds."""


class Case:
    """One job of Sirepo as its rules see it. `behind` holds the whole text of records by (source, line).

    `usual` is how long steps take here, by the mark at their end, and `length` how long whole runs take.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence, self.writers_read = evidence, evidence.writers_read
        self.sources = tuple(one for one in evidence.sources if one.kind != ALARM)
        logs = (one for one in self.sources if of_kind(one.kind).gives & Gives.LOGS)
        self.own_sources = (*filter(SIREPO_DB.made, self.sources), *logs)
        self.job_id = evidence.job_id
        self.job = evidence.job
        self.now = evidence.now if self.job is None else evidence.now_at(self.job.source)
        self.runs = evidence.detail.runs if evidence.detail is not None else ()
        self.ops = evidence.ops
        self.behind = evidence.texts
        self.slurm = evidence.slurm

    @cached_property
    def record(self) -> Job | None:
        """The record of the latest run; None if the logs have a run that the record does not have yet."""
        return None if self.is_record_old else self.job

    @property
    def ran_s(self) -> float | None:
        return None if self.job is None else self.job.elapsed_s(self.now)

    @cached_property
    def has_records(self) -> bool:
        return any(SIREPO_DB.made(one) and one.state is not SourceState.DOWN for one in self.sources)

    @property
    def still_read(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.own_sources if one.is_behind)

    @cached_property
    def usual(self) -> Mapping[Mark, UsualTime]:
        return usual_steps(self.evidence.alike)

    @cached_property
    def length(self) -> UsualTime | None:
        return usual_length(self.evidence.alike)

    @cached_property
    def agent(self) -> Agent | None:
        prefix = None if self.run is None else self.run.any_agent
        return self.evidence.agents.get(prefix) if prefix is not None else None

    @cached_property
    def flapping(self) -> Flapping | None:
        """How the agent of the latest run flapped until its end, or flaps now; None if it does not."""
        job = self.job
        ended = job.ended_at if job is not None and not job.status.is_live else None
        at = ended if ended is not None else self.now
        return None if self.agent is None else self.evidence.flaps.around(self.agent, at)

    @cached_property
    def run(self) -> Op | None:
        """The op of the latest run; None if the record has a later run than the logs."""
        found = self.newest_run
        return None if found is None or self.is_log_old else found

    @cached_property
    def steps(self) -> Sequence[Step]:
        return self.run.steps if self.run is not None else ()

    @cached_property
    def newest_run(self) -> Op | None:
        return next((op for op in reversed(self.ops) if op.name == "run"), None)

    @cached_property
    def is_log_old(self) -> bool:
        job, run = self.job, self.newest_run
        if job is None or job.queued_at is None or run is None or run.created_at is None:
            return False
        return seconds_between(run.created_at, job.queued_at) > NEWER_S

    @cached_property
    def is_run_doubtful(self) -> bool:
        """Whether the last run in the logs may be an earlier one: its lines have no times, or gaps."""
        job, run = self.job, self.run
        if job is None or run is None or run.created_at is not None:
            return False
        return sum(op.name == "run" for op in self.ops) < job.runs

    @cached_property
    def later(self) -> tuple[Op, ...]:
        run = self.run
        return tuple(op for op in self.ops if run is not None and op.key > run.key)

    @cached_property
    def status(self) -> JobStatus:
        """The state in its record; that in the logs if they have a newer run or its word is unknown."""
        if self.record is not None and not self.unknown_word:
            return self.record.status
        run = self.run
        if run is None:
            return JobStatus.UNKNOWN
        if self.last(Mark.FOUND_GONE) is not None:
            return JobStatus.CANCELED
        ended = self.ended_in_log  # the last one, if two runs were reported as one
        word = FINAL_WORDS[ended.step] if ended is not None else run.result
        word = word or next((op.result for op in self.later if op.name == "run_status"), None)
        if word is not None and word in STATUS_WORDS:
            return STATUS_WORDS[word]
        if run.error:
            return JobStatus.FAILED
        is_running = any(step.step == "status running" for step in self.steps)
        return JobStatus.RUNNING if is_running else JobStatus.PENDING

    @cached_property
    def is_record_old(self) -> bool:
        """Whether the logs have a run that the record does not have yet."""
        job, run = self.job, self.newest_run
        if job is None or run is None or run.created_at is None:
            return False
        written = max((at for at in (job.written_at, job.updated_at, job.queued_at) if at), default=None)
        return written is not None and seconds_between(written, run.created_at) > NEWER_S

    @cached_property
    def unknown_word(self) -> str:
        """The note that jobtui does not know the record's word for the state, "" if it does."""
        job = self.record
        if job is None or job.status is not JobStatus.UNKNOWN:
            return ""
        return f'Its status is "{job.native_status}", which jobtui does not know'

    @property
    def is_clock_off(self) -> bool:
        """Whether the record, which is written at once, lacks a run of long ago or of the future."""
        run = self.newest_run
        if not self.is_record_old or run is None or run.created_at is None:
            return False
        return not 0.0 <= seconds_between(run.created_at, self.evidence.now) <= SETTLED_S

    @property
    def is_end_open(self) -> bool:
        """Whether neither a record nor a new line of a supervisor says how the run ended."""
        end = self.writers_read.supervisor_end
        is_quiet = end is None or abs(seconds_between(end, self.evidence.now)) > SETTLED_S
        return self.record is None and is_quiet

    @property
    def is_sbatch(self) -> bool:
        if self.job is not None and self.job.mode:
            return self.job.mode == "sbatch"
        return self.run is not None and self.run.driver == "SbatchDriver"

    def last(self, *marks: Mark) -> Step | None:
        return next((step for step in reversed(self.steps) if mark_of(step) in marks), None)

    @property
    def restart(self) -> Step | None:
        """The first restart of the supervisor after the latest run was asked for."""
        step = self.evidence.restarted_ops.get(self.run.key) if self.run is not None else None
        return step or self.last(Mark.RESTARTED)

    def later_step(self, *marks: Mark) -> Step | None:
        steps = (step for op in reversed(self.later) for step in reversed(op.steps))
        return next((step for step in steps if mark_of(step) in marks), None)

    def since(self, step: Step | None) -> float | None:
        return None if step is None else since_s(step.at, self.evidence.now_at(step.source))

    def ago(self, step: Step | None) -> str:
        return ago_words(self.since(step))

    @property
    def last_step(self) -> Step | None:
        return self.steps[-1] if self.steps else None

    @cached_property
    def gaps(self) -> tuple[str, ...]:
        """The lines that the latest run lacks, in words: steps that must come before others, and did not."""
        if self.run is None:
            return ()
        ends = {step.step for step in self.steps if mark_of(step) is Mark.FINAL}
        return (*gaps(self.run), *(("two ends without a start between them",) if len(ends) > 1 else ()))

    @cached_property
    def damaged(self) -> tuple[str, ...]:
        """The logs with unreadable parts near the latest run's lines; the server's log does not count."""
        ops = [op for op in (self.run, *self.later) if op is not None]
        steps = [step for op in ops for step in op.steps if step.component is not Component.SERVER]
        found = []
        for source, damages in self.writers_read.damaged.items():
            own = [step for step in steps if step.source == source]
            if own and any(self._is_near(damage, own) for damage in damages):
                found.append(source)
        return tuple(found)

    def _is_near(self, damage: Damage, own: Sequence[Step]) -> bool:
        """Whether lines of a run may be in a damaged part of their log."""
        offsets = [step.offset for step in own]
        if min(offsets) - NEAR_BYTES < damage.offset < max(offsets) + NEAR_BYTES:
            return True
        times = [step.at for step in own if step.at is not None]
        since = damage.since if damage.since is not None else damage.until
        if not times or since is None:
            return False
        until = damage.until if damage.until is not None else max(since, self.now)
        return since < max(times) + NEAR_S * SECOND and min(times) - NEAR_S * SECOND < until

    def supervisor_wrote_after(self, step: Step, seconds: float = SETTLED_S) -> bool:
        """Whether the process that wrote a line went on writing for this long afterwards."""
        writer = self.writers_read.writers.get(step.source)
        if writer is None or writer.pid is None or writer.end is None or step.at is None:
            return False
        is_its_own = writer.before is None or is_line_before(writer.before, step)
        return is_its_own and seconds_between(step.at, writer.end) >= seconds

    @property
    def agent_logs(self) -> set[str]:
        """The logs with lines of its agent: its own, or the supervisor's, into which they are forwarded."""
        by_agent = (Component.AGENT, Component.JOB_CMD)
        return {step.source for step in self.steps if step.component in by_agent}

    @property
    def ended_in_log(self) -> Step | None:
        return next((step for step in reversed(self.steps) if step.step in FINAL_WORDS), None)

    @property
    def begun_late(self) -> tuple[tuple[str, Nanos], ...]:
        """The logs that were read only from after the latest run's start; none if its first line was read."""
        job = self.record
        if self.last(Mark.CREATED) is not None or (job is not None and not job.runs):
            return ()
        asked = job.queued_at if job is not None else None
        begun = (
            (one.name.rpartition("/")[2] if one.name.startswith("/") else one.name, one.begins_at)
            for one in self.own_sources
            if one.begins_at is not None
        )
        return tuple(one for one in begun if asked is None or one[1] > asked)

    @property
    def is_log_behind(self) -> bool:
        """Whether the supervisor's log ends before the record was last written: it was cut off or rotated."""
        job, end = self.job, self.writers_read.supervisor_end
        if job is None or end is None or job.written_at is None:
            return False
        return seconds_between(end, job.written_at) > NEWER_S


def lines_wanted(ops: Sequence[Op]) -> tuple[Step, ...]:
    """The steps of the latest run of whose record all lines are needed."""
    run = next((op for op in reversed(ops) if op.name == "run"), None)
    steps = () if run is None else run.steps
    return tuple(step for step in steps if mark_of(step) in (Mark.STDERR, Mark.REFUSED))[-2:]


CERTAIN = 0.97
"""A line or record says so."""
SURE = 0.9
"""It follows from the lines, and nothing contradicts it."""
LIKELY = 0.75
"""It fits the lines, but the line that would prove it was not read."""
PLAUSIBLE = 0.45
"""There is only the record, which allows other verdicts too."""
GUESS = 0.4
"""The only reason for it is that this verdict is frequent."""


class Finding(NamedTuple):
    """A verdict before it is checked for blind spots.

    `steps` are the lines that support it. `missing` is the step that did not come, `limit_s` how long it may
    take. `doubts` say what would have made it surer. `silent_since` is the last line before the silence that
    supports it: it is less sure if the whole log ends there. `needs_all_lines`: an unread line may change it;
    `needs_no_line`: none can, as its record and what its program wrote say it.
    """

    code: Code
    sentence: str
    confidence: float
    steps: tuple[Step | None, ...] = ()
    missing: Mark | None = None
    limit_s: float | None = None
    doubts: tuple[str, ...] = ()
    silent_since: Step | None = None
    needs_all_lines: bool = False
    needs_no_line: bool = False


class Ruling(NamedTuple):
    """A verdict on a job whose system reports its state itself. Sirepo's rules give a `Finding`."""

    code: Code
    sentence: str
    confidence: float
    doubts: tuple[str, ...] = ()
    pending: Pending | None = None

    def on(self, job: Job, **more: Any) -> Verdict:
        pending = self.pending if job.status is JobStatus.PENDING else None
        return Verdict(
            job_id=job.id, code=self.code, sentence=self.sentence, confidence=self.confidence,
            pending=pending, **more,
        )  # fmt: skip


Rule = Callable[[Case], Finding | None]


def record_fact(job: Job | None) -> Fact:
    assert job is not None
    return Fact(text=f"status: {job.native_status}", source=job.source, at=job.written_at)
