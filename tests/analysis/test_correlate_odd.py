"""Captures without a noted truth: agents that never start, and the formats of 2020."""

import pytest

from jobtui.model.ids import JobId
from jobtui.model.ops import AgentState, OpStatus
from tests.analysis.captured import correlate, correlate_interleaved, logs
from tests.analysis.lines import steps_of


@pytest.mark.parametrize("seed", range(3))
def test_an_op_whose_agent_never_starts_waits_for_ever(seed: int) -> None:
    correlator = correlate_interleaved(logs("docker-agents-never-start"), seed)
    runs = [op for op in correlator.ops() if op.name == "run"]
    assert [(op.status, op.sends, op.replies) for op in runs] == [(OpStatus.WAITING, 0, 0)] * len(runs)
    assert {agent.state for agent in correlator.agents()} == {AgentState.NEVER_CONNECTED}
    for op in runs:
        assert op.jid is not None
        steps = steps_of(op)
        assert steps.index("waits for the agent") < steps.index("agent did not start in time")
        assert correlator.unlinked_of(op.jid) == ()


def test_ops_of_2020() -> None:
    correlator = correlate(logs("legacy-2020"))
    run, analysis = correlator.ops_of(JobId("EPRSqtUW-IVh7w74d-heightWeightReport"))
    assert (run.op, run.name, run.agent, run.sends, run.replies) == ("pb5u", "run", "WUt4", 1, 2)
    assert run.api == "api_runSimulation"
    assert run.arrived_at is not None
    assert "job_cmd wrote" in steps_of(run)
    assert (analysis.op, analysis.name, analysis.replies, analysis.status) == (
        "Kd81",
        "analysis",
        1,
        OpStatus.ENDED,
    )
    (other,) = correlator.ops_of(JobId("EPRSqtUW-ZaU3VvUy-multiElectronAnimation"))
    assert (other.op, other.status, steps_of(other)[-1]) == ("j2FX", OpStatus.ENDED, "canceled")
    docker = next(agent for agent in correlator.agents() if agent.driver == "DockerDriver")
    assert (docker.host, docker.container) == ("localhost.localdomain", "srj-p-EPRSqtUW")
