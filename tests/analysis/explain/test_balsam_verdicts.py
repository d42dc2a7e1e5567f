"""Verdicts on jobs of Balsam: what a state means, given allocations, launchers and the agent of a site."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from jobtui.analysis.correlate import Correlator
from jobtui.analysis.explain.balsam import RULES, BalsamFacts, explain_balsam
from jobtui.analysis.explain.study import study
from jobtui.backends.balsam.rows import STATUSES
from jobtui.model.changes import Allocation, Site, StateChange
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.verdicts import Code, Verdict
from tests.builders import HOSTILE, ago
from tests.conftest import NOW

ID = JobId("balsam/17")
SITE = Site(id=1, source="api", name="theta", path="/home/me/site", seen_at=ago(10))
SILENT = msgspec.structs.replace(SITE, seen_at=ago(900))


def a_job(state: str, **fields: Any) -> Job:
    values: dict[str, Any] = {
        "queued_at": ago(900),
        "updated_at": ago(60),
        "host": "theta",
        "allocation": "5 8812",
    } | fields
    return Job(id=ID, system="balsam", status=STATUSES[state], native_status=state, source="api", **values)


def allocation(state: str, **fields: Any) -> Allocation:
    values: dict[str, Any] = {"id": 5, "scheduler_id": "8812", "start_at": ago(600), "launchers": 1}
    values |= {"heartbeat_at": ago(20)}
    return Allocation(source="api", site_id=1, state=state, nodes=4, **(values | fields))


def changes(*states: str, **detail: object) -> list[StateChange]:
    """From state to state, a minute apart, the last one a minute ago; `detail` is what the last says."""
    ways = list(pairwise(states))
    return [
        StateChange(
            number, ID, ago(60 * (len(ways) - number + 1)), before, after, "api", None,
            detail if number == len(ways) else None,
        )
        for number, (before, after) in enumerate(ways, 1)
    ]  # fmt: skip


def explained(
    job: Job,
    went: Sequence[StateChange] = (),
    allocations: Sequence[Allocation] = (),
    site: Site | None = SITE,
) -> Verdict:
    facts = BalsamFacts(went, allocations, (site,) if site is not None else ())
    return explain_balsam(job, facts, (), NOW)


RAN = ("PREPROCESSED", "RUNNING")
LIVING, STALE = allocation("running"), allocation("running", heartbeat_at=ago(900))
QUEUED = allocation("queued", id=6, start_at=None)
OF_FULL_TIME = allocation("finished", wall_time_s=600.0, start_at=ago(700), end_at=ago(100))
CUT_OFF = allocation("finished", wall_time_s=3_600.0, start_at=ago(700), end_at=ago(100))

CASES: tuple[tuple[str, Code, Job, Sequence[StateChange], Sequence[Allocation], Site], ...] = (
    ("parents", Code.WAITING_PARENTS, a_job("AWAITING_PARENTS", message="2 parent jobs"), (), (), SITE),
    ("stage in", Code.STAGING, a_job("READY"), changes("CREATED", "READY"), (), SITE),
    ("to prepare", Code.STAGING, a_job("STAGED_IN"), changes("READY", "STAGED_IN"), (), SITE),
    ("agent down", Code.SITE_AGENT_DOWN, a_job("STAGED_IN"), changes("READY", "STAGED_IN"), (), SILENT),
    ("not finished", Code.SITE_AGENT_DOWN, a_job("RUN_DONE"), changes(*RAN, "RUN_DONE"), (), SILENT),
    ("no nodes", Code.NO_ALLOCATION, a_job("PREPROCESSED", allocation=""), (), (), SITE),
    ("in the queue", Code.WAITING_ALLOCATION, a_job("PREPROCESSED"), (), (QUEUED,), SITE),
    ("no room", Code.WAITING_ALLOCATION, a_job("PREPROCESSED"), (), (LIVING,), SITE),
    ("launcher gone", Code.LAUNCHER_STALE, a_job("PREPROCESSED"), (), (STALE,), SITE),
    ("runs", Code.RUNNING, a_job("RUNNING"), changes(*RAN), (LIVING,), SITE),
    ("runs no more", Code.LAUNCHER_STALE, a_job("RUNNING"), changes(*RAN), (STALE,), SITE),
    ("killed", Code.ALLOCATION_KILLED, a_job("RUNNING"), changes(*RAN), (CUT_OFF,), SITE),
    (
        "killed, to run again", Code.ALLOCATION_KILLED, a_job("RESTART_READY"),
        changes(*RAN, "RUN_TIMEOUT", "RESTART_READY"), (CUT_OFF,), SITE,
    ),
    (
        "out of time", Code.TIMED_OUT, a_job("RESTART_READY"),
        changes(*RAN, "RUN_TIMEOUT", "RESTART_READY"), (OF_FULL_TIME,), SITE,
    ),
    (
        "expired", Code.ALLOCATION_KILLED, a_job("RUN_TIMEOUT"),
        changes(*RAN, "RUN_TIMEOUT", message="Session expired: job was stuck"), (OF_FULL_TIME,), SITE,
    ),
    (
        "not prepared", Code.PREPARE_FAILED, a_job("FAILED", error="no such parameter"),
        changes("STAGED_IN", "FAILED", message="no such parameter"), (), SITE,
    ),
    ("done", Code.COMPLETED, a_job("JOB_FINISHED", started_at=ago(90), ended_at=ago(60)), (), (), SITE),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_each_state_has_its_verdict(
    case: tuple[str, Code, Job, Sequence[StateChange], Sequence[Allocation], Site],
) -> None:
    _, code, job, went, allocations, site = case
    verdict = explained(job, went, allocations, site)
    assert verdict.code is code, verdict.sentence
    assert verdict.next
    assert all(one.at is not None for one in verdict.evidence)


def test_the_return_code_is_said() -> None:
    went = [*changes(*RAN, "RUN_ERROR", returncode=3, error="boom")]
    went += [StateChange(9, ID, ago(30), "RUN_ERROR", "FAILED", "api")]
    verdict = explained(a_job("FAILED", error="boom"), went)
    assert verdict.code is Code.PROGRAM_FAILED
    assert "return code 3: boom" in verdict.sentence
    assert verdict.confidence >= 0.9


def test_what_is_not_known_makes_it_less_sure() -> None:
    known = explained(a_job("PREPROCESSED"), changes("STAGED_IN", "PREPROCESSED"))
    unknown = explained(a_job("PREPROCESSED"), (), (), None)
    assert unknown.confidence < 0.5 < known.confidence
    assert {"no events of the job were read", "its site is not known"} <= set(unknown.blind_spots)


def test_every_state_has_a_rule_and_an_odd_one_is_named() -> None:
    assert RULES.keys() == STATUSES.keys()
    odd = msgspec.structs.replace(a_job("READY"), native_status="MADE_UP", status=JobStatus.UNKNOWN)
    assert "MADE_UP" in explained(odd).sentence


def test_a_job_of_balsam_is_not_asked_for_messages() -> None:
    job = a_job("RUNNING")
    made = study(
        Correlator(), {ID: job}, (), ID, NOW, None, balsam=BalsamFacts(changes(*RAN), (LIVING,), (SITE,))
    )
    assert made.verdict.code is Code.RUNNING
    assert not made.chain.waits


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_is_taken(text: str) -> None:
    job = a_job("FAILED", error=text)
    assert explained(job, changes(*RAN, "FAILED", message=text)).sentence
