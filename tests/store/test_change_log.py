"""State changes in the order of time, each once, within a bound."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.model.changes import StateChange
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId
from jobtui.store import change_log
from jobtui.store.change_log import ChangeLog


def change(number: int, at: int, job: int = 1, source: str = "b") -> StateChange:
    return StateChange(number, JobId(f"balsam/{job}"), Nanos(at), "READY", "RUNNING", source)


numbers = st.integers(0, 30)
changes = st.builds(
    lambda number, at, source: change(number, at, number % 3, source),
    numbers,
    st.integers(0, 20),
    st.sampled_from("ab"),
)


def key(one: StateChange) -> tuple[str, int, int]:
    return one.source, one.id, one.at


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(changes, max_size=8), max_size=8))
def test_whatever_the_batches_it_is_in_order_and_complete(batches: list[list[StateChange]]) -> None:
    log = ChangeLog()
    first: dict[tuple[str, int, int], StateChange] = {}
    for batch in batches:
        new = {key(one) for one in batch} - set(first)
        for one in batch:
            first[key(one)] = first.get(key(one), one)
        assert log.add(batch) == {first[name].job_id for name in new}
    kept = list(log.all())
    assert kept == sorted(first.values(), key=lambda one: (one.at, one.id, one.source))
    for job in {one.job_id for one in kept}:
        assert sorted(map(key, log.of_job(job))) == sorted(key(one) for one in kept if one.job_id == job)


def test_what_is_far_older_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    log = ChangeLog()
    log.add([change(number, number) for number in range(100, 4_000)])
    looked_at: list[StateChange] = []
    order = change_log._order

    def counted(one: StateChange) -> object:
        looked_at.append(one)
        return order(one)

    monkeypatch.setattr(change_log, "_order", counted)
    log.add([change(number, number, job=2) for number in (5, 3_000)])
    assert 0 < len(looked_at) < 100


def test_a_stretch_of_time_has_both_its_ends() -> None:
    log = ChangeLog()
    log.add([change(number, at) for number, at in enumerate((10, 20, 30, 40))])
    assert [one.at for one in log.between(Nanos(20), Nanos(30))] == [20, 30]
    assert [one.at for one in log.between(None, Nanos(10))] == [10]
    assert [one.at for one in log.between(Nanos(31), None)] == [40]


def test_the_oldest_are_let_go_and_counted() -> None:
    log = ChangeLog(most=100)
    log.add([change(number, number, job=1 if number < 5 else 2) for number in range(105)])
    assert len(log) <= 100
    assert log.dropped == 105 - len(log)
    assert log.all()[0].at == log.dropped
    assert log.of_job(JobId("balsam/1")) == ()
    assert len(log.of_job(JobId("balsam/2"))) == len(log)
    assert log.histories() == [tuple(log.all())]


def test_what_was_let_go_does_not_come_back() -> None:
    log = ChangeLog(most=10)
    log.add([change(number, number) for number in range(12)])
    assert log.add([change(0, 0)]) == set()
    assert log.add([change(99, 99)]) == {JobId("balsam/1")}
