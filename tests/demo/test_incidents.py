"""Each incident leaves in logs and record what its failure leaves at a real site."""

import re
from typing import Any, NamedTuple

import pytest

from jobtui.demo.incidents import INCIDENTS, Scenario, play
from jobtui.demo.messages import Record
from jobtui.demo.site import DriverName, Settings
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.verdicts import Code
from tests.demo.workload import WatchedWorld

SITES = {
    "local": Settings(users=2, sbatch_users=1),
    "docker": Settings(users=2, sbatch_users=1, driver=DriverName.DOCKER, slots_parallel=1),
}
PLAYED_S = 420
"""Enough for the slowest: the time limit of sequential runs is 360 s."""


class Trace(NamedTuple):
    """What an incident leaves: patterns that follow each other in the supervisor's log, fields of the record.

    `{jid}` stands for the job's id, `{uid}` for the first four characters of its user's, `{op}` for its last
    op's prefix.
    """

    lines: tuple[str, ...]
    record: dict[str, Any]


TRACES = {
    "healthy": Trace(
        (r"new status=completed .*{jid}", r"api_downloadRunFile, {jid}"), {"status": "completed"}
    ),
    "agent-never-starts": Trace(
        (
            r"u={uid} .*await=_do_agent_start",
            r"u={uid} .*timeout=\d",
            r"caller=_websocket_ready_timeout_handler",
        ),
        {"status": "pending", "computeJobStart": 0, "jobStatusMessage": None},
    ),
    "program-error": Trace(
        (r"new status=completed .*{jid}", r"new status=error .*{jid}"),
        {"status": "error", "error": "no such element: crystal3"},
    ),
    "prepare-fails": Trace(
        (r"opName=job_cmd_stderr o=None", r"stderr from job_cmd msg=", r"new status=error .*{jid}"),
        {"status": "error", "error": "no such breed"},
    ),
    "killed-signal-9": Trace(
        (r"same status=running .*{jid}", r"new status=error .*{jid}"),
        {"status": "error", "error": "Terminated Process. Possibly ran out of memory"},
    ),
    "user-cancel": Trace(
        (
            r"ServerReq\(api_runCancel, {jid}\)",
            r"{jid} .*cancel args=\{{'jid': '{jid}'\}}",
            r"opName=ok o={op}",
        ),
        {"status": "canceled", "canceledAfterSecs": None},
    ),
    "time-limit": Trace(
        (r"max_run_secs=360", r"cancel args=\{{'jid': '{jid}', 'opId': '\w+'\}}", r"_Op\(cancel, {op}\)"),
        {"status": "canceled", "canceledAfterSecs": 360},
    ),
    "waiting-for-slot": Trace(
        (r"_Op\(run, {op}\) enter=Waiting for CPU resources await=cpu_slot .*{jid}",),
        {"status": "pending", "jobStatusMessage": "Waiting for CPU resources await=cpu_slot"},
    ),
    "waiting-op-slot": Trace(
        (r"_Op\(run, {op}\) enter=Waiting for another sim op to complete await=op_slot .*{jid}",),
        {"status": "pending", "jobStatusMessage": "Waiting for another sim op to complete await=op_slot"},
    ),
    "agent-death": Trace(
        (r"u={uid} .*caller=websocket_on_close", r"_Op\(run_status, {op}\)", r"{jid} .*status change reply="),
        {"status": "canceled", "canceledAfterSecs": None},
    ),
    "supervisor-restart": Trace(
        (
            r"same status=running .*{jid}",
            r"default_command ip=",
            r"canceling after reload jid={jid} api_runStatus",
        ),
        {"status": "canceled"},
    ),
    "stale-record": Trace((r"same status=running .*{jid}", r"default_command ip="), {"status": "running"}),
    "sbatch-login-needed": Trace(
        (
            r"assigned driver=SbatchDriver.*op=_Op\(run, {op}\)",
            r"ServerReq\(api_runSimulation, {jid}\) error=",
        ),
        {"status": "error", "error": "exception during send", "computeJobStart": 0},
    ),
    "sbatch-queued": Trace(
        (r"opName=ok o=\w{{4}}$", r"same status=pending .*{jid}"), {"status": "pending", "computeJobStart": 0}
    ),
    "sbatch-failed": Trace(
        (r"same status=pending .*{jid}", r"new status=error .*{jid}"),
        {"status": "error", "jobRunMode": "sbatch", "error": "non-zero exit code"},
    ),
    "run-dir-gone": Trace(
        (r"new status=completed .*{jid}", r"error msg=.*'runDirNotFound': True"),
        {"status": "missing", "isParallel": False, "jobRunMode": "parallel"},
    ),
    "never-run": Trace((), {"status": "missing", "computeJobSerial": 0, "history": []}),
}


@pytest.fixture(scope="module")
def played() -> dict[tuple[str, str], tuple[WatchedWorld, Scenario]]:
    return {(site, name): _play(name, settings) for site, settings in SITES.items() for name in INCIDENTS}


def _play(name: str, settings: Settings) -> tuple[WatchedWorld, Scenario]:
    world = WatchedWorld(7, settings)
    world.start()
    scenario = play(world, name)
    world.advance(Nanos(world.kernel.now + PLAYED_S * SECOND))
    return world, scenario


def test_every_incident_has_a_trace_and_a_verdict() -> None:
    assert set(TRACES) == set(INCIDENTS)
    assert {incident.verdict for incident in INCIDENTS.values()} <= {*Code}


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("name", INCIDENTS)
def test_the_log_shows_it(
    played: dict[tuple[str, str], tuple[WatchedWorld, Scenario]], site: str, name: str
) -> None:
    world, scenario = played[site, name]
    ops = world.witness.of_job(scenario.jid)
    words = {"jid": scenario.jid, "uid": scenario.user.uid[:4], "op": ops[-1].op if ops else ""}
    lines = world.log("supervisor.log").decode().splitlines()

    place = 0
    for pattern in TRACES[name].lines:
        wanted = re.compile(pattern.format(**words))
        found = next((n for n in range(place, len(lines)) if wanted.search(lines[n])), None)
        assert found is not None, f"no {wanted.pattern} after line {place}"
        place = found + 1


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("name", INCIDENTS)
def test_the_record_says_it(
    played: dict[tuple[str, str], tuple[WatchedWorld, Scenario]], site: str, name: str
) -> None:
    world, scenario = played[site, name]
    assert scenario.jid is not None
    record: Record = world.records()[scenario.jid]

    assert {key: record[key] for key in TRACES[name].record} == TRACES[name].record
