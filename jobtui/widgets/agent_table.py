"""The agents, one a row."""

from jobtui.model.ops import Agent
from jobtui.render.agent_columns import AGENT_COLUMNS
from jobtui.widgets.record_table import RecordTable

AgentKey = tuple[str, str, str, str]


def key_of(agent: Agent) -> AgentKey:
    """What tells an agent from every other, as long as it is known."""
    return agent.supervisor, agent.driver, agent.kind, f"{agent.uid[:4]} {agent.agent}"


class AgentTable(RecordTable[Agent]):
    """Agents in the order they are handed over."""

    COLUMNS = AGENT_COLUMNS

    def key_of(self, record: Agent) -> AgentKey:
        """What tells an agent from every other."""
        return key_of(record)
