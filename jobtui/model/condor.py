"""Jobs of HTCondor and jobsub: states, kinds of events, what files say of a job piece by piece, and what
became of it by all of that: its row and its changes of state.

Attributes have the names of HTCondor's job ads and events
(https://htcondor.readthedocs.io/en/latest/classad-attributes/job-classad-attributes.html).

Events tell best what state a job is in; a job ad is as good as the time of its state. A job's own output
counts until these say that it is over: a worker has a clock of its own, and a job may run again.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from jobtui.model.changes import StateChange
from jobtui.model.clock import Nanos, time_of_seconds
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus, ReasonSeen, Run, statuses_of
from jobtui.model.logs import CondorFact, Origin
from jobtui.model.numbers import counted, whole
from jobtui.model.state_runs import FAILED
from jobtui.model.tables import tables_of

IDLE, RUNNING, HELD = "IDLE", "RUNNING", "HELD"
COMPLETED, REMOVED, SUSPENDED = "COMPLETED", "REMOVED", "SUSPENDED"
TRANSFERRING = "TRANSFERRING_OUTPUT"

AD_STATES: Mapping[str, str] = tables_of("jobtui.model", "states")["ad"]
"""JobStatus of a job ad, in the words of condor_q."""

LOST = frozenset({"evicted", "shadow_exception", "reconnect_failed"})
"""Events by which a run ends before its job does."""
BEGIN, END, SIGNAL = "begin_execution", "completed", "signal"
"""Shapes of the lines that jobsub's wrapper writes into a job's output."""
TRACEPARENT = "TraceParent"
LOG_GAP = "log_gap"
"""That a part of a log was gone before it was read, or cannot be read. Such a fact may name no job."""
AD_EVENT = "ad_information"
"""The event that follows any other with attributes of the job."""
UNKNOWN_EVENT = "unknown_event"
"""An event of a kind that HTCondor got later: it may have changed the job's state."""
MACHINES = "slots"
"""What the ads of all slots of a pool say together: in `values` of `name=literal` which slots have that.

Slots are numbered in the order of their ads, and written `0-41,43-43`. A literal is as `literals` of
`formats.condor_events` has it, "" also where it is one of too many.
"""

STATUSES = statuses_of("condor")
OVER = frozenset({COMPLETED, REMOVED})
AFTER_RUNS = OVER | {HELD}


class EventKind(NamedTuple):
    """One kind of event: its name here, its words, and the state it brings a job into, None for none."""

    name: str
    words: str
    state: str | None = None


_KINDS = tables_of("jobtui.model", "condor")["events"]
EVENTS: Mapping[int, EventKind] = {whole(number, 0): EventKind(*kind) for number, kind in _KINDS.items()}
"""By the number in event logs."""
STATE_OF: Mapping[str, str] = {kind.name: kind.state for kind in EVENTS.values() if kind.state is not None}
NEVER_AFTER: Mapping[str, Sequence[str]] = tables_of("jobtui.model", "condor")["never_after"]
"""Of an event the events that change a state of which none is the last before it, if the log is whole."""
STATE_OF_LINE: Mapping[str, str] = {BEGIN: RUNNING, END: COMPLETED, SIGNAL: COMPLETED}
STATE_TIMES = ("EnteredCurrentStatus", "CompletionDate", "JobCurrentStartDate", "JobStartDate", "QDate")
"""Attributes of a job ad that tell since when it is in its state, best first."""
REASONS: Mapping[str, str] = {HELD: "HoldReason", REMOVED: "RemoveReason"}
"""Attributes that say why a job is in a state, beside `Reason`."""
SIGNALLED = 255
"""What jobsub's wrapper exits with when a signal ended it."""


class StateTurn(NamedTuple):
    """A change of a job's state, and which file reported it."""

    fact: CondorFact
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

    def __init__(self, facts: Iterable[CondorFact]) -> None:
        self.state = ""
        self.turns: list[StateTurn] = []
        self.runs: list[Run] = []
        self.exit: CondorExit | None = None
        self.exits: dict[Origin, CondorExit] = {}
        self.reason = ""
        self.hold_code = ""
        self.counts: dict[str, int] = {}
        self.values: dict[str, str] = {}
        self.traces: dict[str, CondorFact] = {}
        self.queued_at: Nanos | None = None
        self.updated_at: Nanos | None = None
        self.ended_at: Nanos | None = None
        self.host: str | None = None
        self.is_jobsub = False
        self.is_disconnected = False
        self.gap: CondorFact | None = None
        """A part of a log that was not read or understood, and nothing that came after it."""
        self.unknown_word = ""
        """The JobStatus of its newest ad as written, where jobtui does not know it and no state followed."""
        self._is_reported = False
        for fact in facts:
            self.take(fact)

    @property
    def starts(self) -> int:
        return max(self.counts.get("execute", 0), min(1, self.counts.get(BEGIN, 0)), len(self.runs))

    @property
    def lost(self) -> int:
        return sum(run.native_status in LOST for run in self.runs)

    @property
    def status(self) -> JobStatus:
        status = STATUSES.get(self.state, JobStatus.UNKNOWN)
        if status is JobStatus.COMPLETED and self.exit is not None and not self.is_good(self.exit):
            return JobStatus.FAILED
        return status

    def is_good(self, end: "CondorExit") -> bool:
        success = self.values.get("JobSuccessExitCode")
        return end.is_good if success is None or end.signal else end.status == success

    def take(self, fact: CondorFact) -> None:
        """Let one more fact hold, which comes after all that were taken."""
        self.counts[fact.what] = self.counts.get(fact.what, 0) + 1
        if fact.at is not None:
            self.updated_at = max(fact.at, self.updated_at or fact.at)
        self._learn_origin(fact)
        self.values.update(fact.values)
        if fact.origin is Origin.OUTPUT:
            self._take_line(fact)
        elif fact.origin is not Origin.SUBMIT:
            self._is_reported = True
            if fact.what != AD_EVENT:
                self.gap = fact if fact.what in (LOG_GAP, UNKNOWN_EVENT) else None
            (self._take_event if fact.origin is Origin.EVENT else self._take_ad)(fact)

    def merge_event(self, fact: CondorFact) -> None:
        """Add to an event what another file says of it; it happened once."""
        self._learn_origin(fact)
        self.values = {**fact.values, **self.values}

    def _learn_origin(self, fact: CondorFact) -> None:
        if (trace := fact.values.get(TRACEPARENT)) is not None:
            self.traces.setdefault(trace, fact)
        self.is_jobsub = self.is_jobsub or is_of_jobsub(fact)

    def _take_event(self, fact: CondorFact) -> None:
        if fact.what in ("disconnected", "reconnected"):
            self.is_disconnected = fact.what == "disconnected"
        if fact.what == "submit" and self.queued_at is None:
            self.queued_at = fact.at
        if (host := host_of(fact.values)) is not None:
            self.host = host
        if fact.what == "terminated":
            self.exit = self.exits[fact.origin] = _exit_of(fact.values)
        if (state := STATE_OF.get(fact.what)) is not None:
            self._turn(fact, state)

    def _take_ad(self, fact: CondorFact) -> None:
        values = fact.values
        self.queued_at = self.queued_at or _time(values, "QDate")
        self.host = host_of(values) or self.host
        word = values.get("JobStatus", "")
        state = AD_STATES.get(word)
        self.unknown_word = word if state is None else ""
        if state == COMPLETED and (ended := _exit_of(values)) != CondorExit():
            self.exits[fact.origin] = ended
            self.exit = ended if self.exit is None or self.state != state else self.exit
        if state is not None and state != self.state:
            self._turn(fact, state)

    def _take_line(self, fact: CondorFact) -> None:
        if fact.what == END:
            self.exits[fact.origin] = CondorExit(status=fact.values.get("status", ""))
        elif fact.what == SIGNAL:
            self.exits[fact.origin] = CondorExit(str(SIGNALLED), fact.values.get("signal", ""))
        elif fact.what.startswith("submitted") and not self.state:
            self._turn(fact, IDLE)
        if self._is_reported and self.state in OVER:
            return
        if (state := STATE_OF_LINE.get(fact.what)) is not None and state != self.state:
            self.exit = self.exits.get(fact.origin, self.exit)
            self._turn(fact, state)

    def _turn(self, fact: CondorFact, state: str) -> None:
        self.unknown_word = ""
        if state == self.state and (state in OVER or self.turns[-1].fact.origin is Origin.AD):
            # reported twice, and better this time
            self.turns[-1] = self.turns[-1]._replace(fact=fact)
            self.ended_at = fact.at if state in OVER else None
            return
        self.turns.append(StateTurn(fact, self.state, state))
        self.reason = fact.values.get(REASONS.get(state, "")) or fact.values.get("Reason", "")
        self.hold_code = fact.values.get("HoldReasonCode", "")
        if state == RUNNING and self.state != SUSPENDED:
            queued_at, host = self.runs[-1].ended_at if self.runs else self.queued_at, host_of(fact.values)
            self.runs.append(Run(
                number=len(self.runs) + 1, status=JobStatus.RUNNING, native_status=RUNNING,
                queued_at=queued_at, started_at=fact.at, updated_at=fact.at, host=host,
            ))  # fmt: skip
            self.is_disconnected = False
            self.exit = None
        elif self.runs and self.runs[-1].ended_at is None and state in (IDLE, HELD, *OVER):
            self.runs[-1] = _ended(self.runs[-1], fact, self)
        self.ended_at = fact.at if state in OVER else None
        self.state = state


def is_of_jobsub(fact: CondorFact) -> bool:
    if fact.origin is Origin.OUTPUT:
        return True
    for name in fact.values:  # noqa: SIM110 - asked of every fact, and `any` takes twice as long
        if name.startswith("Jobsub"):
            return True
    return False


def time_of(fact: CondorFact) -> Nanos | None:
    """When a fact came to be: of a job ad, when its job came into its state."""
    if fact.origin is not Origin.AD:
        return fact.at
    return next((at for name in STATE_TIMES if (at := _time(fact.values, name))), fact.at)


def submitted_at(fact: CondorFact) -> Nanos | None:
    """When its job was submitted, by the event of that or a job ad."""
    if fact.origin is Origin.AD:
        return _time(fact.values, "QDate")
    return fact.at if fact.what == "submit" else None


def reason_in(ad: CondorFact) -> ReasonSeen | None:
    """Why a job waits by its ad, and since when; "" where it does not wait. None where the ad has no time."""
    state = AD_STATES.get(ad.values.get("JobStatus", ""), "")
    rejected = ad.values.get("LastRejMatchReason", "").strip() if state == IDLE else ""
    why = ad.values.get("HoldReason", "") if state == HELD else rejected
    at = (_time(ad.values, "LastRejMatchTime") if rejected else None) or time_of(ad)
    words = f"{state}: {why}" if why else state
    is_waiting = STATUSES.get(state) is JobStatus.PENDING
    return None if at is None else ReasonSeen(JobId(ad.job), at, words if is_waiting else "")


def _time(values: Mapping[str, str], name: str) -> Nanos | None:
    return time_of_seconds(whole(values.get(name, "").partition(".")[0])) or None


def _exit_of(values: Mapping[str, str]) -> CondorExit:
    signal = values.get("TerminatedBySignal", "")
    if not signal and values.get("ExitBySignal", "").lower() == "true":
        signal = values.get("ExitSignal", "")
    return CondorExit("" if signal else values.get("ReturnValue", values.get("ExitCode", "")), signal)


def exit_before_retry(fact: CondorFact) -> CondorExit | None:
    """How the program of a run ended after which the job is to run again; None for any other event."""
    is_retry = fact.what == "evicted" and fact.values.get("TerminatedAndRequeued", "false").lower() != "false"
    return _exit_of(fact.values) if is_retry else None


def host_of(values: Mapping[str, str]) -> str | None:
    """The execute host: after the slot's name, else the alias or address in what the event says."""
    for name in ("SlotName", "StartdName", "RemoteHost"):
        if (text := values.get(name)) and "@" in text:
            return text.rpartition("@")[2]
    plain, _, query = values.get("ExecuteHost", "").strip("<> ").partition("?")
    return next((part[6:] for part in query.split("&") if part.startswith("alias=")), "") or plain or None


def _ended(run: Run, fact: CondorFact, life: CondorLife) -> Run:
    ended = life.exit if fact.what in ("terminated", "ad", END, SIGNAL) else exit_before_retry(fact)
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
    exe = values.get("JobsubCmd") or values.get("exe") or values.get("Cmd", "").rpartition("/")[2]
    message = alert = None
    if life.state == REMOVED:
        message = life.reason or None
    elif life.lost and life.state in (IDLE, RUNNING):
        message = f"run {life.lost + 1}, after {counted(life.lost, 'lost run')}"
    if life.state == HELD:
        alert = f"held: {life.reason or NO_REASON}"
    elif life.unknown_word:
        alert = f'its JobStatus is "{life.unknown_word}"'
    elif life.gap is not None and life.state not in OVER:
        alert = "a part of its log is missing"
    elif life.is_disconnected and life.state == RUNNING:
        alert = "its execute host is disconnected"
    return Job(
        id=job_id,
        system=JOBSUB if life.is_jobsub else CONDOR,
        status=status,
        native_status=life.unknown_word or life.state or "unknown",
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
        error=str(life.exit) if status is JobStatus.FAILED else None,
        alert=alert,
        host=life.host,
        tags=f"DAGNodeName:{node}" if (node := values.get("DAGNodeName")) else "",
        trace=next(iter(life.traces), ""),
    )


def changes_of(job_id: JobId, life: CondorLife, turns: Iterable[StateTurn]) -> tuple[StateChange, ...]:
    """Changes of state; the id of one is its line, or its offset where lines were not counted.

    What failed has the word for that: HTCondor calls it completed as well.
    """
    changes = []
    for fact, before, after in turns:
        if fact.at is None:
            continue
        values, detail = fact.values, dict[str, object](what=fact.what)
        if message := values.get("HoldReason") or values.get("Reason"):
            detail["message"] = message
        if after == COMPLETED:
            status, signal = _exit_of(values)
            how = CondorExit(status or values.get("status", ""), signal or values.get("signal", ""))
            detail |= {name: text for name, text in zip(("returncode", "signal"), how, strict=True) if text}
            if how != CondorExit() and not life.is_good(how):
                after, detail["message"] = FAILED, str(how)
        number = fact.line or fact.offset
        changes.append(StateChange(number, job_id, fact.at, before, after, fact.source, None, detail))
    return tuple(changes)
