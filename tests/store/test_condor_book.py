"""Jobs of HTCondor put together from what files say: captured ones, their order, zones, ids, bounds."""

import itertools
import os
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.model.clock import to_rfc3339
from jobtui.model.condor import TRACEPARENT
from jobtui.model.condor_facts import CondorFact, Teller
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from jobtui.store import condor_book
from jobtui.store.condor_book import CondorBook
from tests.condor import CONDOR, JOB, SUBMIT_HOST, book_of, event, executing, facts_in, facts_of, submitted
from tests.tracing import CAPTURES

BEGIN = "Fri Nov 20 10:01:05 UTC 2026 7.0@jobsub02.fnal.gov BEGIN EXECUTION a.sh\n"
END = "Fri Nov 20 10:02:00 UTC 2026 a.sh COMPLETED with exit status {}\n"
LATER = "2026-11-20 10:03:00"
ENDED = event(5, "2026-11-20 10:02:10Z", "Job terminated.", "(1) Normal termination (return value 3)")


def jobs_of(*groups: list[CondorFact]) -> dict[str, Job]:
    """The jobs that a book has in the end."""
    book, jobs = CondorBook(), {}
    for facts in groups:
        news = book.add(facts)
        jobs.update({str(job.id): job for job in news.jobs})
        for gone in news.gone:
            jobs.pop(gone, None)
    return jobs


def shown(at: int | None) -> str | None:
    return None if at is None else to_rfc3339(at)  # type: ignore[arg-type]


def test_the_captured_jobs_are_as_they_were() -> None:
    jobs = jobs_of(
        facts_in(CONDOR / "cluster.log"), facts_in(CONDOR / "81419552.log"), facts_in(CONDOR / "job.ad")
    )
    one, two, three = (
        jobs[f"{number}@jobsub02.fnal.gov"] for number in ("81422934.0", "81422934.1", "81419552.0")
    )
    assert len(jobs) == 3
    assert (one.status, one.error, one.runs) == (JobStatus.FAILED, "killed by signal 9", 1)
    assert (one.owner, one.name, one.trace) == (
        "osguser",
        "test_trace.sh",
        "2797255385ce5212c9cf3bdcfac11067",
    )
    assert (shown(one.queued_at), shown(one.ended_at)) == ("2024-07-19T14:02:11Z", "2024-07-19T16:02:00Z")
    assert (two.status, two.native_status, two.runs) == (JobStatus.CANCELED, "REMOVED", 2)
    assert (two.message, two.host) == ("via condor_rm (by user osguser)", "worker20.example.org")
    assert (three.status, three.error, three.host) == (
        JobStatus.FAILED,
        "exit status 2",
        "worker17.example.org",
    )
    assert shown(three.ended_at) == "2024-07-19T04:22:29Z"
    assert [job.system for job in (one, two, three)] == ["jobsub", "jobsub", "condor"]


def test_each_run_of_a_captured_job_ended_as_its_log_says() -> None:
    book, _ = book_of(facts_in(CONDOR / "cluster.log"))
    detail = book.detail(JobId("81422934.1@jobsub02.fnal.gov"))
    assert detail is not None
    assert [(run.native_status, run.status, run.host) for run in detail.runs] == [
        ("held", JobStatus.FAILED, "worker19.example.org"),
        ("evicted", JobStatus.CANCELED, "worker20.example.org"),
    ]
    assert "812 megabytes" in (detail.runs[0].error or "")
    assert [(change.before, change.after) for change in detail.changes] == [
        ("", "IDLE"), ("IDLE", "RUNNING"), ("RUNNING", "HELD"), ("HELD", "IDLE"), ("IDLE", "RUNNING"),
        ("RUNNING", "IDLE"), ("IDLE", "REMOVED"),
    ]  # fmt: skip


def test_the_processes_of_a_cluster_are_jobs_of_their_own() -> None:
    outputs = [facts_in(path) for path in sorted(CAPTURES.glob("81430102.*.out"))]
    jobs = jobs_of(*outputs)
    assert {job_id: job.status.value for job_id, job in jobs.items()} == {
        f"81430102.{proc}@jobsub02.fnal.gov": "failed" if proc == 2 else "completed" for proc in range(4)
    }
    assert [job.trace for job in jobs.values() if job.trace] == ["6b0404f2b09490b86b01a1c12a3a2107"]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_in_whatever_order_files_are_read_the_job_is_the_same(order: tuple[int, ...]) -> None:
    groups = [
        facts_of((submitted() + executing() + ENDED).encode(), "a.log"),
        facts_of((BEGIN + END.format(3)).encode(), "job.out"),
        facts_of(b'ClusterId = 7\nProcId = 0\nOwner = "me"\nJobStatus = 2\nQDate = 1795168800\n', "q.ad"),
    ]
    (job,) = jobs_of(*(groups[at] for at in order)).values()
    assert (job.id, job.status, job.error, job.owner, job.name) == (
        JOB,
        JobStatus.FAILED,
        "exit status 3",
        "me",
        "a.sh",
    )
    assert job.system == "jobsub"


@pytest.mark.parametrize(
    ("log", "status", "native", "alert"),
    [
        (submitted(), "pending", "IDLE", None),
        (submitted() + executing(), "running", "RUNNING", None),
        (submitted() + executing() + ENDED, "failed", "COMPLETED", None),
        (executing() + event(12, LATER, "Job was held.", "no room", "Code 34 Subcode 0"),
         "pending", "HELD", "held: no room"),
        (executing() + event(12, LATER, "Job was held."),
         "pending", "HELD", "held: no reason is given"),
        (executing() + event(22, LATER, "Job disconnected, attempting to reconnect", "cut"),
         "running", "RUNNING", "its execute host is disconnected"),
        (executing() + event(24, LATER, "Job reconnection failed", "cut"), "pending", "IDLE", None),
        (executing() + event(10, LATER, "Job was suspended."), "running", "SUSPENDED", None),
        (executing() + event(9, LATER, "Job was aborted.", "by me"), "canceled", "REMOVED", None),
        (executing() + ENDED.replace("value 3", "value 0"),
         "completed", "COMPLETED", None),
        (BEGIN, "running", "RUNNING", None),
        (BEGIN + END.format(0), "completed", "COMPLETED", None),
        (BEGIN + END.format(124), "failed", "COMPLETED", None),
        (BEGIN + "signal_exit received signal TERM\n", "failed", "COMPLETED", None),
        ("Use job id 7.0@s.example.org to retrieve output\n", "pending", "IDLE", None),
    ],
)  # fmt: skip
def test_a_job_is_in_the_state_that_was_told_last(
    log: str, status: str, native: str, alert: str | None
) -> None:
    (job,) = jobs_of(facts_of(log.encode())).values()
    assert (job.status.value, job.native_status, job.alert) == (status, native, alert)


def test_what_a_worker_says_later_does_not_wake_a_job_that_is_over() -> None:
    late = BEGIN.replace("10:01:05", "11:30:00")
    (job,) = jobs_of(facts_of((executing() + ENDED).encode(), "a.log"), facts_of(late.encode(), "o")).values()
    assert (job.native_status, job.error) == ("COMPLETED", "exit status 3")


def test_a_job_without_a_schedd_becomes_the_one_that_has_it() -> None:
    ad = b"ClusterId = 7\nProcId = 0\nJobStatus = 1\n"
    book = CondorBook()
    assert [str(job.id) for job in book.add(facts_of(ad, "ad")).jobs] == ["7.0"]
    news = book.add(facts_of(submitted().encode(), "log"))
    assert [str(job.id) for job in news.jobs] == [JOB]
    assert news.gone == {JobId("7.0")}
    assert len(book.facts_of(JobId(JOB))) == 2


def test_one_number_of_two_schedds_is_two_jobs() -> None:
    other = submitted().replace("jobsub02", "jobsub03")
    jobs = jobs_of(
        facts_of(submitted().encode(), "one"), facts_of(other.encode(), "two"),
        facts_of(b"ClusterId = 7\nProcId = 0\nJobStatus = 2\n", "ad"),
    )  # fmt: skip
    assert sorted(jobs) == ["7.0", "7.0@jobsub02.fnal.gov", "7.0@jobsub03.fnal.gov"]


@pytest.mark.parametrize(
    "second",
    [
        event(5, "2026-11-20 04:02:00", "Job terminated.", "(1) Normal termination (return value 0)", "",
              "Job terminated of its own accord at 2026-11-20T10:02:00Z with exit-code 0."),
        'ClusterId = 7\nProcId = 0\nQDate = 1795168800\nJobStatus = 2\n',
    ],
    ids=["by the end of the job", "by its ad"],
)  # fmt: skip
def test_times_without_a_zone_are_settled_by_those_that_have_one(second: str) -> None:
    log = submitted("2026-11-20 04:00:00")
    groups = [log + second] if second.startswith("005") else [log, second]
    jobs = jobs_of(*(facts_of(text.encode(), str(at)) for at, text in enumerate(groups)))
    (job,) = jobs.values()
    assert shown(job.queued_at) == "2026-11-20T10:00:00Z"


def test_without_any_such_they_are_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/Chicago")
    time.tzset()
    assert os.environ["TZ"] == "America/Chicago"
    (job,) = jobs_of(facts_of(submitted("2026-11-20 04:00:00").encode())).values()
    assert shown(job.queued_at) == "2026-11-20T10:00:00Z"


def test_the_same_twice_changes_nothing() -> None:
    facts = facts_in(CONDOR / "cluster.log")
    book, _ = book_of(facts)
    again = book.add(facts)
    assert (again.jobs, again.changes, again.gone) == ((), (), frozenset())


def test_what_comes_again_and_again_is_kept_once() -> None:
    log = executing() + event(6, "2026-11-20 10:02:00", "Image size of job updated: 9") * 1_000
    book, _ = book_of(facts_of(log.encode()))
    assert len(book.facts_of(JobId("7.0"))) == 2


def test_facts_are_let_go_of_beyond_a_bound_those_of_ended_jobs_first() -> None:
    ended = "".join(
        (executing() + ENDED).replace("007.000.000", f"{number:03}.000.000") for number in range(10, 60)
    )
    book = CondorBook(most=40)
    book.add(facts_of(submitted().encode(), "live"))
    assert book.notice is None
    news = book.add(facts_of(ended.encode(), "ended"))
    assert book.dropped > 60
    assert book.facts_of(JobId(JOB))
    assert f"{book.dropped} facts let go of" in (book.notice or "")
    assert news.gone
    assert not news.gone & {job.id for job in news.jobs}
    assert all(book.detail(job_id) is None for job_id in news.gone)
    assert all(book.detail(job.id) is not None for job in news.jobs)


def test_submit_files_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(condor_book, "MOST_SUBMISSIONS", 2)
    facts = facts_in(CAPTURES / "job-fail" / "simple.cmd")
    (submission,) = [fact for fact in facts if fact.teller is Teller.SUBMIT]
    of_trace = [
        msgspec.structs.replace(submission, values={TRACEPARENT: f"{number:032x}"}) for number in (1, 2, 1, 3)
    ]
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
    assert book.jobs_told_in(str(path)) == ()


_TEXTS = st.sampled_from([
    submitted(), executing(), ENDED, BEGIN, END.format(0), END.format(2), event(4, LATER, "x"),
    event(12, "11/20 10:00:00", "Job was held."), event(13, LATER, "y"), submitted(job="8.-1.-1"),
    "ClusterId = 7\nProcId = 0\nJobStatus = 9\nQDate = 99999999999\n\n", f"JobID: {JOB}\n", SUBMIT_HOST,
])  # fmt: skip


@given(st.lists(st.lists(_TEXTS, max_size=4), max_size=4))
def test_no_facts_in_any_order_break_it(files: list[list[str]]) -> None:
    book = CondorBook()
    for number, texts in enumerate(files):
        news = book.add(facts_of("".join(texts).encode(), str(number)))
        for job in news.jobs:
            detail = book.detail(job.id)
            assert detail is not None
            assert detail.job == job
