"""Verdicts on jobs of HTCondor: every state, what made them, and where files disagree."""

import pytest

from jobtui.analysis.correlate import Correlator
from jobtui.analysis.explain.condor import explain_condor
from jobtui.analysis.explain.study import study
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.condor_facts import CondorFact
from jobtui.model.health import SourceHealth, SourceState
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job
from jobtui.model.verdicts import Code, Concern, Verdict
from tests.condor import CONDOR, JOB, book_of, event, executing, facts_in, facts_of, submitted
from tests.tracing import CAPTURES

NOW = Nanos(1_795_172_400 * SECOND)
"""2026-11-20T11:00:00Z"""
LATER = "2026-11-20 10:30:00Z"
BEGIN = "Fri Nov 20 10:01:05 UTC 2026 7.0@jobsub02.fnal.gov BEGIN EXECUTION a.sh\n"
END = "Fri Nov 20 10:30:00 UTC 2026 a.sh COMPLETED with exit status {}\n"


def ended(how: str) -> str:
    return event(5, LATER, "Job terminated.", how)


def told(*groups: list[CondorFact]) -> tuple[Job, tuple[CondorFact, ...]]:
    """A job and what files say of it."""
    book, news = book_of(*groups)
    job = next(job for job in news.jobs if str(job.id).startswith("7.0"))
    return job, book.facts_of(job.id)


def verdict_on(*texts: str) -> Verdict:
    job, facts = told(*(facts_of(text.encode(), f"file {at}") for at, text in enumerate(texts)))
    return explain_condor(job, facts, (), NOW)


RAN = submitted() + executing()


@pytest.mark.parametrize(
    ("log", "code", "words", "sure"),
    [
        (submitted(), Code.IDLE, "It waits for 1h for a machine", True),
        (RAN, Code.RUNNING, "It runs on w1.example.org for 59m", True),
        (RAN + ended("(1) Normal termination (return value 0)"), Code.COMPLETED, "It completed in 29m", True),
        (RAN + ended("(1) Normal termination (return value 2)"), Code.PROGRAM_FAILED, "exit status 2", True),
        (RAN + ended("(1) Normal termination (return value 124)"), Code.TIMED_OUT, "limit of its own", False),
        (RAN + ended("(0) Abnormal termination (signal 9)"), Code.KILLED_BY_SIGNAL, "by signal 9", True),
        (RAN + event(12, LATER, "Job was held.", "too much memory", "Code 34 Subcode 0"),
         Code.HELD, "held for 30m: too much memory (hold code 34)", True),
        (RAN + event(12, LATER, "Job was held.", "x") + event(13, LATER, "Job was released.", "via me"),
         Code.IDLE, "It was released, and waits for 30m", True),
        (RAN + event(4, LATER, "Job was evicted.", "(0) CPU times"), Code.REQUEUED, "lost (evicted)", True),
        (RAN + event(7, LATER, "Shadow exception!", "No space left"),
         Code.REQUEUED, "was lost (No space left); it waits for 30m to run again", True),
        (RAN + event(24, LATER, "Job reconnection failed", "lease is over"), Code.REQUEUED, "lease is", True),
        (RAN + event(9, LATER, "Job was aborted.", "via condor_rm (by user me)"),
         Code.CANCELED, "removed 30m ago: via condor_rm (by user me)", True),
        (RAN + event(22, LATER, "Job disconnected, attempting to reconnect", "cut"),
         Code.RUNNING, "when the connection was lost 30m ago", False),
        (RAN + event(10, LATER, "Job was suspended."), Code.RUNNING, "is suspended there for 30m", True),
        (BEGIN, Code.RUNNING, "did not end since, as far as its output tells", False),
        (BEGIN + END.format(0), Code.COMPLETED, "It completed in 28m", True),
        (BEGIN + END.format(7), Code.PROGRAM_FAILED, "exit status 7", True),
        (BEGIN + "Max retries 40 exceeded for in.tar\n" + END.format(1),
         Code.PROGRAM_FAILED, "Max retries 40 exceeded for in.tar", True),
        (BEGIN + "signal_exit received signal TERM\n", Code.KILLED_BY_SIGNAL, "killed by signal TERM", True),
        ("ClusterId = 7\nProcId = 0\nJobStatus = 6\nQDate = 1795168800\n", Code.STAGING, "is fetched", True),
        ("ClusterId = 7\nProcId = 0\nJobStatus = 99\n", Code.UNKNOWN, "No file tells its state", False),
    ],
)  # fmt: skip
def test_what_a_job_is_said_to_have(log: str, code: Code, words: str, sure: bool) -> None:
    verdict = verdict_on(log)
    assert verdict.code is code
    assert words in verdict.sentence
    assert (verdict.confidence >= 0.8) is sure


def test_what_a_verdict_rests_on_is_what_was_written() -> None:
    verdict = verdict_on(RAN + event(12, LATER, "Job was held.", "too much memory", "Code 34 Subcode 0"))
    assert [one.what for one in verdict.evidence] == ["submitted", "executing", "held"]
    assert verdict.evidence[-1].text.endswith("Job was held. | too much memory | Code 34 Subcode 0")
    assert (verdict.evidence[-1].source, verdict.evidence[-1].line) == ("file 0", 5)
    assert verdict.concern is Concern.STUCK
    assert [step.command for step in verdict.next][:2] == [
        "condor_q -hold -name jobsub02.fnal.gov 7.0",
        "condor_release -name jobsub02.fnal.gov 7.0",
    ]


def test_of_a_job_known_by_its_output_alone_that_is_said() -> None:
    verdict = verdict_on(BEGIN)
    assert "neither an event log nor a job ad of it was read" in verdict.blind_spots
    assert "a job that is killed writes no last line" in verdict.blind_spots


def test_a_program_that_has_ended_while_its_job_runs_is_told() -> None:
    verdict = verdict_on(RAN, BEGIN)
    assert verdict.code is Code.RUNNING
    done = verdict_on(RAN, BEGIN + END.format(3))
    assert done.code is Code.PROGRAM_FAILED
    assert done.blind_spots == ("its wrapper says that it ended, and HTCondor has not said so yet",)


def test_files_that_tell_different_ends_make_it_less_sure() -> None:
    log = RAN + ended("(1) Normal termination (return value 0)")
    assert verdict_on(log, BEGIN + END.format(0)).confidence > 0.9
    verdict = verdict_on(log, BEGIN + END.format(3))
    assert verdict.code is Code.COMPLETED
    assert verdict.confidence <= 0.75


def test_a_source_that_is_down_is_a_blind_spot() -> None:
    job, facts = told(facts_of(RAN.encode()))
    down = SourceHealth(name="b.log", kind="condor_log", state=SourceState.DOWN, error="gone")
    assert "b.log cannot be read: gone" in explain_condor(job, facts, (down,), NOW).blind_spots


def test_the_captured_disagreement_is_named_with_both_facts() -> None:
    book, news = book_of(facts_in(CONDOR / "cluster.log"), facts_in(CONDOR / "job.ad"))
    job_id = JobId("81422934.0@jobsub02.fnal.gov")
    job = next(job for job in news.jobs if job.id == job_id)
    made = study(Correlator(), {job_id: job}, (), job_id, NOW, None, told=book.facts_of(job_id))
    assert made.verdict.code is Code.KILLED_BY_SIGNAL
    assert "No space left on device" in made.verdict.sentence
    (one,) = made.contradictions
    assert (one.one.text, one.other.text) == ("killed by signal 9", "exit status 2")
    assert one.one.line == 51


@pytest.mark.parametrize(("proc", "code"), [(0, Code.COMPLETED), (2, Code.PROGRAM_FAILED)])
def test_captured_outputs_are_explained_and_lead_to_their_trace(proc: int, code: Code) -> None:
    book, news = book_of(facts_in(CAPTURES / f"81430102.{proc}.out"))
    (job,) = news.jobs
    verdict = explain_condor(job, book.facts_of(job.id), (), NOW)
    assert verdict.code is code
    wanted = f"jobtui trace {job.id}"
    assert (wanted in [step.command for step in verdict.next]) is (code is Code.PROGRAM_FAILED)


def test_a_job_of_which_nothing_is_known_is_no_fault() -> None:
    verdict = explain_condor(told(facts_of(RAN.encode()))[0], (), (), NOW)
    assert (verdict.code, verdict.job_id) == (Code.UNKNOWN, JOB)
