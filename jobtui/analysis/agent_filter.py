"""The filter language for agents: the grammar of job filters with the fields of agents.

`state:lost host:v4 user:vn9m driver:docker -kind:sequential op:pb5u`; a word is found in any of them.
"""

from collections.abc import Callable, Iterable, Iterator

from jobtui.analysis.filter_syntax import (
    Comparison,
    FilterError,
    TextFields,
    Value,
    compile_node,
    parse_nodes,
    word_test,
)
from jobtui.analysis.spelling import nearest
from jobtui.model.ops import Agent, AgentState

AgentTest = Callable[[Agent], bool]


def _known(*texts: str | None) -> tuple[str, ...]:
    return tuple(text for text in texts if text)


_FIELDS: TextFields[Agent] = TextFields("agents", {
    "state": lambda agent: _known(agent.state.value.replace("_", " "), agent.state.value),
    "user": lambda agent: _known(agent.uid),
    "host": lambda agent: _known(agent.host),
    "driver": lambda agent: _known(agent.driver),
    "kind": lambda agent: _known(agent.kind),
    "container": lambda agent: _known(agent.container, agent.container_id),
    "agent": lambda agent: _known(agent.agent),
    "op": lambda agent: (text for op in agent.ops for text in _known(op.op, op.name)),
    "job": lambda agent: _known(*(op.jid for op in agent.ops)),
    "why": lambda agent: _known(agent.why),
})  # fmt: skip
FIELD_NAMES = tuple(_FIELDS.texts)
"""The fields, as they are written."""


def parse_agent_filter(text: str) -> AgentTest:
    """The test of a filter for agents. Raises FilterError and nothing else."""
    return compile_node(parse_nodes(text), lambda word: word_test(word, _FIELDS.said), _comparison)


def values_of(agents: Iterable[Agent]) -> Iterator[tuple[str, str]]:
    for agent in agents:
        for name, texts in _FIELDS.texts.items():
            yield from ((name, text) for text in texts(agent))


def _comparison(node: Comparison) -> AgentTest:
    test = _FIELDS.test(node)
    if node.field.text.lower() == "state":
        _check_states(node.values)
    return test


def _check_states(values: Iterable[Value]) -> None:
    for value in values:
        low = value.text.lower().replace(" ", "_")
        if not any(state.value.startswith(low) for state in AgentState):
            message = f"agents have no state {value.text}"
            raise FilterError(value.start, value.end, message, nearest(low, [s.value for s in AgentState]))
