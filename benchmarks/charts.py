"""Charts of a million changes: how long each takes, and for how long at most it holds up a screen."""

import asyncio
import gc
import random
import sys
from collections.abc import Iterator
from itertools import pairwise
from time import thread_time

from benchmarks.rows import Row, at_most, main
from jobtui.analysis.reports.charts import Chart, ChartKind, KnownJobs, Material, chart_turns, material_turns
from jobtui.analysis.reports.cooperative import Turns, in_turns
from jobtui.model.changes import Allocation, StateChange
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import system_job_id
from jobtui.render.chart import Frame, draw_chart
from jobtui.store.store import ChangeLog

CHANGES, QUICK_CHANGES = 1_000_000, 200_000
STATES = ("CREATED", "STAGED_IN", "PREPROCESSED", "RUNNING", "RUN_DONE", "JOB_FINISHED")
BATCH = 1_000
"""Changes that come together."""
CHART_S, BLOCKED_MS = 2.0, 50.0
BEGIN = Nanos(1_790_000_000 * SECOND)
PERIOD_S = 0.001
"""How often a loop that is measured has its turn when nothing holds it up."""


def changes(count: int) -> list[StateChange]:
    chance = random.Random(1)
    made: list[StateChange] = []
    for job in range(count // (len(STATES) - 1)):
        at = BEGIN + job * SECOND // 10
        job_id = system_job_id("balsam", str(job))
        for before, after in pairwise(STATES):
            at += chance.randrange(SECOND, 100 * SECOND)
            nodes = 1.0 if after == "RUNNING" else None
            made.append(StateChange(len(made), job_id, Nanos(at), before, after, "balsam", nodes))
    return sorted(made, key=lambda change: change.at)


def taken_in(log: ChangeLog, made: list[StateChange]) -> tuple[float, float]:
    """Seconds to take all in, and milliseconds of the longest batch."""
    begun, longest = thread_time(), 0.0
    for start in range(0, len(made), BATCH):
        before = thread_time()
        log.add(made[start : start + BATCH])
        longest = max(longest, thread_time() - before)
    return thread_time() - begun, longest * 1_000


async def beside_a_loop(turns: Turns[Chart]) -> tuple[Chart, float, float]:
    """A chart, the seconds it took, and for how many milliseconds at most the loop was held up.

    Both are told by what this thread computed, as it does nothing else: what other programs take is left out.
    """
    longest, before = 0.0, thread_time()

    async def tick() -> None:
        nonlocal longest, before
        while True:
            await asyncio.sleep(PERIOD_S)
            now = thread_time()
            longest, before = max(longest, now - before), now

    task = asyncio.create_task(tick())
    await asyncio.sleep(10 * PERIOD_S)
    longest, begun = 0.0, thread_time()
    chart = await in_turns(turns)
    took = thread_time() - begun
    await asyncio.sleep(10 * PERIOD_S)
    task.cancel()
    return chart, took, longest * 1_000


def whole_turns(known: KnownJobs, kind: ChartKind) -> Turns[Chart]:
    material: Material = yield from material_turns(known, None)
    return (yield from chart_turns(kind, material))


def rows(quick: bool) -> Iterator[Row]:
    made = changes(QUICK_CHANGES if quick else CHANGES)
    what = f"charts, {len(made):,} changes"
    log = ChangeLog()
    gc.collect()
    gc.freeze()
    seconds, longest = taken_in(log, made)
    yield at_most(f"{what}: taken in, {BATCH:,} at a time, longest batch", longest, "ms", BLOCKED_MS)
    yield Row(what=f"{what}: all taken in", measured=seconds, unit="s")
    end = made[-1].at
    nodes = Allocation(id=1, source="balsam", site_id=1, state="running", nodes=1_000, start_at=BEGIN)
    known = KnownJobs({}, log.histories(), (nodes,), end)
    frame = Frame(BEGIN, end, 200, 50)
    for kind in ChartKind:
        chart, took, held = asyncio.run(beside_a_loop(whole_turns(known, kind)))
        yield at_most(f"{what}: {kind}", took, "s", CHART_S)
        yield at_most(f"{what}: {kind}, the screen held up at most", held, "ms", BLOCKED_MS)
        if chart.curves:
            begun = thread_time()
            draw_chart(chart, frame)
            drawn = (thread_time() - begun) * 1_000
            yield Row(what=f"{what}: {kind} drawn in 200x50, in a thread", measured=drawn, unit="ms")


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", rows))
