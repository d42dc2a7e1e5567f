"""What became of a job of HTCondor, by all that files say of it, and its row and changes of state. Pure.

Events tell best what state a job is in; a job ad is as good as the time of its state. A job's own output
counts until these say that it is over: a worker has a clock of its own, and a job may run again.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from jobtui.model import condor
from jobtui.model.changes import StateChange
from jobtui.model.clock import Nanos, time_of_seconds
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus, Run
from jobtui.model.numbers import whole
from jobtui.model.state_runs import FAILED
from jobtui.model.tables import tables_of

STATUSES: Mapping[str, JobStatus] = {
    "UNEXPANDED": JobStatus.PENDING, condor.IDLE: JobStatus.PENDING, condor.HELD: JobStatus.PENDING,
    condor.RUNNING: JobStatus.RUNNING, condor.SUSPENDED: JobStatus.RUNNING,
    condor.TRANSFERRING: JobStatus.RUNNING, condor.COMPLETED: JobStatus.COMPLETED,
    condor.REMOVED: JobStatus.CANCELED,
}  # fmt: skip
OVER = frozenset({condor.COMPLETED, condor.REMOVED})


class EventKind(NamedTuple):
    """One kind of event: its name here, its words, and the state it brings a job into, None for none."""

    name: str
    words: str
    state: str | None = None


_KINDS = tables_of("jobtui.model", "condor")["events"]
EVENTS: Mapping[int, EventKind] = {whole(number, 0): EventKind(*kind) for number, kind in _KINDS.items()}
"""By the number in event logs."""
STATE_OF: Mapping[str, str] = {kind.name: kind.state for kind in EVENTS.values() if kind.state is not None}
STATE_OF_LINE: Mapping[str, str] = {
    condor.BEGIN: condor.RUNNING,
    condor.END: condor.COMPLETED,
    condor.SIGNAL: condor.COMPLETED,
}
STATE_TIMES = ("EnteredCurrentStatus", "CompletionDate", "JobCurrentStartDate", "JobStartDate", "QDate")
"""Attributes of a job ad that tell since when it is in its state, best first."""
REASONS: Mapping[str, str] = {condor.HELD: "HoldReason", condor.REMOVED: "RemoveReason"}
"""Attributes that say why a job is in a state, beside `Reason`."""
SIGNALLED = 255
"""What jobsub's wrapper exits with when a signal ended it."""


class StateTurn(NamedTuple):
    """A change of a job's state, and what told of it."""

    fact: condor.CondorFact
    before: str
    after: str


class CondorExit(NamedTuple):
    """How a program ended: its status, or the signal that killed it, as they are written."""

    status: str = ""
    signal: str = ""

    @property
    def is_good(self) -> bool:
        return not self.signal and self.status in ("0", "")

    def __str__(self) -> str:
        return f"killed by signal {self.signal}" if self.signal else f"exit status {self.status or 'unknown'}"


class CondorLife:
    """A job, by its facts in order. `turns` are the changes of its state, `exit` is how it ended."""

    def __init__(self, facts: Iterable[condor.CondorFact]) -> None:
        self.state = ""
        self.turns: list[StateTurn] = []
        self.runs: list[Run] = []
        self.exit: CondorExit | None = None
        self.said_exits: dict[condor.Origin, CondorExit] = {}
        self.reason = ""
        self.hold_code = ""
        self.counts: dict[str, int] = {}
        self.values: dict[str, str] = {}
        self.traces: dict[str, condor.CondorFact] = {}
        self.queued_at: Nanos | None = None
        self.updated_at: Nanos | None = None
        self.ended_at: Nanos | None = None
        self.host: str | None = None
        self.is_jobsub = False
        self.is_disconnected = False
        self.gap: condor.CondorFact | None = None
        """A part of a log that was not read, and nothing that came after it."""
        self._is_told = False
        for fact in facts:
            self.take(fact)

    @property
    def starts(self) -> int:
        return max(self.counts.get("execute", 0), min(1, self.counts.get(condor.BEGIN, 0)), len(self.runs))

    @property
    def lost(self) -> int:
        return sum(run.native_status in condor.LOST for run in self.runs)

    @property
    def status(self) -> JobStatus:
        status = STATUSES.get(self.state, JobStatus.UNKNOWN)
        if status is JobStatus.COMPLETED and self.exit is not None and not self.is_good(self.exit):
            return JobStatus.FAILED
        return status

    def is_good(self, end: "CondorExit") -> bool:
        success = self.values.get("JobSuccessExitCode")
        return end.is_good if success is None or end.signal else end.status == success

    def take(self, fact: condor.CondorFact) -> None:
        """Let one more fact hold, which comes after all that were taken."""
        self.counts[fact.what] = self.counts.get(fact.what, 0) + 1
        if fact.at is not None:
            self.updated_at = max(fact.at, self.updated_at or fact.at)
        self._learn_origin(fact)
        self.values.update(fact.values)
        if fact.origin is condor.Origin.OUTPUT:
            self._take_line(fact)
        elif fact.origin is not condor.Origin.SUBMIT:
            self._is_told = True
            self.gap = fact if fact.what == condor.LOG_GAP else None
            (self._take_event if fact.origin is condor.Origin.EVENT else self._take_ad)(fact)

    def merge_event(self, fact: condor.CondorFact) -> None:
        """Let an event that another file told before say what that did not; it happened once."""
        self._learn_origin(fact)
        self.values = {**fact.values, **self.values}

    def _learn_origin(self, fact: condor.CondorFact) -> None:
        if (trace := fact.values.get(condor.TRACEPARENT)) is not None:
            self.traces.setdefault(trace, fact)
        self.is_jobsub = self.is_jobsub or is_of_jobsub(fact)

    def _take_event(self, fact: condor.CondorFact) -> None:
        if fact.what in ("disconnected", "reconnected"):
            self.is_disconnected = fact.what == "disconnected"
        if fact.what == "submit" and self.queued_at is None:
            self.queued_at = fact.at
        if (host := host_of(fact.values)) is not None:
            self.host = host
        if fact.what == "terminated":
            self.exit = self.said_exits[fact.origin] = _exit_of(fact.values)
        if (state := STATE_OF.get(fact.what)) is not None:
            self._turn(fact, state)

    def _take_ad(self, fact: condor.CondorFact) -> None:
        values = fact.values
        self.queued_at = self.queued_at or _time(values, "QDate")
        self.host = host_of(values) or self.host
        state = condor.AD_STATES.get(values.get("JobStatus", ""))
        if state == condor.COMPLETED and (ended := _exit_of(values)) != CondorExit():
            self.said_exits[fact.origin] = ended
            self.exit = ended
        if state is not None and state != self.state:
            self._turn(fact, state)

    def _take_line(self, fact: condor.CondorFact) -> None:
        if fact.what == condor.END:
            self.said_exits[fact.origin] = CondorExit(status=fact.values.get("status", ""))
        elif fact.what == condor.SIGNAL:
            self.said_exits[fact.origin] = CondorExit(str(SIGNALLED), fact.values.get("signal", ""))
        elif fact.what.startswith("submitted") and not self.state:
            self._turn(fact, condor.IDLE)
        if self._is_told and self.state in OVER:
            return
        if fact.what == condor.BEGIN and self.state == condor.RUNNING:
            return
        if (state := STATE_OF_LINE.get(fact.what)) is not None and state != self.state:
            self.exit = self.said_exits.get(fact.origin, self.exit)
            self._turn(fact, state)

    def _turn(self, fact: condor.CondorFact, state: str) -> None:
        if state == self.state and (state in OVER or self.turns[-1].fact.origin is condor.Origin.AD):
            # told twice, and better this time
            self.turns[-1] = self.turns[-1]._replace(fact=fact)
            self.ended_at = fact.at if state in OVER else None
            return
        self.turns.append(StateTurn(fact, self.state, state))
        self.reason = fact.values.get(REASONS.get(state, "")) or fact.values.get("Reason", "")
        self.hold_code = fact.values.get("HoldReasonCode", "")
        if state == condor.RUNNING and self.state != condor.SUSPENDED:
            queued_at, host = self.runs[-1].ended_at if self.runs else self.queued_at, host_of(fact.values)
            begun = Run(
                number=len(self.runs) + 1, status=JobStatus.RUNNING, native_status=condor.RUNNING,
                queued_at=queued_at, started_at=fact.at, updated_at=fact.at, host=host,
            )  # fmt: skip
            self.runs.append(begun)
            self.is_disconnected = False
            self.exit = None
        elif self.runs and self.runs[-1].ended_at is None and state in (condor.IDLE, condor.HELD, *OVER):
            self.runs[-1] = _ended(self.runs[-1], fact, self)
        self.ended_at = fact.at if state in OVER else None
        if state == condor.IDLE and fact.what == "submit":
            self.queued_at = self.queued_at or fact.at
        self.state = state


def is_of_jobsub(fact: condor.CondorFact) -> bool:
    if fact.origin is condor.Origin.OUTPUT:
        return True
    for name in fact.values:  # noqa: SIM110 - asked of every fact, and `any` takes twice as long
        if name.startswith("Jobsub"):
            return True
    return False


def time_of(fact: condor.CondorFact) -> Nanos | None:
    """When a fact came to be: of a job ad, when its job came into its state."""
    if fact.origin is not condor.Origin.AD:
        return fact.at
    return next((at for name in STATE_TIMES if (at := _time(fact.values, name))), fact.at)


def _time(values: Mapping[str, str], name: str) -> Nanos | None:
    return time_of_seconds(whole(values.get(name, "").partition(".")[0])) or None


def _exit_of(values: Mapping[str, str]) -> CondorExit:
    signal = values.get("TerminatedBySignal", "")
    if not signal and values.get("ExitBySignal", "").lower() == "true":
        signal = values.get("ExitSignal", "")
    return CondorExit("" if signal else values.get("ReturnValue", values.get("ExitCode", "")), signal)


def exit_before_retry(fact: condor.CondorFact) -> CondorExit | None:
    """How the program of a run ended after which the job is to run again; None for any other event."""
    is_retry = fact.what == "evicted" and fact.values.get("TerminatedAndRequeued", "false").lower() != "false"
    return _exit_of(fact.values) if is_retry else None


def host_of(values: Mapping[str, str]) -> str | None:
    """The execute host: after the slot's name, else the alias or address in what the event says."""
    for name in ("SlotName", "StartdName", "RemoteHost"):
        if (text := values.get(name)) and "@" in text:
            return text.rpartition("@")[2]
    address = values.get("ExecuteHost", "").strip("<> ")
    if not address:
        return None
    plain, _, query = address.partition("?")
    return next((part[6:] for part in query.split("&") if part.startswith("alias=")), "") or plain


def _ended(run: Run, fact: condor.CondorFact, life: CondorLife) -> Run:
    ended = (
        life.exit if fact.what in ("terminated", "ad", condor.END, condor.SIGNAL) else exit_before_retry(fact)
    )
    status = JobStatus.CANCELED
    if ended is not None:
        status = JobStatus.COMPLETED if life.is_good(ended) else JobStatus.FAILED
    elif fact.what in ("held", "shadow_exception"):
        status = JobStatus.FAILED
    said = (str(ended) if ended is not None and not life.is_good(ended) else "") or life.reason
    return msgspec.structs.replace(
        run,
        status=status,
        native_status=fact.what,
        updated_at=fact.at,
        ended_at=fact.at,
        error=said or None if status is JobStatus.FAILED else None,
        message=said or None if status is not JobStatus.FAILED else None,
        host=run.host or life.host,
    )


CONDOR, JOBSUB = "condor", "jobsub"
NO_REASON = "no reason is given"


def job_of(job_id: JobId, life: CondorLife, source: str) -> Job:
    values, status = life.values, life.status
    failed = status is JobStatus.FAILED and life.exit is not None
    exe = values.get("JobsubCmd") or values.get("exe") or values.get("Cmd", "").rpartition("/")[2]
    message = alert = None
    if life.state == condor.REMOVED:
        message = life.reason or None
    elif life.lost and life.state in (condor.IDLE, condor.RUNNING):
        message = f"run {life.lost + 1}, after {life.lost} that did not end well"
    if life.state == condor.HELD:
        alert = f"held: {life.reason or NO_REASON}"
    elif life.gap is not None and life.state not in OVER:
        alert = "a part of its log is missing"
    elif life.is_disconnected and life.state == condor.RUNNING:
        alert = "its execute host is disconnected"
    return Job(
        id=job_id,
        system=JOBSUB if life.is_jobsub else CONDOR,
        status=status,
        native_status=life.state or "unknown",
        source=source,
        owner=values.get("Owner", ""),
        name=exe or None,
        app=values.get("Jobsub_Group", ""),
        queued_at=life.queued_at,
        started_at=next((run.started_at for run in reversed(life.runs)), None),
        updated_at=life.updated_at,
        ended_at=life.ended_at,
        runs=life.starts,
        message=message,
        error=str(life.exit) if failed else None,
        alert=alert,
        host=life.host,
        tags=f"DAGNodeName:{node}" if (node := values.get("DAGNodeName")) else "",
        trace=next(iter(life.traces), ""),
    )


def changes_of(job_id: JobId, turns: Iterable[StateTurn]) -> tuple[StateChange, ...]:
    """Changes of state; the id of one is its line, or its place where lines were not counted.

    What failed has the word for that: HTCondor calls it completed as well.
    """
    changes = []
    for fact, before, after in turns:
        if fact.at is None:
            continue
        values, detail = fact.values, dict[str, object](what=fact.what)
        if message := values.get("HoldReason") or values.get("Reason"):
            detail["message"] = message
        if after == condor.COMPLETED:
            status = values.get("ReturnValue") or values.get("status", "")
            signal = values.get("TerminatedBySignal") or values.get("signal", "")
            detail |= {name: text for name, text in (("returncode", status), ("signal", signal)) if text}
            if not (how := CondorExit(status, signal)).is_good:
                after, detail["message"] = FAILED, str(how)
        number = fact.line or fact.offset
        changes.append(StateChange(number, job_id, fact.at, before, after, fact.source, None, detail))
    return tuple(changes)
