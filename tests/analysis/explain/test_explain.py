"""Verdicts on simulated incidents and jobs of Balsam, HTCondor, Slurm; what is usual, what to type next."""

import json
import os
import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from jobtui.analysis.explain.case import CERTAIN, SURE, Evidence
from jobtui.analysis.explain.flow import FINAL_WORDS, WORDS, mark_of, usual_length
from jobtui.analysis.explain.next_steps import on_sources
from jobtui.analysis.explain.verdict import explain
from jobtui.analysis.flags import limit_s
from jobtui.analysis.systems.balsam import RULES
from jobtui.analysis.systems.slurm import BY_STATUS, ENDED
from jobtui.backends.balsam.records import STATUSES
from jobtui.backends.slurm.records import job_of
from jobtui.demo.incidents import INCIDENTS
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.condor import LOG_GAP, CondorLife, changes_of
from jobtui.model.health import FailingPart, SourceHealth, SourceState
from jobtui.model.ids import ContainerName, JobId
from jobtui.model.jobs import Category, Job, JobDetail, JobStatus, ReasonSeen
from jobtui.model.logs import CondorFact, Origin
from jobtui.model.ops import Op
from jobtui.model.slurm import STATUSES as SLURM_STATUSES
from jobtui.model.slurm import SlurmExit, SlurmJob, reason_of
from jobtui.model.tables import tables_of
from jobtui.model.verdicts import Code, Concern, NextStep, UsualTime, Verdict
from jobtui.render.verdicts import history_line
from tests.analysis.captured import CAPTURES, ROOT, correlate, logs
from tests.analysis.explain.cases import (
    RAN,
    SITE,
    Played,
    a_job,
    allocation,
    changes,
    evidence_of,
    evidence_on,
    on_balsam,
    played,
    record_in,
    up_to,
    written_at,
)
from tests.builders import ago, an_op, some
from tests.condor import JOB, SCHEDD, book_of, event, executing, facts_of, submitted
from tests.conftest import NOW
from tests.demo.sites import DriverName
from tests.offenders import each
from tests.rows import table

SOON = 30 * SECOND


@each(b"timeout=8\n", b"timeout=8..\n", b"timeout=8" + b"9" * 5_000 + b"\n")
def test_an_agent_that_never_starts_names_the_limit(damage: bytes) -> None:
    folder = ROOT / "docker-agents-never-start"
    data = {path.name: path.read_bytes().replace(b"timeout=8\n", damage) for path in folder.glob("*.log")}
    verdicts = []
    for path in sorted((folder / "supervisor-job").glob("*.json")):
        detail = record_in(folder, path.stem)
        if detail is not None and detail.job.status.is_live:
            verdicts.append(explain(evidence_of(path.stem, data, detail, Nanos(written_at(detail) + SOON))))
    assert [verdict.code for verdict in verdicts] == [Code.AGENT_NEVER_STARTED]
    assert verdicts[0].limit_s == 8, "the usual limit, where the line does not tell it"
    assert "8s" in verdicts[0].sentence
    assert verdicts[0].missing_step == "the agent's first message"
    assert any("timeout=8" in evidence.text for evidence in verdicts[0].evidence)


PLAYED_S = {"time-limit": (420,)}
"""How long incidents are played: those that stay as they are may be looked at soon or late."""
SOON_OR_LATE_S = (90, 130, 200, 420)
SEEDS = int(os.environ.get("JOBTUI_WORLDS", "30"))
AT_ODDS = {"stale-record"}
"""Incidents that leave a record which nobody sets right."""


@pytest.mark.parametrize("name", INCIDENTS)
def test_incidents_get_the_right_verdict(name: str) -> None:
    draw = random.Random(name)
    drivers = (DriverName.LOCAL,) if INCIDENTS[name].on_cluster else (DriverName.LOCAL, DriverName.DOCKER)
    for seed in range(SEEDS):
        played_s = draw.choice(PLAYED_S.get(name, SOON_OR_LATE_S))
        play = Played(name, seed, draw.choice(drivers), played_s)
        verdict = explain(play.evidence())
        assert verdict.code == play.expected, (play.jid, verdict)
        assert bool(verdict.contradictions) == (name in AT_ODDS), verdict


def test_earlier_runs_of_the_job_are_one_line() -> None:
    evidence = played("program-error", 1, DriverName.DOCKER, 130).evidence()
    detail = some(evidence.detail)
    good, bad = detail.runs
    three = replace(detail, runs=(good, bad, replace(bad, number=3)))
    verdict = explain(replace(evidence, detail=three))
    assert history_line(verdict).startswith("as run 2 did; run 1 was good (2026-11-20 ")
    assert explain(replace(evidence, detail=replace(detail, runs=(bad,)))).history is None


def test_earlier_reasons_for_waiting_are_shown() -> None:
    """Of a job of Sirepo by its log, else by its record as it was read; of HTCondor by events and its ad."""
    evidence = played("waiting-for-slot", 1, DriverName.DOCKER, 130).evidence()
    seen = tuple(ReasonSeen(evidence.job_id, ago(at), why) for at, why in ((90, "pending"), (30, "CPU")))
    for ops, first in ((evidence.ops, "the wait for the agent → CPU slot"), ((), "pending → CPU")):
        said = explain(replace(evidence, ops=ops, reasons=seen)).sentence
        assert (f"So far: {first} since" in said, said.endswith("Z or earlier.")) == (True, not ops)
    job, facts = told(facts_of((submitted() + HELD_THEN_RELEASED).encode()))
    seen = (ReasonSeen(job.id, LATE, "IDLE: no match found"),)
    went = changes_of(job.id, life := CondorLife(facts), life.turns)
    verdict = explain(Evidence(job_id=job.id, now=LATE, job=job, facts=facts, reasons=seen, changes=went))
    why = [reason for _, reason in some(verdict.pending).history]
    assert why == ["IDLE", "HELD: no room", "IDLE", "IDLE: no match found"]


NOT_PART_OF_THE_FLOW = frozenset({
    "answers run_status", "note from the agent", "error with job_cmd", "late reply, ignored",
    "cancel ignored, not running", "late status, ignored", "run directory purged",
})  # fmt: skip
"""Steps that no run has to pass."""


def test_every_captured_step_is_known_to_the_flow_and_no_words_mean_two() -> None:
    steps = (one for capture in CAPTURES for op in correlate(logs(capture)).ops() for one in op.steps)
    unknown = {one.step for one in steps if mark_of(one) is None}
    assert {step for step in unknown if not step.startswith("api_")} <= NOT_PART_OF_THE_FLOW
    assert not set(WORDS) & set(FINAL_WORDS)


def test_a_run_is_measured_from_its_sending_to_its_good_end() -> None:
    sent = Nanos(1_000 * SECOND)
    runs = [
        an_op(sent_at=sent, ended_at=Nanos(sent + length * SECOND), result=result)
        for length, result in ((1, "completed"), (2, "completed"), (9, "completed"), (500, "error"))
    ]
    assert usual_length(runs) == UsualTime(3, 2, 9)
    assert usual_length(runs[1:]) is None


def runs_of(length: UsualTime | None) -> tuple[Op, ...]:
    """Earlier runs with these lengths."""
    if length is None:
        return ()
    sent = Nanos(1_000 * SECOND)
    took = [*[length.p50_s] * (length.n - 1), length.p99_s]
    return tuple(an_op(sent_at=sent, ended_at=Nanos(sent + round(s) * SECOND)) for s in took)


def still_running() -> Evidence:
    play = played("stale-record", 5, DriverName.LOCAL, 90)
    logs = {one: up_to("same status=running")(log) for one, log in play.logs.items() if one != "server.log"}
    return evidence_of(play.jid, logs, play.detail, play.now)


def running(length: UsualTime | None) -> str:
    verdict = explain(msgspec.structs.replace(still_running(), alike=runs_of(length)))
    assert verdict.code is Code.RUNNING
    return verdict.sentence


@each(-100, 10, 50)
def test_only_news_from_after_its_limit_make_a_run_surely_running(over_s: int) -> None:
    evidence = still_running()
    known, news = some(evidence.job), Nanos(evidence.now - 30 * SECOND)
    begin = Nanos(evidence.now - round(some(limit_s(known)) + over_s) * SECOND)
    job = msgspec.structs.replace(known, started_at=begin, updated_at=news, written_at=news)
    verdict = explain(msgspec.structs.replace(evidence, job=job))
    assert (verdict.code, verdict.confidence < 0.5) == (Code.RUNNING, over_s == 10)


def test_a_verdict_says_what_is_usual_or_what_the_limit_is() -> None:
    assert "of at most" in running(None)
    assert "for 1m30s, usually 2m (99 % within 5m, of 34)" in running(UsualTime(34, 120, 300))
    assert "for 1m30s, longer than usually 20s (99 % within 30s, of 34)" in running(UsualTime(34, 20, 30))
    assert "too few" in running(UsualTime(4, 20, 30))


BAD = "-oProxyCommand=$(touch x); `id` 'q"


def steps(incident: str, host: str | None = None) -> Iterator[NextStep]:
    evidence = played(incident, 5, DriverName.DOCKER, 130).evidence()
    if host is not None:
        agents = {
            prefix: msgspec.structs.replace(agent, host=host, container=ContainerName(host))
            for prefix, agent in evidence.agents.items()
        }
        evidence = msgspec.structs.replace(evidence, agents=agents)
    yield from on_sources(explain(evidence), ["--srdb", "/a b/c"]).next


@each("agent-death", "agent-never-starts")
def test_outside_names_stay_one_word_and_no_option(incident: str) -> None:
    assert any(step.command.startswith("ssh ") for step in steps(incident, "v1"))
    found = [step.command for step in steps(incident, BAD)]
    assert found
    assert not any("touch" in command for command in found), "it is no name of a host"


OF_BALSAM = table("balsam/verdicts")["case"]


@each(*OF_BALSAM)
def test_each_state_has_its_verdict(row: dict[str, Any]) -> None:
    verdict = explain(evidence_on(row))
    assert verdict.code == row["answer"], verdict.sentence
    assert row.get("says", "") in verdict.sentence
    assert row.get("not", "?!") not in verdict.sentence
    assert row.get("doubt", "") in "; ".join(verdict.blind_spots)
    assert row.get("sure", verdict.confidence >= 0.8) == (verdict.confidence >= 0.8)
    assert row.get("next", "jobtui timeline balsam/17") in [step.command for step in verdict.next]
    assert all(one.at is not None for one in verdict.evidence)


def test_missing_facts_lower_the_confidence() -> None:
    known = explain(on_balsam(a_job("PREPROCESSED"), changes("STAGED_IN", "PREPROCESSED")))
    unknown = explain(on_balsam(a_job("PREPROCESSED"), (), (), None))
    assert unknown.confidence < 0.5 < known.confidence
    assert {"no events of the job were read", "its site is not known"} <= set(unknown.blind_spots)


def test_every_state_has_a_rule_and_an_odd_one_is_named() -> None:
    assert RULES.keys() == STATUSES.keys()
    odd = {"native_status": "MADE_UP", "status": JobStatus.UNKNOWN}
    assert "MADE_UP" in explain(on_balsam(replace(a_job("READY"), **odd))).sentence
    told = explain(on_balsam(replace(a_job("READY"), **odd), changes(*RAN, "RUN_DONE", "POSTPROCESSED")))
    assert (told.code, told.confidence < 0.5) == (Code.STAGING, True)
    assert '"MADE_UP", which jobtui does not know. By its last event: ' in told.sentence
    play = played("program-error", 1, DriverName.DOCKER, 130)
    verdict = explain(play.evidence(detail=play.record_with(**odd)))
    assert '"MADE_UP", which jobtui does not know. By its logs: ' in verdict.sentence
    assert 0.5 < verdict.confidence < explain(play.evidence()).confidence


@each(*product([-330.0, 0.0, 330.0], [SourceState.OK, SourceState.DOWN, SourceState.PARTIAL], [20, 30, 400]))
def test_silence_is_judged_by_the_servers_clock_when_it_was_read(
    ahead_s: float, state: SourceState, new_s: int
) -> None:
    """A server whose clock is off, or that says nothing for ten minutes, makes no launcher silent."""
    is_alive, read_s = new_s == 20, 1.0 if state is SourceState.OK else 600.0
    writers_read = ago(read_s - ahead_s + (20 if is_alive else 400))
    source = SourceHealth(name="api", kind="balsam", state=state, read_at=ago(read_s), ahead_s=ahead_s)
    if state is SourceState.PARTIAL:
        failing = tuple(FailingPart(part, "", ago(read_s)) for part in ("sites", "sessions"))
        source = msgspec.structs.replace(source, read_at=ago(1), failing=failing)
    own = allocation("running", heartbeat_at=writers_read, start_at=ago(4_000))
    site = msgspec.structs.replace(SITE, seen_at=writers_read)
    running = explain(on_balsam(a_job("RUNNING"), changes(*RAN), (own,), site, source))
    assert running.code is (Code.RUNNING if is_alive else Code.LAUNCHER_STALE)
    job = a_job("STAGED_IN", updated_at=ago(read_s - ahead_s + new_s))
    staged = explain(on_balsam(job, changes("READY", "STAGED_IN"), (), site, source))
    assert staged.code is (Code.STAGING if is_alive else Code.SITE_AGENT_DOWN)
    is_open = not is_alive and new_s > ahead_s > 0  # it may have been set forward just now
    assert any("perhaps only since then" in one for one in staged.blind_spots) is is_open


LATE = Nanos(1_795_172_400 * SECOND)
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


def on_condor(job: Job, facts: tuple[CondorFact, ...], *sources: SourceHealth) -> Verdict:
    return explain(Evidence(job_id=job.id, now=LATE, job=job, facts=facts, sources=sources))


def verdict_on(*texts: str) -> Verdict:
    job, facts = told(*(facts_of(text.encode(), f"file {at}") for at, text in enumerate(texts)))
    return on_condor(job, facts)


HELD_THEN_RELEASED = (
    event(12, "2026-11-20 10:05:00Z", "Job was held.", "no room", "Code 34 Subcode 0")
    + event(13, "2026-11-20 10:06:00Z", "Job was released.", "by me")
)  # fmt: skip

BEGAN = submitted() + executing()
RETRIED = event(
    4, LATER, "Job was evicted.", "(0) Job terminated and was requeued",
    "Usr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage", "(1) Normal termination (return value 3)",
    "The job attribute OnExitRemove expression 'ExitCode =?= 0' evaluated to FALSE",
)  # fmt: skip

CONDOR = table("condor_verdicts")
OF_CONDOR = CONDOR["case"]


@each(*OF_CONDOR)
def test_an_event_log_gives_the_verdict_of_the_table(told: dict[str, Any]) -> None:
    verdict = verdict_on(told["log"], *told.get("ads", ()))
    assert verdict.code.value == told["code"]
    assert told["says"] in verdict.sentence
    assert (verdict.confidence >= 0.8) is told["sure"]


def test_a_pending_job_counts_the_machines_that_meet_its_request() -> None:
    for told in CONDOR["requirements"]:
        job = {"ClusterId": 7, "ProcId": 0, "JobStatus": 1, "QDate": 1_795_168_800, **CONDOR["asks"]}
        job |= {"Requirements": f"/Expr({told['asks']})/", **told.get("more", {})}
        machines = told.get("machines") or json.dumps(CONDOR["machine"])
        texts = [machines.replace("HEARD", "1795172000")] * told.get("files", 1)
        verdict = verdict_on(*texts, json.dumps([job]))
        assert verdict.code is (Code.REQUEUED if "NumJobStarts" in told.get("more", ()) else Code.IDLE)
        found = [[what, how.partition(" of the ")[0]] for what, how in some(verdict.pending).needs]
        assert (told["asks"], found) == (told["asks"], told["found"])
        assert told["says"] in verdict.sentence


def test_a_verdict_cites_the_events_as_they_were_written() -> None:
    verdict = verdict_on(BEGAN + event(12, LATER, "Job was held.", "too much memory", "Code 34 Subcode 0"))
    assert [one.what for one in verdict.evidence] == ["submitted", "executing", "held"]
    assert verdict.evidence[-1].text.endswith("Job was held. | too much memory | Code 34 Subcode 0")
    assert (verdict.evidence[-1].source, verdict.evidence[-1].line) == ("file 0", 5)
    assert verdict.concern is Concern.STUCK
    assert [step.command for step in verdict.next][:2] == [
        "condor_q -hold -name jobsub02.fnal.gov 7.0",
        "condor_release -name jobsub02.fnal.gov 7.0",
    ]


def test_a_job_known_by_its_output_alone_names_what_was_not_read() -> None:
    spots = {"neither an event log nor a job ad of it was read", "a job that is killed writes no last line"}
    assert spots <= {*verdict_on(BEGIN).blind_spots}
    assert verdict_on(BEGAN, BEGIN).code is Code.RUNNING
    done = verdict_on(BEGAN, BEGIN + END.format(3))
    assert done.code is Code.PROGRAM_FAILED
    assert done.blind_spots == ("its wrapper says that it ended, and HTCondor has not said so yet",)


def test_files_that_tell_different_ends_and_a_source_that_is_down_make_it_less_sure() -> None:
    log = BEGAN + ended("(1) Normal termination (return value 0)")
    assert verdict_on(log, BEGIN + END.format(0)).confidence >= SURE
    verdict = verdict_on(log, BEGIN + END.format(3))
    assert (verdict.code, verdict.confidence <= 0.75) == (Code.COMPLETED, True)
    down = SourceHealth(name="b.log", kind="condor_log", state=SourceState.DOWN, error="gone")
    assert "b.log cannot be read: gone" in on_condor(*told(facts_of(BEGAN.encode())), down).blind_spots


HELD_AD = (
    "ClusterId = 7\nProcId = 0\nJobStatus = 5\nQDate = 1795168800\nEnteredCurrentStatus = 1795168800\n"
    'HoldReason = "submitted on hold"\nHoldReasonCode = 15\n'
)


@each("", ".750")
def test_a_job_that_was_submitted_on_hold_is_held_though_no_event_says_so(part: str) -> None:
    log = submitted(f"2026-11-20 10:00:00{part}Z")
    for texts in ((log, HELD_AD), (HELD_AD, log)):
        verdict = verdict_on(*texts)
        assert (verdict.code, verdict.confidence >= 0.9) == (Code.HELD, True)
        assert "submitted on hold (hold code 15)" in verdict.sentence
    assert any("submitted on hold" in spot for spot in verdict_on(log).blind_spots)


def test_a_run_that_is_retried_failed_and_was_not_canceled() -> None:
    book, _ = book_of(facts_of((BEGAN + RETRIED).encode()))
    detail = some(book.detail(JobId(JOB)))
    assert [(run.status, run.error) for run in detail.runs] == [(JobStatus.FAILED, "exit status 3")]


@each("", "no match found ")
def test_an_idle_ad_tells_what_it_asks_for_as_written(rejected: str) -> None:
    ad = {"MyType": "Job", "ClusterId": 7, "ProcId": 0, "GlobalJobId": f"{SCHEDD}#7.0#1", "JobStatus": 1,
          "QDate": 1_795_000_000, "RequestMemory": 900_000,
          "Requirements": 'TARGET.Arch == "ARM"'}  # fmt: skip
    text = json.dumps([ad | ({"LastRejMatchReason": rejected} if rejected else {})])
    pending = some(on_condor(*told(facts_of(text.encode()))).pending)
    asked = 'it asks for RequestMemory = 900000, Requirements = TARGET.Arch == "ARM"'
    assert pending.note == (f"the negotiator last said: no match found; {asked}" if rejected else asked)


@each((3, Code.COMPLETED), (0, Code.PROGRAM_FAILED))
def test_success_is_the_exit_status_that_the_job_names(status: int, code: Code) -> None:
    ad = "ClusterId = 7\nProcId = 0\nJobSuccessExitCode = 3\nQDate = 1795168800\n"
    log = BEGAN + ended(f"(1) Normal termination (return value {status})")
    told, alone = verdict_on(log, ad), verdict_on(log)
    assert told.code is code
    assert alone.confidence < told.confidence
    assert "which exit status counts as success" in alone.blind_spots[0]


def test_a_missing_part_of_the_log_makes_a_live_job_less_sure() -> None:
    gap = CondorFact("", Origin.EVENT, LOG_GAP, None, "a part was gone", "a.log", 0, -1, rotation=1)
    verdict = on_condor(*told(facts_of(BEGAN.encode()), [gap]))
    assert (verdict.code, verdict.confidence <= 0.6) == (Code.RUNNING, True)
    assert verdict.blind_spots == ("a part was gone: what happened to it since may be there",)
    over = BEGAN + ended("(1) Normal termination (return value 0)")
    job, facts = told(facts_of(over.encode()), [gap])
    assert on_condor(job, facts).confidence >= SURE


SOURCE = "ssh://cori"
SLURM = tables_of("jobtui.model", "slurm")


def a_slurm_job(state: str, **fields: Any) -> SlurmJob:
    status = SLURM_STATUSES.get(state, JobStatus.UNKNOWN)
    values: dict[str, Any] = {
        "id": "17", "raw": "17", "name": "beam", "user": "jdoe", "partition": "debug", "state": state,
        "submitted_at": ago(900), "limit_s": 1800.0,
    }  # fmt: skip
    if status is not JobStatus.PENDING:
        values |= {"started_at": ago(600), "nodes": "n1"}
    if status not in (JobStatus.PENDING, JobStatus.RUNNING):
        values |= {"ended_at": ago(60)}
    return SlurmJob(**(values | fields))


def on_slurm(job: SlurmJob, **facts: str) -> Verdict:
    made = job_of(job, SOURCE)
    named = tuple((name.replace("_", " "), text) for name, text in facts.items())
    detail = JobDetail(job=made, runs=(), history=(), native={}, facts=named)
    return explain(Evidence(job_id=made.id, now=NOW, job=made, detail=detail if facts else None))


@each(*table("slurm/verdicts")["case"])
def test_a_slurm_state_gives_a_verdict(row: dict[str, Any]) -> None:
    fields: dict[str, Any] = {name: row[name] for name in SlurmJob.__struct_fields__ if name in row}
    fields |= {"exit": SlurmExit(*row["exit"])} if "exit" in row else {}
    fields |= {} if row.get("begun", True) else {"started_at": None, "nodes": ""}
    verdict = on_slurm(a_slurm_job(**fields), **row.get("facts", {}))
    assert (verdict.code, verdict.confidence >= 0.7) == (row["code"], row.get("sure", True))
    assert row["says"] in verdict.sentence
    assert verdict.evidence[0].text.startswith(f"state: {row['state']}")
    commands = [step.command for step in verdict.next]
    assert row.get("next", "jobtui show slurm/17") in commands
    assert row.get("no_next") not in commands


def test_every_step_that_is_offered_is_in_the_table_and_no_step_is_never_offered() -> None:
    systems = tables_of("jobtui.analysis.explain", "next_steps").copy()
    steps, verdicts = systems.pop("steps"), [one for table in systems.values() for one in table.items()]
    assert {step for _, offered in verdicts for step in offered} == steps.keys()
    assert {key.partition(" ")[0] for key, _ in verdicts} <= {*Code, "any"}


@each(*sorted(SLURM_STATUSES))
def test_every_state_has_a_rule_and_a_concern_that_fits(state: str) -> None:
    assert state in ENDED or SLURM_STATUSES[state] in BY_STATUS
    verdict = on_slurm(a_slurm_job(state, exit=SlurmExit(1) if state == "FAILED" else None))
    assert (verdict.concern is Concern.FAILED) == (SLURM_STATUSES[state] is JobStatus.FAILED)


def test_an_exit_code_of_the_shell_or_a_late_end_is_less_sure() -> None:
    by_shell, by_slurm = (on_slurm(a_slurm_job("FAILED", exit=SlurmExit(*end))) for end in ((139,), (0, 11)))
    assert by_shell.code is by_slurm.code is Code.KILLED_BY_SIGNAL
    assert by_shell.confidence < by_slurm.confidence == CERTAIN
    early = a_slurm_job("FAILED", exit=SlurmExit(0, 53), ended_at=ago(599))
    late, told = replace(early, ended_at=ago(510)), replace(early, reason="JobLaunchFailure")
    least, more, most = (on_slurm(one).confidence for one in (late, early, told))
    assert least < more < 0.5 < most == SURE


@each(6, 9, 15)
def test_an_exit_code_that_sacct_may_have_cut_is_less_sure(code: int) -> None:
    job = a_slurm_job("FAILED", exit=SlurmExit(code))
    ends = (f"{code}:0", f"{code}:0, or {code + 128}: sacct leaves 128 out")
    whole, short = (on_slurm(job, exit=end) for end in ends)
    assert (whole.confidence, whole.blind_spots) == (CERTAIN, ())
    assert on_slurm(job).confidence == short.confidence < SURE
    assert str(code + 128) in short.blind_spots[0]


LIMITS = [
    f"{whose}{what}{minutes}{per}{end}"
    for whose in ("AssocGrp", "AssocMax", "QOSGrp", "QOSMax")
    for what in SLURM["resources"]
    for minutes in ("", "Minutes", "RunMinutes")
    for per in ("", "PerJob", "PerUser", "PerNode", "PerAccount")
    for end in ("", "Limit")
]


def test_every_reason_and_every_limit_has_words() -> None:
    for word in (*LIMITS, "QOSMinCpuNotSatisfied", "MaxGRESPerAccount", "AssocMaxJobsLimit", "QOSJobLimit"):
        reason = reason_of(word)
        assert reason.words.startswith("a limit: "), word
        assert "{" not in reason.words
        assert reason.is_stuck == ("PerJob" in word or "PerNode" in word or "Min" in word[:6])
    for word, (category, words, *stuck) in SLURM["waits"].items():
        assert reason_of(word) == (words, stuck == [True], Category(category))
        assert " " in words
    assert reason_of("ReqNodeNotAvail,_UnavailableNodes:n[1-3]") == reason_of("ReqNodeNotAvail")
    assert reason_of("SomethingNew").words == "SomethingNew"
    assert all(" " in words for words in SLURM["ended"].values())
