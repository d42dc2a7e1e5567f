"""The filter language for agents: the grammar of that for jobs, with the fields that agents have.

`state:lost host:v4 user:vn9m driver:docker -kind:sequential op:pb5u`; a word is found in any of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from jobtui.analysis.filter_syntax import All, Comparison, FilterError, Node, Not, Value, Word, parse_nodes
from jobtui.analysis.near import nearest
from jobtui.model.ops import Agent, AgentState

Texts = Callable[[Agent], Iterable[str | None]]
AgentTest = Callable[[Agent], bool]

_FIELDS: Mapping[str, Texts] = {
    "state": lambda agent: (agent.state.value.replace("_", " "), agent.state.value),
    "user": lambda agent: (agent.uid,),
    "host": lambda agent: (agent.host,),
    "driver": lambda agent: (agent.driver,),
    "kind": lambda agent: (agent.kind,),
    "container": lambda agent: (agent.container, agent.container_id),
    "agent": lambda agent: (agent.agent,),
    "op": lambda agent: (text for op in agent.ops for text in (op.op, op.name)),
    "job": lambda agent: (op.jid for op in agent.ops),
    "why": lambda agent: (agent.why,),
}
FIELD_NAMES = tuple(_FIELDS)
"""The fields, as they are written."""
_OPS = frozenset({":", "=", "!="})


def parse_agent_filter(text: str) -> AgentTest:
    """What tells whether an agent passes. Raises FilterError and nothing else."""
    return _compile(parse_nodes(text))


def values_of(agents: Iterable[Agent]) -> Iterator[tuple[str, str]]:
    """The fields of some agents with their values, to be offered."""
    for agent in agents:
        for name, texts in _FIELDS.items():
            yield from ((name, text) for text in texts(agent) if text)


def _compile(node: Node) -> AgentTest:
    if isinstance(node, Word):
        low = node.value.text.lower()
        return lambda agent: any(low in text for texts in _FIELDS.values() for text in _low(texts, agent))
    if isinstance(node, Comparison):
        return _comparison(node)
    if isinstance(node, Not):
        inner = _compile(node.node)
        return lambda agent: not inner(agent)
    tests = [_compile(part) for part in node.nodes]
    if isinstance(node, All):
        return lambda agent: all(test(agent) for test in tests)
    return lambda agent: any(test(agent) for test in tests)


def _comparison(node: Comparison) -> AgentTest:
    name = node.field.text.lower()
    texts = _FIELDS.get(name)
    if texts is None:
        message = f"agents have no field {node.field.text}"
        raise FilterError(node.field.start, node.field.end, message, nearest(name, _FIELDS))
    if node.op not in _OPS:
        message = f"{node.op} cannot be asked of agents"
        raise FilterError(node.field.end, node.values[0].start, message, f"{name}:")
    if name == "state":
        _check_states(node.values)
    words = [value.text.lower() for value in node.values]
    if node.op == ":":
        return lambda agent: any(word in text for text in _low(texts, agent) for word in words)
    found: AgentTest = lambda agent: any(text in words for text in _low(texts, agent))  # noqa: E731
    return found if node.op == "=" else lambda agent: not found(agent)


def _check_states(values: Iterable[Value]) -> None:
    """That each is a state, or the beginning of one."""
    for value in values:
        low = value.text.lower().replace(" ", "_")
        if not any(state.value.startswith(low) for state in AgentState):
            message = f"agents have no state {value.text}"
            raise FilterError(value.start, value.end, message, nearest(low, [s.value for s in AgentState]))


def _low(texts: Texts, agent: Agent) -> Iterator[str]:
    return (text.lower() for text in texts(agent) if text)
