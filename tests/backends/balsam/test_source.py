"""A Balsam server as a source, against the recorded one and its faults."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from jobtui.backends.balsam.client import BalsamClient
from jobtui.backends.balsam.rows import EventRow
from jobtui.backends.balsam.source import Balsam
from jobtui.backends.base import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.clock import FixedClock, Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobStatus
from jobtui.store.poller import Poller
from jobtui.store.store import Store
from tests.analysis.balsam_data import nanos
from tests.balsam_server import TOKEN, Record, RecordedBalsam
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
    await watched.poll(12)
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
        watched.server.faults = [answers(500), raises(httpx.ReadTimeout("slow"))]
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
    await watched.poll(12)
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


async def test_what_would_be_ignored_is_not_asked() -> None:
    watched = Watched()
    with pytest.raises(ValueError, match="takes no tag"):
        await watched.source.client.rows("/events/", EventRow, {"tag": "a:b"})


async def test_closing_twice_is_fine() -> None:
    watched = Watched()
    await watched.poll()
    await watched.source.aclose()
    await watched.source.aclose()
    await asyncio.sleep(0)


async def test_an_event_of_a_clock_that_is_behind_is_found() -> None:
    """A sender five minutes behind: its events are older than what is usually looked back for."""
    watched = await caught_up()
    job = next(row for row in watched.server.jobs if row["state"] == "RUNNING")
    job["state"], job["last_update"] = "RUN_DONE", "2026-11-20T19:31:00+00:00"
    watched.server.events.append(an_event(99_999, job["id"], "2026-11-20T19:20:00", "RUNNING", "RUN_DONE"))
    await watched.poll(3)
    assert 99_999 in {one.id for one in watched.store.changes.of_job(JobId(f"balsam/{job['id']}"))}


async def test_an_event_of_a_clock_that_is_ahead_hides_no_other() -> None:
    watched = await caught_up()
    ahead, right = [row for row in watched.server.jobs if row["state"] == "RUNNING"][:2]
    ahead["state"], ahead["last_update"] = "RUN_DONE", "2026-11-20T19:31:00+00:00"
    watched.server.events.append(an_event(99_998, ahead["id"], "2026-11-20T19:36:00", "RUNNING", "RUN_DONE"))
    await watched.poll(3)
    right["state"], right["last_update"] = "RUN_DONE", "2026-11-20T19:31:10+00:00"
    watched.server.events.append(an_event(99_999, right["id"], "2026-11-20T19:31:09", "RUNNING", "RUN_DONE"))
    await watched.poll(3)
    assert {99_998, 99_999} <= {one.id for one in watched.store.changes.all()}


def an_event(number: int, job: int, at: str, before: str, after: str) -> Record:
    return {
        "id": number, "job_id": job, "timestamp": at, "from_state": before, "to_state": after, "data": {}
    }  # fmt: skip


async def test_a_state_without_an_event_is_asked_about_once() -> None:
    watched = await caught_up()
    job = next(row for row in watched.server.jobs if row["state"] == "RUNNING")
    job["state"], job["last_update"] = "RUN_DONE", "2026-11-20T19:31:00+00:00"
    before = len(watched.server.requests)
    await watched.poll(30)
    asked = [target for target in watched.server.requests[before:] if "job_id=" in target]
    assert len(asked) == 1


async def test_more_than_a_page_of_one_instant(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bulk update stamps thousands of rows alike: no page comes for ever, and none is left out."""
    monkeypatch.setattr("jobtui.backends.balsam.asking.PAGE_ROWS", 10)
    watched = await caught_up()
    moved = [row for row in watched.server.jobs if row["state"] == "JOB_FINISHED"][:47]
    for number, row in enumerate(moved):
        row["state"], row["last_update"] = "RESTART_READY", "2026-11-20T19:31:00+00:00"
        watched.server.events.append(
            an_event(90_000 + number, row["id"], "2026-11-20T19:31:00", "JOB_FINISHED", "RESTART_READY")
        )
    await watched.poller.catch_up()
    assert {f"balsam/{row['id']}" for row in moved} == {
        job.id for job in watched.store.jobs.values() if job.native_status == "RESTART_READY"
    }
    assert len([one for one in watched.store.changes.all() if one.id >= 90_000]) == 47


async def test_a_job_that_was_deleted_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.backends.balsam.source.RESYNC_EVERY", 3)
    watched = await caught_up()
    job = next(row for row in watched.server.jobs if row["state"] == "RUNNING")
    watched.server.jobs.remove(job)
    await watched.poll(20)
    assert f"balsam/{job['id']}" not in watched.store.jobs
    assert len(watched.store.jobs) == len(watched.server.jobs)


async def test_the_same_bad_row_counts_once_and_no_more_when_it_is_mended() -> None:
    watched = await caught_up()
    row = watched.server.jobs[0]
    row["last_update"] = "2026-11-20T19:31:00+00:00"
    row["state"] = 7
    await watched.poll(12)
    (health,) = watched.store.sources()
    assert (health.skipped, health.last_skips[-1].where) == (1, f"{URL}/jobs/{row['id']}")
    row["state"] = "FAILED"
    await watched.poll(12)
    (health,) = watched.store.sources()
    assert health.skipped == 0


async def test_launchers_and_agents_that_fell_silent_are_told() -> None:
    watched = await caught_up()
    (health,) = watched.store.sources()
    running = next(row for row in watched.server.batch_jobs if row["state"] == "running")
    session = next(row for row in watched.server.sessions if row["batch_job_id"] == running["id"])
    session["heartbeat"] = "2026-11-20T19:20:00"
    watched.server.sites[0]["last_refresh"] = "2026-11-20T18:00:00.5"
    watched.source.client.ahead_s = 0.0
    await watched.poll(12)
    (health,) = watched.store.sources()
    assert f"batch job {running['id']}: its launcher was last heard of at 19:20Z" in (health.note or "")
    assert "the agent of site demo-site was last heard of at 18:00Z" in (health.note or "")
    held = [
        job for job in watched.store.jobs.values() if job.native_status == "RUNNING" and job.alert is not None
    ]
    assert held
    assert {job.alert for job in held} == {"its launcher was last heard of at 19:20Z"}
    session["heartbeat"] = "2026-11-20T19:30:00"
    watched.server.sites[0]["last_refresh"] = "2026-11-20T19:30:00"
    await watched.poll(12)
    (health,) = watched.store.sources()
    assert health.note == ""
    assert not any(job.alert for job in watched.store.jobs.values())


async def test_a_server_whose_clock_is_off_says_so() -> None:
    watched = await caught_up()
    told = format_datetime(datetime.now(UTC) + timedelta(minutes=5), usegmt=True)
    watched.server.headers = {"Date": told}
    await watched.poll(2)
    (health,) = watched.store.sources()
    assert "the server's clock is 5 min ahead" in (health.note or "")


async def test_the_whole_record_of_a_job() -> None:
    watched = await caught_up()
    server = watched.server
    errors = {row["job_id"] for row in server.events if row["to_state"] == "RUN_ERROR"}
    for number in sorted(errors)[:5] + [row["id"] for row in server.jobs[:5]]:
        row = next(row for row in server.jobs if row["id"] == number)
        events = [event for event in server.events if event["job_id"] == number]
        detail = await watched.source.detail(JobId(f"balsam/{number}"))
        assert detail is not None
        assert [change.id for change in detail.changes] == [event["id"] for event in events]
        starts = [event for event in events if event["to_state"] == "RUNNING"]
        assert [run.started_at for run in detail.runs if run.started_at] == [
            nanos(event["timestamp"]) for event in sorted(starts, key=lambda event: event["id"])
        ]
        assert detail.native["state"] == row["state"]
        assert detail.directory == f"{server.sites[0]['path']}/data/{row['workdir']}"
        assert dict(detail.facts)["output"] == f"{detail.directory}/job.out"
        assert dict(detail.facts).get("parents", "") == " ".join(f"balsam/{one}" for one in row["parent_ids"])
        assert detail.job == watched.store.jobs[detail.job.id]
    failed = await watched.source.detail(JobId(f"balsam/{min(errors)}"))
    assert failed is not None
    assert any(run.error and run.error.startswith("return code") for run in failed.runs)


@pytest.mark.parametrize("job_id", ["balsam/999999", "999", "balsam/", "balsam/x", "balsam/1/2", "slurm/3"])
async def test_no_record_of_what_is_no_job(job_id: str) -> None:
    watched = Watched()
    assert await watched.source.detail(JobId(job_id)) is None


@pytest.mark.parametrize("workdir", ["../../etc", "a/../../b", "/etc", "a\0b", ""])
async def test_a_working_directory_does_not_lead_elsewhere(workdir: str) -> None:
    watched = Watched()
    row = watched.server.jobs[0]
    row["workdir"] = workdir
    detail = await watched.source.detail(JobId(f"balsam/{row['id']}"))
    assert detail is not None
    assert detail.directory is None
