"""The simulated supervisor writes, for each kind of job, the lines that the captured one wrote, in order."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobtui.demo.site import DriverName, Settings
from tests.demo import acts
from tests.demo.shapes import of_job

FIXTURES = Path(__file__).parent.parent / "fixtures" / "sirepo"
SITES = {
    "local": Settings(users=0, max_secs_sequential=20),
    "docker": Settings(users=0, driver=DriverName.DOCKER, hosts=("v1.sirepo.example",), pid_time=False),
    "sbatch": Settings(users=0, sbatch_users=1),
}


def _jobs(capture: str) -> dict[str, Any]:
    jobs: dict[str, Any] = json.loads((FIXTURES / capture / "expected.json").read_text())["jobs"]
    return jobs


CASES = [(capture, jid) for capture in SITES for jid in _jobs(capture)]


@pytest.mark.parametrize(("capture", "jid"), CASES)
def test_lines_truth_and_record_of_a_job_are_as_captured(capture: str, jid: str) -> None:
    job = _jobs(capture)[jid]
    log = (FIXTURES / capture / "supervisor.log").read_text(errors="replace")
    captured = of_job(log, jid, [op["op"] for op in job["ops"]])

    world, simulated_jid = acts.play(_act(job), SITES[capture])

    ops = world.witness.of_job(simulated_jid)
    assert of_job(world.log("supervisor.log").decode(), simulated_jid, [op.op for op in ops]) == captured
    assert [(op.name, op.api, op.job_cmd, op.sends, op.replies) for op in ops] == [
        (o["opName"], o["api"], o["jobCmd"], o["sent"], o["replies"]) for o in job["ops"]
    ]
    record = world.records()[simulated_jid]
    assert record["status"] == job["finalStatus"]
    assert [entry["status"] for entry in record["history"]] == job["historyStatuses"]
    assert record["canceledAfterSecs"] == job["canceledAfterSecs"]
    assert (record["jobRunMode"], record["isParallel"]) == (job["jobRunMode"], job["isParallel"])


def _act(job: dict[str, Any]) -> acts.Act:
    """The act for a job; some kinds were provoked with a report in one capture, an animation in another."""
    act = acts.ACTS[tuple(job["asked"])]
    if job["isParallel"] and act in (acts.cancel, acts.agentdeath):
        return acts.cancel_parallel if act is acts.cancel else acts.agentdeath_parallel
    return act
