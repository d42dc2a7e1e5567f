"""Logs damaged or read in part, sources away, late or at odds: no verdict is wrong and sure.

`JOBTUI_WORLDS` says how many worlds of each kind are tried; `scripts/fuzz disturbed` tries more.
"""

import os
import random
import re
from collections.abc import Collection, Sequence
from functools import partial
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from jobtui.analysis import systems
from jobtui.analysis.correlation.correlator import Correlator
from jobtui.analysis.explain.case import GUESS, Case, Evidence
from jobtui.analysis.explain.verdict import explain, source_doubts
from jobtui.analysis.systems.balsam import RULES
from jobtui.backends.log_start import TailBytes
from jobtui.backends.logfile import LogFile
from jobtui.demo.site import SERVER_LOG, SUPERVISOR_LOG
from jobtui.formats.parser import SHAPE as DAMAGED
from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, FixedClock, Nanos, to_rfc3339
from jobtui.model.health import QUIET_S, FailingPart, SourceHealth, SourceState
from jobtui.model.jobs import JobStatus
from jobtui.model.logs import LogRecord
from jobtui.model.ops import WritersRead
from jobtui.model.verdicts import Cause, Code, Verdict
from jobtui.session import Session
from tests import builders
from tests.analysis.explain.cases import (
    CONFIDENT,
    LIVING,
    RAN,
    SITE,
    Played,
    Spoil,
    a_job,
    changes,
    check_incidents_say_the_same,
    evidence_of,
    on_balsam,
    played,
    up_to,
    without,
)
from tests.analysis.explain.worlds import DISTURBANCES, PAIRS, SURE, SYSTEMS, damaged, disturbed
from tests.builders import ago, some
from tests.conftest import NOW
from tests.demo.sites import DriverName
from tests.offenders import each
from tests.rows import ROWS

WORLDS = (
    62082, 62086, 62150, 62157, 62298, 62335, 62463, 62808, 62837, 63004, 63145, 63547, 64016, 64190, 64230,
    64307, 64388, 64458, 81063, 92264, 94789, 710354, 77000306, 77001736, 77002155, 450000878,
    450001810, 94542, 3100000467, *random.Random(20_261_122).sample(range(1 << 30), 28),
)  # fmt: skip

the_error = partial(played, "program-error", 5, DriverName.LOCAL, 130)
a_play = partial(played, "agent-death", 5, DriverName.LOCAL, 130)


@pytest.mark.parametrize("number", WORLDS)
def test_no_verdict_on_a_damaged_world_is_wrong_and_sure(number: int) -> None:
    whole, *others = damaged(number)
    assert whole.is_right, whole
    for one in others:
        if not one.is_right:
            assert not one.is_sure_and_wrong, one
            assert one.verdict.blind_spots, one
        elif "clock" not in one.disturbance:
            assert one.verdict.confidence <= whole.verdict.confidence, one


def spoilt(play: Played, pattern: bytes, by: bytes) -> Evidence:
    def spoil(log: bytes) -> bytes:
        log, count = re.subn(pattern, by, log)
        assert count
        return log

    return play.evidence(spoil)


def is_named(verdict: Verdict, words: str) -> bool:
    return any(words in spot for spot in verdict.blind_spots)


@each(b"\0" * 300, b"\xff\xfe garbage")
def test_a_damaged_place_near_a_run_is_named_and_lowers_confidence(by: bytes) -> None:
    play = the_error()
    whole, verdict = explain(play.evidence()), explain(spoilt(play, rb"(?m)^.*job_agent.py.*_on_exit.*$", by))
    assert whole.confidence >= CONFIDENT > verdict.confidence
    assert is_named(verdict, "is damaged near its lines")
    assert not is_named(whole, "is damaged near its lines")


@each(DriverName.LOCAL, DriverName.DOCKER)
def test_lines_delivered_twice_and_damage_in_a_servers_log_change_no_verdict(driver: DriverName) -> None:
    play = played("program-error", 5, driver, 130)
    logs = {name: b"".join(2 * line for line in log.splitlines(True)) for name, log in play.logs.items()}
    logs[SERVER_LOG] = re.sub(rb"\n", b"\n\xff\xfe garbage\n", logs[SERVER_LOG])
    evidence = evidence_of(play.jid, logs, play.detail, play.now)
    assert SERVER_LOG in evidence.writers_read.damaged
    told = attrgetter("code", "confidence", "blind_spots")
    assert told(explain(evidence)) == told(explain(play.evidence()))


def test_an_explicit_line_stays_sure_next_to_damage() -> None:
    play = played("prepare-fails", 5, DriverName.LOCAL, 130)
    verdict = explain(spoilt(play, rb"(?m)^.*tornado/web.*$", b"\0\0\0"))
    assert verdict.code is Code.PREPARE_FAILED
    assert verdict.confidence >= CONFIDENT
    assert is_named(verdict, "is damaged near its lines")


def test_a_failing_line_that_was_read_tells_as_much_as_the_exit() -> None:
    no_exit = the_error().evidence(without("_on_exit"))
    cause = Cause("RuntimeError: no", 1, "python", 0.9, "run.log")
    assert explain(msgspec.structs.replace(no_exit, cause=cause)).confidence == 0.9


LATE_IN_THE_LOG = 50_000_000


def a_record(shape: str, offset: int, at: Nanos | None = None) -> LogRecord:
    return LogRecord(SUPERVISOR_LOG, 1, offset, at, None, shape, {}, "")


@each((None, True), (-10, True), (-4 * 3600, False))
def test_damage_before_a_rotation_is_near_if_a_line_of_it_is_next(after_s: int | None, is_near: bool) -> None:
    """The file of before is damaged at byte 50 million, the run begins at the beginning of the next one."""
    play = the_error()
    log, whole = play.logs[SUPERVISOR_LOG], play.evidence()
    began = min(step.at for op in whole.ops for step in op.steps if step.at is not None)
    correlator = Correlator()
    correlator.feed([a_record("before", LATE_IN_THE_LOG, Nanos(began - 5 * 3600 * SECOND))])
    correlator.feed([a_record(DAMAGED, LATE_IN_THE_LOG + 100)])
    if after_s is not None:
        correlator.feed([a_record("after", LATE_IN_THE_LOG + 900, Nanos(began + after_s * SECOND))])
    correlator.feed(LogParser(SUPERVISOR_LOG).parse(log, 0, 1, play.now).records)
    writers_read, ops = correlator.writers_read, correlator.ops_of(whole.job_id)
    verdict = explain(msgspec.structs.replace(whole, writers_read=writers_read, ops=ops))
    assert is_named(verdict, "is damaged near its lines") is is_near
    assert (verdict.confidence < CONFIDENT) is is_near


class Trap(NamedTuple):
    """An incident, what is done to its log, and the verdict that would be wrong to be sure of."""

    incident: str
    spoil: tuple[Spoil, ...]
    wrong: Code


TRAPS = {
    "the log ends with the cancel": Trap(
        "user-cancel",
        (without("job_agent"), up_to(r"_Op\(cancel, \w+\) await _reply_q")),
        Code.CANCEL_UNCONFIRMED,
    ),
    "the restart's line is missing": Trap(
        "stale-record", (without("default_command"),), Code.AGENT_LOST
    ),
    "the restart's line and the sending are missing": Trap(
        "stale-record", (without("default_command", r"\] _Op\(run, \w+\) runDir=", r"\]\) _Op\(run"),),
        Code.AGENT_LOST,
    ),
    "the traceback's words are spoilt": Trap(
        "prepare-fails",
        (lambda log: re.sub(rb"(?<=stderr=b\')[^\n]+|UserAlert|_?prepare\w*|write_parameters", b"xxx", log),),
        Code.PROGRAM_FAILED,
    ),
}  # fmt: skip


@each(*TRAPS)
def test_missing_lines_make_a_verdict_unsure(name: str) -> None:
    trap = TRAPS[name]
    play = played(trap.incident, 5, DriverName.LOCAL, 130)
    verdict = explain(play.evidence(*trap.spoil))
    assert verdict.code in (trap.wrong, play.expected)
    assert verdict.code == play.expected or (verdict.confidence < CONFIDENT and verdict.blind_spots), verdict


def test_a_record_that_lost_its_error_makes_a_verdict_unsure() -> None:
    evidence, change = played("program-error", 5, DriverName.LOCAL, 130).evidence(), msgspec.structs.replace
    lost = change(some(evidence.job), error=None)
    assert explain(evidence).confidence >= CONFIDENT
    evidence = change(evidence, job=lost, detail=change(some(evidence.detail), job=lost))
    assert explain(evidence).confidence < CONFIDENT


def test_lines_without_times_may_be_those_of_an_earlier_run() -> None:
    """The first of two runs was refused for want of a login; the lines of the second were not read."""
    play = played("sbatch-login-needed", 5, DriverName.LOCAL, 130)
    times = rb"(?m)^[A-Z][a-z]{2} \d\d [\d:]{8} +\d+ +\d+ (?!\S*job_agent)"
    logs = {SUPERVISOR_LOG: re.sub(times, b"", play.logs[SUPERVISOR_LOG])}
    evidence = evidence_of(play.jid, logs, play.record_with(runs=2), play.now)
    assert some(Case(evidence).run).created_at is None
    verdict = explain(evidence)
    assert verdict.confidence < CONFIDENT
    assert any("no times" in spot for spot in verdict.blind_spots)


@each(True, False)
def test_a_refused_run_may_have_been_followed_by_another(is_read: bool) -> None:
    play = played("sbatch-login-needed", 5, DriverName.LOCAL, 130)
    waits = play.record_with(status=JobStatus.PENDING, native_status="pending", error=None, ended_at=None)
    verdict = explain(evidence_of(play.jid, play.logs, waits if is_read else None, play.now))
    assert verdict.confidence < CONFIDENT
    assert verdict.blind_spots


def test_a_pending_record_of_a_run_that_has_ended_is_stale() -> None:
    waits = the_error().record_with(status=JobStatus.PENDING, native_status="pending", ended_at=None)
    assert explain(the_error().evidence(detail=waits)).code is Code.STALE_RECORD


LATER = rb"""1276:__init__ _Op(run_status, zzzz) runDir=/srv/db/user/\1/myapp/\2/\3
263:receive ServerReq(api_runStatus, \1-\2-\3) error='PKDict' object has no attribute 'activePlan'
"""


@each(*ROWS["agents that are lost"])
def test_an_agent_is_lost_for_sure_only_where_its_supervisor_went_on(
    exit_code: str, later_pid: int, doubt: str
) -> None:
    """Its agent exited; then a request that fails reaches its supervisor (0), another one, or none (-1)."""
    play = played("stale-record", 5, DriverName.LOCAL, 130)

    def spoil(log: bytes) -> bytes:
        log, count = re.subn(rb"returncode=-15", b"returncode=" + exit_code.encode(), log)
        assert count == 1
        head = b"Nov 20 20:36:00 %d     0 sirepo/job_supervisor.py:" % (later_pid or int(log.split()[3]))
        later = re.sub(rb"(\w+)-(\w+)-(\w+)", LATER, play.jid.encode()).splitlines(keepends=True)
        return log + b"".join(head + line for line in later if later_pid >= 0)

    verdict = explain(play.evidence(without(r":kill ", "init_module", "default_command"), spoil))
    assert verdict.code is Code.AGENT_LOST
    assert (verdict.confidence >= CONFIDENT) is (not doubt), verdict
    assert any(doubt in spot for spot in verdict.blind_spots) or not doubt


@each(*ROWS["cancels that are not confirmed"])
def test_an_unconfirmed_cancel_says_which_steps_it_passed(last_line: str, words: str) -> None:
    play = played("user-cancel", 5, DriverName.LOCAL, 130)
    running = play.record_with(status=JobStatus.RUNNING, native_status="running", ended_at=None)
    verdict = explain(play.evidence(up_to(last_line), detail=running))
    assert verdict.code is Code.CANCEL_UNCONFIRMED
    assert words in verdict.sentence
    assert verdict.confidence < CONFIDENT, "the log ends there"


HIDDEN = without(r"_Op\(run", "job_agent")


def read_from(at: Nanos | None, *, is_behind: bool = False, is_hidden: bool = True) -> Evidence:
    """A job with a log that was read from a time on, with the lines of the run or without."""
    play = a_play()
    logs = {name: HIDDEN(log) for name, log in play.logs.items()} if is_hidden else play.logs
    evidence = evidence_of(play.jid, logs, play.detail, play.now)
    name, fine = f"/var/log/{SUPERVISOR_LOG}", SourceState.OK
    log = SourceHealth(name=name, kind="logfile", state=fine, begins_at=at, is_behind=is_behind)
    return msgspec.structs.replace(evidence, sources=(*evidence.sources, log))


def test_a_log_that_was_read_only_from_within_the_run_is_named() -> None:
    since = Nanos(some(some(a_play().detail).job.queued_at) + 5 * SECOND)
    verdict = explain(read_from(since))
    named = f"{SUPERVISOR_LOG} was read from {to_rfc3339(since)} on: the run began before"
    assert named in verdict.blind_spots
    assert verdict.confidence < CONFIDENT


def test_a_verdict_is_not_sure_while_more_of_its_system_is_read() -> None:
    whole, behind = (explain(read_from(None, is_behind=more, is_hidden=False)) for more in (False, True))
    assert whole.confidence >= CONFIDENT > behind.confidence
    assert f"/var/log/{SUPERVISOR_LOG} is still being read" in behind.blind_spots
    evidence = read_from(None, is_hidden=False)
    other = SourceHealth(name="https://balsam.example", kind="balsam", state=SourceState.OK, is_behind=True)
    assert explain(msgspec.structs.replace(evidence, sources=(*evidence.sources, other))) == whole


async def test_a_log_tells_from_when_on_it_was_read(tmp_path: Path) -> None:
    play = a_play()
    path = tmp_path / SUPERVISOR_LOG
    path.write_bytes(play.logs[SUPERVISOR_LOG])
    for size, is_whole in ((1_000, False), (1 << 30, True)):
        async with Session([LogFile(path, start=TailBytes(size))], FixedClock(play.now)) as session:
            await session.catch_up()
            (health,) = session.store.sources()
            assert (health.begins_at is None) is is_whole
            assert not health.is_behind


EACH = int(os.environ.get("JOBTUI_WORLDS", "5"))


@pytest.mark.parametrize("disturbance", [*DISTURBANCES, "two at once"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_no_verdict_is_sure_and_wrong(system: str, disturbance: str) -> None:
    numbers = (*range(EACH), 4082926390)  # one in which a run at its time limit was told to be running
    worlds = [(disturbance, number) for number in numbers]
    if disturbance == "two at once":
        worlds = [(pair, number) for number in range(32, 32 + EACH // 5) for pair in PAIRS]
    found = [one for kind, number in worlds for one in disturbed(system, kind, number)]
    assert not [one for one in found if one.is_sure_and_wrong]
    assert disturbance != "none" or all(one.is_sure and one.is_right for one in found)
    for one in found:
        check_incidents_say_the_same(one.verdict, one.sample, one.blind_spots)


@pytest.mark.parametrize("number", [1539, 3968])  # with a record, and with logs alone
def test_a_silent_run_is_not_surely_running(number: int) -> None:
    (one,) = disturbed("sirepo", "late+clock", number)
    assert (one.verdict.code, one.right, one.is_sure) == (Code.RUNNING, {"timed_out"}, False)


def test_every_system_that_has_an_explainer_has_worlds() -> None:
    kinds = {"jobsub": "condor"}
    assert {kinds.get(one.name, one.name) for one in systems.SYSTEMS} == SYSTEMS.keys()


def on_server(job_state: str, health: SourceHealth, went: Sequence[str] = RAN) -> Evidence:
    """A healthy job of Balsam, and how its server is."""
    return on_balsam(a_job(job_state), changes(*went), (LIVING,), SITE, health)


FINE = SourceHealth(name="api", kind="balsam", state=SourceState.OK, read_at=ago(1), was_at_end=True)


@each(*ROWS["what is wrong with a source"])
def test_a_verdict_names_what_is_wrong_with_the_source(health: dict[str, object], words: str) -> None:
    fine = explain(on_server("RUNNING", FINE))
    assert (fine.code, fine.doubts, fine.rests_on) == (Code.RUNNING, (), ("api",))
    source = msgspec.convert(msgspec.to_builtins(FINE) | health, SourceHealth)
    verdict = explain(msgspec.structs.replace(on_server("RUNNING", source), is_now_set="is_set" in health))
    assert f" Not sure: {words}" in verdict.sentence
    assert fine.confidence >= SURE > verdict.confidence
    assert verdict.doubts[0] in verdict.blind_spots


def test_a_source_that_never_answered_is_a_doubt_after_a_minute() -> None:
    asked = SourceHealth(name="api", kind="balsam", asked_at=ago(QUIET_S + 5))
    assert [*source_doubts([asked], WritersRead(), NOW)] == ["api does not answer"]


RESTS_ON = [
    ("RUNNING", RAN, {"jobs", "sessions", "batch-jobs"}),
    ("READY", RAN, {"jobs", "sites", "transfers"}),
    ("FAILED", RAN, {"jobs", "events"}),
    ("FAILED", (*RAN, "FAILED"), {"jobs"}),
    ("FAILED", (*RAN, "RUN_ERROR", "FAILED"), {"jobs"}),
    ("FAILED", (*RAN, "RUN_TIMEOUT", "FAILED"), {"jobs", "batch-jobs"}),
]
"""The state of a job, its states by its events, and the parts of its server on which the verdict rests."""
PARTS = sorted(set().union(*(parts for _, _, parts in RESTS_ON)))


@pytest.mark.parametrize(("state", "went", "parts"), RESTS_ON)
@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_fails_is_a_doubt_where_a_verdict_rests_on_it(
    state: str, went: Sequence[str], parts: Collection[str], part: str
) -> None:
    failing = (FailingPart(part, "refused", ago(60)),)
    fine = explain(on_server(state, FINE, went))
    verdict = explain(on_server(state, msgspec.structs.replace(FINE, failing=failing), went))
    assert any(f"its {part} cannot be read" in doubt for doubt in verdict.doubts) is (part in parts)
    assert verdict.confidence == (GUESS if part in parts else fine.confidence)


@each(*product(RULES, PARTS))
def test_silence_that_one_part_tells_is_not_hidden_by_another(state: str, part: str) -> None:
    part_fails = msgspec.structs.replace(FINE, failing=(FailingPart(part, "refused", ago(3_600)),))
    sites = (msgspec.structs.replace(SITE, seen_at=ago(1_800)),)
    allocations = (msgspec.structs.replace(LIVING, heartbeat_at=ago(1_800)),)
    told = msgspec.structs.replace(on_server(state, FINE), sites=sites, allocations=allocations)
    verdict = explain(msgspec.structs.replace(told, sources=(part_fails,)))
    assert verdict.code is explain(told).code or verdict.confidence < SURE


@each("balsam", "slurm", "sirepo")
def test_durations_end_when_the_source_was_last_read(system: str) -> None:
    kind = "sirepo_db" if system == "sirepo" else system
    gone = {"state": SourceState.DOWN, "error": "api: refused", "read_at": ago(0)}
    down = msgspec.structs.replace(FINE, kind=kind, **gone)
    later = msgspec.structs.replace(on_server("RUNNING", down), now=Nanos(NOW + 18_000 * SECOND))
    if system != "balsam":
        job = builders.a_job(1, system=system, status=JobStatus.RUNNING, source="api", started_at=ago(60))
        later = msgspec.structs.replace(later, job=job, job_id=job.id)
    verdict = explain(later)
    assert (verdict.code, verdict.confidence < SURE) == (Code.RUNNING, True)
    assert re.search(r"for 1m\b", verdict.sentence)
    assert " Not sure: api cannot be read: refused (last read 5h" in verdict.sentence
    assert system != "slurm" or {one.at for one in verdict.evidence} == {ago(0)}


def test_a_live_job_is_less_sure_while_the_lag_of_its_source_is_not_known() -> None:
    job = builders.a_job(source="api", system="slurm", native_status="RUNNING", status=JobStatus.RUNNING)
    for news_late, sure in (((), 0.9), ((1.0,), 0.97)):
        source = msgspec.structs.replace(FINE, kind="slurm", news_late=news_late)
        verdict = explain(Evidence(job_id=job.id, now=NOW, job=job, sources=(source,)))
        assert (verdict.confidence, verdict.blind_spots) == (sure, ())


@each(*ROWS["a record and its last event"])
def test_a_record_and_its_last_event_that_tell_different_ends(state: str, event: str, disagree: bool) -> None:
    went = tuple(changes(*RAN, event) if event != "RUNNING" else changes(*RAN))
    evidence = msgspec.structs.replace(on_server(state, FINE), changes=went)
    verdict = explain(evidence)
    assert bool(verdict.contradictions) is (verdict.confidence < SURE) is disagree


def test_what_the_agent_kept_of_stderr_tells_that_no_program_was_started() -> None:
    play = played("prepare-fails", 5, DriverName.LOCAL, 130)
    kept = Cause("sirepo.util.UserAlert: no such breed", 9, "python", 0.9, "", "/run/job_cmd.err")
    evidence = msgspec.structs.replace(play.evidence(without("stderr")), cause=kept, texts={})
    assert explain(evidence).code is Code.PREPARE_FAILED
    other = explain(msgspec.structs.replace(evidence, cause=kept._replace(text="ValueError: 7")))
    assert (other.code, other.confidence < CONFIDENT) == (Code.PROGRAM_FAILED, True)


@each(("exit(-9)", True), ("exit(137)", False), ("exit(143)", False))
def test_an_exit_code_of_a_signal_is_a_kill(error: str, is_sure: bool) -> None:
    verdict = explain(the_error().evidence(detail=the_error().record_with(error=f"error {error}")))
    assert (verdict.code, verdict.confidence >= CONFIDENT) == (Code.KILLED_BY_SIGNAL, is_sure)
