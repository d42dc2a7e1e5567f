"""Verdicts on jobs of HTCondor: every state, what made them, and where files disagree."""

import json
import tomllib
from typing import Any

import pytest

from jobtui.analysis.explain.case import SURE, Evidence
from jobtui.analysis.explain.verdict import explain
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.condor import LOG_GAP, CondorFact, Teller
from jobtui.model.health import SourceHealth, SourceState
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.verdicts import Code, Concern, Verdict
from tests.builders import some
from tests.condor import JOB, SCHEDD, book_of, event, executing, facts_of, submitted
from tests.excerpts import FIXTURES

NOW = Nanos(1_795_172_400 * SECOND)
"""2026-11-20T11:00:00Z"""
LATER = "2026-11-20 10:30:00Z"
BEGIN = "Fri Nov 20 10:01:05 UTC 2026 7.0@jobsub02.fnal.gov BEGIN EXECUTION a.sh\n"
END = "Fri Nov 20 10:30:00 UTC 2026 a.sh COMPLETED with exit status {}\n"


def ended(how: str) -> str:
    return event(5, LATER, "Job terminated.", how)


def told(*groups: list[CondorFact]) -> tuple[Job, tuple[CondorFact, ...]]:
    book, news = book_of(*groups)
    job = next(job for job in news.jobs if str(job.id).startswith("7.0"))
    return job, book.facts_of(job.id)


def explained(job: Job, facts: tuple[CondorFact, ...], *sources: SourceHealth) -> Verdict:
    return explain(Evidence(job_id=job.id, now=NOW, job=job, facts=facts, sources=sources))


def verdict_on(*texts: str) -> Verdict:
    job, facts = told(*(facts_of(text.encode(), f"file {at}") for at, text in enumerate(texts)))
    return explained(job, facts)


RAN = submitted() + executing()
RETRIED = event(
    4, LATER, "Job was evicted.", "(0) Job terminated and was requeued",
    "Usr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage", "(1) Normal termination (return value 3)",
    "The job attribute OnExitRemove expression 'ExitCode =?= 0' evaluated to FALSE",
)  # fmt: skip


TABLES = tomllib.loads((FIXTURES / "condor_verdicts.toml").read_text())
CASES = TABLES["case"]


@pytest.mark.parametrize("told", CASES, ids=lambda told: told["says"])
def test_what_a_job_is_said_to_have(told: dict[str, Any]) -> None:
    verdict = verdict_on(told["log"])
    assert verdict.code.value == told["code"]
    assert told["says"] in verdict.sentence
    assert (verdict.confidence >= 0.8) is told["sure"]


def test_how_many_machines_meet_what_it_asks_for() -> None:
    for told in TABLES["requirements"]:
        job = {"ClusterId": 7, "ProcId": 0, "JobStatus": 1, "QDate": 1_795_168_800, **TABLES["asks"]}
        job["Requirements"] = f"/Expr({told['asks']})/"
        machines = (told.get("machines") or json.dumps(TABLES["machine"])).replace("HEARD", "1795172000")
        verdict = verdict_on(*[machines] * told.get("files", 1), json.dumps([job]))
        assert verdict.pending is not None
        found = [[what, how.partition(" of the ")[0]] for what, how in verdict.pending.needs]
        assert (told["asks"], found) == (told["asks"], told["found"])
        assert told["says"] in verdict.sentence


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


def test_what_only_its_output_tells_is_said_and_a_program_that_has_ended_while_its_job_runs() -> None:
    spots = {"neither an event log nor a job ad of it was read", "a job that is killed writes no last line"}
    assert spots <= {*verdict_on(BEGIN).blind_spots}
    assert verdict_on(RAN, BEGIN).code is Code.RUNNING
    done = verdict_on(RAN, BEGIN + END.format(3))
    assert done.code is Code.PROGRAM_FAILED
    assert done.blind_spots == ("its wrapper says that it ended, and HTCondor has not said so yet",)


def test_files_that_tell_different_ends_and_a_source_that_is_down_make_it_less_sure() -> None:
    log = RAN + ended("(1) Normal termination (return value 0)")
    assert verdict_on(log, BEGIN + END.format(0)).confidence >= SURE
    verdict = verdict_on(log, BEGIN + END.format(3))
    assert (verdict.code, verdict.confidence <= 0.75) == (Code.COMPLETED, True)
    down = SourceHealth(name="b.log", kind="condor_log", state=SourceState.DOWN, error="gone")
    assert "b.log cannot be read: gone" in explained(*told(facts_of(RAN.encode())), down).blind_spots


HELD_AD = (
    "ClusterId = 7\nProcId = 0\nJobStatus = 5\nQDate = 1795168800\nEnteredCurrentStatus = 1795168800\n"
    'HoldReason = "submitted on hold"\nHoldReasonCode = 15\n'
)


@pytest.mark.parametrize("part", ["", ".750"])
def test_a_job_that_was_submitted_on_hold_is_held_though_no_event_says_so(part: str) -> None:
    log = submitted(f"2026-11-20 10:00:00{part}Z")
    for texts in ((log, HELD_AD), (HELD_AD, log)):
        verdict = verdict_on(*texts)
        assert (verdict.code, verdict.confidence >= 0.9) == (Code.HELD, True)
        assert "submitted on hold (hold code 15)" in verdict.sentence
    assert any("submitted on hold" in spot for spot in verdict_on(log).blind_spots)


def test_a_run_that_is_retried_failed_and_was_not_canceled() -> None:
    book, _ = book_of(facts_of((RAN + RETRIED).encode()))
    detail = some(book.detail(JobId(JOB)))
    assert [(run.status, run.error) for run in detail.runs] == [(JobStatus.FAILED, "exit status 3")]


@pytest.mark.parametrize("rejected", ["", "no match found "])
def test_an_idle_ad_tells_what_it_asks_for_as_written(rejected: str) -> None:
    ad = {"MyType": "Job", "ClusterId": 7, "ProcId": 0, "GlobalJobId": f"{SCHEDD}#7.0#1", "JobStatus": 1,
          "QDate": 1_795_000_000, "RequestMemory": 900_000,
          "Requirements": 'TARGET.Arch == "ARM"'}  # fmt: skip
    text = json.dumps([ad | ({"LastRejMatchReason": rejected} if rejected else {})])
    pending = some(explained(*told(facts_of(text.encode()))).pending)
    asked = 'it asks for RequestMemory = 900000, Requirements = TARGET.Arch == "ARM"'
    assert pending.note == (f"the negotiator last said: no match found; {asked}" if rejected else asked)


@pytest.mark.parametrize(("status", "code"), [(3, Code.COMPLETED), (0, Code.PROGRAM_FAILED)])
def test_success_is_the_exit_status_that_the_job_calls_so(status: int, code: Code) -> None:
    ad = "ClusterId = 7\nProcId = 0\nJobSuccessExitCode = 3\nQDate = 1795168800\n"
    log = RAN + ended(f"(1) Normal termination (return value {status})")
    told, alone = verdict_on(log, ad), verdict_on(log)
    assert told.code is code
    assert alone.confidence < told.confidence
    assert "which exit status the job calls success" in alone.blind_spots[0]


def test_of_a_live_job_a_missing_part_of_its_log_makes_less_sure() -> None:
    gap = CondorFact("", Teller.EVENT, LOG_GAP, None, "a part was gone", "a.log", 0, -1, rotation=1)
    job, facts = told(facts_of(RAN.encode()), [gap])
    verdict = explained(job, facts)
    assert (verdict.code, verdict.confidence <= 0.6) == (Code.RUNNING, True)
    assert verdict.blind_spots == ("a part was gone: what became of it since may be there",)
    assert verdict.sentence.startswith("A part was gone: what became of it since may be there. ")
    over = RAN + ended("(1) Normal termination (return value 0)")
    job, facts = told(facts_of(over.encode()), [gap])
    assert explained(job, facts).confidence >= SURE
