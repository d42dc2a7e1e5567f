"""Jobs of HTCondor put together from what files say: captured ones, their order, zones, ids, bounds."""

import asyncio
import itertools
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from jobtui.backends.base import Batch
from jobtui.model.changes import StateChange
from jobtui.model.clock import FixedClock, Nanos, to_rfc3339
from jobtui.model.condor import TRACEPARENT
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail, JobStatus, Run
from jobtui.model.logs import CondorFact, Origin
from jobtui.store import condor as condor_book
from jobtui.store import poller
from jobtui.store import store as store_module
from jobtui.store.condor import CondorStore
from jobtui.store.poller import Poller
from jobtui.store.store import Store
from tests.builders import some
from tests.condor import CONDOR, JOB, book_of, event, executing, facts_in, facts_of, submitted
from tests.conftest import NOW
from tests.fakes import FakeCorrelation, ScriptedSource, changes_in
from tests.offenders import each
from tests.rows import table
from tests.tracing import CAPTURES

BEGIN = "Fri Nov 20 10:01:05 UTC 2026 7.0@jobsub02.fnal.gov BEGIN EXECUTION a.sh\n"
END = "Fri Nov 20 10:02:00 UTC 2026 a.sh COMPLETED with exit status {}\n"
ENDED = event(5, "2026-11-20 10:02:10Z", "Job terminated.", "(1) Normal termination (return value 3)")


class Known:
    """The jobs that a book told, as a store keeps them."""

    def __init__(self, most: int = condor_book.MOST_FACTS) -> None:
        self.book = CondorStore(most=most)
        self.jobs: dict[str, Job] = {}

    def hear(self, facts: Iterable[CondorFact]) -> None:
        news = self.book.add(facts)
        self.jobs.update((job.id, job) for job in news.jobs)
        for gone in news.gone:
            self.jobs.pop(gone, None)

    def all(self) -> dict[str, object]:
        book = self.book
        return {
            "jobs": self.jobs,
            "notice": book.notice,
            "traces": {name: book.traces_named_in(name) for name in _FILES},
            "told": {name: book.jobs_of_source(name) for name in _FILES},
            "details": {job_id: book.detail(job.id) for job_id, job in self.jobs.items()},
        }


def jobs_of(*groups: list[CondorFact]) -> dict[str, Job]:
    known = Known()
    for facts in groups:
        known.hear(facts)
    return known.jobs


def shown(at: int | None) -> str | None:
    return None if at is None else to_rfc3339(at)  # type: ignore[arg-type]


WORKERS = [f"worker{number}.example.org" for number in (17, 19, 20)]


def test_the_captured_jobs_are_as_they_were() -> None:
    files = ("cluster.log", "81419552.log", "job.ad")
    jobs = jobs_of(*(facts_in(CONDOR / name) for name in files))
    told = {
        job_id.partition("@")[0]: (job.system, job.status.value, job.runs, job.error or job.message, job.host)
        for job_id, job in jobs.items()
    }
    first = jobs["81422934.0@jobsub02.fnal.gov"]
    assert told == {
        "81422934.0": ("jobsub", "failed", 1, "killed by signal 9", first.host),
        "81422934.1": ("jobsub", "canceled", 2, "via condor_rm (by user osguser)", WORKERS[2]),
        "81419552.0": ("condor", "failed", 1, "exit status 2", WORKERS[0]),
    }
    assert (first.owner, first.name) == ("osguser", "test_trace.sh")
    assert first.trace == "2797255385ce5212c9cf3bdcfac11067"
    assert (shown(first.queued_at), shown(first.ended_at)) == ("2024-07-19T14:02:11Z", "2024-07-19T16:02:00Z")
    assert shown(jobs["81419552.0@jobsub02.fnal.gov"].ended_at) == "2024-07-19T04:22:29Z"
    assert jobs["81422934.1@jobsub02.fnal.gov"].native_status == "REMOVED"


def test_each_run_of_a_captured_job_ended_as_its_log_says() -> None:
    detail = detail_in(book_of(facts_in(CONDOR / "cluster.log"))[0], "81422934.1@jobsub02.fnal.gov")
    assert [(run.native_status, run.status, run.host) for run in detail.runs] == [
        ("held", JobStatus.FAILED, WORKERS[1]),
        ("evicted", JobStatus.CANCELED, WORKERS[2]),
    ]
    assert "812 megabytes" in (detail.runs[0].error or "")
    turns = ["", "IDLE", "RUNNING", "HELD", "IDLE", "RUNNING", "IDLE", "REMOVED"]
    assert [(change.before, change.after) for change in detail.changes] == [*itertools.pairwise(turns)]


def test_the_processes_of_a_cluster_are_jobs_of_their_own() -> None:
    outputs = [facts_in(path) for path in sorted(CAPTURES.glob("81430102.*.out"))]
    jobs = jobs_of(*outputs)
    assert {job_id: job.status.value for job_id, job in jobs.items()} == {
        f"81430102.{proc}@jobsub02.fnal.gov": "failed" if proc == 2 else "completed" for proc in range(4)
    }
    assert [job.trace for job in jobs.values() if job.trace] == ["6b0404f2b09490b86b01a1c12a3a2107"]


@each(*list(itertools.permutations(range(3))))
def test_a_job_is_the_same_in_any_order_of_files(order: tuple[int, ...]) -> None:
    groups = [
        facts_of((submitted() + executing() + ENDED).encode(), "a.log"),
        facts_of((BEGIN + END.format(3)).encode(), "job.out"),
        facts_of(b'ClusterId = 7\nProcId = 0\nOwner = "me"\nJobStatus = 2\nQDate = 1795168800\n', "q.ad"),
    ]
    (job,) = jobs_of(*(groups[at] for at in order)).values()
    assert (job.id, job.status, job.error) == (JOB, JobStatus.FAILED, "exit status 3")
    assert (job.owner, job.name, job.system) == ("me", "a.sh", "jobsub")


STATES = table("condor_states")


@each(*STATES)
def test_the_state_of_a_job(case: str) -> None:
    told, facts = STATES[case], facts_of(STATES[case]["log"].encode())
    (job,) = jobs_of(facts).values()
    assert (job.status, job.native_status, job.alert) == (told["status"], told["native"], told.get("alert"))
    last = [change.after for change in detail_in(book_of(facts)[0], job.id).changes][-1:]
    assert last != ["FAILED" if told["status"] == "completed" else "COMPLETED"], "as the job itself"


def test_a_late_line_of_a_worker_does_not_revive_an_ended_job() -> None:
    late = BEGIN.replace("10:01:05", "11:30:00")
    (job,) = jobs_of(facts_of((executing() + ENDED).encode(), "a.log"), facts_of(late.encode(), "o")).values()
    assert (job.native_status, job.error) == ("COMPLETED", "exit status 3")


HELD = event(12, "2026-11-20 10:01:00Z", "Job was held.")


@each(
    (2, 2, submitted() + executing(), "IDLE RUNNING"),
    (2, 2, submitted() + executing() + event(4, "2026-11-20 10:01:30Z", "Job was evicted.")
     + executing("2026-11-20 10:02:00Z"), "IDLE RUNNING IDLE RUNNING"),
    (5, 2, submitted() + HELD, "IDLE HELD"),
    (5, 2, submitted("2026-11-20 10:01:00Z"), "IDLE HELD"),
    (5, 0, submitted() + executing() + HELD, "IDLE RUNNING HELD"),
)  # fmt: skip
def test_an_ad_and_an_event_of_one_moment(state: int, latest_s: int, log: str, turns: str) -> None:
    """The ad has the second in which the job came into its state, the event often the next one."""
    for late_s, is_ad_first in itertools.product(range(latest_s + 1), (False, True)):
        at = 1795168800 + 60 * max(turns.count("RUNNING"), 1) - late_s
        ad = f"ClusterId = 7\nProcId = 0\nQDate = 1795168800\nJobStatus = {state}\n"
        ad += f"EnteredCurrentStatus = {at}\n"
        files = [facts_of(log.encode(), "log"), facts_of(ad.encode(), "ad")]
        detail = detail_in(book_of(*files[:: -1 if is_ad_first else 1])[0])
        assert [change.after for change in detail.changes] == turns.split()
        assert len(detail.runs) == turns.count("RUNNING")
        assert detail.job.native_status == turns.split()[-1]


def test_a_job_without_a_schedd_is_the_one_that_has_it_unless_two_do() -> None:
    ad = b"ClusterId = 7\nProcId = 0\nJobStatus = 1\n"
    book = CondorStore()
    assert [str(job.id) for job in book.add(facts_of(ad, "ad")).jobs] == ["7.0"]
    news = book.add(facts_of(submitted().encode(), "log"))
    assert [str(job.id) for job in news.jobs] == [JOB]
    assert (set(news.gone), len(book.facts_of(JobId(JOB)))) == ({JobId("7.0")}, 2)
    other = submitted().replace("jobsub02", "jobsub03")
    jobs = jobs_of(
        facts_of(submitted().encode(), "one"), facts_of(other.encode(), "two"),
        facts_of(b"ClusterId = 7\nProcId = 0\nJobStatus = 2\n", "ad"),
    )  # fmt: skip
    assert sorted(jobs) == ["7.0", "7.0@jobsub02.fnal.gov", "7.0@jobsub03.fnal.gov"]


async def test_a_job_without_a_schedd_is_one_at_each_site() -> None:
    store = Store(FakeCorrelation(), FixedClock(NOW))
    store.name_profiles({"es": "prod", "log": "hpc", "all": ""})
    for name, (source, text) in {
        "es": ("es sub1:/x", executing()), "log": ("log", executing() + ENDED), "all": ("all", executing())
    }.items():  # fmt: skip
        store.add_source(name, "condor_log")
        store.apply(name, Batch(condor=(*facts_of(text.encode(), source),)))
    states = {job.id: (store.profile_of(job.source), job.status) for job in store.jobs.values()}
    assert states == {
        "7.0@prod": ("prod", JobStatus.RUNNING), "7.0@hpc": ("hpc", JobStatus.FAILED),
        "7.0": ("", JobStatus.RUNNING),
    }  # fmt: skip
    store.apply("log", Batch(condor=(*facts_of(submitted().encode(), "log"),)))
    assert sorted(store.jobs) == [JOB, "7.0@prod"]


@pytest.mark.parametrize(
    "second",
    [
        event(5, "2026-11-20 04:02:00", "Job terminated.", "(1) Normal termination (return value 0)", "",
              "Job terminated of its own accord at 2026-11-20T10:02:00Z with exit-code 0."),
        'ClusterId = 7\nProcId = 0\nQDate = 1795168800\nJobStatus = 2\n',
        "",
        "WRITTEN",
    ],
    ids=["by the end of the job", "by its ad", "by this machine", "by the last write of the log"],
)  # fmt: skip
def test_times_without_a_zone_are_settled(second: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not second:
        monkeypatch.setenv("TZ", "America/Chicago")
        time.tzset()
    log = submitted("2026-11-20 04:00:00")
    groups = [log + second] if second.startswith("005") else [log, second]
    facts = [facts_of(text.encode(), str(at)) for at, text in enumerate(groups)]
    written_at = Nanos(1_795_168_801_000_000_000) if second == "WRITTEN" else NOW  # of a copy
    facts[0][-1] = replace(facts[0][-1], written_at=written_at)
    (job,) = jobs_of(*facts).values()
    assert shown(job.queued_at) == "2026-11-20T10:00:00Z"


def test_adding_a_fact_twice_changes_nothing_and_repeated_events_are_kept_once() -> None:
    facts = facts_in(CONDOR / "cluster.log")
    again = book_of(facts)[0].add(facts)
    assert (again.jobs, again.changes, again.gone) == ((), {}, frozenset())
    log = executing() + event(6, "2026-11-20 10:02:00", "Image size of job updated: 9") * 1_000
    assert len(book_of(facts_of(log.encode()))[0].facts_of(JobId("7.0"))) == 2


def test_beyond_a_limit_facts_are_dropped_those_of_ended_jobs_first() -> None:
    ended = [(executing() + ENDED).replace("007.000.000", f"{number:03}.000.000") for number in range(10, 60)]
    book = CondorStore(most=40)
    book.add(facts_of(submitted().encode(), "live"))
    assert book.notice is None
    first, second = ("".join(some).encode() for some in (ended[:10], ended[10:]))
    book.add(facts_of(first, "first"))
    news = book.add(facts_of(second, "second"))
    assert book.dropped > 60
    assert book.facts_of(JobId(JOB))
    assert f"{book.dropped} facts dropped" in (book.notice or "")
    assert news.gone
    assert not news.gone & {job.id for job in news.jobs}
    assert all(book.detail(job_id) is None for job_id in news.gone)
    assert all(book.detail(job.id) is not None for job in news.jobs)


def test_submit_files_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(condor_book, "MOST_SUBMISSIONS", 2)
    facts = facts_in(CAPTURES / "job-fail" / "simple.cmd")
    (submission,) = [fact for fact in facts if fact.origin is Origin.SUBMIT]
    of_trace = [replace(submission, values={TRACEPARENT: f"{number:032x}"}) for number in (1, 2, 1, 3)]
    book, _ = book_of(of_trace)
    assert [int(trace, 16) for trace in book.traces_named_in(submission.source)] == [1, 3]
    assert book.dropped == 1


def test_a_file_tells_which_traces_and_jobs_it_names(tmp_path: Path) -> None:
    path = CAPTURES / "job-fail" / "simple.cmd"
    book, _ = book_of(facts_in(path), facts_in(CAPTURES / "81430102.2.out"))
    assert book.traces_named_in(str(path)) == {"212c891717bfbac28a34dec05b616f14": ()}
    assert book.traces_named_in(str(CAPTURES / "81430102.2.out")) == {
        "6b0404f2b09490b86b01a1c12a3a2107": ("81430102.2@jobsub02.fnal.gov",)
    }
    assert book.jobs_of_source(str(path)) == ()


FORMS = ("cluster.log", "cluster.json.log", "cluster.xml.log")
EVENTS = table("condor_events")
Kind = tuple[Any, ...]


def log_of(events: Iterable[tuple[int, Kind]], form: str, job: str = "007.000.000", hours: int = 0) -> bytes:
    texts = [submitted(form.format(at=f"2026-11-20 {10 + hours:02}:00:00", part=".250"), job)]
    for second, (number, *text) in events:
        minutes, seconds = divmod(second // 4, 60)
        at = f"2026-11-20 {10 + hours:02}:{minutes:02}:{seconds:02}"
        texts.append(event(number, form.format(at=at, part=f".{second % 4 * 250:03}"), *text, job=job))
    return "".join(texts).encode()


WHOLE, FINE, LOCAL = "{at}Z", "{at}{part}Z", "{at}"


def detail_in(book: CondorStore, job_id: str = JOB) -> JobDetail:
    return some(book.detail(JobId(job_id)))


def turns_in(changes: Iterable[StateChange]) -> list[tuple[object, ...]]:
    return [(change.at, change.before, change.after, change.detail) for change in changes]


def said(detail: JobDetail) -> tuple[tuple[Run, ...], list[tuple[object, ...]], object, int]:
    """What counts: runs, changes, what is written of them, how often it began."""
    sayings = [(name, text.partition(", named in")[0]) for name, text in detail.facts if name != "source"]
    return detail.runs, turns_in(detail.changes), sayings, detail.job.runs


def in_turn(files: list[list[CondorFact]], turns: list[int], sizes: list[int]) -> Iterator[list[CondorFact]]:
    """Pieces of files that take turns, and then the rest of each."""
    left = [list(facts) for facts in files]
    for turn, size in zip(turns, sizes, strict=False):
        own = left[turn % len(left)]
        yield own[:size]
        del own[:size]
    yield from left


_LOG = st.lists(st.tuples(st.integers(0, 60), st.sampled_from(EVENTS["of_one"])), max_size=25).map(
    lambda events: sorted(events, key=lambda one: one[0])
)
_TURNS = st.lists(st.integers(0, 2), max_size=30)
_SIZES = st.lists(st.integers(1, 6), min_size=30, max_size=30)
_MOST = st.sampled_from([8, 300])
_ZONES = st.sampled_from([WHOLE, FINE, LOCAL])


@settings(max_examples=100, deadline=None)
@given(most_of_job=_MOST, second=_ZONES, events=_LOG, turns=_TURNS, sizes=_SIZES)
def test_several_logs_of_one_job_give_what_one_log_gives_in_any_order(
    most_of_job: int, second: str, events: list[tuple[int, Kind]], turns: list[int], sizes: list[int]
) -> None:
    first = facts_of(log_of(events, WHOLE), "a.log")
    hours = -6 if second is LOCAL else 0
    others = [facts_of(log_of(events, second, hours=hours), name) for name in ("0.log", "z.log")]
    told: dict[JobId, tuple[StateChange, ...]] = {}
    with patch.object(condor_book, "MOST_OF_JOB", most_of_job):
        alone = detail_in(book_of(first)[0])
        book = CondorStore()
        for piece in in_turn([first, *others], turns, sizes):
            told |= book.add(piece).changes
    together = detail_in(book)
    assert (said(together), turns_in(told[JobId(JOB)])) == (said(alone), turns_in(alone.changes))


@settings(max_examples=50, deadline=None)
@given(events=_LOG, missing=st.sets(st.integers(0, 24)), turns=_TURNS, sizes=_SIZES)
def test_two_logs_complete_each_other(
    events: list[tuple[int, Kind]], missing: set[int], turns: list[int], sizes: list[int]
) -> None:
    events = [(4 * at, kind) for at, (_, kind) in enumerate(events, start=1)]
    whole = facts_of(log_of(events, WHOLE), "a.log")
    parts = [
        facts_of(log_of([one for at, one in enumerate(events) if (at in missing) is is_in], WHOLE), name)
        for name, is_in in (("0.log", True), ("z.log", False))
    ]
    for files in (parts, [whole, *parts]):
        book = book_of(*in_turn(files, turns, sizes))[0]
        assert said(detail_in(book)) == said(detail_in(book_of(whole)[0]))


@pytest.mark.parametrize("zone", ["UTC", "America/Chicago"])
@pytest.mark.parametrize("names", list(itertools.permutations(FORMS)))
def test_forms_of_a_log_are_one(names: tuple[str, ...], zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    forms = [facts_in(CONDOR / name) for name in names]
    for job_id in ("81422934.0@jobsub02.fnal.gov", "81422934.1@jobsub02.fnal.gov"):
        alone = detail_in(book_of(facts_in(CONDOR / "cluster.log"))[0], job_id)
        together = detail_in(book_of(*forms)[0], job_id)
        assert said(together) == said(alone)
        assert [value for name, value in together.facts if name == "source"] == [
            ", ".join(str(CONDOR / name) for name in sorted(FORMS))
        ]


AGAIN = executing() + event(4, "2026-11-20 10:01:00Z", "Job was evicted.") + executing()
"""What happens twice within a second."""


def test_two_events_within_a_second_count_twice() -> None:
    copies = [facts_of((submitted() + AGAIN).encode(), name) for name in ("a.log", "b.log")]
    for files in (copies[:1], copies):
        book, _ = book_of(*files)
        assert len(detail_in(book).runs) == 2
        kinds = [fact.what for fact in book.facts_of(JobId(JOB))]
        assert kinds == ["submit", "execute", "evicted", "execute"]
        assert detail_in(book).native["told"] == detail_in(book_of(copies[0])[0]).native["told"]


@each((0, 1), (1, 0))
def test_a_log_without_the_schedd_gives_the_same_events(order: tuple[int, int]) -> None:
    files = [
        facts_of((submitted() + AGAIN).encode(), "a.log"),
        facts_of((submitted().replace("alias=", "other=") + AGAIN).encode(), "b.log"),
    ]
    assert {fact.job for fact in files[1]} == {"7.0"}
    together = detail_in(book_of(*(files[at] for at in order))[0])
    assert said(together) == said(detail_in(book_of(files[0])[0]))


def test_the_same_event_of_two_files_is_one_with_all_that_is_known() -> None:
    ad = event(28, "2026-11-20 10:00:00Z", "Job ad information event triggered.", *('Owner = "me"',))
    more = ad.replace("\n...", '\n\tDAGNodeName = "A"\n...')
    book, _ = book_of(
        facts_of((submitted() + ad).encode(), "a"), facts_of((submitted() + more).encode(), "b")
    )
    job = detail_in(book).job
    assert (job.owner, job.tags) == ("me", "DAGNodeName:A")
    log = '{"EventTypeNumber": 1, "Cluster": 7, "Proc": 0, "ExecuteHost": "<10.0.0.2:9618>", "Number": %d}\n'
    files = [facts_of((log % number).encode(), name) for number, name in ((1, "a"), (1, "b"), (2, "c"))]
    book, _ = book_of(*files)
    assert len(book.facts_of(JobId("7.0"))) == 2


_TIMES = st.sampled_from([f"2026-11-20 10:0{minute}:00{zone}" for minute in range(6) for zone in ("", "Z")])
_NUMBERS = st.sampled_from(["007.000.000", "007.000.000", "007.001.000", "008.000.000"])
_BODIES = st.sampled_from(EVENTS["of_many"])
_EVENTS = st.builds(lambda body, at, job: event(body[0], at, *body[1:], job=job), _BODIES, _TIMES, _NUMBERS)
_ADS = st.builds(
    "ClusterId = 7\nProcId = 0\nJobStatus = {}\nQDate = {}\n\n".format,
    st.integers(0, 9),
    st.sampled_from([1795168800, 99999999999]),
)
FAILED_END = "Fri Nov 20 10:02:00 UTC 2026 a.sh COMPLETED with exit status 2\n"
_FILES = {"a.log": _EVENTS, "b.log": _EVENTS, "q.ad": _ADS, "j.out": st.sampled_from([BEGIN, FAILED_END])}
_TOLD = st.one_of([st.tuples(st.just(name), texts) for name, texts in _FILES.items()])
_GROWTH = st.lists(_TOLD, min_size=6, max_size=40)
_PIECE_SIZES = st.lists(st.integers(1, 9), max_size=40)


def told_in_turn(texts: list[tuple[str, str]]) -> list[CondorFact]:
    whole = {name: "".join(text for of, text in texts if of == name) for name, _ in texts}
    of_file = {name: iter(facts_of(text.encode(), name)) for name, text in whole.items()}
    return [fact for name, _ in texts if (fact := next(of_file[name], None)) is not None]


@settings(max_examples=150, deadline=None)
@given(most=st.sampled_from([15, 1_000]), most_of_job=_MOST, texts=_GROWTH, sizes=_PIECE_SIZES)
def test_facts_in_any_pieces_give_the_same_jobs(
    most: int, most_of_job: int, texts: list[tuple[str, str]], sizes: list[int]
) -> None:
    facts = told_in_turn(texts)
    with patch.object(condor_book, "MOST_OF_JOB", most_of_job):
        bit_by_bit, at_once = Known(most), Known(most)
        for start, end in itertools.pairwise([0, *itertools.accumulate(sizes), len(facts)]):
            bit_by_bit.hear(facts[start:end])
        at_once.hear(facts)
        assert bit_by_bit.all() == at_once.all()
        details = {job_id: at_once.book.detail(job.id) for job_id, job in at_once.jobs.items()}
    assert {job_id: detail and detail.job for job_id, detail in details.items()} == at_once.jobs


@pytest.mark.parametrize("jobs", [1, 40])
def test_the_work_for_an_event_does_not_grow_with_their_number(placed: list[CondorFact], jobs: int) -> None:
    begin = datetime(2026, 11, 1, tzinfo=UTC)
    log = ""
    for turn in range(6_000):
        at = f"{begin + timedelta(minutes=turn):%Y-%m-%d %H:%M:%SZ}"
        log += event(0 if turn < jobs else 12 + turn % 2, at, "Job", job=f"007.{turn % jobs:03}.000")
    facts = facts_of(log.encode())
    assert len(facts) == 6_000
    looked = {}
    for count in (1_500, 6_000):
        placed.clear()
        with patch.object(condor_book, "MOST_OF_JOB", 30):
            CondorStore().add(facts[:count])
        looked[count] = len(placed)
    assert looked[6_000] <= 4.5 * looked[1_500]
    assert looked[1_500] <= 4 * 1_500


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> list[CondorFact]:
    """Every fact that is looked at to put a job together, as often as it is."""
    seen: list[CondorFact] = []
    in_order = condor_book.in_order

    def counted(facts: Iterable[CondorFact], shifts: condor_book.Shifts) -> list[CondorFact]:
        seen.extend(facts := tuple(facts))
        return in_order(facts, shifts)

    monkeypatch.setattr(condor_book, "in_order", counted)
    return seen


JOBS = 40
NUMBERS = [f"007.{proc:03}.000" for proc in range(JOBS)]


async def test_others_run_while_facts_are_added_and_a_zone_is_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(poller.AT_ONCE, "condor", 10)
    monkeypatch.setattr(store_module, "CONDOR_AT_ONCE", 20)
    store = Store(FakeCorrelation(), FixedClock(Nanos(1_000)))
    end = "Job terminated of its own accord at 2026-11-20T16:40:00Z with exit-code 0."
    log = "".join(event(12, "2026-11-20 10:00:00", "Job was held.", job=job) for job in NUMBERS)
    log += event(5, "2026-11-20 10:40:00", "Job terminated.", end, job=NUMBERS[0])
    *before, last = facts_of(log.encode())
    source = ScriptedSource([Batch(cursor="1", condor=tuple(before)), Batch(cursor="2", condor=(last,))])
    known: list[tuple[int, int]] = []

    async def other() -> None:
        while store.is_behind or len(known) < 2 or known[-1] != (JOBS, JOBS):
            times = [to_rfc3339(job.updated_at) for job in store.jobs.values() if job.updated_at is not None]
            known.append((len(times), sum("T16:" in time for time in times)))
            await asyncio.sleep(0)

    watching = asyncio.create_task(other())
    for _ in range(2):
        await Poller(source, store).poll_once()
    await watching
    assert {10, 20, 30} <= {count for count, _ in known}
    assert {10, 20, 30} <= {moved for _, moved in known}


def test_a_change_is_known_once_when_the_zone_of_its_log_is_learnt_later() -> None:
    store = Store(FakeCorrelation(), FixedClock(Nanos(1_000)))
    store.add_source("a.log", "condor_log")
    end = event(5, "2026-11-20 04:02:00", "Job terminated.", "(1) Normal termination (return value 0)", "",
                "Job terminated of its own accord at 2026-11-20T10:02:00Z with exit-code 0.")  # fmt: skip
    log = submitted("2026-11-20 04:00:00") + executing("2026-11-20 04:01:00") + end
    for fact in facts_of(log.encode()):
        store.apply("a.log", Batch(cursor="1", condor=(fact,)))
    detail = some(store.detail(JobId(JOB)))
    assert [shown(one.at) for one in detail.changes] == [f"2026-11-20T10:0{n}:00Z" for n in range(3)]
    assert tuple(changes_in(store)) == detail.changes
