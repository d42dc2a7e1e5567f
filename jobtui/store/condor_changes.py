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
    said = {"message": fact.values.get("HoldReason") or fact.values.get("Reason")}
    ended = {
        "returncode": fact.values.get("ReturnValue") or fact.values.get("status"),
        "signal": fact.values.get("TerminatedBySignal") or fact.values.get("signal"),
    }
    is_end = turn.after == COMPLETED
    detail = {"what": fact.what} | {n: text for n, text in (said | (ended if is_end else {})).items() if text}
    how = Exit(detail.get("returncode", ""), detail.get("signal", ""))
    after = turn.after
    if is_end and not how.is_good:
        after, detail["message"] = FAILED, str(how)
    number = fact.line or fact.offset
    return StateChange(number, job_id, at, turn.before, after, fact.source, None, dict(detail))
