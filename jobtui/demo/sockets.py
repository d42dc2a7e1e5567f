"""The connection between a supervisor and an agent: messages in order, until one end is gone."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from jobtui.demo.messages import Message, Order
from jobtui.model.clock import SECOND, Nanos

if TYPE_CHECKING:
    from jobtui.demo.agents import Agent
    from jobtui.demo.drivers import Driver
    from jobtui.demo.supervisor import Supervisor

LATENCY_S = (0.00005, 0.0015)
CLOSE_S = (0.001, 0.05)


class Socket:
    """One websocket. `driver` is set once the supervisor knows whose it is."""

    def __init__(self, supervisor: Supervisor, agent: Agent, rng: random.Random) -> None:
        self.supervisor = supervisor
        self.agent = agent
        self.driver: Driver | None = None
        self.open = True
        self._rng = rng
        self._to_agent = self._to_supervisor = 0

    def order(self, order: Order) -> None:
        """Send to the agent."""
        self._to_agent = self._deliver(
            self._to_agent, self.supervisor.process.clock, lambda: self._reach_agent(order)
        )

    def message(self, message: Message) -> None:
        """Send to the supervisor."""
        if self.open:
            self._to_supervisor = self._deliver(
                self._to_supervisor, self.agent.process.clock, lambda: self._reach_supervisor(message)
            )

    def close_by_supervisor(self) -> None:
        """The supervisor lets go of it, and will not be told."""
        self.driver = None
        self._close(self.agent.socket_lost)

    def close_by_agent(self) -> None:
        """The agent is gone."""
        self._close(self._lost)

    def close_by_stop(self) -> None:
        """The supervisor is gone."""
        self._close(self.agent.socket_lost)

    def _deliver(self, before: int, clock: Nanos, action: Callable[[], None]) -> int:
        due = max(before, clock + round(self._rng.uniform(*LATENCY_S) * SECOND))
        self.supervisor.kernel.at(Nanos(due), action)
        return due

    def _reach_agent(self, order: Order) -> None:
        if self.agent.process.alive:
            self.agent.take(order)

    def _reach_supervisor(self, message: Message) -> None:
        if self.supervisor.process.alive and self.open:
            self.supervisor.receive(message, self)

    def _close(self, tell: Callable[[], None]) -> None:
        if self.open:
            self.open = False
            self.supervisor.kernel.later(self._rng.uniform(*CLOSE_S), tell)

    def _lost(self) -> None:
        if self.driver is not None and self.supervisor.process.alive:
            driver, self.driver = self.driver, None
            driver.socket_closed()
