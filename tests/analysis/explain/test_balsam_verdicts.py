"""Verdicts on jobs of Balsam: what a state means, given allocations, launchers and the agent of a site."""

from collections.abc import Sequence

import msgspec
import pytest

from jobtui.analysis.explain.case import Evidence
from jobtui.analysis.explain.verdict import explain
from jobtui.analysis.systems.balsam import RULES
from jobtui.backends.balsam.records import STATUSES
from jobtui.model.changes import Allocation, Site, StateChange
from jobtui.model.health import SourceHealth, SourceState
from jobtui.model.jobs import BLOCKED, DELETED, Job, JobDetail, JobStatus
from jobtui.model.verdicts import Code, Verdict
from tests.analysis.explain.balsam_cases import ID, LIVING, RAN, SITE, STALE, a_job, allocation, changes
from tests.builders import HOSTILE, ago
from tests.conftest import NOW

SILENT = msgspec.structs.replace(SITE, seen_at=ago(900))


def explained(
    job: Job,
    went: Sequence[StateChange] = (),
    allocations: Sequence[Allocation] = (),
    site: Site | None = SITE,
    source: SourceHealth | None = None,
) -> Verdict:
    return explain(
        Evidence(
            job_id=job.id,
            now=NOW,
            job=job,
            changes=tuple(went),
            allocations=tuple(allocations),
            sites=(site,) if site is not None else (),
            sources=(source,) if source is not None else (),
        )
    )


SHORT = allocation("finished", wall_time_s=60.0, start_at=ago(90), end_at=ago(60))
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
    verdict = explained(a_job("RUNNING"), changes(*RAN), (LIVING,))
    assert verdict.code is Code.RUNNING
    assert not verdict.waits.waits


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_is_taken(text: str) -> None:
    job = a_job("FAILED", error=text)
    assert explained(job, changes(*RAN, "FAILED", message=text)).sentence


AGAIN = ("PREPROCESSED", "RUNNING", "RUN_ERROR", "RESTART_READY", "RUNNING")


@pytest.mark.parametrize(
    ("way", "code", "words"),
    [
        (("READY", "STAGED_IN", "FAILED"), Code.PREPARE_FAILED, "pre-processing: it raised"),
        (("STAGED_IN", "PREPROCESSED", "FAILED"), Code.PREPARE_FAILED, "could not start it: it raised"),
        ((*AGAIN[:4], "FAILED"), Code.PREPARE_FAILED, "could not start it again: it raised"),
        ((*RAN, "RUN_DONE", "FAILED"), Code.POSTPROCESS_FAILED, "post-processing failed: it raised"),
        ((*AGAIN, "RUN_DONE", "FAILED"), Code.POSTPROCESS_FAILED, "post-processing failed: it raised"),
        ((*AGAIN, "RUN_DONE", "POSTPROCESSED", "FAILED"), Code.POSTPROCESS_FAILED, "not staged out"),
        ((*AGAIN, "RUN_ERROR", "FAILED"), Code.PROGRAM_FAILED, "return code 9: the end. The handling"),
        ((*AGAIN, "RUN_TIMEOUT", "FAILED"), Code.TIMED_OUT, "it raised"),
    ],
)
def test_a_failure_is_told_by_where_it_came_from(way: tuple[str, ...], code: Code, words: str) -> None:
    """And never by an error of an earlier run."""
    went = changes(*way, message="it raised")
    errors = [change.id for change in went if change.after == "RUN_ERROR"]
    told = {number: {"returncode": 7, "error": "at first"} for number in errors[:1]}
    told |= {number: {"returncode": 9, "error": "the end"} for number in errors[1:]}
    went = [
        msgspec.structs.replace(change, detail=told[change.id]) if change.id in told else change
        for change in went
    ]
    verdict = explained(a_job("FAILED", error="of whatever run"), went, (OF_FULL_TIME,))
    assert verdict.code is code, verdict.sentence
    assert words in verdict.sentence
    assert "at first" not in verdict.sentence


@pytest.mark.parametrize(
    ("needs", "code", "is_sure"),
    [
        ([("balsam/1", "JOB_FINISHED"), ("balsam/2", "FAILED")], Code.NEVER_STARTS, True),
        ([("balsam/1", "RUNNING"), ("balsam/2", DELETED)], Code.NEVER_STARTS, True),
        ([("balsam/2", BLOCKED)], Code.NEVER_STARTS, True),
        ([("balsam/2", "RESTART_READY")], Code.WAITING_PARENTS, True),
        ([("balsam/1", "RUNNING"), ("balsam/2", "")], Code.WAITING_PARENTS, False),
        ([], Code.WAITING_PARENTS, False),
    ],
)
def test_a_job_is_no_surer_to_start_than_its_parents(
    needs: list[tuple[str, str]], code: Code, is_sure: bool
) -> None:
    verdict = explained(a_job("AWAITING_PARENTS", needs=tuple(needs)))
    assert verdict.code is code, verdict.sentence
    assert (verdict.confidence >= 0.8) is is_sure
    assert all(name in verdict.sentence for name, state in needs if state in ("FAILED", DELETED, BLOCKED))


def test_files_that_were_not_brought_in_hold_a_job_up() -> None:
    verdict = explained(a_job("READY", needs=(("the stage-in of in.dat", "no such file"),)))
    assert verdict.code is Code.STAGING_FAILED
    assert "the stage-in of in.dat failed: no such file" in verdict.sentence


@pytest.mark.parametrize(
    ("own", "detail", "code"),
    [
        (allocation("pending_deletion", wall_time_s=3_600.0), {}, Code.ALLOCATION_KILLED),
        (allocation("running", wall_time_s=3_600.0, start_estimated=True), {}, Code.ALLOCATION_KILLED),
        (allocation("running", wall_time_s=500.0, start_estimated=True), {}, Code.TIMED_OUT),
        (SHORT, {}, Code.ALLOCATION_KILLED),
        (allocation("finished", wall_time_s=60.0, start_at=ago(130), end_at=ago(70)), {}, Code.TIMED_OUT),
        (OF_FULL_TIME, {"message": "Session expired: x"}, Code.ALLOCATION_KILLED),
    ],
)
def test_what_cut_a_run_off(own: Allocation, detail: dict[str, object], code: Code) -> None:
    verdict = explained(a_job("RUN_TIMEOUT"), changes(*RAN, "RUN_TIMEOUT", **detail), (own,))
    assert verdict.code is code, verdict.sentence


@pytest.mark.parametrize(
    ("nodes", "code"),
    [("4", Code.WAITING_ALLOCATION), ("5", Code.NO_ALLOCATION), ("5, 2 jobs on a node", Code.NO_ALLOCATION)],
)
@pytest.mark.parametrize("state", ["running", "queued"])
def test_an_allocation_that_is_too_small_takes_no_job(state: str, nodes: str, code: Code) -> None:
    job = a_job("PREPROCESSED")
    detail = JobDetail(job=job, runs=(), history=(), native={}, path="", facts=(("nodes", nodes),))
    verdict = explain(
        Evidence(job_id=ID, now=NOW, job=job, detail=detail, allocations=(allocation(state),), sites=(SITE,))
    )
    assert verdict.code is code
    assert ("no allocation of 5 nodes (the largest has 4)" in verdict.sentence) is (
        code is Code.NO_ALLOCATION
    )


def test_an_allocation_for_other_tags_takes_no_job() -> None:
    other = allocation("running", tags=(("experiment", "of others"),))
    assert explained(a_job("PREPROCESSED", tags="experiment:b"), (), (other,)).code is Code.NO_ALLOCATION
    own = allocation("running", tags=(("experiment", "of us"),))
    job = a_job("PREPROCESSED", tags="experiment:of_us size:1")
    assert explained(job, (), (own,)).code is Code.WAITING_ALLOCATION


def test_why_the_last_allocation_was_not_to_be_had() -> None:
    failed = allocation("submit_failed", id=9, note="no budget")
    assert "no budget" in explained(a_job("PREPROCESSED"), (), (failed,)).sentence


@pytest.mark.parametrize("ahead_s", [-330.0, 0.0, 330.0])
@pytest.mark.parametrize("state", [SourceState.OK, SourceState.DOWN])
@pytest.mark.parametrize("is_alive", [True, False])
def test_silence_is_judged_by_the_servers_clock_when_it_was_read(
    ahead_s: float, state: SourceState, is_alive: bool
) -> None:
    """A server whose clock is off, or that is down for ten minutes, makes no launcher silent."""
    read_s = 600.0 if state is SourceState.DOWN else 1.0
    heard = ago(read_s - ahead_s + (20 if is_alive else 400))
    source = SourceHealth(name="api", kind="balsam", state=state, read_at=ago(read_s), ahead_s=ahead_s)
    own = allocation("running", heartbeat_at=heard, start_at=ago(4_000))
    site = msgspec.structs.replace(SITE, seen_at=heard)
    running = explained(a_job("RUNNING"), changes(*RAN), (own,), site, source)
    assert running.code is (Code.RUNNING if is_alive else Code.LAUNCHER_STALE)
    staged = explained(a_job("STAGED_IN"), changes("READY", "STAGED_IN"), (), site, source)
    assert staged.code is (Code.STAGING if is_alive else Code.SITE_AGENT_DOWN)
