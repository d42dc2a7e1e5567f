"""A Balsam server that was restored from a backup: its ids of jobs and events count again from there."""

from hypothesis import given
from hypothesis import strategies as st

from jobtui.analysis.rates import stays, throughput, utilization
from jobtui.analysis.series import Window
from jobtui.backends.balsam.source import FRAME_EVERY
from jobtui.model.changes import StateChange, in_order
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId, system_job_id
from jobtui.model.jobs import JobStatus
from jobtui.model.state_runs import by_run
from tests.analysis.balsam_data import nanos
from tests.backends.balsam.test_source import NOW, Watched, an_event
from tests.balsam_server import RecordedBalsam

JOB = system_job_id("balsam", 5)
BACKUP_ID, NEW_JOB = 50_000, 5_000


def a_job(balsam: RecordedBalsam, number: int, state: str, updated: str) -> None:
    template = balsam.jobs[0]
    balsam.jobs = [row for row in balsam.jobs if row["id"] != number]
    balsam.jobs.append(
        {**template, "id": number, "state": state, "last_update": f"2026-11-20T{updated}+00:00"}
    )


def tell(balsam: RecordedBalsam, number: int, job: int, at: str, before: str, after: str) -> None:
    balsam.events.append(an_event(number, job, f"2026-11-20T{at}", before, after))


def before_the_crash(balsam: RecordedBalsam) -> None:
    """A job that ran and finished, and one that was made, after the backup."""
    a_job(balsam, NEW_JOB, "JOB_FINISHED", "19:10:04")
    a_job(balsam, NEW_JOB + 1, "STAGED_IN", "19:10:05")
    tell(balsam, BACKUP_ID - 1, NEW_JOB, "19:09:00", "STAGED_IN", "PREPROCESSED")
    tell(balsam, BACKUP_ID, NEW_JOB, "19:10:00", "PREPROCESSED", "RUNNING")
    tell(balsam, BACKUP_ID + 1, NEW_JOB, "19:10:03", "RUNNING", "RUN_DONE")
    tell(balsam, BACKUP_ID + 2, NEW_JOB, "19:10:04", "RUN_DONE", "JOB_FINISHED")


def restored(balsam: RecordedBalsam) -> None:
    """The backup, and what happened since: the job ran again, under ids of lost events."""
    balsam.events = [row for row in balsam.events if row["id"] < BACKUP_ID]
    balsam.jobs = [row for row in balsam.jobs if row["id"] != NEW_JOB + 1]
    a_job(balsam, NEW_JOB, "RUNNING", "19:29:01")
    tell(balsam, BACKUP_ID, NEW_JOB, "19:29:00", "PREPROCESSED", "RUNNING")


async def test_what_was_lost_is_gone_and_what_is_new_is_taken() -> None:
    watched = Watched()
    before_the_crash(watched.server)
    await watched.poller.catch_up()
    known = {(one.id, one.at) for one in watched.store.changes.all()}
    restored(watched.server)
    await watched.poll(3)
    await watched.poller.catch_up()
    job = watched.store.jobs[JobId(f"balsam/{NEW_JOB}")]
    assert (job.status, job.native_status) == (JobStatus.RUNNING, "RUNNING")
    assert (job.started_at, job.ended_at) == (nanos("2026-11-20T19:29:00"), None)
    assert set(watched.store.jobs) == {f"balsam/{row['id']}" for row in watched.server.jobs}
    # What was seen to happen did happen; each counts once
    now_known = [(one.id, one.at) for one in watched.store.changes.all()]
    assert set(now_known) == known | {(BACKUP_ID, nanos("2026-11-20T19:29:00"))}
    assert len(now_known) == len(set(now_known))
    (health,) = watched.store.sources()
    assert "event ids went back, seen at 19:30Z" in (health.note or "")


async def test_a_server_that_was_set_up_anew_is_noticed_by_its_sites() -> None:
    """Its ids begin at 1 again, and those of events and jobs happen to be none that were seen."""
    watched = Watched()
    await watched.poller.catch_up()
    server = watched.server
    a_job(server, NEW_JOB, "STAGED_IN", "19:25:01")
    server.jobs = [row for row in server.jobs if row["id"] == NEW_JOB]
    server.events, server.sessions, server.batch_jobs = [], [], []
    server.sites = [{**row, "creation_date": "2026-11-20T19:20:00.000000"} for row in server.sites]
    tell(server, BACKUP_ID, NEW_JOB, "19:25:00", "READY", "STAGED_IN")
    await watched.poll(3 + FRAME_EVERY)
    await watched.poller.catch_up()
    assert set(watched.store.jobs) == {f"balsam/{NEW_JOB}"}
    (health,) = watched.store.sources()
    assert "or set up anew? all was read anew" in (health.note or "")


async def test_it_goes_on_from_there() -> None:
    watched = Watched()
    before_the_crash(watched.server)
    await watched.poller.catch_up()
    restored(watched.server)
    await watched.poll(3)
    await watched.poller.catch_up()
    asked = len(watched.server.requests)
    a_job(watched.server, NEW_JOB, "JOB_FINISHED", "19:29:31")
    tell(watched.server, BACKUP_ID + 1, NEW_JOB, "19:29:30", "RUNNING", "JOB_FINISHED")
    await watched.poll(4)
    job = watched.store.jobs[JobId(f"balsam/{NEW_JOB}")]
    assert (job.started_at, job.ended_at) == (nanos("2026-11-20T19:29:00"), nanos("2026-11-20T19:29:30"))
    # It is noticed once, and not read anew for ever
    await watched.poll(20)
    assert len(watched.server.requests) - asked < 60


async def test_runs_and_rates_are_those_that_were() -> None:
    watched = Watched()
    before_the_crash(watched.server)
    await watched.poller.catch_up()
    restored(watched.server)
    await watched.poll(3)
    await watched.poller.catch_up()
    a_job(watched.server, NEW_JOB, "JOB_FINISHED", "19:29:31")
    tell(watched.server, BACKUP_ID + 1, NEW_JOB, "19:29:30", "RUNNING", "JOB_FINISHED")
    await watched.poll(4)
    own = watched.store.changes.of_job(JobId(f"balsam/{NEW_JOB}"))
    ran = [(stay.begin, stay.end) for stay in stays(own, {"RUNNING"})]
    assert ran == [
        (nanos("2026-11-20T19:10:00"), nanos("2026-11-20T19:10:03")),
        (nanos("2026-11-20T19:29:00"), nanos("2026-11-20T19:29:30")),
    ]
    busy = utilization(own, Window(None, None), NOW, is_weighted=False)
    assert busy.y == [1.0, 0.0, 1.0, 0.0]
    assert throughput(own, Window(None, None), "JOB_FINISHED").y == [1.0]
    assert len(by_run(own)) == 2


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
def test_ids_that_come_again_do_not_mix_two_ways(first_id: int, back: int, later_s: int) -> None:
    first = a_way(first_id + back, 0, [0] * 5)
    second = a_way(first_id, later_s, [0] * 5)
    assert in_order([*second, *first]) == [*first, *second]
