"""Who waits for whom, against simulated sites in which somebody waits."""

import pytest

from jobtui.analysis.correlate import Correlator
from jobtui.analysis.explain.study import Study, study
from jobtui.analysis.waits import Slot, waited_slot
from jobtui.demo.settings import DriverName
from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import AgentPrefix, JobId
from tests.analysis.explain.cases import Played, played


def studied(play: Played) -> tuple[Correlator, Study]:
    correlator = Correlator()
    for name, data in play.logs.items():
        correlator.feed(LogParser(name).parse(data, 0, 1, Nanos(play.now + SECOND)).records)
    job_id = JobId(play.jid)
    assert play.detail is not None
    jobs = {job_id: play.detail.job}
    return correlator, study(correlator, jobs, (), job_id, play.now, play.detail.runs)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("driver", [DriverName.LOCAL, DriverName.DOCKER])
def test_a_run_that_waits_for_a_cpu_slot_names_those_that_have_them(driver: DriverName, seed: int) -> None:
    correlator, found = studied(played("waiting-for-slot", seed, driver, 130))
    (wait,) = found.chain.waits
    assert wait.slot is Slot.CPU
    holders = {holder.op.jid for holder in wait.holders}
    hosts = {agent.agent: agent.host for agent in correlator.agents()}
    own = hosts[wait.op.assigned_agent or wait.op.agent or AgentPrefix("")]
    running = {
        op.jid
        for op in correlator.open_ops()
        if op.name == "run" and op.kind == "parallel" and op.agent is not None and hosts[op.agent] == own
    }
    assert holders == running
    assert found.verdict.job_id not in holders
    assert all(holder.held_s is not None and holder.held_s > 0 for holder in wait.holders)
    assert found.chain.cycle == ()


@pytest.mark.parametrize("seed", range(5))
def test_a_run_behind_another_of_its_user_names_that_one(seed: int) -> None:
    _, found = studied(played("waiting-op-slot", seed, DriverName.LOCAL, 130))
    (wait,) = found.chain.waits
    assert wait.slot is Slot.OP
    (holder,) = wait.holders
    assert holder.op.uid is not None
    assert found.verdict.job_id.startswith(holder.op.uid)
    assert holder.limit_s == 3600
    assert found.chain.range_s is not None
    low, high = found.chain.range_s
    assert 0 <= low <= high <= 3600


def test_what_runs_waits_for_nothing() -> None:
    correlator, found = studied(played("healthy", 1, DriverName.LOCAL, 90))
    assert found.chain.waits == ()
    assert all(waited_slot(op) is None for op in correlator.open_ops())
