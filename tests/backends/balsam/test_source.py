"""A Balsam server as a source, against the recorded one and its faults."""

import asyncio
from collections.abc import Callable

import httpx
import pytest

from jobtui.backends.balsam.client import BalsamClient
from jobtui.backends.balsam.source import Balsam
from jobtui.backends.base import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.clock import FixedClock, Nanos
from jobtui.model.jobs import JobStatus
from jobtui.store.poller import Poller
from jobtui.store.store import Store
from tests.analysis.balsam_data import nanos
from tests.balsam_server import TOKEN, RecordedBalsam
from tests.fakes import FakeCorrelation

NOW = nanos("2026-11-20T19:30:00")
EARLY = nanos("2026-11-20T17:00:00")
URL = "http://balsam.test"


class Watched:
    """A server, the source that watches it, and the store that it fills."""

    def __init__(self, server: RecordedBalsam | None = None, since: Nanos = EARLY) -> None:
        self.server = server or RecordedBalsam()
        client = BalsamClient(URL, lambda: TOKEN, self.server.transport)
        self.source = Balsam(client, owner="operator", since=since, clock=FixedClock(NOW))
        self.store = Store(FakeCorrelation(), FixedClock(NOW))
        self.poller = Poller(self.source, self.store, strict=True)

    async def poll(self, times: int = 1) -> None:
        for _ in range(times):
            await self.poller.poll_once()


async def caught_up() -> Watched:
    watched = Watched()
    await watched.poller.catch_up()
    await watched.poll(20)
    return watched


async def test_it_knows_what_the_server_knows() -> None:
    watched = await caught_up()
    jobs = {row["id"]: row for row in watched.server.jobs}
    assert {int(job.id.rpartition("/")[2]): job.native_status for job in watched.store.jobs.values()} == {
        number: row["state"] for number, row in jobs.items()
    }
    assert {(one.id, one.at) for one in watched.store.changes.all()} == {
        (row["id"], nanos(row["timestamp"])) for row in watched.server.events
    }
    assert len(watched.store.allocations()) == len(watched.server.batch_jobs)
    (site,) = watched.store.sites()
    assert site.name == "demo-site"
    await watched.source.aclose()


async def test_jobs_have_their_times_and_why_they_failed() -> None:
    watched = await caught_up()
    failed = [job for job in watched.store.jobs.values() if job.status is JobStatus.FAILED]
    assert failed
    for job in failed:
        changes = [one for one in watched.store.changes.of_job(job.id)]
        assert job.ended_at == max(one.at for one in changes if one.after == "FAILED")
        assert job.error
    done = [job for job in watched.store.jobs.values() if job.status is JobStatus.COMPLETED]
    assert all(job.queued_at and job.started_at and job.ended_at and job.runs for job in done)
    running = [one for one in watched.store.allocations() if one.state == "running"]
    assert all(one.start_estimated and one.start_at for one in running)


async def test_it_never_asks_for_everything_and_once_a_poll() -> None:
    watched = await caught_up()
    for target in watched.server.requests:
        assert "limit=" in target or target.startswith("/sessions/")
        if target.startswith("/events/"):
            assert "timestamp_after=" in target
        if target.startswith("/jobs/"):
            assert "last_update_after=" in target or "state=" in target or "id=" in target
    before = len(watched.server.requests)
    await watched.poll(40)
    assert len(watched.server.requests) - before <= 40 + 2 * 40 / 8


async def test_late_events_are_found_and_none_comes_twice() -> None:
    server = RecordedBalsam()
    late = [row for row in server.events if row["to_state"] == "RUN_DONE"][-5:]
    server.events = [row for row in server.events if row not in late]
    watched = Watched(server)
    await watched.poller.catch_up()
    known = len(watched.store.changes)
    server.events += late
    for row in late:
        row["timestamp"] = "2026-11-20T19:29:00"
    await watched.poll(6)
    assert len(watched.store.changes) == known + len(late)


async def test_a_change_while_it_looks_is_seen() -> None:
    watched = await caught_up()
    server = watched.server
    job = next(row for row in server.jobs if row["state"] == "RUNNING")
    job["state"], job["last_update"] = "RUN_DONE", "2026-11-20T19:31:00.000001+00:00"
    server.events.append(
        {
            "id": 99_999,
            "job_id": job["id"],
            "timestamp": "2026-11-20T19:30:59",
            "from_state": "RUNNING",
            "to_state": "RUN_DONE",
            "data": {},
        }
    )
    await watched.poll(4)
    found = next(one for one in watched.store.jobs.values() if one.id == f"balsam/{job['id']}")
    assert found.native_status == "RUN_DONE"
    assert watched.store.changes.of_job(found.id)[-1].after == "RUN_DONE"


def answers(status: int, body: bytes = b"", **headers: str) -> Callable[[httpx.Request], httpx.Response]:
    return lambda _: httpx.Response(status, content=body, headers=headers)


def raises(error: Exception) -> Callable[[httpx.Request], httpx.Response]:
    def fail(_: httpx.Request) -> httpx.Response:
        raise error

    return fail


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (answers(401, b'{"detail":"x"}'), SourceDenied, "jobtui login balsam"),
        (answers(403), SourceDenied, "not permitted"),
        (answers(404, b"{}"), SourceMissing, "address of a Balsam server"),
        (answers(500, b"Internal Server Error"), SourceUnreachable, "500: Internal Server Error"),
        (answers(307, location="http://other/"), SourceUnreachable, "redirected"),
        (answers(200, b"<html>Sign in</html>"), SourceUnreachable, "web page"),
        (answers(200, b'{"count": 3, "results": [{"id": 1'), SourceUnreachable, "breaks off"),
        (answers(200, b"[" * 5_000), SourceUnreachable, "breaks off"),
        (answers(200, b""), SourceUnreachable, "breaks off"),
        (raises(httpx.ReadTimeout("slow")), SourceUnreachable, "no answer within"),
        (raises(httpx.ConnectError("refused")), SourceUnreachable, "refused"),
    ],
)  # fmt: skip
async def test_a_fault_is_one_line_and_what_was_known_stays(
    fault: Callable[[httpx.Request], httpx.Response], kind: type[SourceError], words: str
) -> None:
    watched = await caught_up()
    jobs, changes = dict(watched.store.jobs), len(watched.store.changes)
    watched.server.faults = [fault]
    with pytest.raises(kind, match=words) as caught:
        await watched.source.poll(None)
    assert "\n" not in str(caught.value)
    assert TOKEN not in str(caught.value)
    await watched.poll(20)
    assert dict(watched.store.jobs) == jobs
    assert len(watched.store.changes) == changes


async def test_a_fault_while_it_begins_loses_and_doubles_nothing() -> None:
    whole = await caught_up()
    for number in range(8):
        watched = Watched()
        await watched.poll(number)
        watched.server.faults = [answers(500), answers(502)]
        await watched.poll(2)
        await watched.poller.catch_up()
        await watched.poll(20)
        assert dict(watched.store.jobs) == dict(whole.store.jobs)
        assert len(watched.store.changes) == len(whole.store.changes)


async def test_ids_that_go_back_are_new_events() -> None:
    """A server that was set up anew counts from 1 again."""
    watched = await caught_up()
    watched.server.events = [
        {
            "id": 1,
            "job_id": 1,
            "timestamp": "2026-11-20T19:40:00",
            "from_state": "FAILED",
            "to_state": "READY",
        }
    ]
    await watched.poll(6)
    assert any(
        one.after == "READY" and one.at == nanos("2026-11-20T19:40:00") for one in watched.store.changes.all()
    )


async def test_what_is_no_row_is_skipped_and_counted() -> None:
    server = RecordedBalsam()
    server.jobs.append({"id": "x", "state": 7, "last_update": "2026-11-20T19:30:00+00:00", "app_id": 1})
    server.events.append(
        {"id": 7, "job_id": "one", "timestamp": "2026-11-20T19:30:00", "from_state": "", "to_state": ""}
    )
    watched = Watched(server)
    await watched.poller.catch_up()
    (health,) = watched.store.sources()
    assert health.skipped >= 2
    assert len(watched.store.jobs) == len(server.jobs) - 1


async def test_closing_twice_is_fine() -> None:
    watched = Watched()
    await watched.poll()
    await watched.source.aclose()
    await watched.source.aclose()
    await asyncio.sleep(0)
