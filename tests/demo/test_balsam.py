"""The simulated Balsam site: what it serves is read by the same source as a real one, and makes sense."""

import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from jobtui.backends.balsam.client import BalsamClient
from jobtui.backends.balsam.source import Balsam
from jobtui.demo.balsam import TOKEN, BalsamSite, serving
from jobtui.model.clock import SECOND, FixedClock, Nanos
from tests.carried import timed
from tests.polling import polled

NOW = Nanos(1_795_206_870 * SECOND)
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


async def test_the_same_source_reads_it_as_a_real_server(served: Served) -> None:
    url, _, clock = served
    source = timed(Balsam(BalsamClient(url, lambda: TOKEN)), clock)
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
