"""The source on the real cluster, watched as a dashboard does."""

from jobtui.backends.slurm.client import Commands
from jobtui.backends.slurm.source import Slurm
from jobtui.model.clock import SystemClock
from jobtui.store.poller import Poller
from jobtui.store.store import Store
from tests.fakes import FakeCorrelation


class Watched:
    """The source on the real cluster, and the store it fills."""

    def __init__(self) -> None:
        self.source = Slurm(Commands("local"))
        self.store = Store(FakeCorrelation(), SystemClock())
        self.poller = Poller(self.source, self.store)
        self.polls = 0

    async def poll(self) -> None:
        """What a dashboard does in one round."""
        await self.poller.catch_up()
        self.polls += 1

    @property
    def jobs(self) -> dict[str, tuple[str, str, int | None, int | None]]:
        """State, exit, start and end in seconds of each job, as the table has them."""
        return {
            job.id: (job.native_status, job.exit, _seconds(job.started_at), _seconds(job.ended_at))
            for job in self.store.jobs.values()
        }


def _seconds(at: int | None) -> int | None:
    return None if at is None else at // 1_000_000_000
