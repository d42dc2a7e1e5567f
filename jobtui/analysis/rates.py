"""Throughput, utilization, available nodes, jobs in each state and time in it, out of state changes.

Right, and honest about it: each run has its own weight, what began before the window counts, what goes on is
counted until now, and everything that had to be estimated is said in the notes of the series. Works for every
system that tells of state changes. `analysis.rates_exact` gives Balsam's own figures instead.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from statistics import quantiles
from typing import NamedTuple

from jobtui.analysis.series import Delta, Series, Window, accumulate
from jobtui.model.changes import Allocation, StateChange
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.ids import JobId

ONE_NODE = 1.0

ENDED_ALLOCATIONS = frozenset({"finished", "submit_failed"})
RUNNING_ALLOCATION = "running"


class Words(NamedTuple):
    """What a system calls the states that reports are about."""

    running: frozenset[str]
    done: str
    unborn: frozenset[str] = frozenset({""})


BALSAM = Words(frozenset({"RUNNING"}), "JOB_FINISHED", frozenset({"", "CREATED"}))
SIREPO = Words(frozenset({"running"}), "completed")


class Stay(NamedTuple):
    """A job in one state from one time to another; None where that is not known or not yet over.

    `is_reversed`: by its reporters' clocks it ended before it began, and both times are those of its end.
    `is_torn`: changes are missing behind it, so that it ended at some time before its end.
    """

    job_id: JobId
    state: str
    begin: Nanos | None
    end: Nanos | None
    nodes: float | None = None
    is_reversed: bool = False
    is_torn: bool = False


class StateTime(NamedTuple):
    """How long jobs stay in a state, in seconds; `stays` counts those that are over, `open` those not."""

    state: str
    stays: int
    open: int
    total_s: float
    p50_s: float
    p90_s: float
    longest_s: float


def throughput(changes: Iterable[StateChange], window: Window, to_state: str) -> Series:
    """How many jobs had reached a state since the beginning of the window; each job counts once."""
    first: dict[JobId, Nanos] = {}
    times_reached: Counter[JobId] = Counter()
    for change in changes:
        if change.after == to_state and window.clip(change.at) == change.at:
            times_reached[change.job_id] += 1
            first[change.job_id] = min(change.at, first.get(change.job_id, change.at))
    again = sum(1 for count in times_reached.values() if count > 1)
    notes = (f"{again} jobs reached {to_state} more than once and count once",) if again else ()
    x, y = accumulate(((at, 1.0) for at in first.values()), window)
    return Series(f"to {to_state}", "jobs", x, y, notes)


def utilization(
    changes: Iterable[StateChange],
    window: Window,
    now: Nanos,
    *,
    is_weighted: bool = True,
    running: frozenset[str] = BALSAM.running,
    nodes_of: Mapping[JobId, float] | None = None,
) -> Series:
    """How many nodes (jobs, when not weighted) run at each time.

    Give changes from before the window too. `nodes_of` gives the nodes of jobs whose changes do not tell.
    """
    estimates: Counter[str] = Counter()
    deltas: list[Delta] = []
    for stay in stays(changes, running):
        weight = _weight(stay, nodes_of or {}, estimates) if is_weighted else 1.0
        if stay.begin is None:
            estimates["{n} runs began before what is known: counted from the beginning"] += 1
        if stay.is_reversed:
            estimates["{n} runs ended before they began by their clocks: left out"] += 1
            continue
        if stay.is_torn:
            estimates["{n} runs have no known end: counted until the next change of their job"] += 1
        deltas.append((_begin(stay, window), weight))
        if stay.end is not None:
            deltas.append((stay.end, -weight))
    x, y = accumulate(deltas, _until_now(window, now))
    notes = tuple(note.format(n=count) for note, count in sorted(estimates.items()))
    return Series("utilization", "nodes" if is_weighted else "jobs", x, y, notes)


def available_nodes(allocations: Iterable[Allocation], window: Window, now: Nanos) -> Series:
    """How many nodes are allocated at each time; allocations that run count until now."""
    estimated = unknown = 0
    deltas: list[Delta] = []
    for one in allocations:
        is_over = one.end_at is not None or one.state in ENDED_ALLOCATIONS
        if one.start_at is None or (is_over and one.end_at is None):
            # One that waits has no nodes yet; of others it is not known when
            unknown += one.state in ENDED_ALLOCATIONS | {RUNNING_ALLOCATION} and one.state != "submit_failed"
            continue
        estimated += one.start_estimated
        deltas.append((one.start_at, one.nodes))
        if one.end_at is not None:
            deltas.append((max(one.start_at, one.end_at), -one.nodes))
    notes = []
    if estimated:
        notes.append(f"{estimated} allocations have an estimated start")
    if unknown:
        notes.append(f"{unknown} allocations without known times are left out")
    x, y = accumulate(deltas, _until_now(window, now))
    return Series("available nodes", "nodes", x, y, tuple(notes))


def jobs_per_state(
    changes: Iterable[StateChange],
    window: Window,
    now: Nanos,
    states: Collection[str] | None = None,
    unborn: frozenset[str] = BALSAM.unborn,
) -> tuple[Series, ...]:
    """How many jobs are in each state at each time, one series for a state, in the order states appear."""
    deltas: defaultdict[str, list[Delta]] = defaultdict(list)
    for stay in stays(changes, states):
        if stay.state in unborn:
            continue
        deltas[stay.state].append((_begin(stay, window), 1.0))
        if stay.end is not None:
            deltas[stay.state].append((stay.end, -1.0))
    clipped = _until_now(window, now)
    return tuple(Series(state, "jobs", *accumulate(of_state, clipped)) for state, of_state in deltas.items())


def time_in_states(
    changes: Iterable[StateChange], now: Nanos, unborn: frozenset[str] = BALSAM.unborn
) -> tuple[StateTime, ...]:
    """How long jobs stay in each state; a stay whose beginning is not known is not counted."""
    closed: defaultdict[str, list[float]] = defaultdict(list)
    still: defaultdict[str, list[float]] = defaultdict(list)
    for stay in stays(changes):
        if stay.begin is None or stay.state in unborn:
            continue
        if stay.end is None:
            still[stay.state].append(seconds_between(stay.begin, now))
        else:
            closed[stay.state].append(seconds_between(stay.begin, stay.end))
    states = dict.fromkeys([*closed, *still])
    return tuple(_state_time(state, closed[state], still[state]) for state in states)


def _state_time(state: str, closed: list[float], still: list[float]) -> StateTime:
    if not closed:
        return StateTime(state, 0, len(still), sum(still), 0.0, 0.0, max(still, default=0.0))
    cuts = quantiles(closed, n=10, method="inclusive") if len(closed) > 1 else closed * 9
    longest = max(*closed, *still)
    return StateTime(state, len(closed), len(still), sum(closed) + sum(still), cuts[4], cuts[8], longest)


def stays(changes: Iterable[StateChange], states: Collection[str] | None = None) -> Iterable[Stay]:
    """Each job's way from state to state, in these states only.

    The order in which the system learnt of changes counts, not the clocks of who reported them.
    """
    by_job: defaultdict[JobId, list[StateChange]] = defaultdict(list)
    for change in changes:
        by_job[change.job_id].append(change)
    for job_id, own in by_job.items():
        own.sort(key=_learnt)
        first, last = own[0], own[-1]
        if first.before and (states is None or first.before in states):
            yield Stay(job_id, first.before, None, first.at)
        for entered, left in pairwise(own):
            if states is None or entered.after in states:
                yield _stay(entered, left)
        if states is None or last.after in states:
            yield Stay(job_id, last.after, last.at, None, last.nodes)


def _stay(entered: StateChange, left: StateChange) -> Stay:
    is_reversed = left.at < entered.at
    begin = left.at if is_reversed else entered.at
    is_torn = left.before != entered.after
    return Stay(entered.job_id, entered.after, begin, left.at, entered.nodes, is_reversed, is_torn)


def _learnt(change: StateChange) -> int:
    return change.id


def _weight(stay: Stay, nodes_of: Mapping[JobId, float], estimates: Counter[str]) -> float:
    if stay.nodes is not None:
        return stay.nodes
    if stay.job_id in nodes_of:
        estimates["{n} runs do not say their nodes: those of the job now were taken"] += 1
        return nodes_of[stay.job_id]
    estimates["{n} runs do not say their nodes: 1 was taken"] += 1
    return ONE_NODE


def _begin(stay: Stay, window: Window) -> Nanos:
    """When a stay began; for one that began before what is known, where the window does, or not at all."""
    if stay.begin is not None:
        return stay.begin
    if window.since is not None:
        return window.since
    assert stay.end is not None
    return stay.end


def _until_now(window: Window, now: Nanos) -> Window:
    return Window(window.since, now if window.until is None else min(now, window.until))
