"""The filter language for agents."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.agent_filter import FIELD_NAMES, parse_agent_filter, values_of
from jobtui.analysis.filter_syntax import FilterError
from jobtui.model.ids import JobId, OpPrefix
from jobtui.model.ops import Agent, AgentState, HeldOp
from tests.analysis.test_agent_logs import DOCKER, SBATCH, but

HELD = HeldOp(OpPrefix("pb5u"), "run", JobId("VUlhaMOD-HrCJ26rQ-activityAnimation"))
AGENTS: dict[str, Agent] = {
    "docker": but(DOCKER, ops=(HELD,)),
    "sbatch": SBATCH,
    "lost": but(DOCKER, agent="hOJT", state=AgentState.LOST, why="docker start: non-zero exit=137"),
    "never": but(DOCKER, agent="XGv8", state=AgentState.NEVER_CONNECTED, host="v2", kind="sequential"),
}


def passing(text: str) -> set[str]:
    passes = parse_agent_filter(text)
    return {name for name, agent in AGENTS.items() if passes(agent)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {"docker", "sbatch", "lost", "never"}),
        ("state:lost", {"lost"}),
        ("state:never", {"never"}),
        ('state:"never connected"', {"never"}),
        ("state=never_connected", {"never"}),
        ("state:idle,lost", {"sbatch", "lost"}),
        ("state!=lost", {"docker", "sbatch", "never"}),
        ("host:v1", {"docker", "lost"}),
        ("host=v2", {"never"}),
        ("user:vulh -state:lost", {"docker", "never"}),
        ("driver:sbatch or kind:seq", {"sbatch", "never"}),
        ("op:pb5u", {"docker"}),
        ("op:run", {"docker"}),
        ("job:HrCJ26rQ", {"docker"}),
        ("why:137", {"lost"}),
        ("container:14ebb6cea369", {"docker", "lost", "never"}),
        ("XGv8", {"never"}),
        ("cori", {"sbatch"}),
        ("not (state:lost or state:never)", {"docker", "sbatch"}),
    ],
)
def test_which_agents_pass(text: str, found: set[str]) -> None:
    assert passing(text) == found


@pytest.mark.parametrize(
    ("text", "marked", "says"),
    [
        ("state:lots", "lots", "did you mean lost?"),
        ("hots:v1", "hots", "did you mean host?"),
        ("state>lost", ">", "did you mean state:?"),
        ("host:~v.", ":~", "cannot be asked"),
        ("(", None, ""),
    ],
)
def test_a_mistake_says_where_it_is(text: str, marked: str | None, says: str) -> None:
    with pytest.raises(FilterError) as raised:
        parse_agent_filter(text)
    assert says in str(raised.value)
    assert marked is None or text[raised.value.start : raised.value.end] == marked


@given(
    st.text(max_size=40)
    | st.sampled_from(FIELD_NAMES).flatmap(lambda name: st.text().map(f"{name}:".__add__))
)
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_filter_or_a_mistake(text: str) -> None:
    try:
        passes = parse_agent_filter(text)
    except FilterError:
        return
    for agent in AGENTS.values():
        assert passes(agent) in (True, False)


def test_values_to_offer() -> None:
    offered = set(values_of(AGENTS.values()))
    assert {("host", "v2"), ("state", "lost"), ("op", "pb5u"), ("driver", "SbatchDriver")} <= offered
