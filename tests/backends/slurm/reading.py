"""Reading Slurm as the poller does, on commands that stand in for its own."""

from collections.abc import Mapping
from typing import cast

from jobtui.backends.slurm.client import Commands
from jobtui.backends.slurm.source import ACCOUNTS_EVERY_S, Slurm
from jobtui.model.clock import FixedClock
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail
from tests import polling
from tests.conftest import NOW
from tests.loopback import Timer


class Reading(polling.Reading[Slurm]):
    """Reads Slurm as the poller does, with a clock that a test moves."""

    def __init__(self, target: str = "local", label: str = "") -> None:
        self.timer, self.clock = Timer(), FixedClock(NOW)
        source = Slurm(Commands(target), label=label)
        source.clock, source.timer = self.clock, self.timer
        super().__init__(source)

    async def read(self, later_s: float = ACCOUNTS_EVERY_S) -> Mapping[str, Job]:
        self.timer.now += later_s
        self.clock.advance(later_s)
        await self.drain()
        return cast(Mapping[str, Job], self.jobs)

    async def detail(self, number: str) -> JobDetail:
        detail = await self.source.detail(JobId(f"slurm/{number}"))
        assert detail is not None
        return detail
