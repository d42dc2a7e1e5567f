"""A Correlator that is made when there is something for it: importing it takes a tenth of a first paint."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from jobtui.model.heard import Heard
from jobtui.model.ids import JobId
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Agent, Op, Step, Unlinked

if TYPE_CHECKING:
    from jobtui.analysis.correlate import Correlator


class LateCorrelator:
    """What a Correlator tells; of nothing read, what the table of jobs asks for needs none."""

    def __init__(self) -> None:
        self._made: Correlator | None = None

    def _correlator(self) -> "Correlator":
        if self._made is None:
            from jobtui.analysis.correlate import Correlator

            self._made = Correlator()
        return self._made

    def feed(self, records: Iterable[LogRecord]) -> set[JobId]:
        """Take in records, return the jobs that are now known better."""
        records = tuple(records)
        return self._correlator().feed(records) if records else set()

    @property
    def heard(self) -> Heard:
        """Whose lines were read."""
        return self._correlator().heard

    def open_ops(self) -> tuple[Op, ...]:
        """Every op that has not ended, oldest first."""
        return self._made.open_ops() if self._made else ()

    def runs_like(self, model: str, driver: str | None) -> tuple[Op, ...]:
        """The latest runs of a model on a driver that have ended, newest first."""
        return self._made.runs_like(model, driver) if self._made else ()

    def restarted_ops(self, job_id: JobId) -> Mapping[int, Step]:
        """Those ops of a job that are older than a restart of their supervisor, by key: the restart."""
        return self._made.restarted_ops(job_id) if self._made else {}

    def ops_of(self, job_id: JobId) -> tuple[Op, ...]:
        """The ops of a job, oldest first."""
        return self._made.ops_of(job_id) if self._made else ()

    def unlinked_of(self, job_id: JobId) -> tuple[Unlinked, ...]:
        """Lines that name a job and could not be placed."""
        return self._made.unlinked_of(job_id) if self._made else ()

    def ops(self, after: int = 0) -> Iterable[Op]:
        """Every op that is kept and has a larger key, also those without a job."""
        return self._made.ops(after) if self._made else ()

    def agents(self) -> tuple[Agent, ...]:
        """Every agent that is known."""
        return self._made.agents() if self._made else ()

    def agent_of(self, job_id: JobId) -> Agent | None:
        """The agent that holds or last held the job's run op."""
        return self._made.agent_of(job_id) if self._made else None

    @property
    def dropped_ops(self) -> int:
        """How many old ops were let go to stay within bounds."""
        return self._made.dropped_ops if self._made else 0
