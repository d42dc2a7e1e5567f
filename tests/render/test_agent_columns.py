"""The table of agents: cells, order, widths, hostile text."""

import pytest

from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import OpPrefix
from jobtui.model.ops import AgentState, HeldOp
from jobtui.render.agents import (
    AGENT_COLUMNS,
    RECENT_S,
    STATES,
    is_trouble,
    state_style,
    urgent_first,
)
from jobtui.render.columns import TimeLook, sort_records
from jobtui.render.text import width
from tests.builders import ago, an_agent
from tests.conftest import NOW

LOOK = TimeLook(NOW)


def cell(key: str, **fields: object) -> str:
    column = next(column for column in AGENT_COLUMNS if column.key == key)
    return column.cell(an_agent(**fields), LOOK)


@pytest.mark.parametrize(
    ("key", "fields", "shown"),
    [
        ("state", {}, "· idle"),
        ("state", {"state": AgentState.NEVER_CONNECTED}, "✗ never came"),
        ("for", {}, "1m"),
        ("for", {"since": None}, "–"),
        ("agent", {}, "WUt4"),
        ("driver", {}, "Docker"),
        ("kind", {}, "par"),
        ("kind", {"kind": "odd"}, "odd"),
        ("host", {}, "v3.example.org"),
        ("host", {"host": None}, "–"),
        (
            "holds",
            {"ops": (HeldOp(OpPrefix("pb5u"), "run"), HeldOp(OpPrefix("k2Wc"), "io"))},
            "run pb5u, io k2Wc",
        ),
        ("holds", {"state": AgentState.LOST, "why": "docker start: x"}, "docker start: x"),
        ("last", {}, "7s"),
        ("messages", {"messages": 12_345}, "12,345"),
        ("restarts", {"restarts": 2}, "2"),
        ("restarts", {}, ""),
    ],
)
def test_what_a_cell_says(key: str, fields: dict[str, object], shown: str) -> None:
    assert cell(key, **fields) == shown


def test_what_went_wrong_lately_comes_first_and_what_ended_long_ago_last() -> None:
    agents = [
        an_agent("old1", state=AgentState.LOST, since=ago(RECENT_S + 60)),
        an_agent("idle"),
        an_agent("busy", state=AgentState.CONNECTED),
        an_agent("lost", state=AgentState.LOST, since=ago(30)),
        an_agent("late", state=AgentState.KILLED, since=ago(5)),
        an_agent("come", state=AgentState.STARTING, since=ago(2)),
        an_agent("none", state=AgentState.NEVER_CONNECTED, since=ago(9)),
    ]
    order = [agent.agent for agent in urgent_first(agents, NOW)]
    assert order == ["none", "lost", "come", "busy", "idle", "late", "old1"]
    assert not is_trouble(agents[0], NOW)
    assert state_style(agents[0], LOOK) == "settled"
    assert state_style(agents[3], LOOK) == "status.failed"


@pytest.mark.parametrize("key", [column.key for column in AGENT_COLUMNS])
def test_every_column_sorts_what_has_everything_and_what_has_nothing(key: str) -> None:
    bare = an_agent(
        "bbbb", since=None, host=None, container=None, last_message_at=None, why="", ops=(), restarts=0
    )
    agents = [an_agent("aaaa", why="x"), bare]
    for reverse in (False, True):
        assert len(sort_records(agents, AGENT_COLUMNS, key, reverse=reverse)) == 2


def test_secrets_in_a_reason_are_masked() -> None:
    assert "hunter2" not in cell("holds", why="docker start: PASSWORD=hunter2", state=AgentState.LOST)


def test_times_of_day_instead_of_ages() -> None:
    column = next(column for column in AGENT_COLUMNS if column.key == "last")
    look = TimeLook(Nanos(NOW), relative=False)
    assert ":" in column.cell(an_agent(last_message_at=Nanos(NOW - SECOND)), look)


def test_every_state_has_a_sign_of_one_cell() -> None:
    for state in AgentState:
        assert width(STATES[state][0]) == 1
