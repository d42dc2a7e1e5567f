"""Lines that name a job and may become part of an op: requests, the server's calls, other lines."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from jobtui.analysis.correlation.ops import OpTrack, line_key, step_of
from jobtui.model.bounded import Bounded
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId, jid_of_run_dir, split_jid
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Certainty, Step, Unlinked

JOBS_KEPT = 20_000
"""Jobs whose events are kept; those without news for the longest time are dropped first."""
EVENTS_KEPT = 100
MERE_CHECKS = frozenset({"sbatch_agent_ready"})
"""Ops that are created as a check, not assigned, and dropped. Their request then makes another op."""
NEAR = 3 * SECOND
"""How far a server's line and the supervisor's may be apart: two clocks, rounding, the transfer."""

T = TypeVar("T")
_JID, _ADJACENT = Certainty.JID, Certainty.ADJACENT


@dataclass(slots=True, eq=False)
class Events:
    """The events of one job. Lists and not deques: most are empty, and a deque takes ten times as much."""

    requests: list[tuple[LogRecord, ...]] = field(default_factory=list)
    calls: list[LogRecord] = field(default_factory=list)
    notes: list[LogRecord] = field(default_factory=list)
    unlinked: list[Unlinked] = field(default_factory=list)


_NOTHING = Events()


def _missing(theirs: Sequence[LogRecord], own: Sequence[LogRecord]) -> list[LogRecord]:
    known = set(map(line_key, own))
    return [record for record in theirs if line_key(record) not in known]


def _keep(events: list[T], event: T) -> None:
    events.append(event)
    del events[:-EVENTS_KEPT]


class JobEvents:
    """Lines that name a job and no op, by job, within bounds."""

    def __init__(self, changed: set[JobId]) -> None:
        self._jobs = Bounded[JobId, Events](JOBS_KEPT)
        self._changed = changed

    def _begun(self, jid: JobId) -> Events:
        events = self._jobs.get(jid)
        if events is None:
            events = self._jobs[jid] = Events()
        self._jobs.move_to_end(jid)
        self._changed.add(jid)
        return events

    def of(self, jid: JobId) -> Events:
        """The events of a job. Do not change them."""
        return self._jobs.get(jid, _NOTHING)

    def requested(self, record: LogRecord) -> None:
        """Keep a request until it makes an op. A request that names no job is not kept."""
        jid = record.fields["jid"] or ""
        if split_jid(jid) is None:
            return
        requests = self._begun(JobId(jid)).requests
        last = requests[-1][-1] if requests else None
        is_same = last is not None and last.shape == "request" and last.fields["api"] == record.fields["api"]
        if record.shape == "analysis_wanted" and is_same:  # about the request of the line before it
            _keep(requests, (*requests.pop(), record))
        else:
            _keep(requests, (record,))

    def claim_request(self, op: OpTrack, before: LogRecord | None) -> None:
        """Give an op its request: the line before it, else the newest one of its job.

        A cancel has a `runCancel` as its request, or none if a time limit makes it; its message names no api.
        """
        if before is not None and before.shape == "request" and before.fields["jid"] == "None":
            self._take(op, (before,), _ADJACENT)
            return
        events = self._jobs.get(op.jid) if op.jid else None
        if not events or not events.requests:
            return
        if (op.name == "cancel") != (events.requests[-1][-1].fields["api"] == "api_runCancel"):
            return
        request = events.requests[-1] if op.name in MERE_CHECKS else events.requests.pop()
        self._take(op, request, _JID)

    def _take(self, op: OpTrack, request: tuple[LogRecord, ...], certainty: Certainty) -> None:
        last = request[-1]
        op.called_api = last.fields["api"]
        if op.name != "cancel":
            op.api = op.called_api
        op.job_cmd = last.fields.get("job_cmd") or _JOB_CMDS.get(op.name)
        op.requested_at = request[0].at
        for record in request:
            op.add(record, certainty)

    def take_in(self, other: "JobEvents", placed: Callable[[JobId], Iterable[OpTrack]]) -> None:
        """Add events that are not known here. `placed` gives the ops of a job, whose lines are known."""
        self._jobs.put_before(other._jobs)
        for jid, theirs in other._jobs.items():
            own = self._jobs.get(jid, theirs)
            if own is theirs:
                continue
            known = {line_key(step) for op in placed(jid) for step in op.steps}
            known |= {line_key(one.step) for one in own.unlinked}
            known |= {line_key(record) for request in own.requests for record in request}
            own.calls[:0] = _missing(theirs.calls, own.calls)
            own.notes[:0] = _missing(theirs.notes, own.notes)
            own.unlinked[:0] = [one for one in theirs.unlinked if line_key(one.step) not in known]
            own.requests[:0] = [one for one in theirs.requests if line_key(one[0]) not in known]
            for kept in (own.calls, own.notes, own.unlinked, own.requests):
                del kept[:-EVENTS_KEPT]

    def called(self, record: LogRecord) -> None:
        if (jid := jid_of_run_dir(record.fields["run_dir"] or "")) is not None:
            _keep(self._begun(jid).calls, record)

    def noted(self, jid: JobId, record: LogRecord) -> None:
        """Keep a line about the polling of an sbatch run. The supervisor's copy of it is the same line."""
        notes = self._begun(jid).notes
        if not any(note.text == record.text and note.at == record.at for note in notes):
            _keep(notes, record)

    def keep(self, jid: JobId, record: LogRecord, why: str, step: str = "") -> None:
        _keep(self._begun(jid).unlinked, Unlinked(jid, step_of(record, Certainty.JID, step), why))

    def unlinked_of(self, jid: JobId) -> tuple[Unlinked, ...]:
        events = self.of(jid)
        waiting = (
            Unlinked(jid, step_of(r, Certainty.JID, "request"), "no op followed")
            for request in events.requests
            for r in request
        )
        return (*waiting, *events.unlinked)


_JOB_CMDS = {"run": "compute", "io": "download_run_file"}
"""The job_cmd of an op by its name, if the supervisor's lines do not say it."""


def place_calls(
    calls: Sequence[LogRecord], ops: list[OpTrack]
) -> tuple[dict[int, Step], tuple[LogRecord, ...]]:
    """The server's call of each op (by key), and the calls without an op.

    A call and the op's request name the same api and job. If both have times, the nearest within three
    seconds is taken; else they are paired in order, beginning with the newest.
    """
    placed: dict[int, Step] = {}
    left: list[LogRecord] = []
    for call in reversed(calls):
        api = call.fields["api"]
        open_ops = [op for op in ops if op.called_api == api and op.key not in placed]
        op = _nearest(call.at, open_ops)
        if op is None:
            left.append(call)
        else:
            exact = call.at is not None and op.requested_at is not None
            certainty = Certainty.JID if exact else Certainty.ADJACENT
            placed[op.key] = step_of(call, certainty, api or "")
    return placed, tuple(reversed(left))


def _nearest(at: Nanos | None, ops: list[OpTrack]) -> OpTrack | None:
    timed = [op for op in ops if op.requested_at is not None]
    if at is None or not timed:
        return ops[-1] if ops else None
    best = min(timed, key=lambda op: abs((op.requested_at or 0) - at))
    return best if abs((best.requested_at or 0) - at) <= NEAR else None
