import pytest

from jobtui.analysis.correlate import Correlator
from jobtui.backends.base import Batch
from jobtui.model.clock import FixedClock, Nanos
from jobtui.model.health import Skip, SourceState
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobStatus
from jobtui.store.store import SKIPS_KEPT, Changes, Store
from tests.builders import a_job, an_op
from tests.fakes import FakeCorrelation

JOB = a_job()


def a_store() -> tuple[Store, list[Changes]]:
    store = Store(Correlator(), FixedClock(Nanos(1_000)))
    store.add_source(JOB.source, "sirepo_db")
    told: list[Changes] = []
    store.subscribe(told.append)
    return store, told


def test_a_job_is_told_once_however_often_it_is_applied() -> None:
    store, told = a_store()
    batch = Batch(cursor="1", jobs=(JOB,), count=1)
    assert store.apply(JOB.source, batch).jobs == {JOB.id}
    assert store.apply(JOB.source, batch).jobs == frozenset()
    assert [changes.jobs for changes in told] == [{JOB.id}]
    assert store.job(JOB.id) == JOB


def test_a_job_is_gone_only_when_its_own_source_says_so() -> None:
    store, _ = a_store()
    store.add_source("other", "sirepo_db")
    store.apply(JOB.source, Batch(cursor="1", jobs=(JOB,)))
    assert store.apply("other", Batch(cursor="1", gone=(JOB.id,))).gone == frozenset()
    assert store.apply(JOB.source, Batch(cursor="2", gone=(JOB.id,))).gone == {JOB.id}
    assert store.job(JOB.id) is None


def test_a_failed_source_keeps_what_it_gave_and_says_why() -> None:
    store, told = a_store()
    store.apply(JOB.source, Batch(cursor="1", jobs=(JOB,), count=1))
    store.fail(JOB.source, "is not there")
    (health,) = store.sources()
    assert (health.state, health.error, health.records) == (SourceState.DOWN, "is not there", 1)
    assert told[-1].sources
    assert store.job(JOB.id) == JOB
    told.clear()
    store.fail(JOB.source, "is not there")
    assert told == []
    store.apply(JOB.source, Batch(cursor="2"))
    assert store.sources()[0].state is SourceState.OK


def test_skipped_input_is_all_counted_and_some_of_it_named() -> None:
    store, _ = a_store()
    skips = tuple(Skip(f"file {number}", "torn") for number in range(SKIPS_KEPT + 5))
    store.apply(JOB.source, Batch(cursor="1", skipped=skips, skip_count=100))
    (health,) = store.sources()
    assert (health.state, health.skipped, len(health.last_skips)) == (SourceState.PARTIAL, 100, SKIPS_KEPT)
    assert health.last_skips[-1] == skips[-1]
    store.apply(JOB.source, Batch(cursor="2", recovered=100))
    assert store.sources()[0].state is SourceState.OK


def test_changes_together_let_the_later_one_decide() -> None:
    first, second = JobId("a"), JobId("b")
    came = Changes(frozenset({first, second}))
    went = Changes(frozenset(), frozenset({first}))
    assert (came | went) == Changes(frozenset({second}), frozenset({first}))
    assert (went | came) == Changes(frozenset({first, second}))


def test_a_listener_that_left_hears_nothing() -> None:
    store, _ = a_store()
    heard: list[Changes] = []
    store.subscribe(heard.append)()
    store.apply(JOB.source, Batch(cursor="1", jobs=(a_job(status=JobStatus.FAILED),)))
    assert heard == []


def test_a_snapshot_stays_as_it_was() -> None:
    correlation = FakeCorrelation([an_op("run", jid=JOB.id)])
    store = Store(correlation, FixedClock(Nanos(1_000)))
    store.add_source(JOB.source, "sirepo_db")
    store.apply(JOB.source, Batch(cursor="1", jobs=(JOB,)))
    still = store.snapshot()
    correlation.put(JOB.id, an_op("analysis", jid=JOB.id))
    store.apply(JOB.source, Batch(cursor="2", gone=(JOB.id,)))
    store.fail(JOB.source, "is not there")
    assert [op.name for op in still.correlation.ops_of(JOB.id)] == ["run"]
    assert [op.name for op in still.correlation.ops()] == ["run"]
    assert still.job(JOB.id) == JOB
    assert still.sources()[0].state is SourceState.OK
    with pytest.raises(RuntimeError, match="takes in nothing"):
        still.correlation.feed(())
