"""Stores keep what sources say, in order and in bounds."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.correlation import EmptyCorrelation
from jobtui.analysis.correlation.correlator import Correlator
from jobtui.backends.base import Batch, next_delay
from jobtui.model.changes import StateChange
from jobtui.model.clock import FixedClock, Nanos
from jobtui.model.health import FAULTS, Skip, SourceState, SourceUnreachable
from jobtui.model.ids import JobId, TraceId
from jobtui.model.jobs import JobStatus, ReasonSeen
from jobtui.model.traces import Span, SpanLog
from jobtui.store import store as store_module
from jobtui.store.condor import CondorStore
from jobtui.store.poller import Poller, apply_in_parts
from jobtui.store.store import SKIPS_KEPT, ChangeLog, Changes, Store
from jobtui.store.traces import TraceStore
from tests.builders import a_job, an_op, some
from tests.condor import JOB as CONDOR_JOB
from tests.condor import facts_of, submitted
from tests.conftest import NOW
from tests.fakes import FakeCorrelation, ScriptedSource
from tests.tracing import SERVICE, TRACE_ID, a_span, span_id

JOB = a_job()


def a_store() -> tuple[Store, list[Changes]]:
    store = an_empty_store()
    store.add_source(JOB.source, "sirepo_db")
    told: list[Changes] = []
    store.subscribe(told.append)
    return store, told


def an_empty_store() -> Store:
    return Store(Correlator(), FixedClock(Nanos(1_000)))


def test_a_job_is_announced_once_and_leaves_only_when_its_own_source_says_so() -> None:
    store, told = a_store()
    batch = Batch(cursor="1", jobs=(JOB,), count=1)
    assert store.apply(JOB.source, batch).jobs == {JOB.id}
    assert store.apply(JOB.source, batch).jobs == frozenset()
    assert [changes.jobs for changes in told] == [{JOB.id}]
    assert store.job(JOB.id) == JOB
    store.add_source("other", "sirepo_db")
    assert store.apply("other", Batch(cursor="1", gone=(JOB.id,))).gone == frozenset()
    assert store.apply(JOB.source, Batch(cursor="2", gone=(JOB.id,))).gone == {JOB.id}
    assert store.job(JOB.id) is None


def test_reasons_are_kept_once_until_the_job_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MOST_REASONS", 2)
    store, _ = a_store()
    waits, runs = (a_job(status=status) for status in (JobStatus.PENDING, JobStatus.RUNNING))
    seen = tuple(ReasonSeen(JOB.id, Nanos(at), why) for at, why in enumerate("aabcc"))
    for _ in range(2):  # the same again changes nothing
        store.apply(JOB.source, Batch(jobs=(waits,), reasons=seen))
        assert [one.reason for one in store.reasons_of(JOB.id)] == ["b", "c"]
    store.apply(JOB.source, Batch(jobs=(runs,)))
    assert not store.reasons_of(JOB.id)


def test_another_reason_does_not_count_as_late_news() -> None:
    store, _ = a_store()
    for reason, at, count in (("Resources", 1, 0), ("Priority", 1, 0), ("Priority", 2, 1)):
        store.apply(JOB.source, Batch(cursor="1", jobs=(a_job(reason=reason, updated_at=Nanos(at)),)))
        assert len(store.sources()[0].news_late) == count


def test_a_store_that_becomes_another_knows_its_condor_jobs() -> None:
    stores = [a_store()[0] for _ in range(2)]
    for store, file in zip(stores, ("old.log", "new.log"), strict=True):
        store.add_source(file, "condor_log")
        store.apply(file, Batch(cursor="1", condor=tuple(facts_of(submitted().encode(), file))))
    stores[0].become(stores[1])
    detail = some(stores[0].detail(JobId(CONDOR_JOB)))
    assert detail.path == "new.log"
    stores[0].become(a_store()[0])
    assert stores[0].detail(JobId(CONDOR_JOB)) is None


def test_jobs_whose_facts_were_dropped_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CondorStore.__init__, "__defaults__", (3,))
    store, _ = a_store()
    store.add_source("a.log", "condor_log")
    facts = [facts_of(submitted(job=f"{number:03}.000.000").encode(), "a.log") for number in range(1, 9)]
    for known in facts:
        store.apply("a.log", Batch(cursor="1", condor=tuple(known)))
    assert 0 < len(store.jobs) <= 3
    assert all(store.detail(job_id) is not None for job_id in store.jobs)
    (of_files,) = [one for one in store.sources() if one.name == "a.log"]
    assert "facts dropped" in (of_files.note or "")


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


def test_the_longest_pause_between_news_fades() -> None:
    clock = FixedClock(NOW)
    store = Store(Correlator(), clock)
    store.add_source("/srv/db", "sirepo_db")
    store.apply("/srv/db", Batch(cursor="1", count=5))
    for pause in (1, 30, *[2] * 20):
        clock.advance(pause)
        store.apply("/srv/db", Batch(cursor="1", count=1))
    health = store.sources()[0]
    assert health.news == 22
    assert health.pause_s == pytest.approx(30 * 0.95**20)
    clock.advance(400)
    store.apply("/srv/db", Batch(cursor="1"))
    assert store.sources()[0].nothing_new_s(clock.now()) == 400


def test_the_later_of_two_changes_decides_and_former_listeners_are_not_called() -> None:
    first, second = JobId("a"), JobId("b")
    came = Changes(frozenset({first, second}))
    went = Changes(frozenset(), frozenset({first}))
    assert (came | went) == Changes(frozenset({second}), frozenset({first}))
    assert (went | came) == Changes(frozenset({first, second}))
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
    with pytest.raises(NotImplementedError):
        still.correlation.feed(())


async def test_a_source_that_cannot_wait_is_not_a_fault_of_jobtui(monkeypatch: pytest.MonkeyPatch) -> None:
    async def changed(timeout_s: float) -> None:
        raise SourceUnreachable("no thread can be started")

    source = ScriptedSource()
    monkeypatch.setattr(source, "changed", changed)
    await Poller(source, an_empty_store())._wait(0.0)
    assert not FAULTS.all()


@given(st.floats(0.01, 600), st.integers(0, 10_000))
def test_the_delay_grows_to_its_cap_and_not_beyond(period_s: float, failures: int) -> None:
    delay = next_delay(period_s, failures)
    assert period_s <= delay <= max(60.0, period_s)
    assert delay <= next_delay(period_s, failures + 1)


def change(number: int, at: int, job: int = 1, source: str = "b") -> StateChange:
    return StateChange(number, JobId(f"balsam/{job}"), Nanos(at), "READY", "RUNNING", source)


def span_of(trace: int, number: int = 1, message: str = "") -> Span:
    return msgspec.structs.replace(a_span(number, name=message or "s"), trace_id=TraceId(f"{trace:032x}"))


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
def test_the_change_log_is_ordered_and_complete_for_any_batches(batches: list[list[StateChange]]) -> None:
    log = ChangeLog()
    first: dict[tuple[str, int, int], StateChange] = {}
    for batch in batches:
        new = {key(one) for one in batch} - set(first)
        for one in batch:
            first[key(one)] = first.get(key(one), one)
        assert log.add(batch) == {first[name].job_id for name in new}
    kept = sorted(first.values(), key=lambda one: (one.at, one.id, one.source))
    assert len(log) == len(kept)
    for job in {one.job_id for one in kept}:
        assert log.of_job(job) == tuple(one for one in kept if one.job_id == job)


def test_an_old_change_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    log = ChangeLog()
    log.add([change(number, number) for number in range(100, 4_000)])
    looked_at: list[StateChange] = []
    order = store_module._order

    def counted(one: StateChange) -> object:
        looked_at.append(one)
        return order(one)

    monkeypatch.setattr(store_module, "_order", counted)
    log.add([change(number, number, job=2) for number in (5, 3_000)])
    assert 0 < len(looked_at) < 100


def test_the_oldest_changes_are_dropped_and_do_not_return() -> None:
    log = ChangeLog(most=100)
    log.add([change(number, number, job=1 if number < 5 else 2) for number in range(105)])
    assert 80 < len(log) <= 100
    assert log.of_job(JobId("balsam/1")) == ()
    assert [one.at for one in log.of_job(JobId("balsam/2"))] == list(range(105 - len(log), 105))
    assert (log.add([change(0, 0)]), log.add([change(199, 199)])) == (set(), {JobId("balsam/1")})


LOG = SpanLog(TRACE_ID, span_id(1), Nanos(5), "INFO", "hello", SERVICE)


def spans_in(book: TraceStore) -> list[Span]:
    return list(some(book.trace(TRACE_ID)).spans)


OPEN, ENDED = a_span(1, end=None), a_span(1)


@pytest.mark.parametrize(
    ("batches", "kept"),
    [([[OPEN, a_span(2)]] * 2, [OPEN, a_span(2)]), ([[ENDED] * 2] * 2, [ENDED] * 2),
     ([[OPEN], [ENDED]], [OPEN, ENDED])],
    ids=["the same twice", "a span that was sent twice", "another version"],
)  # fmt: skip
def test_spans_are_kept_as_they_were_sent(batches: list[list[Span]], kept: list[Span]) -> None:
    book = TraceStore()
    for batch in batches:
        book.add(batch, [LOG])
    trace = some(book.trace(TRACE_ID))
    assert (list(trace.spans), trace.logs) == (kept, (LOG,))


@pytest.mark.parametrize(
    ("spans", "left"),
    [([(1, 1), (2, 1), (3, 1), (4, 1)], [2, 3, 4]), ([(1, 1), (2, 1), (1, 2), (3, 1)], [1, 3])],
    ids=["the one that came first", "the one that has not grown for longest"],
)
def test_a_dropped_trace_is_counted(spans: list[tuple[int, int]], left: list[int]) -> None:
    book = TraceStore(most=3)
    for trace, number in spans:
        book.add([span_of(trace, number)], [])
    assert [int(trace_id, 16) for trace_id in book.ids()] == left
    assert book.dropped == 1


def test_traces_are_bounded_by_spans_and_by_memory_and_that_is_counted() -> None:
    book = TraceStore(most=3)
    book.add([a_span(n) for n in range(1, 10)], [LOG])
    assert (len(spans_in(book)), book.dropped, book.left_out) == (3, 0, 7)
    book.add([span_of(7)], [])
    assert (book.trace(TRACE_ID), book.dropped) == (None, 1)
    assert book.notice == (
        "1 of the traces dropped, the longest unchanged first and 7 spans of too large a trace left out: "
        "at most 3 spans and 256 MB are kept"
    )
    book = TraceStore(most_bytes=50_000)
    for number in range(1, 100):
        book.add([span_of(number, message="x" * 10_000)], [])
    assert (len(book.ids()), book.dropped) == (4, 95)


def test_a_span_with_rounded_times_is_the_one_that_is_known() -> None:
    fine, rough = a_span(1, start=1_999, end=5_500), a_span(1, start=1_000, end=4_000)
    for first, second in ((fine, rough), (rough, fine)):
        book = TraceStore()
        book.add([first], [])
        book.add([second], [])
        assert spans_in(book) == [fine], "whichever came first"
    book.add([a_span(1, start=3_000, end=4_000)], [])
    assert len(spans_in(book)) == 2


def test_the_trace_store_tells_changes_sources_and_times() -> None:
    book = TraceStore()
    assert book.add([a_span(1)], [], "file", Nanos(7)) == {TRACE_ID}
    assert book.add([a_span(1)], [], "server", Nanos(8)) == set()
    assert (book.changed_at(TRACE_ID), book.sources_of(TRACE_ID)) == (7, ("file", "server"))
    assert book.add([], [LOG], "file", Nanos(9)) == {TRACE_ID}
    assert (book.changed_at(TRACE_ID), book.size(TRACE_ID)) == (9, 2)


def test_sources_of_traces_say_what_was_dropped() -> None:
    store = Store(EmptyCorrelation(), FixedClock(NOW))
    store.traces = TraceStore(most=1)
    for name, kind in (("spans.json", "trace_file"), ("db", "sirepo_db")):
        store.add_source(name, kind)
    for number in (1, 2):
        store.apply("spans.json", Batch(spans=(span_of(number),), note="a file"))
    notes = [source.note for source in store.sources()]
    assert notes == [f"a file; {store.traces.notice}", None]


async def test_a_batch_of_many_spans_is_taken_in_a_part_at_a_time() -> None:
    store = Store(EmptyCorrelation(), FixedClock(NOW))
    store.add_source("spans.json", "trace_file")
    told: list[int] = []
    store.subscribe(lambda _: told.append(store.traces.size(TRACE_ID)))
    spans = (*(a_span(n) for n in range(1, 4_501)), a_span(1))
    await apply_in_parts(store, "spans.json", Batch(spans=spans, count=4_501))
    assert store.traces.size(TRACE_ID) == 4_501
    assert len(told) > 2
    assert store.sources()[0].records == 4_501
