"""Reports as they should be, and where and why they differ from Balsam's own."""

import json
from collections.abc import Iterable, Mapping

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.reports import rates, rates_exact
from jobtui.analysis.reports.curves import Series
from jobtui.backends.balsam import records
from jobtui.model.changes import StateChange
from jobtui.model.clock import Nanos, Window
from jobtui.model.ids import JobId, system_job_id
from tests.balsam_server import FOLDER, nanos, recorded
from tests.offenders import each
from tests.rows import ROWS

SECOND = 10**9
BEGAN = "before they started"
HOUR = nanos("2026-11-20T16:00:00")
NOW = Nanos(HOUR + 60 * SECOND)
LATE = nanos("2026-11-20T19:30:00")
EVER = Window()


def change_of(event: dict[str, object]) -> StateChange:
    return records.change_of(msgspec.convert(event, records.EventRow), "recorded", "balsam")


CASES: dict[str, list[StateChange]] = {
    case["case"]: [change_of(event) for event in case["events"]]
    for case in json.loads((FOLDER / "analytics_edge_cases.json").read_text())["cases"]
}


def seconds(series: Series) -> list[tuple[float, float]]:
    """Points as seconds after 16:00 and values."""
    return [((x - HOUR) / SECOND, y) for x, y in zip(series.x, series.y, strict=True)]


def busy(
    changes: Iterable[StateChange],
    window: Window,
    now: Nanos = NOW,
    nodes_of: Mapping[JobId, float] | None = None,
) -> Series:
    return rates.utilization(rates.by_job(changes), window, now, rates.BALSAM.running, nodes_of or {})


def change(
    number: int, at_s: float, before: str, after: str, job: int = 1, nodes: float | None = None
) -> StateChange:
    at = Nanos(HOUR + int(at_s * SECOND))
    return StateChange(number, system_job_id("balsam", job), at, before, after, "test", nodes)


@each(*ROWS["utilization of crafted cases"])
def test_utilization_of_crafted_cases(case: str, points: list[list[float]], note: str) -> None:
    series = busy(CASES[case], EVER)
    assert [[*one] for one in seconds(series)] == points
    assert note in " ".join(series.notes)
    assert bool(note) == bool(series.notes)
    assert (series.estimated > 0, series.left_out > 0) == (bool(note) and note != BEGAN, note == BEGAN)


def test_a_job_that_finished_twice_counts_once() -> None:
    exact = rates_exact.throughput(CASES["finished_twice"])
    series = rates.throughput([CASES["finished_twice"]], EVER, "JOB_FINISHED")
    assert (exact.y[-1], series.y[-1]) == (2, 1)
    assert series.notes == ("jobs that reached JOB_FINISHED more than once, counted once: 1",)


RUN = [change(1, 0, "READY", "RUNNING", nodes=4), change(2, 30, "RUNNING", "RUN_DONE")]
OUT_OF_ORDER = [
    change(1, 10, "READY", "RUNNING", nodes=1), change(2, 9, "RUNNING", "RUN_TIMEOUT"),
    change(3, 11, "RUN_TIMEOUT", "RUNNING", nodes=1), change(4, 20, "RUNNING", "RUN_DONE"),
]  # fmt: skip


@each(
    (RUN, 10, 20, [(10, 4)], []),  # what began before the window counts in it
    (RUN, 40, None, [(40, 0)], []),  # what ended before it does not
    # An end without a beginning counts from the beginning of the window
    (RUN[1:], 0, None, [(0, 3), (30, 0)],
     ["runs that started before the first record, counted from there: 1",
      "runs without a number of nodes, counted with that of the job: 1"]),
    # A missing end lasts until the next change
    ([RUN[0], change(3, 30, "RUN_DONE", "JOB_FINISHED")], None, None, [(0, 4), (30, 0)],
     ["without a known end"]),
    # The order of the system counts, not that of clocks
    (OUT_OF_ORDER, None, None, [(11, 1), (20, 0)], ["ended before they started, by their clocks"]),
)  # fmt: skip
def test_utilization_of_incomplete_records(
    changes: list[StateChange],
    since: int | None,
    until: int | None,
    points: list[tuple[float, float]],
    notes: list[str],
) -> None:
    edges = (None if at is None else Nanos(HOUR + at * SECOND) for at in (since, until))
    series = busy(changes, Window(*edges), nodes_of={system_job_id("balsam", 1): 3.0})
    assert seconds(series) == points
    assert len(series.notes) == len(notes)
    assert all(words in note for words, note in zip(notes, series.notes, strict=True))


def test_available_nodes_count_the_allocation_that_runs() -> None:
    allocations = [
        records.allocation_of(msgspec.convert(row, records.BatchJobRow), "recorded", ())
        for row in recorded("batch_jobs")
    ]
    exact = rates_exact.available_nodes(allocations)
    running = next(one for one in allocations if one.state == "running")
    left_out = rates.available_nodes(allocations, EVER, LATE)
    assert left_out.notes == ("1 allocation without known times is left out",)
    assert (left_out.estimated, left_out.left_out) == (0, 1)
    begun = msgspec.structs.replace(running, start_at=nanos("2026-11-20T19:00:00"), start_estimated=True)
    series = rates.available_nodes([*allocations, begun], EVER, LATE)
    assert series.y[-1] == exact.y[-1] + running.nodes
    assert "1 allocation has an estimated start" in series.notes


def test_jobs_per_state_add_up_to_all_jobs() -> None:
    changes = [change_of(event) for event in recorded("events")]
    series = rates.jobs_per_state(rates.by_job(changes), EVER, LATE, rates.BALSAM.unborn)
    assert series == rates.jobs_per_state([*rates.by_job(changes)][::-1], EVER, LATE, rates.BALSAM.unborn)
    held = {one.name: one.y[-1] for one in series if one.y[-1]}
    jobs = [str(job["state"]) for job in recorded("jobs")]
    assert held == {state: jobs.count(state) for state in set(jobs)}


def test_time_in_states() -> None:
    changes = [
        *(change(number, 0, "CREATED", "READY", job=number) for number in range(1, 5)),
        *(change(10 + number, number, "READY", "RUNNING", job=number, nodes=1) for number in range(1, 4)),
    ]
    ready, running = rates.time_in_states(rates.by_job(changes), NOW, rates.BALSAM.unborn)
    assert (ready.state, ready.stays, ready.open, ready.p50_s, ready.longest_s) == ("READY", 3, 1, 2.0, 60.0)
    assert (running.state, running.stays, running.open) == ("RUNNING", 0, 3)
    assert running.longest_s == 59.0


moves = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 50), st.booleans()), max_size=40)


@settings(max_examples=60, deadline=None)
@given(moves, st.integers(0, 50), st.integers(0, 50))
def test_utilization_is_what_counts_give(moves: list[tuple[int, int, bool]], since: int, length: int) -> None:
    state: dict[int, str] = {}
    changes = []
    for number, (job, at, runs) in enumerate(sorted(moves, key=lambda move: move[1])):
        after = "RUNNING" if runs else "READY"
        if state.get(job, "CREATED") != after:
            changes.append(change(number, at, state.get(job, "CREATED"), after, job, nodes=1))
            state[job] = after
    window = Window(Nanos(HOUR + since * SECOND), Nanos(HOUR + (since + length) * SECOND))
    series = busy(changes, window)
    for at in range(since, min(60, since + length) + 1):
        time = Nanos(HOUR + at * SECOND)
        last = {one.job_id: one.after for one in changes if one.at <= time}
        assert series.at(time) == sum(after == "RUNNING" for after in last.values())


@given(st.lists(st.integers(-(2**70), 2**70), max_size=300), st.integers(1, 8))
def test_ascending_gives_the_same_order_when_sorted_in_parts(values: list[int], at_once: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rates, "SORTED_AT_ONCE", at_once)
        assert rates.ascending([*values, 7, 7]) == sorted([*values, 7, 7])
