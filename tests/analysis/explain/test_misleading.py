"""Logs that would mislead: lines that are missing, cut or spoilt just where they would tell what happened."""

import re
from typing import NamedTuple

import pytest

from jobtui.analysis.explain.case import Case
from jobtui.analysis.explain.verdict import explain
from jobtui.demo.site import SUPERVISOR_LOG, DriverName
from jobtui.model.jobs import JobStatus
from jobtui.model.verdicts import Code, Verdict
from tests.analysis.explain.cases import CONFIDENT, Spoil, evidence_of, played, up_to, without


def timeless(log: bytes) -> bytes:
    """A log whose supervisor writes no times."""
    return re.sub(rb"(?m)^[A-Z][a-z]{2} \d\d [\d:]{8} +\d+ +\d+ (?!\S*job_agent)", b"", log)


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
    "the restart's line is missing": Trap("stale-record", (without("default_command"),), Code.AGENT_LOST),
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


@pytest.mark.parametrize("name", TRAPS)
def test_it_is_not_sure_of_what_missing_lines_suggest(name: str) -> None:
    trap = TRAPS[name]
    play = played(trap.incident, 5, DriverName.LOCAL, 130)
    verdict = explain(play.evidence(*trap.spoil))
    assert verdict.code in (trap.wrong, play.expected)
    assert verdict.code == play.expected or (verdict.confidence < CONFIDENT and verdict.blind_spots), verdict


def test_lines_without_times_may_be_those_of_an_earlier_run() -> None:
    """The first of two runs was refused for want of a login; the lines of the second were not read."""
    play = played("sbatch-login-needed", 5, DriverName.LOCAL, 130)
    logs = {SUPERVISOR_LOG: timeless(play.logs[SUPERVISOR_LOG])}
    evidence = evidence_of(play.jid, logs, play.record_with(runs=2), play.now)
    run = Case(evidence).run
    assert run is not None
    assert run.created_at is None
    verdict = explain(evidence)
    assert verdict.confidence < CONFIDENT
    assert any("no times" in spot for spot in verdict.blind_spots)


@pytest.mark.parametrize("is_read", [True, False], ids=["pending", "not read"])
def test_a_refused_run_may_have_been_followed_by_another(is_read: bool) -> None:
    """The user logged in and ran it again; that was not read any more."""
    play = played("sbatch-login-needed", 5, DriverName.LOCAL, 130)
    waits = play.record_with(status=JobStatus.PENDING, native_status="pending", error=None, ended_at=None)
    verdict = explain(evidence_of(play.jid, play.logs, waits if is_read else None, play.now))
    assert verdict.confidence < CONFIDENT
    assert verdict.blind_spots


def test_a_run_of_which_nothing_was_heard_for_a_minute_may_run_or_not() -> None:
    verdict = explain(played("stale-record", 5, DriverName.LOCAL, 90).evidence(up_to("same status=running")))
    assert verdict.code is Code.RUNNING
    assert verdict.confidence < CONFIDENT
    assert "its last sign of life is old" in verdict.blind_spots


def test_a_traceback_in_the_line_of_the_exit_tells_that_nothing_was_started() -> None:
    play = played("prepare-fails", 5, DriverName.LOCAL, 130)
    verdict = explain(play.evidence(without(r"_read_stream", r"stderr=b")))
    assert verdict.code is Code.PREPARE_FAILED


LATER = b"Nov 20 20:36:00 %d     0 sirepo/job_supervisor.py:254:receive ServerReq(api_runSimulation, %s)\n"


def after_the_agent_went(exit_code: bytes, later_pid: int | None) -> Verdict:
    """A run whose agent exited; then a line of the same supervisor, of another one, or nothing."""

    def spoil(log: bytes) -> bytes:
        log, count = re.subn(rb"returncode=-15", b"returncode=" + exit_code, log)
        assert count == 1
        pid = int(log.split()[3]) if later_pid == 0 else later_pid
        return log if pid is None else log + LATER % (pid, b"StzHxY0f-aaaaaaaa-animation")

    play = played("stale-record", 5, DriverName.LOCAL, 130)
    return explain(play.evidence(without(r":kill ", "init_module", "default_command"), spoil))


@pytest.mark.parametrize(
    ("exit_code", "later_pid", "doubt"),
    [
        (b"-9", 0, None),
        (b"-15", 0, "it ended its program first"),
        (b"-9", None, "no later line of the same supervisor"),
        (b"-9", 31_999, "no later line of the same supervisor"),
    ],
    ids=["the supervisor goes on", "told to end", "nothing comes after", "another supervisor comes after"],
)
def test_an_agent_is_lost_for_sure_only_where_its_supervisor_went_on(
    exit_code: bytes, later_pid: int | None, doubt: str | None
) -> None:
    verdict = after_the_agent_went(exit_code, later_pid)
    assert verdict.code is Code.AGENT_LOST
    assert (verdict.confidence >= CONFIDENT) is (doubt is None), verdict
    assert any((doubt or "") in spot for spot in verdict.blind_spots) or doubt is None


@pytest.mark.parametrize(
    ("last_line", "words"),
    [
        (r"_Op\(cancel, \w+\) runDir=", "never left the supervisor"),
        (r"_Op\(cancel, \w+\) await _reply_q", "was sent to the agent and nothing confirms it"),
    ],
    ids=["its sending was not read", "sent"],
)
def test_a_cancel_that_is_not_confirmed_says_how_far_it_came(last_line: str, words: str) -> None:
    play = played("user-cancel", 5, DriverName.LOCAL, 130)
    running = play.record_with(status=JobStatus.RUNNING, native_status="running", ended_at=None)
    verdict = explain(play.evidence(up_to(last_line), detail=running))
    assert verdict.code is Code.CANCEL_UNCONFIRMED
    assert words in verdict.sentence
    assert verdict.confidence < CONFIDENT, "the log ends there"
