"""The simulated Balsam site: what it serves is read by the same source as a real one, and makes sense."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from jobtui.backends.balsam.client import BalsamClient
from jobtui.backends.balsam.records import STATUSES
from jobtui.backends.balsam.source import Balsam
from jobtui.demo.balsam import ENDED, TOKEN, BalsamSite, serving
from jobtui.model.clock import SECOND, FixedClock, Nanos
from tests.polling import polled

NOW = Nanos(1_795_206_870 * SECOND)
FOLLOWS = {
    ("CREATED", "STAGED_IN"), ("STAGED_IN", "PREPROCESSED"), ("PREPROCESSED", "RUNNING"),
    ("RUNNING", "RUN_DONE"), ("RUN_DONE", "JOB_FINISHED"), ("RUNNING", "RUN_ERROR"),
    ("RUN_ERROR", "RESTART_READY"), ("RUN_ERROR", "FAILED"), ("RUNNING", "RUN_TIMEOUT"),
    ("RUN_TIMEOUT", "RESTART_READY"), ("RESTART_READY", "RUNNING"),
}  # fmt: skip
"""Which state follows which, as a real server recorded it."""

Served = tuple[str, Path, FixedClock]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    clock = FixedClock(NOW)
    with serving(tmp_path, 1, clock) as (url, login):
        yield url, login, clock


def grown(seed: int = 1, seconds: int = 0) -> BalsamSite:
    site = BalsamSite(seed, NOW)
    site.advance(Nanos(NOW + seconds * SECOND))
    return site


def test_one_seed_makes_one_site_however_it_is_asked() -> None:
    at_once, step_by_step = grown(3, 600), BalsamSite(3, NOW)
    for second in range(0, 601, 7):
        step_by_step.advance(Nanos(NOW + second * SECOND))
    step_by_step.advance(Nanos(NOW + 600 * SECOND))
    assert step_by_step.events == at_once.events
    assert grown(4).events != at_once.events


@pytest.mark.parametrize("seed", range(4))
def test_jobs_go_from_state_to_state_as_real_ones(seed: int) -> None:
    site = grown(seed)
    state = dict.fromkeys(site.jobs, "CREATED")
    for event in site.events:
        assert (event["from_state"], event["to_state"]) in FOLLOWS
        assert state[event["job_id"]] == event["from_state"]
        state[event["job_id"]] = event["to_state"]
    assert state == {number: job["state"] for number, job in site.jobs.items()}
    assert {"JOB_FINISHED", "FAILED", "RUNNING"} <= set(Counter(state.values()))


def test_what_is_long_over_is_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.demo.balsam.KEPT_S", 1_800)
    site = grown(1)
    assert min(site.jobs) > 1
    assert all(event["job_id"] in site.jobs for event in site.events)
    ended = [job for job in site.jobs.values() if job["state"] in ENDED]
    assert ended
    assert len(ended) < 80


async def test_the_same_source_reads_it_as_a_real_server(served: Served) -> None:
    url, _, clock = served
    source = Balsam(BalsamClient(url, lambda: TOKEN), clock=clock)
    batches = await polled(source)
    assert not sum(batch.skip_count for batch in batches)
    site = grown()
    jobs = {job.id: job.native_status for batch in batches for job in batch.jobs}
    assert jobs == {f"balsam/{number}": job["state"] for number, job in site.jobs.items()}
    changes = {change.id for batch in batches for change in batch.changes}
    assert changes == {event["id"] for event in site.events}
    assert {one.id for batch in batches for one in batch.allocations} == set(site.batch_jobs)
    clock.advance(600)
    later = await polled(source)
    grew = grown(1, 600)
    assert max(change.id for batch in later for change in batch.changes) == grew.events[-1]["id"]
    await source.aclose()


def test_nobody_gets_in_without_the_login_which_is_for_one_only(served: Served) -> None:
    url, login, _ = served
    assert httpx.get(f"{url}/jobs/").status_code == 401
    assert httpx.get(f"{url}/nothing/", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 404
    assert os.stat(login).st_mode & 0o777 == 0o600
    assert set(STATUSES) >= {state for pair in FOLLOWS for state in pair}
