"""Verdicts on jobs of Slurm: what a state and Slurm's own reason mean."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from jobtui.analysis.explain.case import CERTAIN, SURE, Evidence
from jobtui.analysis.explain.verdict import explain
from jobtui.analysis.systems.slurm import BY_STATUS, ENDED
from jobtui.backends.slurm.records import job_of
from jobtui.model.health import SourceHealth, SourceState
from jobtui.model.jobs import Category, JobDetail, JobStatus
from jobtui.model.slurm import STATUSES, Exit, SlurmJob, reason_of
from jobtui.model.tables import tables_of
from jobtui.model.verdicts import Code, Concern, Verdict
from tests.builders import ago
from tests.conftest import NOW

FIXTURES = Path(__file__).parents[2] / "fixtures"
SOURCE = "ssh://cori"
TABLES = tables_of("jobtui.model", "slurm")


def a_slurm_job(state: str, **fields: Any) -> SlurmJob:
    status = STATUSES.get(state, JobStatus.UNKNOWN)
    values: dict[str, Any] = {
        "id": "17", "raw": "17", "name": "beam", "user": "jdoe", "partition": "debug", "state": state,
        "submitted_at": ago(900), "limit_s": 1800.0,
    }  # fmt: skip
    if status is not JobStatus.PENDING:
        values |= {"started_at": ago(600), "nodes": "n1"}
    if status not in (JobStatus.PENDING, JobStatus.RUNNING):
        values |= {"ended_at": ago(60)}
    return SlurmJob(**(values | fields))


def explained(job: SlurmJob, **facts: str) -> Verdict:
    made = job_of(job, SOURCE)
    named = tuple((name.replace("_", " "), text) for name, text in facts.items())
    detail = JobDetail(job=made, runs=(), history=(), native={}, facts=named)
    return explain(Evidence(job_id=made.id, now=NOW, job=made, detail=detail if facts else None))


def a_case(told: dict[str, Any]) -> tuple[SlurmJob, dict[str, str], Code, str]:
    facts, code, says = told.pop("facts", {}), Code[told.pop("code").upper()], told.pop("says")
    fields: dict[str, Any] = {"exit": Exit(*told.pop("exit"))} if "exit" in told else {}
    if not told.pop("begun", True):
        fields["started_at"] = None
    return a_slurm_job(told.pop("state"), **told, **fields), facts, code, says


CASES = [a_case(told) for told in tomllib.loads((FIXTURES / "slurm/verdicts.toml").read_text())["case"]]


@pytest.mark.parametrize(("job", "facts", "code", "words"), CASES)
def test_what_is_the_matter(job: SlurmJob, facts: dict[str, str], code: Code, words: str) -> None:
    verdict = explained(job, **facts)
    assert verdict.code is code
    assert words in verdict.sentence
    assert verdict.evidence[0].what == "slurm"
    assert job.state in verdict.evidence[0].text
    assert verdict.next


@pytest.mark.parametrize("state", sorted(STATUSES))
def test_every_state_has_a_rule_and_a_concern_that_fits(state: str) -> None:
    assert state in ENDED or STATUSES[state] in BY_STATUS
    verdict = explained(a_slurm_job(state, exit=Exit(1) if state == "FAILED" else None))
    failed = STATUSES[state] is JobStatus.FAILED
    assert (verdict.concern is Concern.FAILED) == failed


def test_what_the_shell_saw_is_less_sure_than_what_slurm_saw() -> None:
    by_shell = explained(a_slurm_job("FAILED", exit=Exit(139)))
    by_slurm = explained(a_slurm_job("FAILED", exit=Exit(0, 11)))
    assert by_shell.code is by_slurm.code is Code.KILLED_BY_SIGNAL
    assert by_shell.confidence < by_slurm.confidence == CERTAIN


@pytest.mark.parametrize("code", [6, 9, 15])
def test_an_exit_code_that_sacct_may_have_cut_is_less_sure(code: int) -> None:
    job = a_slurm_job("FAILED", exit=Exit(code))
    whole = explained(job, exit=f"{code}:0")
    short = explained(job, exit=f"{code}:0, or {code + 128}: sacct leaves 128 out")
    assert (whole.confidence, whole.blind_spots) == (CERTAIN, ())
    assert explained(job).confidence == short.confidence < SURE
    assert str(code + 128) in short.blind_spots[0]


def test_what_ended_late_by_such_a_signal_may_have_run() -> None:
    late, early = (
        explained(a_slurm_job("FAILED", exit=Exit(0, 53), ended_at=ago(600 - ran))) for ran in (90, 1)
    )
    assert late.confidence < early.confidence < 0.5
    told = a_slurm_job("FAILED", exit=Exit(0, 53), reason="JobLaunchFailure", ended_at=ago(599))
    assert explained(told).confidence == SURE


def test_a_source_that_is_down_is_a_blind_spot_and_told_as_of_when_it_was_last_read() -> None:
    job = job_of(a_slurm_job("RUNNING"), SOURCE)
    down = SourceHealth(
        name=SOURCE, kind="slurm", state=SourceState.DOWN, error="slurmctld hangs", note="n", read_at=ago(300)
    )
    verdict = explain(Evidence(job_id=job.id, now=NOW, job=job, sources=(down,)))
    assert any("slurmctld hangs" in blind for blind in verdict.blind_spots)
    assert "on n1 for 5m" in verdict.sentence
    assert {(one.source, one.at) for one in verdict.evidence} == {(SOURCE, ago(300))}


LIMITS = [
    f"{whose}{what}{minutes}{per}{end}"
    for whose in ("AssocGrp", "AssocMax", "QOSGrp", "QOSMax")
    for what in TABLES["resources"]
    for minutes in ("", "Minutes", "RunMinutes")
    for per in ("", "PerJob", "PerUser", "PerNode", "PerAccount")
    for end in ("", "Limit")
]


def test_every_limit_is_told_in_words() -> None:
    for word in (*LIMITS, "QOSMinCpuNotSatisfied", "MaxGRESPerAccount", "AssocMaxJobsLimit", "QOSJobLimit"):
        reason = reason_of(word)
        assert reason.words.startswith("a limit: "), word
        assert "{" not in reason.words
        assert reason.is_stuck == ("PerJob" in word or "PerNode" in word or "Min" in word[:6])


def test_reasons_are_words() -> None:
    for word, (category, words, *stuck) in TABLES["waits"].items():
        assert reason_of(word) == (words, stuck == [True], Category(category))
        assert " " in words
    assert reason_of("ReqNodeNotAvail,_UnavailableNodes:n[1-3]") == reason_of("ReqNodeNotAvail")
    assert reason_of("SomethingNew").words == "SomethingNew"
    assert all(" " in words for words in TABLES["ended"].values())
