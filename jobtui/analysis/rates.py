"""Throughput, utilization, available nodes, jobs in each state and time in it, out of state changes.

Right, and honest about it: each run has its own weight, what began before the window counts, what goes on is
counted until now, and everything that had to be estimated is said in the notes of the series. Works for every
system that tells of state changes. `analysis.rates_exact` gives Balsam's own figures instead.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import NamedTuple

from jobtui.analysis.moves import Key, Moves, Points
from jobtui.analysis.series import Delta, Series, Window, accumulate
from jobtui.analysis.turns import AT_ONCE, Turns, at_once, let_go_turns, sorted_turns
from jobtui.model.changes import Allocation, StateChange, in_order
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId

ONE_NODE = 1.0
JOBS_AT_ONCE = 512
"""Jobs whose changes are looked at in one turn."""
DONE, BUSY = "done", "busy"
"""What is summed up."""

ENDED_ALLOCATIONS = frozenset({"finished", "submit_failed"})
RUNNING_ALLOCATION = "running"


class Words(NamedTuple):
    """What a system calls the states that reports are about."""

    running: frozenset[str]
    done: str
    unborn: frozenset[str] = frozenset({""})
    waiting: frozenset[str] = frozenset()
    all_done: frozenset[str] = frozenset()
    """`done`, and what other systems call it that are looked at together."""


BALSAM = Words(
    frozenset({"RUNNING"}),
    "JOB_FINISHED",
    frozenset({"", "CREATED"}),
    frozenset({"AWAITING_PARENTS", "READY", "STAGED_IN", "PREPROCESSED", "RESTART_READY"}),
    frozenset({"JOB_FINISHED"}),
)
SIREPO = Words(
    frozenset({"running"}), "completed", waiting=frozenset({"pending"}), all_done=frozenset({"completed"})
)


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


Histories = Iterable[Sequence[StateChange]]
"""The changes of each job, at least one, in any order; no job comes twice."""


def by_job(changes: Iterable[StateChange]) -> Histories:
    """Changes of many jobs, job by job."""
    found: defaultdict[JobId, list[StateChange]] = defaultdict(list)
    for change in changes:
        found[change.job_id].append(change)
    return found.values()


def throughput(changes: Iterable[StateChange], window: Window, to_state: str) -> Series:
    """How many jobs had reached a state since the beginning of the window; each job counts once."""
    return at_once(throughput_turns(by_job(changes), window, to_state))


def throughput_turns(histories: Histories, window: Window, *to_states: str) -> Turns[Series]:
    """The same in short turns, and for several names of the state."""
    moves, again, wanted = Moves(window), 0, frozenset(to_states)
    done = moves.effect(DONE)
    for number, own in enumerate(histories):
        times = [one.at for one in own if one.after in wanted and window.clip(one.at) == one.at]
        if times:
            moves.add(min(times), done)
            again += len(times) > 1
        if number % JOBS_AT_ONCE == 0:
            yield
    name = " or ".join(to_states)
    notes = (f"{again} jobs reached {name} more than once and count once",) if again else ()
    x, y = _points((yield from moves.sum_turns()), DONE)
    return Series(f"to {name}", "jobs", x, y, notes)


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
    weigh = Weights(nodes_of or {}) if is_weighted else None
    return at_once(utilization_turns(by_job(changes), window, now, running, weigh))


class Weights:
    """How many nodes runs take, and how often that had to be guessed."""

    def __init__(self, nodes_of: Mapping[JobId, float]) -> None:
        self._nodes_of = nodes_of
        self.estimates: Counter[str] = Counter()

    def of(self, stay: Stay) -> float:
        """The nodes of one run."""
        if stay.nodes is not None:
            return stay.nodes
        if stay.job_id in self._nodes_of:
            self.estimates["{n} runs do not say their nodes: those of the job now were taken"] += 1
            return self._nodes_of[stay.job_id]
        self.estimates["{n} runs do not say their nodes: 1 was taken"] += 1
        return ONE_NODE


def utilization_turns(
    histories: Histories, window: Window, now: Nanos, running: frozenset[str], weights: Weights | None = None
) -> Turns[Series]:
    """The same in short turns; without weights jobs are counted."""
    estimates: Counter[str] = Counter()
    moves = Moves(_until_now(window, now))
    for number, own in enumerate(histories):
        for stay in _stays_of(own, running):
            weight = weights.of(stay) if weights else 1.0
            if stay.begin is None:
                estimates["{n} runs began before what is known: counted from the beginning"] += 1
            if stay.is_reversed:
                estimates["{n} runs ended before they began by their clocks: left out"] += 1
                continue
            if stay.is_torn:
                estimates["{n} runs have no known end: counted until the next change of their job"] += 1
            moves.add(_begin(stay, window), moves.effect(BUSY, None, weight))
            if stay.end is not None:
                moves.add(stay.end, moves.effect(None, BUSY, weight))
        if number % JOBS_AT_ONCE == 0:
            yield
    x, y = _points((yield from moves.sum_turns()), BUSY)
    estimates.update(weights.estimates if weights else {})
    notes = tuple(note.format(n=count) for note, count in sorted(estimates.items()))
    return Series("utilization", "nodes" if weights else "jobs", x, y, notes)


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
        what = "allocation has" if estimated == 1 else "allocations have"
        notes.append(f"{estimated} {what} an estimated start")
    if unknown:
        what = "allocation without known times is" if unknown == 1 else "allocations without known times are"
        notes.append(f"{unknown} {what} left out")
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
    found = at_once(jobs_per_state_turns(by_job(changes), window, now, unborn))
    return found if states is None else tuple(one for one in found if one.name in states)


def jobs_per_state_turns(
    histories: Histories, window: Window, now: Nanos, unborn: frozenset[str]
) -> Turns[tuple[Series, ...]]:
    """The same in short turns, every state."""
    moves = Moves(_until_now(window, now))
    for number, own in enumerate(histories):
        _move_along(moves, in_order(own), unborn, window.since)
        if number % JOBS_AT_ONCE == 0:
            yield
    sums = yield from moves.sum_turns()
    return tuple(Series(str(state), "jobs", *points) for state, points in sums.items())


def _move_along(
    moves: Moves, own: Sequence[StateChange], unborn: frozenset[str], since: Nanos | None
) -> None:
    """The moves of one job from state to state."""
    state: str | None = own[0].before
    if not state or state in unborn:
        state = None
    else:
        moves.add(own[0].at if since is None else since, moves.effect(state))
    for change, after in zip_longest(own, own[1:]):
        entered = None if change.after in unborn else change.after
        if after is None or after.at >= change.at:
            moves.add(change.at, moves.effect(entered, state))
        else:
            # By its reporters' clocks it left before it came
            moves.add(change.at, moves.effect(None, state))
            moves.add(after.at, moves.effect(entered))
        state = entered


def within_turns(histories: Histories, window: Window, now: Nanos, states: frozenset[str]) -> Turns[Series]:
    """How many jobs are in any of some states at each time."""
    moves = Moves(_until_now(window, now))
    comes, goes = moves.effect(BUSY), moves.effect(None, BUSY)
    for number, own in enumerate(histories):
        is_in, at = own[0].before in states, window.since
        if is_in and at is not None:
            moves.add(at, comes)
        else:
            is_in = False
        for change in in_order(own):
            # A clock that is behind must not let a job leave before it came
            at = change.at if at is None else max(at, change.at)
            if (change.after in states) is not is_in:
                moves.add(at, goes if is_in else comes)
                is_in = not is_in
        if number % JOBS_AT_ONCE == 0:
            yield
    x, y = _points((yield from moves.sum_turns()), BUSY)
    return Series(" or ".join(sorted(states)), "jobs", x, y)


def time_in_states(
    changes: Iterable[StateChange], now: Nanos, unborn: frozenset[str] = BALSAM.unborn
) -> tuple[StateTime, ...]:
    """How long jobs stay in each state; a stay whose beginning is not known is not counted."""
    return at_once(time_in_states_turns(by_job(changes), now, unborn))


def time_in_states_turns(
    histories: Histories, now: Nanos, unborn: frozenset[str]
) -> Turns[tuple[StateTime, ...]]:
    """The same in short turns."""
    closed: defaultdict[str, list[int]] = defaultdict(list)
    still: defaultdict[str, list[int]] = defaultdict(list)
    for number, own in enumerate(histories):
        ordered = in_order(own)
        for entered, left in pairwise(ordered):
            if entered.after not in unborn:
                closed[entered.after].append(max(0, left.at - entered.at))
        last = ordered[-1]
        if last.after not in unborn:
            still[last.after].append(now - last.at)
        if number % JOBS_AT_ONCE == 0:
            yield
    times = []
    for state in dict.fromkeys([*closed, *still]):
        lengths = yield from sorted_turns(closed[state])
        times.append((yield from _state_time_turns(state, lengths, still[state])))
        for numbers in (lengths, closed[state], still[state]):
            yield from let_go_turns(numbers)
    return tuple(times)


def _state_time_turns(state: str, closed: Sequence[int], still: Sequence[int]) -> Turns[StateTime]:
    """`closed` is sorted; both are in nanoseconds."""
    total, longest = 0, max(closed[-1:], default=0)
    for numbers in (closed, still):
        for start in range(0, len(numbers), 4 * AT_ONCE):
            part = numbers[start : start + 4 * AT_ONCE]
            total, longest = total + sum(part), max(longest, *part)
            yield
    p50, p90 = (_quantile(closed, tenths) for tenths in (5, 9)) if closed else (0.0, 0.0)
    return StateTime(
        state, len(closed), len(still), total / SECOND, p50 / SECOND, p90 / SECOND, longest / SECOND
    )


def _quantile(ordered: Sequence[int], tenths: int) -> float:
    """What so many tenths are not above; between two of them in proportion, the ends included."""
    place, rest = divmod(tenths * (len(ordered) - 1), 10)
    above = ordered[min(place + 1, len(ordered) - 1)]
    return (ordered[place] * (10 - rest) + above * rest) / 10


def stays(changes: Iterable[StateChange], states: Collection[str] | None = None) -> Iterable[Stay]:
    """Each job's way from state to state, in these states only.

    The order in which the system learnt of changes counts, not the clocks of who reported them.
    """
    for own in by_job(changes):
        yield from _stays_of(own, states)


def _stays_of(own: Sequence[StateChange], states: Collection[str] | None) -> Iterator[Stay]:
    own = in_order(own)
    first, last = own[0], own[-1]
    job_id = first.job_id
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


def _points(sums: Mapping[Key, Points], key: Key) -> Points:
    return sums.get(key) or Points([], [])


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
