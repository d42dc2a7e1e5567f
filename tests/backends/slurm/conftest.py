from collections.abc import Mapping
from pathlib import Path

import pytest

from jobtui.backends.base import Batch
from jobtui.backends.slurm.client import Commands
from jobtui.backends.slurm.source import ACCOUNTS_EVERY_S, Slurm
from jobtui.model.clock import FixedClock
from jobtui.model.jobs import Job
from tests.conftest import NOW
from tests.loopback import Timer
from tests.slurm_stand_in import StandIn


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    made = StandIn(tmp_path)
    monkeypatch.setenv("PATH", made.search_path)
    return made


class Reading:
    """Reads Slurm as the poller does, with a clock that a test moves."""

    def __init__(self, target: str = "local", label: str = "") -> None:
        self.timer, self.clock = Timer(), FixedClock(NOW)
        self.source = Slurm(Commands(target), label=label, clock=self.clock, timer=self.timer)
        self.jobs: dict[str, Job] = {}
        self.batches: list[Batch] = []

    async def read(self, later_s: float = ACCOUNTS_EVERY_S) -> Mapping[str, Job]:
        """Everything there is some time later."""
        self.timer.now += later_s
        self.clock.advance(later_s)
        while True:
            batch = await self.source.poll(self.batches[-1].cursor if self.batches else None)
            self.batches.append(batch)
            self.jobs.update((job.id, job) for job in batch.jobs)
            for job_id in batch.gone:
                del self.jobs[job_id]
            if not batch.more:
                return self.jobs
