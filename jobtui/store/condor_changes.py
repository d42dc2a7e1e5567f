"""How the state of a job of HTCondor changed, as charts and timelines have it."""

from collections.abc import Iterable

from jobtui.model.changes import StateChange
from jobtui.model.clock import Nanos
from jobtui.model.condor import COMPLETED
from jobtui.model.condor_life import Exit, Turn
from jobtui.model.ids import JobId
from jobtui.model.state_runs import FAILED


def changes_of(job_id: JobId, turns: Iterable[Turn]) -> tuple[StateChange, ...]:
    """The changes of state whose time is known."""
    return tuple(_change(job_id, turn, at) for turn in turns if (at := turn.fact.at) is not None)


def _change(job_id: JobId, turn: Turn, at: Nanos) -> StateChange:
    """A change of state; its id is its line, or its place where lines were not counted.

    What failed has the word for that: HTCondor calls it completed as well.
    """
    fact = turn.fact
    values, after = fact.values, turn.after
    detail: dict[str, object] = {"what": fact.what}
    if message := values.get("HoldReason") or values.get("Reason"):
        detail["message"] = message
    if after == COMPLETED:
        status = values.get("ReturnValue") or values.get("status", "")
        signal = values.get("TerminatedBySignal") or values.get("signal", "")
        detail |= {name: text for name, text in (("returncode", status), ("signal", signal)) if text}
        if not (how := Exit(status, signal)).is_good:
            after, detail["message"] = FAILED, str(how)
    return StateChange(fact.line or fact.offset, job_id, at, turn.before, after, fact.source, None, detail)
