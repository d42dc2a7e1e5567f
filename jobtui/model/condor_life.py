"""What became of a job of HTCondor, by all that files say of it. Pure.

Events tell best what state a job is in; a job ad is as good as the time of its state. A job's own output
counts until these say that it is over: a worker has a clock of its own, and a job may run again.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from jobtui.model.clock import SECOND, Nanos
from jobtui.model.condor import (
    AD_STATES,
    BEGIN,
    COMPLETED,
    END,
    EVENTS,
    HELD,
    IDLE,
    LOST,
    REMOVED,
    RUNNING,
    SIGNAL,
    SUSPENDED,
    TRACEPARENT,
    TRANSFERRING,
)
from jobtui.model.condor_facts import CondorFact, Teller
from jobtui.model.jobs import JobStatus, Run

STATUSES: Mapping[str, JobStatus] = {
    "UNEXPANDED": JobStatus.PENDING,
    IDLE: JobStatus.PENDING,
    HELD: JobStatus.PENDING,
    RUNNING: JobStatus.RUNNING,
    SUSPENDED: JobStatus.RUNNING,
    TRANSFERRING: JobStatus.RUNNING,
    COMPLETED: JobStatus.COMPLETED,
    REMOVED: JobStatus.CANCELED,
}
"""What a job in each of HTCondor's states is doing."""
OVER = frozenset({COMPLETED, REMOVED})
STATE_OF: Mapping[str, str] = {kind.name: kind.state for kind in EVENTS.values() if kind.state is not None}
STATE_OF_LINE: Mapping[str, str] = {BEGIN: RUNNING, END: COMPLETED, SIGNAL: COMPLETED}
STATE_TIMES = ("EnteredCurrentStatus", "CompletionDate", "JobCurrentStartDate", "JobStartDate", "QDate")
"""Attributes of a job ad that tell since when it is in its state, best first."""
RUN_ENDS = LOST | {"held", "terminated", "aborted", END, SIGNAL}
SIGNALLED = 255
"""What jobsub's wrapper exits with when a signal ended it."""


class Turn(msgspec.Struct, frozen=True, gc=False):
    """A change of a job's state, and what told of it."""

    fact: CondorFact
    before: str
    after: str


class Exit(NamedTuple):
    """How a program ended: its status, or the signal that killed it, as they are written."""

    status: str = ""
    signal: str = ""

    @property
    def is_good(self) -> bool:
        """Whether it ended well."""
        return not self.signal and self.status in ("0", "")

    def __str__(self) -> str:
        return f"killed by signal {self.signal}" if self.signal else f"exit status {self.status or 'unknown'}"


class CondorLife:
    """A job, by its facts in order. `turns` are the changes of its state, `exit` is how it ended."""

    def __init__(self, facts: Iterable[CondorFact]) -> None:
        self.state = ""
        self.turns: list[Turn] = []
        self.runs: list[Run] = []
        self.exit: Exit | None = None
        self.said_exits: dict[Teller, Exit] = {}
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
        self._is_told = False
        for fact in facts:
            self.take(fact)

    @property
    def starts(self) -> int:
        """How often it began to run."""
        return max(self.counts.get("execute", 0), min(1, self.counts.get(BEGIN, 0)), len(self.runs))

    @property
    def lost(self) -> int:
        """How many runs ended before the job did."""
        return sum(self.counts.get(what, 0) for what in LOST)

    @property
    def status(self) -> JobStatus:
        """What it is doing, in words for every system."""
        status = STATUSES.get(self.state, JobStatus.UNKNOWN)
        if status is JobStatus.COMPLETED and self.exit is not None and not self.exit.is_good:
            return JobStatus.FAILED
        return status

    def take(self, fact: CondorFact) -> None:
        """Let one more fact hold, which is behind all that were taken."""
        self.counts[fact.what] = self.counts.get(fact.what, 0) + 1
        if fact.at is not None:
            self.updated_at = max(fact.at, self.updated_at or fact.at)
        if (trace := fact.values.get(TRACEPARENT)) is not None:
            self.traces.setdefault(trace, fact)
        self.is_jobsub = self.is_jobsub or is_of_jobsub(fact)
        self.values.update(fact.values)
        _TAKES[fact.teller](self, fact)

    def hear_again(self, fact: CondorFact) -> None:
        """Let an event that another file told before say what that did not; it happened once."""
        if (trace := fact.values.get(TRACEPARENT)) is not None:
            self.traces.setdefault(trace, fact)
        self.is_jobsub = self.is_jobsub or is_of_jobsub(fact)
        self.values = {**fact.values, **self.values}

    def take_event(self, fact: CondorFact) -> None:
        """Let an event of HTCondor's log hold."""
        self._is_told = True
        if fact.what in ("disconnected", "reconnected"):
            self.is_disconnected = fact.what == "disconnected"
        if fact.what == "submit" and self.queued_at is None:
            self.queued_at = fact.at
        if (host := host_of(fact.values)) is not None:
            self.host = host
        if fact.what == "terminated":
            self.exit = self.said_exits[fact.teller] = _exit_of(fact.values)
        if (state := STATE_OF.get(fact.what)) is not None:
            self._turn(fact, state)

    def take_ad(self, fact: CondorFact) -> None:
        """Let a job ad hold."""
        self._is_told = True
        values = fact.values
        self.queued_at = self.queued_at or _time(values, "QDate")
        self.host = host_of(values) or self.host
        state = AD_STATES.get(values.get("JobStatus", ""))
        if state == COMPLETED and (ended := _exit_of(values)) != Exit():
            self.said_exits[fact.teller] = ended
            self.exit = ended
        if state is not None and state != self.state:
            self._turn(fact, state)

    def take_line(self, fact: CondorFact) -> None:
        """Let a line of the job's own output hold."""
        if fact.what == END:
            self.said_exits[fact.teller] = Exit(status=fact.values.get("status", ""))
        elif fact.what == SIGNAL:
            self.said_exits[fact.teller] = Exit(str(SIGNALLED), fact.values.get("signal", ""))
        elif fact.what.startswith("submitted") and not self.state:
            self._turn(fact, IDLE)
        if self._is_told and self.state in OVER:
            return
        if fact.what == BEGIN and self.state == RUNNING:
            return
        if (state := STATE_OF_LINE.get(fact.what)) is not None and state != self.state:
            self.exit = self.said_exits.get(fact.teller, self.exit)
            self._turn(fact, state)

    def take_submission(self, fact: CondorFact) -> None:
        """A submit file changes nothing."""

    def _turn(self, fact: CondorFact, state: str) -> None:
        if state == self.state and state in OVER:  # told twice, and better this time
            self.turns[-1] = msgspec.structs.replace(self.turns[-1], fact=fact)
            self.ended_at = fact.at
            return
        self.turns.append(Turn(fact, self.state, state))
        self.reason = fact.values.get("HoldReason") or fact.values.get("Reason", "")
        self.hold_code = fact.values.get("HoldReasonCode", "")
        if state == RUNNING and self.state != SUSPENDED:
            self.runs.append(_run(len(self.runs) + 1, fact, self))
            self.is_disconnected = False
            self.exit = None
        elif self.runs and self.runs[-1].ended_at is None and state in (IDLE, HELD, *OVER):
            self.runs[-1] = _ended(self.runs[-1], fact, self)
        self.ended_at = fact.at if state in OVER else None
        if state == IDLE and fact.what == "submit":
            self.queued_at = self.queued_at or fact.at
        self.state = state


_TAKES: Mapping[Teller, Callable[[CondorLife, CondorFact], None]] = {
    Teller.EVENT: CondorLife.take_event,
    Teller.AD: CondorLife.take_ad,
    Teller.OUTPUT: CondorLife.take_line,
    Teller.SUBMIT: CondorLife.take_submission,
}


def is_of_jobsub(fact: CondorFact) -> bool:
    """Whether a fact shows that jobsub submitted the job."""
    if fact.teller is Teller.OUTPUT:
        return True
    for name in fact.values:  # noqa: SIM110 - asked of every fact, and `any` takes twice as long
        if name.startswith("Jobsub"):
            return True
    return False


def time_of(fact: CondorFact) -> Nanos | None:
    """When a fact came to be: of a job ad, when its job came into its state."""
    if fact.teller is not Teller.AD:
        return fact.at
    return next((at for name in STATE_TIMES if (at := _time(fact.values, name))), fact.at)


def _time(values: Mapping[str, str], name: str) -> Nanos | None:
    text = values.get(name, "").partition(".")[0]
    known = text.isascii() and text.isdigit() and len(text) < 11 and int(text) > 0
    return Nanos(int(text) * SECOND) if known else None


def _exit_of(values: Mapping[str, str]) -> Exit:
    """How a program ended, by the attributes of an event or of a job ad."""
    signal = values.get("TerminatedBySignal", "")
    if not signal and values.get("ExitBySignal", "").lower() == "true":
        signal = values.get("ExitSignal", "")
    return Exit("" if signal else values.get("ReturnValue", values.get("ExitCode", "")), signal)


def host_of(values: Mapping[str, str]) -> str | None:
    """The execute host: behind the slot's name, else the alias or address in what the event says."""
    for name in ("SlotName", "StartdName", "RemoteHost"):
        if (text := values.get(name)) and "@" in text:
            return text.rpartition("@")[2]
    address = values.get("ExecuteHost", "").strip("<> ")
    if not address:
        return None
    plain, _, query = address.partition("?")
    return next((part[6:] for part in query.split("&") if part.startswith("alias=")), "") or plain


def _run(number: int, fact: CondorFact, life: CondorLife) -> Run:
    return Run(
        number=number,
        status=JobStatus.RUNNING,
        native_status=RUNNING,
        queued_at=life.queued_at if number == 1 else life.runs[-1].ended_at,
        started_at=fact.at,
        updated_at=fact.at,
        host=host_of(fact.values),
    )


def _ended(run: Run, fact: CondorFact, life: CondorLife) -> Run:
    """A run that is over by what a fact says."""
    ended = life.exit if fact.what in ("terminated", "ad", END, SIGNAL) else None
    status = JobStatus.CANCELED
    if ended is not None:
        status = JobStatus.COMPLETED if ended.is_good else JobStatus.FAILED
    elif fact.what in ("held", "shadow_exception"):
        status = JobStatus.FAILED
    said = life.reason or (str(ended) if ended is not None and not ended.is_good else "")
    return Run(
        number=run.number,
        status=status,
        native_status=fact.what,
        queued_at=run.queued_at,
        started_at=run.started_at,
        updated_at=fact.at,
        ended_at=fact.at,
        error=said or None if status is JobStatus.FAILED else None,
        message=said or None if status is not JobStatus.FAILED else None,
        host=run.host or life.host,
    )
