"""What a Balsam server with 100,000 jobs costs: to read it, how long others wait meanwhile, to poll it."""

import asyncio
import json
import sys
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import httpx

from benchmarks.rows import Row, at_most, main
from jobtui.analysis.correlation import EmptyCorrelation
from jobtui.backends.balsam.client import BalsamClient
from jobtui.backends.balsam.source import Balsam
from jobtui.backends.registry import PERIOD_S
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.store.poller import Poller
from jobtui.store.store import Store

JOBS, QUICK_JOBS = 100_000, 5_000
BEGIN = datetime(2026, 11, 20, tzinfo=UTC)
WAYS = ("CREATED", "STAGED_IN", "PREPROCESSED", "RUNNING", "RUN_DONE", "JOB_FINISHED")
IDLE_POLLS = 160
CORE_PERCENT = 1.0
BEAT_S = 0.001
BLOCKED_MS = 50.0
"""How long a key may wait, 99 of 100 times."""

Rows = list[tuple[datetime, bytes]]


def written(jobs: int) -> tuple[Rows, Rows]:
    """Jobs that all finished within a day, and their events, as the API writes them, by time."""
    rows: Rows = []
    events: Rows = []
    for number in range(1, jobs + 1):
        at = BEGIN + timedelta(hours=20) * (number / jobs)
        row = {
            "id": number, "workdir": f"run/{number}", "tags": {"experiment": "x"}, "app_id": 1, "data": {},
            "batch_job_id": number % 9, "state": WAYS[-1], "last_update": at.isoformat(), "parent_ids": [],
            "num_nodes": 1, "node_packing_count": 8, "wall_time_min": 10, "serialized_parameters": "a" * 120,
        }  # fmt: skip
        rows.append((at, json.dumps(row).encode()))
        for step, (before, after) in enumerate(pairwise(WAYS)):
            told = at - timedelta(seconds=(5 - step) * 10)
            event = {
                "id": 5 * number + step, "job_id": number, "timestamp": told.replace(tzinfo=None).isoformat(),
                "from_state": before, "to_state": after, "data": {},
            }  # fmt: skip
            events.append((told, json.dumps(event).encode()))
    return rows, sorted(events, key=lambda pair: pair[0])


class Server:
    """Answers pages of both lists; `spent_s` is what that took, which is not jobtui's."""

    def __init__(self, jobs: int) -> None:
        self._jobs, self._events = written(jobs)
        self.spent_s = 0.0

    def answer(self, request: httpx.Request) -> httpx.Response:
        began = time.process_time()
        asked = request.url.params
        rows: Rows = []
        if "last_update_after" in asked:
            rows = _from(self._jobs, asked["last_update_after"])
        elif "timestamp_after" in asked:
            rows = _from(self._events, asked["timestamp_after"])
        begin = int(asked.get("offset", 0))
        page = b",".join(text for _, text in rows[begin : begin + int(asked.get("limit", 1))])
        answer = httpx.Response(200, content=b'{"count":%d,"results":[%s]}' % (len(rows), page))
        self.spent_s += time.process_time() - began
        return answer


def _from(rows: Rows, at: str) -> Rows:
    return rows[bisect_left(rows, datetime.fromisoformat(at), key=lambda pair: pair[0]) :]


async def measured(jobs: int) -> tuple[float, Sequence[float], float]:
    """Seconds to read all, what each poll kept others waiting in ms, and percent of a core when idle."""
    server = Server(jobs)
    clock = FixedClock(Nanos(int((BEGIN + timedelta(hours=21)).timestamp()) * SECOND))
    client = BalsamClient("http://balsam.test", lambda: "t")
    client._http.transport = httpx.MockTransport(server.answer)
    store = Store(EmptyCorrelation(), clock)
    source = Balsam(client)
    source.clock = clock
    poller = Poller(source, store)
    waits: list[float] = []
    is_over = asyncio.Event()

    async def beat() -> None:
        while not is_over.is_set():
            before, spent = time.perf_counter(), server.spent_s
            await asyncio.sleep(BEAT_S)
            late_s = time.perf_counter() - before - BEAT_S - (server.spent_s - spent)
            waits.append(1e3 * max(0.0, late_s))

    beating = asyncio.create_task(beat())
    began, spent = time.perf_counter(), server.spent_s
    await poller.catch_up()
    read_s = time.perf_counter() - began - (server.spent_s - spent)
    is_over.set()
    await beating
    assert len(store.jobs) == jobs
    used, spent = time.process_time(), server.spent_s
    for _ in range(IDLE_POLLS):
        await poller.poll_once()
    used = time.process_time() - used - (server.spent_s - spent)
    await poller.source.aclose()
    return read_s, sorted(waits), 100 * used / (IDLE_POLLS * PERIOD_S)


def rows(quick: bool) -> Iterator[Row]:
    jobs = QUICK_JOBS if quick else JOBS
    read_s, waits, percent = asyncio.run(measured(jobs))
    late = waits[int(len(waits) * 0.99)]
    yield Row(what=f"Balsam, {jobs:,} jobs with {5 * jobs:,} events: read", measured=read_s, unit="s")
    yield at_most("Balsam: others wait while it is read, p99", late, "ms", BLOCKED_MS)
    yield at_most("Balsam: polls when nothing changes, of a core", percent, "%", CORE_PERCENT)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", rows))
