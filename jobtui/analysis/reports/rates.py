"""Throughput, utilization, available nodes, jobs in each state and time in it, from state changes.

A move is one number: its time, and which of few effects it has, so the garbage collector ignores a million of
them. It may take seconds: screens compute in a thread.

Each run has its own weight, what began before the window counts, what still runs is counted until now, and
the notes of the series say what was estimated. Works for every system that reports state changes.
`rates_exact.py` gives Balsam's own figures instead.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import NamedTuple

from jobtui.analysis.reports.curves import DIGITS, Series
from jobtui.model.changes import ENDED_ALLOCATIONS, RUNNING, Allocation, StateChange, in_order
from jobtui.model.clock import SECOND, Nanos, Window
from jobtui.model.ids import JobId

SORTED_AT_ONCE = 8_192
"""How many numbers are sorted at once: a few milliseconds in which no other thread runs."""
EFFECT_BITS = 24
"""Bits of a move for its effect; above them is its time."""
_MASK = (1 << EFFECT_BITS) - 1

_BEFORE = Nanos(-(1 << 100))

Key = Hashable


class Points(NamedTuple):
    """A step function: y[i] holds from x[i] on."""

    x: list[Nanos]
    y: list[float]


def ascending(values: Sequence[int]) -> list[int]:
    """Numbers in ascending order, sorted in parts."""
    if len(values) <= SORTED_AT_ONCE or (low := min(values)) == (high := max(values)):
        return sorted(values)
    parts: list[list[int]] = [[] for _ in range(len(values) // SORTED_AT_ONCE + 2)]
    width = (high - low) // (len(parts) - 1) + 1
    for value in values:
        parts[(value - low) // width].append(value)
    return [value for part in parts for value in ascending(part)]


class Moves:
    """Collects the moves of one window. What comes before it counts from its beginning on."""

    def __init__(self, window: Window) -> None:
        self._since = window.since
        self._until = window.until
        self._index: dict[tuple[Key | None, Key | None, float], int] = {}
        self._moves: list[int] = []

    def effect(self, rises: Key | None, falls: Key | None = None, weight: float = 1.0) -> int:
        """The number, for `add`, of an effect: by how much one sum rises, and another falls."""
        return self._index.setdefault((rises, falls, weight), len(self._index))

    def add(self, at: Nanos, effect: int) -> None:
        if self._since is not None and at < self._since:
            at = self._since
        elif self._until is not None and at > self._until:
            return
        self._moves.append(at << EFFECT_BITS | effect)

    def sums(self) -> dict[Key, Points]:
        """Each sum over time, one point for each time at which it may change."""
        sums: dict[Key, Points] = defaultdict(lambda: Points([_BEFORE], [0.0]))
        changes = [
            [(sums[key], delta) for key, delta in ((rises, weight), (falls, -weight)) if key is not None]
            for rises, falls, weight in self._index
        ]
        for move in ascending(self._moves):
            at = Nanos(move >> EFFECT_BITS)
            for (x, y), delta in changes[move & _MASK]:
                if x[-1] == at:
                    y[-1] += delta
                else:
                    x.append(at)
                    y.append(y[-1] + delta)
        is_whole = not any(weight % 1 for _, _, weight in self._index)
        return {
            key: Points(x[1:], y[1:] if is_whole else [round(value, DIGITS) for value in y[1:]])
            for key, (x, y) in sums.items()
            if len(x) > 1
        }

    def points(self, key: Key) -> Points:
        return self.sums().get(key) or Points([], [])


ONE_NODE = 1.0
WITHOUT_NODES = "runs without a number of nodes, counted with {}: {{n}}"
REVERSED = "runs that ended before they started, by their clocks, left out: {n:,}"
DONE, BUSY = "done", "busy"


class Words(NamedTuple):
    running: frozenset[str]
    done: str
    unborn: frozenset[str] = frozenset({""})
    waiting: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()


BALSAM = Words(
    frozenset({"RUNNING"}),
    "JOB_FINISHED",
    frozenset({"", "CREATED"}),
    frozenset({"AWAITING_PARENTS", "READY", "STAGED_IN", "PREPROCESSED", "RESTART_READY"}),
    frozenset({"FAILED"}),
)
SIREPO = Words(
    frozenset({"running"}), "completed", waiting=frozenset({"pending"}), failed=frozenset({"failed"}),
)  # fmt: skip


class Stay(NamedTuple):
    """A job in a state from one time to another; None where that is not known or not yet over.

    `is_reversed`: by its reporters' clocks it ended before it began, and both times are those of its end.
    `is_torn`: changes are missing after it, so that it ended at some time before its end.
    """

    job_id: JobId
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
    p50_s: float
    p90_s: float
    longest_s: float


Histories = Iterable[Sequence[StateChange]]
"""The changes of each job, at least one, in any order; no job comes twice."""


def by_job(changes: Iterable[StateChange]) -> Histories:
    found: defaultdict[JobId, list[StateChange]] = defaultdict(list)
    for change in changes:
        found[change.job_id].append(change)
    return found.values()


def throughput(histories: Histories, window: Window, *to_states: str) -> Series:
    """How many jobs had reached a state since the beginning of the window; each job counts once."""
    moves, again, wanted = Moves(window), 0, frozenset(to_states)
    done = moves.effect(DONE)
    for own in histories:
        times = [one.at for one in own if one.after in wanted and window.holds(one.at)]
        if times:
            moves.add(min(times), done)
            again += len(times) > 1
    name = " or ".join(to_states)
    notes = (f"jobs that reached {name} more than once, counted once: {again}",) if again else ()
    x, y = moves.points(DONE)
    return Series(f"to {name}" if name else DONE, "jobs", x, y, notes)


def utilization(
    histories: Histories,
    window: Window,
    now: Nanos,
    running: frozenset[str],
    nodes_of: Mapping[JobId, float] | None = None,
) -> Series:
    """How many nodes run at each time, jobs without `nodes_of`; give changes from before the window too.

    `nodes_of` are those of jobs whose runs do not say it.
    """
    estimates: Counter[str] = Counter()
    moves = Moves(_until_now(window, now))
    for own in histories:
        for stay in stays_of(own, running):
            nodes = ONE_NODE if nodes_of is None else stay.nodes
            if nodes is None:
                known = (nodes_of or {}).get(stay.job_id)
                estimates[WITHOUT_NODES.format("1" if known is None else "that of the job")] += 1
                nodes = ONE_NODE if known is None else known
            if stay.begin is None:
                estimates["runs that started before the first record, counted from there: {n}"] += 1
            if stay.is_reversed:
                estimates[REVERSED] += 1
                continue
            if stay.is_torn:
                estimates["runs without a known end, counted until the next change of their job: {n}"] += 1
            moves.add(_begin(stay, window), moves.effect(BUSY, None, nodes))
            if stay.end is not None:
                moves.add(stay.end, moves.effect(None, BUSY, nodes))
    x, y = moves.points(BUSY)
    notes = tuple(note.format(n=count) for note, count in sorted(estimates.items()))
    left_out = estimates[REVERSED]
    guessed = estimates.total() - left_out
    return Series("utilization", "jobs" if nodes_of is None else "nodes", x, y, notes, guessed, left_out)


def available_nodes(allocations: Iterable[Allocation], window: Window, now: Nanos) -> Series:
    """How many nodes are allocated at each time; allocations that run count until now."""
    estimated = unknown = 0
    moves = Moves(_until_now(window, now))
    for one in allocations:
        is_over = one.end_at is not None or one.state in ENDED_ALLOCATIONS
        if one.start_at is None or (is_over and one.end_at is None):
            # One that waits has no nodes yet; of others it is not known when
            unknown += one.state in ENDED_ALLOCATIONS | {RUNNING} and one.state != "submit_failed"
            continue
        estimated += one.start_estimated
        moves.add(one.start_at, moves.effect(BUSY, None, one.nodes))
        if one.end_at is not None:
            moves.add(max(one.start_at, one.end_at), moves.effect(None, BUSY, one.nodes))
    notes = []
    if estimated:
        what = "allocation has" if estimated == 1 else "allocations have"
        notes.append(f"{estimated} {what} an estimated start")
    if unknown:
        what = "allocation without known times is" if unknown == 1 else "allocations without known times are"
        notes.append(f"{unknown} {what} left out")
    x, y = moves.points(BUSY)
    return Series("available nodes", "nodes", x, y, tuple(notes), estimated, unknown)


def jobs_per_state(
    histories: Histories, window: Window, now: Nanos, unborn: frozenset[str]
) -> tuple[Series, ...]:
    """How many jobs are in each state at each time, one series for a state, in the order states appear."""
    moves = Moves(_until_now(window, now))
    for own in sorted(histories, key=lambda own: (own[0].at, own[0].job_id)):
        _move_along(moves, own, lambda state: None if state in unborn else state, window.since)
    sums = moves.sums()
    return tuple(Series(str(state), "jobs", *points) for state, points in sums.items())


def within(histories: Histories, window: Window, now: Nanos, states: frozenset[str]) -> Series:
    """How many jobs are in one of these states at each time."""
    moves = Moves(_until_now(window, now))
    for own in histories:
        _move_along(moves, own, lambda state: BUSY if state in states else None, window.since)
    return Series(" or ".join(sorted(states)), "jobs", *moves.points(BUSY))


def _move_along(
    moves: Moves, own: Sequence[StateChange], sum_of: Callable[[str], Key | None], since: Nanos | None
) -> None:
    """Move a job from sum to sum as it changes its state; None is that of states that do not count."""
    own = in_order(own)
    left = sum_of(own[0].before) if own[0].before else None
    if left is not None:
        moves.add(own[0].at if since is None else since, moves.effect(left))
    for change, after in zip_longest(own, own[1:]):
        entered = sum_of(change.after)
        if entered == left:
            continue
        if after is None or after.at >= change.at:
            moves.add(change.at, moves.effect(entered, left))
        else:
            # By its reporters' clocks it left before it entered
            moves.add(change.at, moves.effect(None, left))
            moves.add(after.at, moves.effect(entered))
        left = entered


def time_in_states(histories: Histories, now: Nanos, unborn: frozenset[str]) -> tuple[StateTime, ...]:
    """How long jobs stay in each state; a stay whose beginning is not known is not counted."""
    closed: defaultdict[str, list[int]] = defaultdict(list)
    still: defaultdict[str, list[int]] = defaultdict(list)
    for own in histories:
        ordered = in_order(own)
        for entered, left in pairwise(ordered):
            if entered.after not in unborn:
                closed[entered.after].append(max(0, left.at - entered.at))
        last = ordered[-1]
        if last.after not in unborn:
            still[last.after].append(now - last.at)
    found = []
    for state in dict.fromkeys([*closed, *still]):
        over, going_on = ascending(closed[state]), still[state]  # in nanoseconds
        p50, p90 = (_quantile(over, tenths) for tenths in (5, 9)) if over else (0.0, 0.0)
        longest = max((*over[-1:], *going_on), default=0)
        seconds = (one / SECOND for one in (p50, p90, longest))
        found.append(StateTime(state, len(over), len(going_on), *seconds))
    return tuple(found)


def _quantile(ordered: Sequence[int], tenths: int) -> float:
    """The value that this many tenths do not exceed, interpolated between two values."""
    index, rest = divmod(tenths * (len(ordered) - 1), 10)
    above = ordered[min(index + 1, len(ordered) - 1)]
    return (ordered[index] * (10 - rest) + above * rest) / 10


def stays_of(own: Sequence[StateChange], states: Collection[str]) -> Iterator[Stay]:
    """The stays of a job in these states.

    The order in which the system learnt of changes counts, not the clocks of who reported them.
    """
    own = in_order(own)
    first, last = own[0], own[-1]
    job_id = first.job_id
    if first.before in states:
        yield Stay(job_id, None, first.at)
    for entered, left in pairwise(own):
        if entered.after in states:
            is_reversed = left.at < entered.at
            begin = left.at if is_reversed else entered.at
            is_torn = left.before != entered.after
            yield Stay(job_id, begin, left.at, entered.nodes, is_reversed, is_torn)
    if last.after in states:
        yield Stay(job_id, last.at, None, last.nodes)


def _begin(stay: Stay, window: Window) -> Nanos:
    """When a stay began. If that is not known, the begin of the window; without one, the end of the stay."""
    if stay.begin is not None:
        return stay.begin
    if window.since is not None:
        return window.since
    assert stay.end is not None
    return stay.end


def _until_now(window: Window, now: Nanos) -> Window:
    return Window(window.since, now if window.until is None else min(now, window.until))
