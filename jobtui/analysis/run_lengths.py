"""How long runs and their steps take here, out of earlier runs of the same model on the same driver."""

from collections.abc import Iterable

from jobtui.analysis.explain.flow import RUN_FLOW, Mark, mark_of
from jobtui.analysis.usual import usual_of
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.ops import Op
from jobtui.model.verdicts import Usual


def usual_steps(runs: Iterable[Op]) -> dict[Mark, Usual]:
    """How long each needed step takes from the one before it, by the mark at its end."""
    taken: dict[Mark, list[float]] = {}
    for run in runs:
        times = _times(run)
        for needed in RUN_FLOW:
            begin, end = times.get(needed.after), times.get(needed.mark)
            if begin is not None and end is not None and end >= begin:
                taken.setdefault(needed.mark, []).append(seconds_between(begin, end))
    return {mark: found for mark, seconds in taken.items() if (found := usual_of(seconds)) is not None}


def usual_length(runs: Iterable[Op]) -> Usual | None:
    """How long runs that end well take from their sending to their end."""
    return usual_of(
        [
            seconds_between(run.sent_at, run.ended_at)
            for run in runs
            if run.sent_at is not None
            and run.ended_at is not None
            and run.ended_at >= run.sent_at
            and run.result in (None, "completed", "ok")
        ]
    )


def _times(run: Op) -> dict[Mark, Nanos]:
    """When each step was first passed."""
    times: dict[Mark, Nanos] = {}
    for step in run.steps:
        mark = mark_of(step)
        if mark is not None and step.at is not None:
            times.setdefault(mark, step.at)
    return times
