"""Agents that start and die again and again: of one user, or of many on one host of a driver."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jobtui.analysis.time_words import age
from jobtui.model.clock import SECOND, Nanos, seconds_between
from jobtui.model.ids import PREFIX_LENGTH
from jobtui.model.ops import Agent

FALLS = 3
"""So many ends within WITHIN_S make an agent flap. One that is stopped for want of work does not fall."""
FALLS_OF_HOST, USERS_OF_HOST = 6, 3
"""So many ends, of agents of so many users, make a host of a driver do so."""
WITHIN_S = 900.0

Fall = tuple[Nanos, str]
"""When an agent ended by itself or did not come up, and the beginning of its user's id."""


class Flapping(NamedTuple):
    """What flaps, how often agents have ended, in how many seconds, and the last time."""

    what: str
    falls: int
    span_s: float
    last_at: Nanos

    @property
    def words(self) -> str:
        """The same as text."""
        return f"{self.what} ended {self.falls} times within {age(self.span_s)}"


class Flaps:
    """The ends of all agents that are known."""

    def __init__(self, agents: Iterable[Agent]) -> None:
        self._of_user: defaultdict[tuple[str, str, str], list[Fall]] = defaultdict(list)
        self._of_host: defaultdict[tuple[str, str], list[Fall]] = defaultdict(list)
        for agent in agents:
            user = agent.uid[:PREFIX_LENGTH]
            falls = [(at, user) for at in agent.falls]
            if falls:
                self._of_user[agent.driver, agent.kind, user] += falls
                if agent.host is not None:
                    self._of_host[agent.driver, agent.host] += falls

    def around(self, agent: Agent, at: Nanos) -> Flapping | None:
        """Whether this agent flapped before a time, or all those of its host; None when neither did."""
        user = agent.uid[:PREFIX_LENGTH]
        own = _recent(self._of_user.get((agent.driver, agent.kind, user), ()), at)
        if len(own) >= FALLS:
            return _flapping(f"the {agent.kind} agent of user {agent.uid}", own)
        host = _recent(self._of_host.get((agent.driver, agent.host or ""), ()), at)
        if len(host) >= FALLS_OF_HOST and len({user for _, user in host}) >= USERS_OF_HOST:
            return _flapping(f"agents on {agent.host}", host)
        return None


def _recent(falls: Sequence[Fall], at: Nanos) -> list[Fall]:
    begin = at - WITHIN_S * SECOND
    return sorted(fall for fall in falls if begin <= fall[0] <= at)


def _flapping(what: str, falls: Sequence[Fall]) -> Flapping:
    return Flapping(what, len(falls), seconds_between(falls[0][0], falls[-1][0]), falls[-1][0])
