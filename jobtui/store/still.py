"""Ops and agents as they were at one moment, to be looked at while what they came from goes on."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from jobtui.model.ids import JobId
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Agent, Op, Step, Unlinked

if TYPE_CHECKING:
    from jobtui.store.store import Correlation

RUNS_COMPARED = 300
"""Earlier runs that tell how long things usually take."""


class StillCorrelation:
    """What another correlation knows now. It takes in nothing more.

    Costs some microseconds for each op. Of lines that could not be placed those of jobs with ops are kept.
    """

    def __init__(self, correlation: "Correlation") -> None:
        self._all = tuple(correlation.ops())
        self._agents = correlation.agents()
        self._dropped = correlation.dropped_ops
        jobs = {op.jid for op in self._all if op.jid is not None}
        self._ops: Mapping[JobId, tuple[Op, ...]] = {job: correlation.ops_of(job) for job in jobs}
        self._unlinked = {job: found for job in jobs if (found := correlation.unlinked_of(job))}
        self._agent_of = {job: agent for job in jobs if (agent := correlation.agent_of(job)) is not None}
        self._restarted = {job: older for job in jobs if (older := correlation.restarted_ops(job))}
        self.heard = correlation.heard

    def feed(self, records: Iterable[LogRecord]) -> set[JobId]:
        """Not to be called. Raises RuntimeError."""
        raise RuntimeError("a picture of one moment takes in nothing")

    def ops_of(self, job_id: JobId) -> tuple[Op, ...]:
        """The ops of a job, oldest first."""
        return self._ops.get(job_id, ())

    def open_ops(self) -> tuple[Op, ...]:
        """Every op that has not ended, oldest first."""
        return tuple(op for op in self._all if op.status.is_open)

    def runs_like(self, model: str, driver: str | None, most: int = RUNS_COMPARED) -> tuple[Op, ...]:
        """The latest runs of a model on a driver that have ended, newest first."""
        alike = (op for op in reversed(self._all) if _is_run_of(op, model, driver))
        return tuple(islice(alike, most))

    def restarted_ops(self, job_id: JobId) -> Mapping[int, Step]:
        """Those ops of a job that are older than a restart of their supervisor, by key: the restart."""
        return self._restarted.get(job_id, {})

    def unlinked_of(self, job_id: JobId) -> tuple[Unlinked, ...]:
        """Lines that name a job and could not be placed."""
        return self._unlinked.get(job_id, ())

    def ops(self, after: int = 0) -> Iterable[Op]:
        """Every op that has a larger key, oldest first."""
        return self._all if not after else (op for op in self._all if op.key > after)

    def agents(self) -> tuple[Agent, ...]:
        """Every agent."""
        return self._agents

    def agent_of(self, job_id: JobId) -> Agent | None:
        """The agent that held the job's run op."""
        return self._agent_of.get(job_id)

    @property
    def dropped_ops(self) -> int:
        """How many old ops had been let go."""
        return self._dropped


def _is_run_of(op: Op, model: str, driver: str | None) -> bool:
    is_model = op.jid is not None and op.jid.endswith(f"-{model}")
    return op.name == "run" and op.driver == driver and not op.status.is_open and is_model
