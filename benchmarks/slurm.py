"""Measures Slurm as a source: what a large queue costs at first, and at each poll from then on.

    python -m benchmarks.slurm [--quick] [--json]

The tables are those that squeue and sacct would print, half of the jobs running, and half as many that have
ended; what the commands themselves take is not measured. A beat on the event loop tells how long keys would
wait meanwhile: the tables are taken apart in a thread, which has to let others run.
"""

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.rows import Row, at_most, main
from jobtui.analysis.late_correlate import LateCorrelator
from jobtui.backends.slurm.commands import Answer, Commands
from jobtui.backends.slurm.source import Slurm
from jobtui.formats.slurm_tables import SACCT, SQUEUE
from jobtui.model.clock import Nanos, SystemClock
from jobtui.store.poller import Poller
from jobtui.store.store import Store

JOBS, QUICK_JOBS = 100_000, 10_000
SEPARATOR = "~0123456789~"
BEAT_S = 0.002
BLOCKED_MS = 50.0
SAME_S = 1.0
"""What a poll in which nothing has changed may take: squeue itself takes longer for so many."""

QUEUED = {
    "%j": "beam-scan", "%u": "jdoe", "%a": "science", "%P": "debug", "%q": "normal", "%r": "Priority",
    "%V": "2026-11-20T20:00:00", "%S": "2026-11-20T20:10:00", "%e": "2026-11-20T21:10:00", "%l": "1:00:00",
    "%N": "n1", "%D": "1", "%C": "4", "%E": "(null)", "%Z": "/home/jdoe", "%K": "N/A",
}  # fmt: skip
ENDED = {
    "JobName": "beam-scan", "User": "jdoe", "Account": "science", "Partition": "debug", "QOS": "normal",
    "Cluster": "huppel", "State": "FAILED", "Reason": "NonZeroExitCode", "ExitCode": "3:0",
    "Submit": "2026-11-20T20:00:00", "Eligible": "2026-11-20T20:00:00", "Start": "2026-11-20T20:10:00",
    "End": "2026-11-20T20:20:00", "TimelimitRaw": "60", "NodeList": "n1", "NNodes": "1", "NCPUS": "4",
    "ReqMem": "1G", "WorkDir": "/home/jdoe",
}  # fmt: skip


class Printed(Commands):
    """Commands that print a queue of so many jobs at once; those numbered below `begun` run."""

    def __init__(self, jobs: int) -> None:
        super().__init__("local")
        self._jobs = jobs
        self._accounts = _table(list(SACCT), (self._ended(n) for n in range(jobs, jobs + jobs // 2)))
        self.begin(jobs // 2)

    def begin(self, begun: int) -> None:
        """So many jobs run now."""
        self._queue = _table(list(SQUEUE), (self._queued(number, begun) for number in range(self._jobs)))

    @staticmethod
    def _queued(number: int, begun: int) -> dict[str, str]:
        state = "RUNNING" if number < begun else "PENDING"
        return {**QUEUED, "%i": str(number), "%A": str(number), "%F": str(number), "%T": state}

    @staticmethod
    def _ended(number: int) -> dict[str, str]:
        return {**ENDED, "JobID": str(number), "JobIDRaw": str(number)}

    async def queue(self) -> Answer:
        """What squeue would say."""
        return Answer(self._queue, SEPARATOR)

    async def accounted(self, since: Nanos) -> Answer:
        """What sacct would say."""
        return Answer(self._accounts, SEPARATOR)


def _table(fields: Sequence[str], rows: Iterator[dict[str, str]]) -> bytes:
    return "".join("".join(row[field] + SEPARATOR for field in fields) + "\n" for row in rows).encode()


class Figures(NamedTuple):
    """Seconds of the first reading, of a poll that changes nothing, of one with a hundredth changed; and ms
    that others waited meanwhile, all of them sorted."""

    first_s: float
    same_s: float
    changed_s: float
    waits: Sequence[float]


async def measured(jobs: int) -> Figures:
    """What reading a queue of so many jobs takes."""
    commands = Printed(jobs)
    store = Store(LateCorrelator(), SystemClock())
    source = Slurm(commands, every_s=0.0, share=1e9)
    poller = Poller(source, store, strict=True)
    waits: list[float] = []

    async def read() -> float:
        beating = asyncio.create_task(_beat(waits))
        await asyncio.sleep(BEAT_S)
        began = time.perf_counter()
        await poller.catch_up()
        took = time.perf_counter() - began
        beating.cancel()
        return took

    first = await read()
    assert len(store.jobs) == jobs + jobs // 2
    same = await read()
    commands.begin(jobs // 2 + jobs // 100)
    changed = await read()
    await source.aclose()
    return Figures(first, same, changed, sorted(waits))


async def _beat(waits: list[float]) -> None:
    while True:
        before = time.perf_counter()
        await asyncio.sleep(BEAT_S)
        waits.append(1e3 * (time.perf_counter() - before - BEAT_S))


def rows(quick: bool) -> Iterator[Row]:
    """The figures."""
    jobs = QUICK_JOBS if quick else JOBS
    figures = asyncio.run(measured(jobs))
    yield Row(what=f"Slurm, {jobs:,} jobs and half as many ended: read", measured=figures.first_s, unit="s")
    yield at_most("Slurm: a poll when nothing changes", figures.same_s, "s", SAME_S)
    yield Row(what="Slurm: a poll when a hundredth changes", measured=figures.changed_s, unit="s")
    yield at_most("Slurm: others wait meanwhile, longest", figures.waits[-1], "ms", BLOCKED_MS)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", rows))
