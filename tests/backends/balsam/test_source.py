"""A Balsam server as a source, against the recorded one and its faults."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.analysis.explain.case import Evidence
from jobtui.analysis.explain.verdict import explain
from jobtui.analysis.flags import needs_person, waits_for
from jobtui.analysis.reports.rates import stays_of
from jobtui.backends.balsam.client import BalsamClient
from jobtui.backends.balsam.poll import FRAME_EVERY
from jobtui.backends.balsam.records import BatchJobRow, EventRow, decode_page
from jobtui.backends.balsam.records import changes_in as changes_of
from jobtui.backends.balsam.source import Balsam, fetch_allocations
from jobtui.backends.registry import PERIOD_S
from jobtui.model.changes import UNLISTED, ReportQuery, StateChange, in_order
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.health import (
    SourceDenied,
    SourceError,
    SourceHealth,
    SourceMissing,
    SourceState,
    SourceUnreachable,
)
from jobtui.model.ids import JobId, system_job_id
from jobtui.model.jobs import BLOCKED, DELETED, Job, JobStatus
from jobtui.model.state_runs import by_run
from jobtui.model.verdicts import Concern
from jobtui.store.poller import Poller
from jobtui.store.store import Store
from tests.balsam_server import TOKEN, Record, RecordedBalsam, nanos
from tests.builders import some
from tests.fakes import FakeCorrelation, changes_in
from tests.loopback import carried, timed
from tests.offenders import each
from tests.rows import table

NOW = nanos("2026-11-20T19:30:00")
EARLY = nanos("2026-11-20T17:00:00")
URL = "http://balsam.test"


class Watched:
    """A server, the source that watches it, and the store that it fills."""

    def __init__(self, server: RecordedBalsam | None = None, since: Nanos = EARLY) -> None:
        self.server = server or RecordedBalsam()
        client = carried(BalsamClient(URL, lambda: TOKEN), self.server.answer)
        self.source = timed(Balsam(client, owner="operator", since=since), FixedClock(NOW))
        self.seconds = 0.0
        self.source.timer = lambda: self.seconds
        self.store = Store(FakeCorrelation(), FixedClock(NOW))
        self.poller = Poller(self.source, self.store)

    @property
    def health(self) -> SourceHealth:
        (health,) = self.store.sources()
        return health

    async def poll(self, times: int = 1) -> None:
        for _ in range(times):
            await self.poller.poll_once()
            self.seconds += PERIOD_S


async def caught_up() -> Watched:
    watched = Watched()
    await watched.poll(5)  # the last of these gives jobs
    assert all((watched.store.allocations(), *(job.host for job in watched.store.jobs.values())))
    assert watched.health.is_first_read
    await watched.poller.catch_up()
    await watched.poll(20)
    assert not watched.health.is_first_read
    return watched


def answers(status: int, body: bytes = b"", **headers: str) -> Callable[[httpx.Request], httpx.Response]:
    return lambda _: httpx.Response(status, content=body, headers=headers)


def raises(error: Exception) -> Callable[[httpx.Request], httpx.Response]:
    def fail(_: httpx.Request) -> httpx.Response:
        raise error

    return fail


@pytest.fixture
async def watched() -> Watched:
    return await caught_up()


async def test_the_source_knows_what_the_server_knows(watched: Watched) -> None:
    store, server = watched.store, watched.server
    states = {f"balsam/{row['id']}": row["state"] for row in server.jobs}
    assert {job.id: job.native_status for job in store.jobs.values()} == states
    assert {(one.id, one.at) for one in changes_in(store)} == {
        (row["id"], nanos(row["timestamp"])) for row in server.events
    }
    assert len(store.allocations()) == len(server.batch_jobs)
    (site,) = store.sites()
    assert site.name == "demo-site"
    failed = [job for job in store.jobs.values() if job.status is JobStatus.FAILED]
    assert failed
    for job in failed:
        assert job.ended_at == max(one.at for one in store.changes.of_job(job.id) if one.after == "FAILED")
        assert job.error
    done = [job for job in store.jobs.values() if job.status is JobStatus.COMPLETED]
    assert all(job.queued_at and job.started_at and job.ended_at and job.runs for job in done)
    running = [one for one in store.allocations() if one.state == "running"]
    assert all(one.start_estimated and one.start_at for one in running)
    await watched.source.aclose()


async def test_a_poll_asks_once_and_never_for_everything(watched: Watched) -> None:
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
    before = len(watched.store.changes)
    server.events += late
    for row in late:
        row["timestamp"] = "2026-11-20T19:29:00"
    await watched.poll(20)
    assert len(watched.store.changes) == before + len(late)


@pytest.mark.parametrize(
    ("at", "seen"),
    [("19:30:59", "19:31:00.000001"), ("19:20:00", "19:31:00")],
    ids=["at once", "by a clock behind"],
)
async def test_a_change_of_a_clock_that_is_behind_is_seen(watched: Watched, at: str, seen: str) -> None:
    """A sender five minutes behind: its events are older than what is usually looked back for."""
    job = watched.server.move_on(99_999, at=at, seen=seen)
    await watched.poll(8)
    assert known(watched, job["id"]).native_status == "RUN_DONE"
    assert 99_999 in {one.id for one in watched.store.changes.of_job(JobId(f"balsam/{job['id']}"))}


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (answers(401, b'{"detail":"x"}'), SourceDenied, "jobtui login balsam"),
        (answers(404, b"{}"), SourceMissing, "address of a Balsam server"),
        (answers(500, b"Internal Server Error"), SourceUnreachable, ": Internal Server Error"),
        (raises(httpx.ReadTimeout("slow")), SourceUnreachable, "no answer within"),
    ],
)  # fmt: skip
async def test_a_fault_is_one_line_and_what_was_known_stays(
    watched: Watched, fault: Callable[[httpx.Request], httpx.Response], kind: type[SourceError], words: str
) -> None:
    jobs, changes = dict(watched.store.jobs), len(watched.store.changes)
    watched.server.faults = [fault] * 2
    with pytest.raises(kind, match=words) as caught:
        await watched.source.poll(None)
    assert "\n" not in str(caught.value)
    assert TOKEN not in str(caught.value)
    await watched.poll(20)
    assert (dict(watched.store.jobs), len(watched.store.changes)) == (jobs, changes)


@pytest.mark.parametrize("path", ["sites", "sessions", "batch-jobs", "jobs", "events"])
async def test_a_list_that_fails_keeps_no_other_from_being_read(watched: Watched, path: str) -> None:
    server, before = watched.server, len(watched.server.requests)
    server.broken = f"/{path}/"
    job = server.move_on(99_999)
    await watched.poll(60)
    assert watched.health.state is SourceState.PARTIAL
    assert (path, NOW) in {(one.name, one.since) for one in watched.health.failing}
    assert f"{path} cannot be read: failed (500): Internal Server" in watched.health.reason
    asked = [target.partition("?")[0].strip("/") for target in server.requests[before:]]
    assert 3 <= asked.count(path) <= 12, "it is asked again, less and less often"
    assert {"sites", "sessions", "batch-jobs", "jobs"} <= set(asked)
    assert known(watched, job["id"]).native_status == ("RUNNING" if path == "jobs" else "RUN_DONE")
    server.broken = ""
    await watched.poll(60)
    assert (watched.health.state, watched.health.failing) == (SourceState.OK, ())
    assert known(watched, job["id"]).native_status == "RUN_DONE"
    assert 99_999 in {one.id for one in changes_in(watched.store)}


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


async def test_a_state_without_an_event_is_asked_about_once(watched: Watched) -> None:
    job = next(row for row in watched.server.jobs if row["state"] == "RUNNING")
    job["state"], job["last_update"] = "RUN_DONE", "2026-11-20T19:31:00+00:00"
    before = len(watched.server.requests)
    await watched.poll(30)
    asked = [target for target in watched.server.requests[before:] if "job_id=" in target]
    assert len(asked) == 1


async def test_more_than_a_page_of_one_instant(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bulk update stamps thousands of rows alike: no page comes again without end, and none is left out."""
    monkeypatch.setattr("jobtui.backends.balsam.poll.PAGE_ROWS", 10)
    moved = [row for row in watched.server.jobs if row["state"] == "JOB_FINISHED"][:47]
    for number, row in enumerate(moved):
        row["state"], row["last_update"] = "RESTART_READY", "2026-11-20T19:31:00+00:00"
        watched.server.tell(90_000 + number, row["id"], "19:31:00", "JOB_FINISHED", "RESTART_READY")
    await watched.poller.catch_up()
    assert {f"balsam/{row['id']}" for row in moved} == {
        job.id for job in watched.store.jobs.values() if job.native_status == "RESTART_READY"
    }
    assert len([one for one in changes_in(watched.store) if one.id >= 90_000]) == 47


async def test_an_allocation_that_only_a_launcher_names_is_there_as_unlisted(watched: Watched) -> None:
    running = next(row for row in watched.server.batch_jobs if row["state"] == "running")
    nodes, running["num_nodes"] = running["num_nodes"], "many"  # it is listed, though it is not understood
    await watched.poll(12)
    assert UNLISTED not in [one.state for one in watched.store.allocations()]
    running["num_nodes"] = nodes
    watched.server.batch_jobs.remove(running)
    await watched.poll(12)
    (found,) = (one for one in watched.store.allocations() if one.id == running["id"])
    assert (found.state, found.launchers) == (UNLISTED, 1)


async def test_silent_launchers_and_agents_are_reported(watched: Watched) -> None:
    running = next(row for row in watched.server.batch_jobs if row["state"] == "running")
    session = next(row for row in watched.server.sessions if row["batch_job_id"] == running["id"])
    session["heartbeat"] = "2026-11-20T19:20:00"
    watched.server.sites[0]["last_refresh"] = "2026-11-20T18:00:00.5"
    watched.source.client.ahead_s = 0.0
    await watched.poll(12)
    silence = f"batch job {running['id']}: its launcher was last heard from at 19:20Z"
    assert silence in (watched.health.note or "")
    assert "the agent of site demo-site was last heard from at 18:00Z" in (watched.health.note or "")
    held = [job for job in watched.store.jobs.values() if job.native_status == "RUNNING" and job.alert]
    assert {job.alert for job in held} == {silence}
    session["heartbeat"] = "2026-11-20T19:30:00"
    watched.server.sites[0]["last_refresh"] = "2026-11-20T19:30:00"
    await watched.poll(12)
    assert watched.health.note == ""
    states = {job.native_status for job in watched.store.jobs.values() if job.alert}
    assert states <= {"AWAITING_PARENTS"}
    watched.server.broken = "/sessions/"  # an agent is silent while launchers are not read
    watched.source.clock = FixedClock(Nanos(NOW + 600 * SECOND))
    await watched.poll(12)
    assert watched.health.note == "the agent of site demo-site was last heard from at 19:30Z"


async def test_the_row_of_a_job_that_could_run_says_what_the_verdict_says() -> None:
    watched = Watched()
    server, (_, session), (site,) = watched.server, watched.server.sessions, watched.server.sites
    (one,) = server.batch_jobs = [row for row in server.batch_jobs if row["state"] == "running"]
    for number, state in enumerate(("PREPROCESSED", "RESTART_READY"), FIRST):
        a_job(server, number, state, num_nodes=2)
    site["last_refresh"] = "2026-11-20T19:30:00"
    watched.source.client.ahead_s = 0.0
    for changed, words in table("balsam/offers")["offers"]:
        for row in (one, session, site):
            row.update((key, value) for key, value in changed.items() if key in row)
        await read(watched)
        for number, again in ((FIRST, ""), (FIRST + 1, ", to run again")):
            job = known(watched, number)
            evidence = Evidence(
                job_id=job.id, now=NOW, job=job, sources=watched.store.sources(), sites=watched.store.sites(),
                changes=watched.store.changes_of(job.id), allocations=watched.store.allocations(),
            )  # fmt: skip
            verdict = explain(evidence)
            assert waits_for(job, NOW) == words + ("" if job.alert else again)
            assert needs_person(job, NOW) is (verdict.code.concern is Concern.STUCK), verdict
            if verdict.pending is not None and "heard" not in words:
                assert verdict.pending.words == words


def set_clock(server: RecordedBalsam, ahead_s: int) -> None:
    at = datetime.now(UTC) + timedelta(seconds=ahead_s)
    server.headers = {"Date": format_datetime(at, usegmt=True)}


async def test_the_whole_record_of_a_job(watched: Watched) -> None:
    server = watched.server
    errors = {row["job_id"] for row in server.events if row["to_state"] == "RUN_ERROR"}
    for number in sorted(errors)[:5] + [row["id"] for row in server.jobs[:5]]:
        row = next(row for row in server.jobs if row["id"] == number)
        events = [event for event in server.events if event["job_id"] == number]
        detail = some(await watched.source.detail(JobId(f"balsam/{number}")))
        assert [change.id for change in detail.changes] == [event["id"] for event in events]
        starts = [event for event in events if event["to_state"] == "RUNNING"]
        assert [run.started_at for run in detail.runs if run.started_at] == [
            nanos(event["timestamp"]) for event in sorted(starts, key=lambda event: event["id"])
        ]
        assert detail.native["state"] == row["state"]
        assert detail.directory == f"{server.sites[0]['path']}/data/{row['workdir']}"
        assert detail.outputs == (f"{detail.directory}/job.out",)
        assert dict(detail.facts).get("parents", "") == " ".join(f"balsam/{one}" for one in row["parent_ids"])
        assert detail.job == watched.store.jobs[detail.job.id]
    failed = some(await watched.source.detail(JobId(f"balsam/{min(errors)}")))
    assert any(run.error and run.error.startswith("return code") for run in failed.runs)


@pytest.mark.parametrize("job_id", ["balsam/999999", "999", "balsam/", "balsam/x", "balsam/1/2", "slurm/3"])
async def test_an_id_that_is_not_a_job_has_no_record(job_id: str) -> None:
    watched = Watched()
    assert await watched.source.detail(JobId(job_id)) is None


@pytest.mark.parametrize("workdir", ["../../etc", "a/../../b", "/etc", "a\0b", ""])
async def test_a_working_directory_does_not_lead_elsewhere(workdir: str) -> None:
    watched = Watched()
    row = watched.server.jobs[0]
    row["workdir"] = workdir
    detail = some(await watched.source.detail(JobId(f"balsam/{row['id']}")))
    assert detail.directory is None


JOB = system_job_id("balsam", 5)
BACKUP_ID, NEW_JOB = 50_000, 5_000


def a_job(server: RecordedBalsam, number: int, state: str, at: str = "19:20:00", **fields: object) -> Record:
    """A job of that number, instead of the one it may have had."""
    row = {
        **server.jobs[0], "id": number, "state": state, "last_update": f"2026-11-20T{at}+00:00",
        "parent_ids": [], "batch_job_id": None, "session_id": None, **fields,
    }  # fmt: skip
    server.jobs = [*(one for one in server.jobs if one["id"] != number), row]
    return row


async def read(watched: Watched, polls: int = 12) -> None:
    await watched.poll(polls)
    await watched.poller.catch_up()


def known(watched: Watched, number: int) -> Job:
    return watched.store.jobs[JobId(f"balsam/{number}")]


async def test_after_a_crash_what_was_lost_is_gone_and_it_goes_on_from_there() -> None:
    watched = Watched()
    server = watched.server
    a_job(server, NEW_JOB, "JOB_FINISHED", "19:10:04")
    a_job(server, NEW_JOB + 1, "STAGED_IN", "19:10:05")
    server.tell(BACKUP_ID - 1, NEW_JOB, "19:09:00", "STAGED_IN", "PREPROCESSED")
    server.tell(BACKUP_ID, NEW_JOB, "19:10:00", "PREPROCESSED", "RUNNING")
    server.tell(BACKUP_ID + 1, NEW_JOB, "19:10:03", "RUNNING", "RUN_DONE")
    server.tell(BACKUP_ID + 2, NEW_JOB, "19:10:04", "RUN_DONE", "JOB_FINISHED")
    before = list(server.events)
    await watched.poller.catch_up()
    server.events = [row for row in server.events if row["id"] < BACKUP_ID]
    server.jobs = [row for row in server.jobs if row["id"] != NEW_JOB + 1]
    a_job(server, NEW_JOB, "RUNNING", "19:29:01")
    server.tell(BACKUP_ID, NEW_JOB, "19:29:00", "PREPROCESSED", "RUNNING")
    await read(watched, 3)
    job = known(watched, NEW_JOB)
    assert (job.native_status, job.started_at, job.ended_at) == ("RUNNING", nanos("2026-11-20T19:29"), None)
    assert set(watched.store.jobs) == {f"balsam/{row['id']}" for row in server.jobs}
    # What was seen to happen did happen; each counts once
    told = [(one.id, one.at) for one in changes_in(watched.store)]
    assert sorted(told) == sorted({(row["id"], nanos(row["timestamp"])) for row in [*before, *server.events]})
    assert "event ids went back, seen at 19:30Z" in (watched.health.note or "")
    asked = len(server.requests)
    a_job(server, NEW_JOB, "JOB_FINISHED", "19:29:31")
    server.tell(BACKUP_ID + 1, NEW_JOB, "19:29:30", "RUNNING", "JOB_FINISHED")
    await watched.poll(4)
    own = watched.store.changes.of_job(job.id)
    assert known(watched, NEW_JOB).ended_at == nanos("2026-11-20T19:29:30")
    assert [(stay.begin, stay.end) for stay in stays_of(own, {"RUNNING"})] == [
        (nanos("2026-11-20T19:10:00"), nanos("2026-11-20T19:10:03")),
        (nanos("2026-11-20T19:29:00"), nanos("2026-11-20T19:29:30")),
    ]
    assert len(by_run(own)) == 2
    await watched.poll(20)
    assert len(server.requests) - asked < 60, "it is noticed once, and read again once"


async def test_a_server_that_was_set_up_again_is_recognized_by_its_sites(watched: Watched) -> None:
    """Its ids begin at 1 again, and those of events and jobs happen to be none that were seen."""
    server = watched.server
    a_job(server, NEW_JOB, "STAGED_IN", "19:25:01")
    server.jobs = [row for row in server.jobs if row["id"] == NEW_JOB]
    server.events, server.sessions, server.batch_jobs = [], [], []
    server.sites = [{**row, "creation_date": "2026-11-20T19:20:00.000000"} for row in server.sites]
    server.tell(BACKUP_ID, NEW_JOB, "19:25:00", "READY", "STAGED_IN")
    await read(watched, 3 + FRAME_EVERY)
    assert set(watched.store.jobs) == {f"balsam/{NEW_JOB}"}
    assert "or a backup; all was read again" in (watched.health.note or "")


WAY = ("CREATED", "STAGED_IN", "PREPROCESSED", "RUNNING", "RUN_DONE", "JOB_FINISHED")


def a_way(first_id: int, begin_s: int, skews: list[int]) -> list[StateChange]:
    return [
        StateChange(first_id + n, JOB, Nanos((begin_s + 10 * n + skew) * SECOND), before, after, "b")
        for n, (before, after, skew) in enumerate(zip(WAY, WAY[1:], skews, strict=False))
    ]


@given(st.lists(st.integers(-300, 300), min_size=5, max_size=5), st.randoms(use_true_random=False))
def test_clocks_that_are_off_do_not_change_the_order_learnt(skews: list[int], chance: object) -> None:
    way = a_way(1, 1_000, skews)
    mixed = list(way)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    assert in_order(mixed) == way


@given(st.integers(1, 5), st.integers(0, 5), st.integers(1_000, 100_000))
def test_reused_ids_do_not_mix_the_histories_of_two_jobs(first_id: int, back: int, later_s: int) -> None:
    first = a_way(first_id + back, 0, [0] * 5)
    second = a_way(first_id, later_s, [0] * 5)
    assert in_order([*second, *first]) == [*first, *second]
    rotated = [StateChange(9 - n, JOB, Nanos(0), one.before, one.after, "b") for n, one in enumerate(first)]
    assert in_order(rotated) == rotated, "lines of two files, within a second"


FIRST = 7_000


async def test_a_job_has_the_state_of_its_parents() -> None:
    watched = Watched()
    server = watched.server
    parent = a_job(server, FIRST, "FAILED")
    gone = a_job(server, FIRST + 1, "RUNNING")
    a_job(server, FIRST + 2, "AWAITING_PARENTS", parent_ids=[FIRST])
    a_job(server, FIRST + 3, "AWAITING_PARENTS", parent_ids=[FIRST + 2])
    a_job(server, FIRST + 4, "AWAITING_PARENTS", parent_ids=[FIRST + 1])
    old = a_job(server, FIRST + 5, "JOB_FINISHED", "19:20:00")
    old["last_update"] = "2026-10-01T00:00:00+00:00"  # before what is read
    a_job(server, FIRST + 6, "AWAITING_PARENTS", parent_ids=[FIRST + 5, FIRST + 1])
    server.jobs.remove(gone)
    await watched.poller.catch_up()
    await read(watched)
    assert known(watched, FIRST + 2).needs == ((f"balsam/{FIRST}", "FAILED"),)
    assert known(watched, FIRST + 2).alert == f"its parent balsam/{FIRST} is FAILED"
    assert some(await watched.source.detail(known(watched, FIRST + 3).id)).job == known(watched, FIRST + 3)
    assert known(watched, FIRST + 3).needs == ((f"balsam/{FIRST + 2}", BLOCKED),)
    assert known(watched, FIRST + 4).needs == ((f"balsam/{FIRST + 1}", DELETED),)
    assert set(known(watched, FIRST + 6).needs) == {
        (f"balsam/{FIRST + 5}", "JOB_FINISHED"), (f"balsam/{FIRST + 1}", DELETED)
    }  # fmt: skip
    parent.update(state="RESTART_READY", last_update="2026-11-20T19:29:00+00:00")
    await read(watched)
    assert known(watched, FIRST + 2).needs == ((f"balsam/{FIRST}", "RESTART_READY"),)
    assert known(watched, FIRST + 2).alert is None
    assert known(watched, FIRST + 3).needs == ((f"balsam/{FIRST + 2}", "AWAITING_PARENTS"),)


async def test_a_failed_transfer_is_reported_until_it_continues() -> None:
    watched = Watched()
    a_job(watched.server, FIRST, "READY")
    item = {
        "id": 1, "job_id": FIRST, "direction": "in", "state": "error", "local_path": "in.dat",
        "transfer_info": {"error": "no such file"},
    }  # fmt: skip
    watched.server.transfers.append(item)
    await watched.poller.catch_up()
    await read(watched)
    assert known(watched, FIRST).needs == (("the stage-in of in.dat", "failed: no such file"),)
    assert known(watched, FIRST).alert == "the stage-in of in.dat failed"
    item["state"] = "active"
    watched.server.transfers.append(item | {"id": 2, "local_path": "b.dat", "transfer_info": {}})
    await read(watched)
    active = (
        ("the stage-in of in.dat", "active, last error: no such file"),
        ("the stage-in of b.dat", "active"),
    )
    assert known(watched, FIRST).needs == active
    assert known(watched, FIRST).alert == "the agent of site demo-site was last heard from at 17:30Z"
    watched.server.transfers.clear()
    await read(watched)
    assert known(watched, FIRST).needs == ()


async def test_an_allocation_begins_with_the_last_runs_of_its_jobs_in_a_report_too() -> None:
    """A job that ran in an allocation that is over, and again in one that runs; and one just taken."""
    watched = Watched()
    server = watched.server
    running = next(row for row in server.batch_jobs if row["state"] == "running")
    for row in server.jobs:
        row["batch_job_id"] = None if row["batch_job_id"] == running["id"] else row["batch_job_id"]
    running["status_info"] = {}
    a_job(server, FIRST, "RUNNING", batch_job_id=running["id"], session_id=1)
    a_job(server, FIRST + 1, "RESTART_READY", batch_job_id=running["id"], session_id=1)
    for number in (FIRST, FIRST + 1):
        at = 10 * number
        server.tell(at, number, "18:00:00", "PREPROCESSED", "RUNNING")
        server.tell(at + 1, number, "18:10:00", "RUNNING", "RUN_TIMEOUT")
        server.tell(at + 2, number, "18:10:01", "RUN_TIMEOUT", "RESTART_READY")
    server.tell(10 * FIRST + 9, FIRST, "19:05:00", "RESTART_READY", "RUNNING")
    await watched.poller.catch_up()
    await read(watched)
    (own,) = [one for one in watched.store.allocations() if one.id == running["id"]]
    assert (own.start_at, own.start_estimated) == (nanos("2026-11-20T19:05:00"), True)
    server.jobs = [row for row in server.jobs if row["id"] != FIRST + 1]
    found, _ = await fetch_allocations(watched.source.client, ReportQuery())
    assert [one.start_at for one in found if one.id == running["id"]] == [nanos("2026-11-20T19:05:00")]


@pytest.mark.parametrize(
    ("state", "every"),
    [
        *((state, "DELETED_EVERY") for state in ("JOB_FINISHED", "FAILED", "RUNNING")),
        ("RUNNING", "RESYNC_EVERY"),
    ],
)
async def test_a_deleted_job_is_gone(
    watched: Watched, state: str, every: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"jobtui.backends.balsam.poll.{every}", 3)
    monkeypatch.setattr("jobtui.backends.balsam.poll.IDS_AT_ONCE", 10)
    row = next(row for row in watched.server.jobs if row["state"] == state)
    watched.server.jobs.remove(row)
    watched.server.events[:] = [one for one in watched.server.events if one["job_id"] != row["id"]]
    if every == "RESYNC_EVERY":  # which finds one that changed long ago, too
        a_job(watched.server, FIRST, "STAGED_IN", "17:30:00")
    await read(watched)
    left = {f"balsam/{row['id']}" for row in watched.server.jobs}
    assert set(watched.store.jobs) == left
    assert {change.job_id for change in changes_in(watched.store)} <= left


async def test_allocations_and_sites_that_were_deleted_are_gone(watched: Watched) -> None:
    server = watched.server
    server.batch_jobs.pop()
    server.sites.pop()
    await read(watched)
    assert {one.id for one in watched.store.allocations()} == {row["id"] for row in server.batch_jobs}
    assert {one.id for one in watched.store.sites()} == {row["id"] for row in server.sites}


@pytest.mark.parametrize("back_s", [30, 600, 7_200])
async def test_new_jobs_are_seen_when_the_servers_clock_was_put_back(back_s: int) -> None:
    watched = Watched()
    server = watched.server
    set_clock(server, 0)
    newest = datetime(2026, 11, 20, 19, 30, tzinfo=UTC)
    server.jobs[0]["last_update"] = newest.isoformat()
    await watched.poller.catch_up()
    await watched.poll(2)
    set_clock(server, -back_s)
    await watched.poll(2)
    for number in range(3):
        at = newest - timedelta(seconds=back_s - number - 1)
        a_job(server, FIRST + number, "STAGED_IN")["last_update"] = at.isoformat()
        await read(watched, 1)
        assert f"balsam/{FIRST + number}" in watched.store.jobs


GOOD = '{"id": 1, "site_id": 1, "state": "queued", "num_nodes": 2}'


@each(
    *[
        f'{{"id": 2, "site_id": 1, "state": "a", "num_nodes": {number}}}'
        for number in ("9" * 5_000, "1" + "0" * 30, "1e999", "1.5", "null", "-5", "NaN", '"4"', "[]")
    ]
    + ['{"id": 2, "site_id": 1, "state": null, "num_nodes": 1}', "7", "null", "NaN"]
)
def test_a_bad_row_costs_itself(bad: str) -> None:
    body = f'{{"count": 2, "results": [{GOOD}, {bad}, {GOOD}]}}'.encode()
    found = decode_page(BatchJobRow, body, "api/batch-jobs/")
    assert ([row.id for row in found.rows], len(found.skips)) == ([1, 1], 1)


@each("1e999", "1" + "0" * 400, "-3", '"4"', "true", "1e12")
def test_an_event_that_tells_no_number_of_nodes_tells_none(nodes: str) -> None:
    (server := RecordedBalsam()).tell(1, 1, "19:20:00", "PREPROCESSED", "RUNNING")
    body = json.dumps({"count": 1, "results": server.events[-1:]}).replace("{}", f'{{"num_nodes": {nodes}}}')
    found = changes_of(decode_page(EventRow, body.encode(), "api/events/"), "api", "balsam")
    assert [one.nodes for one in found.rows] in ([], [None])
    assert len(found.rows) + len(found.skips) == 1


async def test_an_event_without_a_time_or_far_ahead_hides_no_other(watched: Watched) -> None:
    job = watched.server.jobs[0]["id"]
    watched.server.tell(90_000, job, "9999-12-31T23:59:59", "RUNNING", "RUN_DONE")
    watched.server.tell(90_001, job, "2200-01-01T00:00:00", "RUNNING", "RUN_DONE")
    await read(watched, 12)
    watched.server.tell(90_002, job, "19:30:00", "RUNNING", "RUN_DONE")
    await read(watched, 12)
    assert 90_002 in {one.id for one in changes_in(watched.store)}


async def test_a_job_can_be_opened_while_a_poll_waits(watched: Watched) -> None:
    server, asked, free = watched.server, asyncio.Event(), asyncio.Event()

    async def answer(request: httpx.Request) -> httpx.Response:
        if not asked.is_set():
            asked.set()
            await free.wait()
        return server.answer(request)

    client = carried(BalsamClient(URL, lambda: TOKEN), answer)
    source = timed(Balsam(client), FixedClock(NOW))
    poll = asyncio.create_task(source.poll(None))
    await asked.wait()
    assert await source.detail(JobId("balsam/7"))
    assert not poll.done()
    free.set()
    assert (await poll).more


@pytest.mark.parametrize("off_s", [-7_200, 330])
@pytest.mark.parametrize("is_put_right", [False, True])
async def test_a_server_that_goes_down_is_down_at_once(off_s: int, is_put_right: bool) -> None:
    watched = Watched()
    set_clock(watched.server, off_s)
    await watched.poller.catch_up()
    await watched.poll(3)
    assert f"min {'behind' if off_s < 0 else 'ahead'}" in (watched.health.note or "")
    if is_put_right:
        set_clock(watched.server, 0)
        await watched.poll(3)
    watched.server.faults = [raises(httpx.ConnectError("refused"))] * 2
    await watched.poll(1)
    assert watched.health.state is SourceState.DOWN
