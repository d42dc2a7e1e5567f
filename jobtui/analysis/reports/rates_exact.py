"""Throughput, utilization and available nodes exactly as Balsam's own `balsam.analytics` gives them.

Its faults are kept on purpose, so that the figures can be compared: it counts events and not jobs, gives
every end of a job's runs the weight of one of them, subtracts 1 for an end whose beginning was not asked for,
leaves out allocations without times, and fails on what it does not expect. `analysis.rates` does it right.

Source: balsam/analytics/*.py of Balsam 0.7.0a24, by what it answers.
"""

from collections.abc import Iterable, Sequence

from jobtui.analysis.reports.curves import Series
from jobtui.model.changes import Allocation, StateChange
from jobtui.model.clock import Nanos
from jobtui.model.state_runs import RUNNING

FINISHED = "JOB_FINISHED"

Delta = tuple[Nanos, float]


class ReportError(Exception):
    """The report cannot be made; the text says why, and what to do."""


def throughput(changes: Iterable[StateChange], to_state: str = FINISHED) -> Series:
    times = sorted(change.at for change in changes if change.after == to_state)
    return Series(f"to {to_state}", "events", times, [float(count) for count in range(1, len(times) + 1)])


def utilization(
    changes: Sequence[StateChange], *, is_weighted: bool = True, closing_state: str | None = None
) -> Series:
    """How many nodes (jobs, when not weighted) ran, by time; times may repeat.

    `closing_state` is a state asked for besides: Balsam applies it to the ends of runs alone. Raises
    ReportError where Balsam's own function raises.
    """
    opens = sorted((one for one in changes if one.after == RUNNING), key=lambda one: (-one.at, one.id))
    closes = [one for one in changes if one.before == RUNNING and closing_state in (None, one.after)]
    weights = {change.job_id: _nodes(change) for change in opens} if is_weighted else {}
    deltas: list[Delta] = [(change.at, _nodes(change) if is_weighted else 1.0) for change in opens]
    deltas += [(change.at, -weights.get(change.job_id, 1.0)) for change in closes]
    if not deltas:
        raise ReportError(
            "Balsam's own utilization fails when nothing ran: no change to or from RUNNING was found; "
            "widen the window, or leave out --exact"
        )
    return _summed("utilization", "nodes" if is_weighted else "jobs", deltas)


def available_nodes(allocations: Iterable[Allocation]) -> Series:
    """How many nodes were allocated, by time; only allocations whose beginning and end are known."""
    deltas: list[Delta] = []
    for one in allocations:
        if one.start_at is not None and one.end_at is not None and not one.start_estimated:
            deltas += [(one.start_at, one.nodes), (one.end_at, -one.nodes)]
    return _summed("available nodes", "nodes", deltas)


def _nodes(change: StateChange) -> float:
    if change.nodes is None:
        raise ReportError(
            f"Balsam's own utilization fails on event {change.id} of {change.job_id}: it does not say "
            "how many nodes; give --unweighted, or leave out --exact"
        )
    return change.nodes


def _summed(name: str, unit: str, deltas: list[Delta]) -> Series:
    deltas.sort()
    values: list[float] = []
    total = 0.0
    for _, delta in deltas:
        total += delta
        values.append(total)
    times: list[Nanos] = [time for time, _ in deltas]
    return Series(name, unit, times, values)
