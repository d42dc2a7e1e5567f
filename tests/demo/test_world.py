"""A simulated site: deterministic, in the real formats, with its truth beside its output."""

import json
from pathlib import Path

import pytest

from tests.demo.sites import DriverName
from tests.demo.workload import Settings, WatchedWorld, simulate

FIXTURES = Path(__file__).parent.parent / "fixtures" / "sirepo"
REAL_RECORD = FIXTURES / "local" / "supervisor-job" / "DJouDZ9T-4F4EUZjI-heightWeightReport.json"

SITES = {
    "local": Settings(users=3, ops=150),
    "troubled": Settings(users=3, ops=150, restarts=0.03, crashes=0.03, agent_deaths=0.06),
    "docker": Settings(users=3, ops=150, driver=DriverName.DOCKER, pid_time=False, agent_deaths=0.05),
    "cluster": Settings(users=1, sbatch_users=3, ops=150, agent_deaths=0.03, restarts=0.01),
}


@pytest.fixture(params=SITES, scope="module")
def world(request: pytest.FixtureRequest) -> WatchedWorld:
    return simulate(11, SITES[request.param])


def _everything(world: WatchedWorld) -> dict[str, object]:
    logs: dict[str, object] = {name: world.log(name) for name in world.logs()}
    return logs | {"records": json.dumps(world.records()), "truth": world.witness.ops}


@pytest.mark.parametrize("site", SITES)
def test_same_seed_gives_same_bytes(site: str) -> None:
    assert _everything(simulate(5, SITES[site])) == _everything(simulate(5, SITES[site]))


def test_truth_of_jobs_is_what_the_records_say(world: WatchedWorld) -> None:
    records = world.records()

    assert {op.jid for op in world.witness.ops} - {None} <= set(records)
    for jid, record in records.items():
        runs = [entry for entry in (*record["history"], record) if entry["computeJobSerial"]]
        assert len(runs) == sum(op.name == "run" for op in world.witness.of_job(jid)), jid


def test_records_have_the_fields_of_the_real_ones(world: WatchedWorld) -> None:
    real = set(json.loads(REAL_RECORD.read_bytes()))
    for record in world.records().values():
        assert real <= set(record) <= real | {"parallelStatus", "queuedState", "internalError"}
        assert ("parallelStatus" in record) == record["isParallel"]
