"""The events of a job as a timeline: an op for each of its runs, a step for each change of state.

For systems that keep such events, or whose records tell of them, and that write no lines of their own about
messages: Balsam, Slurm, HTCondor.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from jobtui.model.changes import StateChange
from jobtui.model.clock import seconds_between
from jobtui.model.condor_ids import condor_id
from jobtui.model.ids import OpPrefix, numbered
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.ops import Certainty, Component, Op, OpStatus, Step
from jobtui.model.slurm import SYSTEM as SLURM
from jobtui.model.state_runs import FAILED, FAILURES, RUN_ERROR, RUNNING, by_run, error_of

BY_LAUNCHER = frozenset({RUNNING, "RUN_DONE", RUN_ERROR, "RUN_TIMEOUT"})
BY_SERVER = frozenset({"", "CREATED", "AWAITING_PARENTS", "READY", "STAGED_IN"})
RESULTS: Mapping[str, str] = {
    "RUN_DONE": "completed",
    "JOB_FINISHED": "completed",
    "RUN_TIMEOUT": "canceled",
    RUN_ERROR: "error",
    FAILED: "error",
    **{state: "error" for state in FAILURES},
    "COMPLETED": "completed",
    "CANCELLED": "canceled",
    "REMOVED": "canceled",
    "HELD": "error",
}
"""How a run ended, by the state that followed it, in the words of ops."""
LOST = "IDLE"
"""The state into which a job of HTCondor comes back when its run was lost."""
BY_CONDOR: Mapping[str, Component] = {
    "execute": Component.EXECUTE,
    "terminated": Component.EXECUTE,
    "evicted": Component.EXECUTE,
    "begin_execution": Component.JOB,
    "completed": Component.JOB,
    "signal": Component.JOB,
}
"""Who tells of an event of HTCondor; of all others its queue does."""
RETURN_CODE = "returncode"


def ops_of_changes(job: Job | None, changes: Iterable[StateChange]) -> tuple[Op, ...]:
    """An op for each run, oldest first. `job` tells whether the last goes on."""
    runs = by_run(changes)
    before: StateChange | None = None
    ops: list[Op] = []
    for number, run in enumerate(runs, 1):
        is_last = number == len(runs)
        ops.append(_op(number, run, before, job, is_open=is_last and (job is None or job.status.is_live)))
        before = run[-1]
    return tuple(ops)


def is_of_states(op: Op) -> bool:
    """Whether an op stands for a run known by its states, and not for messages."""
    return op.key < 0


def _op(
    number: int, run: Sequence[StateChange], before: StateChange | None, job: Job | None, *, is_open: bool
) -> Op:
    left = [change for change in run if _is_end(change)]
    errors = [text for change in run if (text := error_of(change)) is not None]
    start = next((change for change in run if change.after == RUNNING), None)
    befores = chain((before,), run)
    result = RESULTS.get(left[-1].after, "canceled") if left else None
    return Op(
        key=-number,
        op=OpPrefix(f"#{number}"),
        name="run",
        status=_status(run, is_open=is_open),
        jid=run[0].job_id,
        uid=job.owner if job else None,
        result=None if is_open else result or (job.status.value if job else None),
        error=errors[-1] if errors and result == "error" else None,
        created_at=run[0].at,
        sent_at=None if start is None else start.at,
        replied_at=left[0].at if left else None,
        ended_at=None if is_open else run[-1].at,
        certainty=Certainty.JID,
        steps=tuple(_step(change, earlier) for change, earlier in zip(run, befores, strict=False)),
    )


def _is_end(change: StateChange) -> bool:
    """Whether a run ended with a change."""
    return change.after in RESULTS or (change.before == RUNNING and change.after == LOST)


def _status(run: Sequence[StateChange], *, is_open: bool) -> OpStatus:
    if not is_open:
        return OpStatus.ENDED
    # What runs tells nothing while it does; what waits can be said to wait since its last change
    return OpStatus.REPLIED if run[-1].after == RUNNING else OpStatus.WAITING


def _step(change: StateChange, before: StateChange | None) -> Step:
    """`line` is the number of the event."""
    return Step(
        step=_words(change),
        at=change.at,
        component=_component(change),
        text=_text(change, before),
        source=change.source,
        line=change.id,
        offset=change.id,
        certainty=Certainty.JID,
    )


def _component(change: StateChange) -> Component:
    """Who brings a job into a state."""
    if condor_id(change.job_id) is not None:
        return BY_CONDOR.get(str((change.detail or {}).get("what")), Component.SCHEDD)
    if (parts := numbered(change.job_id)) is not None and parts.system == SLURM:
        return Component.NODES if change.before == RUNNING else Component.SLURM
    if change.after in BY_LAUNCHER or (change.after == FAILED and change.before == RUNNING):
        return Component.LAUNCHER
    return Component.BALSAM if change.after in BY_SERVER else Component.SITE


def _words(change: StateChange) -> str:
    detail = change.detail or {}
    if change.after == RUNNING and change.nodes is not None:
        return f"{change.after} on {change.nodes:g} node{'s' * (change.nodes != 1)}"
    if change.after == RUN_ERROR and RETURN_CODE in detail:
        return f"{change.after}, return code {detail[RETURN_CODE]}"
    return change.after or JobStatus.UNKNOWN.value


def _text(change: StateChange, before: StateChange | None) -> str:
    """The event in one text: from where to where, after how long, and what it says."""
    since = ""
    if before is not None:
        since = f" after {seconds_between(before.at, change.at):.3f} s"
    detail = ", ".join(f"{name}: {value}" for name, value in (change.detail or {}).items())
    return f"{change.before} to {change.after}{since}{f'; {detail}' if detail else ''}"
