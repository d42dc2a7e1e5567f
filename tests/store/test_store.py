import pytest

from jobtui.analysis.correlate import Correlator
from jobtui.backends.base import Batch
from jobtui.model.clock import FixedClock, Nanos
from jobtui.model.health import Skip, SourceState
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobStatus
from jobtui.store.condor_book import CondorBook
from jobtui.store.store import SKIPS_KEPT, Changes, Store
from tests.builders import a_job, an_op
from tests.condor import JOB as CONDOR_JOB
from tests.condor import facts_of, submitted
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


def test_what_another_store_knows_is_known_of_jobs_out_of_files_too() -> None:
    stores = [a_store()[0] for _ in range(2)]
    for store, file in zip(stores, ("old.log", "new.log"), strict=True):
        store.add_source(file, "condor_log")
        store.apply(file, Batch(cursor="1", condor=tuple(facts_of(submitted().encode(), file))))
    stores[0].become(stores[1])
    detail = stores[0].detail(JobId(CONDOR_JOB))
    assert detail is not None
    assert detail.path == "new.log"
    stores[0].become(a_store()[0])
    assert stores[0].detail(JobId(CONDOR_JOB)) is None


def test_jobs_out_of_files_that_are_let_go_of_are_gone_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CondorBook.__init__, "__defaults__", (3,))
    store, _ = a_store()
    store.add_source("a.log", "condor_log")
    facts = [facts_of(submitted(job=f"{number:03}.000.000").encode(), "a.log") for number in range(1, 9)]
    for known in facts:
        store.apply("a.log", Batch(cursor="1", condor=tuple(known)))
    assert 0 < len(store.jobs) <= 3
    assert all(store.detail(job_id) is not None for job_id in store.jobs)
    (of_files,) = [one for one in store.sources() if one.name == "a.log"]
    assert "facts let go of" in (of_files.note or "")


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
