"""The simulated Sirepo of 2020: lines and records as the hand-made examples of that time have them."""

import json
from pathlib import Path

import pytest

from jobtui.demo.settings import DriverName, Era, Settings
from jobtui.demo.workload import simulate
from jobtui.demo.world import World
from tests.demo import acts
from tests.demo.shapes import of_job

FIXTURE = Path(__file__).parent.parent / "fixtures" / "sirepo" / "legacy-2020"
JID = "EPRSqtUW-IVh7w74d-heightWeightReport"
OLD = Settings(users=3, ops=120, era=Era.Y2020, restarts=0.01)
WAITS_FOR_REPLY = " await _reply_q.get()"
"""The examples leave some of these lines out."""


@pytest.fixture(scope="module")
def world() -> World:
    return simulate(4, OLD)


def test_lines_of_a_report_come_in_the_order_of_the_example() -> None:
    example = of_job((FIXTURE / "supervisor.log").read_text(), JID, ["pb5u", "Kd81"])

    site = Settings(users=0, era=Era.Y2020)
    simulated, jid = acts.play(acts.ok, site)

    ops = [op.op for op in simulated.truth().of_job(jid)]
    lines = of_job(simulated.log("supervisor.log").decode(), jid, ops)
    assert _without_waits(lines) == _without_waits(example)


def _without_waits(shapes: list[str]) -> list[str]:
    return [shape for shape in shapes if not shape.endswith(WAITS_FOR_REPLY)]


def test_records_have_the_names_of_that_time(world: World) -> None:
    old = json.loads((FIXTURE / "supervisor-job" / f"{JID}.json").read_bytes())
    record = next(r for r in world.records().values() if not r["isParallel"] and r["status"] == "completed")

    written = json.loads(world.supervisor.written(record))
    assert set(old) - {"computeModel"} <= set(written) <= set(old)
    assert set(written["history"][0]) == set(old["history"][0])


def test_each_state_of_a_run_is_a_reply(world: World) -> None:
    truth = world.truth()

    assert sum(op.updates for op in truth.ops) == 0
    runs = [op for op in truth.ops if op.name == "run" and truth.statuses[op.jid or ""] == "completed"]
    assert runs
    assert any(op.replies > 2 for op in runs)


def test_what_did_not_exist_yet_is_not_written(world: World) -> None:
    log = world.log("supervisor.log")

    for later in (
        b"assigned driver=",
        b"run_status_update",
        b"new status=",
        b"enter=",
        b"begin_session",
        b"_Cmd(a=",
    ):
        assert later not in log


def test_waits_have_the_lines_of_that_time() -> None:
    site = Settings(users=3, ops=120, era=Era.Y2020, slots_parallel=1, slots_sequential=1)
    log = simulate(4, site).log("supervisor.log")

    assert b" await op_q.get()\n" in log
    assert b" await cpu_slot_q.get()\n" in log


def test_docker_hosts_show_in_the_command() -> None:
    site = Settings(users=2, ops=40, era=Era.Y2020, driver=DriverName.DOCKER)
    log = simulate(4, site).log("supervisor.log")

    assert b" running: docker --host=tcp://v1.sirepo.example:2376 " in log
    assert b" --name=srj-s-" in log
