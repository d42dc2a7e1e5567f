"""Failures grouped by how they went and what they share, and the line or event each is found by."""

from math import comb

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.correlation.correlator import Correlator
from jobtui.analysis.explain.verdict import explain
from jobtui.analysis.incidents import Incidents, Sample
from jobtui.backends.base import Batch
from jobtui.backends.job_reader import JobReader
from jobtui.backends.registry import SIREPO_DB, build
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail, JobStatus
from jobtui.model.specs import SourceSpec
from jobtui.model.verdicts import Cause, Code, Verdict, doubt_words
from jobtui.render.incidents import common_words, incident_facts
from jobtui.session import Session
from jobtui.session.evidence import MOST_ASKED, Gatherer, JobRecord, ReadCache
from jobtui.store.store import Store
from tests.analysis.captured import CAPTURES, NEWEST, ROOT
from tests.analysis.explain.cases import check_incidents_say_the_same, incidents, reach_back
from tests.builders import a_job, a_step, an_op
from tests.conftest import NOW


def sample(
    number: int, code: Code, error: str = "", host: str = "v1", user: str = "", steps: tuple[str, ...] = (),
    cause: Cause | None = None,
) -> Sample:  # fmt: skip
    owner = user or f"user{number:04d}"
    job = a_job(
        id=JobId(f"{owner}-{number:08d}-animation"), owner=owner, app="srw", model="animation", host=host,
        status=JobStatus.COMPLETED if code is Code.COMPLETED else JobStatus.FAILED, error=error or None,
        ended_at=Nanos(number * SECOND), mode="",
    )  # fmt: skip
    verdict = Verdict(job_id=job.id, code=code, sentence="s", confidence=0.9, cause=cause)
    return Sample(job, verdict, an_op(key=number, steps=[a_step(one) for one in steps]) if steps else None)


def test_alike_failures_are_one_and_name_the_host_or_user_they_share() -> None:
    well = [sample(number, Code.COMPLETED, host=f"v{number % 3}") for number in range(60)]
    bad = [sample(number, Code.AGENT_NEVER_STARTED, host="v2") for number in range(100, 131)]
    odd = sample(200, Code.PROGRAM_FAILED, "no such element: crystal3")
    found = incidents([*well, *bad, odd])
    (group,) = found.groups
    assert (group.verdict.code, len(group.jobs), group.first) == (Code.AGENT_NEVER_STARTED, 31, bad[0].job.id)
    assert group.shared == (("host", "v2", 31, 20, 60),)
    assert (group.times[0], group.times[-1]) == (100 * SECOND, 130 * SECOND)
    assert [one.first for one in found.alone] == [odd.job.id]
    assert found.looked_at == 92
    others = [sample(number, Code.COMPLETED) for number in range(20)]
    bad = [
        sample(number, Code.PROGRAM_FAILED, f"crystal {number} has no size", user="vn9m3eZW")
        for number in range(30, 35)
    ]
    (group,) = incidents([*others, *bad]).groups
    assert (group.error, group.cause) == ("crystal N has no size", ("crystal N has no size", 5, 5))
    assert group.shared == (("user", "vn9m3eZW", 5, 0, 20),)


def test_a_single_failure_is_told_before_what_is_doubtful_about_it() -> None:
    job, doubts, words = a_job(status=JobStatus.MISSING), ("a log is gone",), "It wrote: no. Not sure: why"
    sentence = f"{words}.{doubt_words(doubts)}"
    verdict = Verdict(job_id=job.id, code=Code.RUN_DIR_GONE, sentence=sentence, confidence=0.4, doubts=doubts)
    (found,) = incidents([Sample(job, verdict, None)]).alone
    assert common_words(found) == words
    assert [part.text for part in incident_facts(found, NOW)][:2] == [words, doubts[0]]


FACT = st.sampled_from(("v1", "v2", "v3", None))


@settings(max_examples=150, deadline=None)
@given(st.lists(FACT, min_size=2, max_size=20), st.lists(FACT, max_size=40))
def test_shares_are_those_of_a_count_by_hand(bad: list[str | None], good: list[str | None]) -> None:
    """Of 5 on either side at least, of 80 % of the group, of half of the good ones, beyond chance."""

    def at(nth: int, code: Code, host: str | None) -> Sample:
        one = sample(nth, code)
        return one._replace(job=msgspec.structs.replace(one.job, host=host))

    failed = [at(nth, Code.PROGRAM_FAILED, host) for nth, host in enumerate(bad)]
    (group,) = incidents([*failed, *(at(nth, Code.COMPLETED, host) for nth, host in enumerate(good))]).groups
    known, expected = [host for host in good if host is not None], set[tuple[object, ...]]()
    for host in {*bad} - {None}:
        count, elsewhere, n = bad.count(host), good.count(host), len(bad)
        draws, every = count + elsewhere, comb(n + len(known), count + elsewhere)
        ways = sum(comb(n, k) * comb(len(known), draws - k) for k in range(count, min(n, draws) + 1))
        chance = ways / every
        if min(n, len(known)) >= 5 and count >= 0.8 * n and elsewhere <= len(known) / 2 and chance < 0.01:
            expected.add(("host", host, count, elsewhere, len(known)))
    assert {one for one in group.shared if one.name == "host"} == expected


def test_an_incident_ends_after_its_longest_quiet_time() -> None:
    (group,) = incidents(sample(number, Code.PROGRAM_FAILED) for number in (100, 110, 7_300)).groups
    assert [group.is_ongoing(Nanos(at * SECOND)) for at in (7_400, 14_480, 14_500)] == [True, True, False]
    assert group.rate(Nanos(14_500 * SECOND), 4) == [2, 0, 1, 0]


SENT = ("op created", "sent")
ANSWERED = (*SENT, "reply ok")


def sizes(*samples: Sample) -> list[int]:
    found = incidents(samples)
    return [len(one.jobs) for one in (*found.groups, *found.alone)]


WAITS = ("waits for the agent", "agent alive", "waits for a slot", "got the slot")


def lost(number: int, steps: tuple[str, ...], host: str) -> Sample:
    return sample(number, Code.AGENT_LOST, steps=steps)._replace(host=host)


def held(number: int, reason: str) -> Sample:
    one = sample(number, Code.HELD)
    return one._replace(job=msgspec.structs.replace(one.job, status=JobStatus.PENDING, alert=reason))


GROUPED: dict[str, tuple[list[Sample], list[int]]] = {
    "other ways to the same verdict are other groups": (
        [*(sample(number, Code.REPLY_LOST, steps=SENT) for number in range(3)),
         *(sample(number, Code.REPLY_LOST, steps=ANSWERED) for number in range(10, 12))], [3, 2]),
    "what a run waits for before it is sent is no difference": (
        [sample(1, Code.PROGRAM_FAILED, steps=("op created", *WAITS, "sent")),
         sample(3, Code.PROGRAM_FAILED, steps=SENT)], [2]),
    "how far it came in waiting is one": (
        [sample(2, Code.REPLY_LOST, steps=("op created", *WAITS[:1])),
         sample(4, Code.REPLY_LOST, steps=("op created", *WAITS))], [1, 1]),
    "agents lost on one host are one incident": (
        [*(lost(nth, steps, "v1") for nth, steps in enumerate((SENT, ANSWERED, ANSWERED))),
         lost(9, SENT, "v2")], [3, 1]),
    "what waits for other things is apart": (
        [held(nth, f"held: {why}") for nth, why in enumerate(("disk full", "disk full", "no file /a"))],
        [2, 1]),
}  # fmt: skip


def test_jobs_whose_records_say_the_same_are_apart_where_their_failing_lines_differ() -> None:
    texts = ("no such element: q7", "no such element: q8", "disk full", None)
    lines = [Cause(text, 12, "python", 0.9, "") if text else None for text in texts]
    ended = [sample(nth, Code.PROGRAM_FAILED, "error exit(1)", cause=line) for nth, line in enumerate(lines)]
    assert sizes(*ended) == [2, 1, 1]
    assert sizes(*ended[:2], ended[3]) == [3]


@pytest.mark.parametrize("name", GROUPED)
def test_incidents_group_jobs_by_what_they_share(name: str) -> None:
    samples, groups = GROUPED[name]
    assert sizes(*samples) == groups


def test_a_restart_is_one_incident_whatever_is_said_of_its_jobs() -> None:
    codes = (Code.SUPERVISOR_RESTARTED, Code.STALE_RECORD, Code.SUPERVISOR_RESTARTED)
    ended = [
        sample(number, code, error=f"error {'x' * number}")._replace(restart="at noon")
        for number, code in enumerate(codes)
    ]
    (group,) = incidents([*ended, *(sample(number, Code.COMPLETED) for number in range(9, 90))]).groups
    assert group.codes == ((Code.SUPERVISOR_RESTARTED, 2), (Code.STALE_RECORD, 1))
    assert group.shared[0][:3] == ("restart", "at noon", 3)
    assert sizes(ended[0], ended[1]._replace(restart="at one")) == [1, 1]


def test_one_failing_line_is_one_incident_whatever_is_said_of_its_jobs() -> None:
    line = Cause("no such element: q7", 12, "python", 0.9, "the innermost exception")
    failed = sample(1, Code.PROGRAM_FAILED, cause=line)
    in_batch = sample(2, Code.SBATCH_FAILED, cause=line._replace(text="no such element: q8"))
    late = sample(3, Code.TIMED_OUT, cause=line._replace(is_end=True))
    assert sizes(failed, in_batch, late) == [2, 1]
    (group,) = incidents([failed, in_batch]).groups
    assert group.codes == ((Code.PROGRAM_FAILED, 1), (Code.SBATCH_FAILED, 1))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(list(Code)), st.text(max_size=20)), max_size=30))
def test_every_bad_job_is_in_one_group(jobs: list[tuple[Code, str]]) -> None:
    samples = [sample(number, code, error) for number, (code, error) in enumerate(jobs)]
    found = incidents(samples)
    grouped = [job for group in (*found.groups, *found.alone) for job in group.jobs]
    bad = [one.job.id for one in samples if one.verdict and one.verdict.concern in ("failed", "stuck")]
    assert sorted(grouped) == sorted(bad)


@pytest.mark.parametrize("at_s", [0, 7 * 86_400])
@pytest.mark.parametrize("capture", CAPTURES)
async def test_incidents_tell_of_a_job_of_a_capture_what_explain_tells(capture: str, at_s: int) -> None:
    place, now = ROOT / capture, Nanos(NEWEST + at_s * SECOND)
    logs = [SourceSpec("log", str(log)) for log in sorted(place.glob("*.log"))]
    sources = list(map(build, (SourceSpec("srdb", str(place)), *logs)))
    async with Session(sources, FixedClock(now)) as session:
        await session.catch_up((SIREPO_DB.kind,))
        jobs, early = tuple(session.store.jobs.values()), Gatherer.of(session)
        assert [await early.sample(job) for job in jobs]  # before logs are read, which may name its output
        await session.catch_up()
        for job in jobs:
            verdict = explain(await Gatherer.of(session).whole(job.id))
            check_incidents_say_the_same(verdict, await Gatherer.of(session, early.reads).sample(job))
            (_, record), noted = early.reads.records.get(job.id, (None, JobRecord())), await early.noted(job)
            assert record.slurm_id == (noted and noted.status.slurm_id) or not verdict.is_reliably_bad


class StillJobReader(JobReader):
    """Counts the records that it is asked for, and has that of one job."""

    def __init__(self, has: JobDetail | None = None) -> None:
        super().__init__(lambda: (), reach_back)
        self.has, self.asked = has, 0

    async def detail(self, job_id: JobId) -> JobDetail | None:
        self.asked += 1
        return self.has if self.has is not None and self.has.job.id == job_id else None


def failed_in_slurm(number: int) -> Job:
    return a_job(
        id=JobId(f"slurm/{number}"), system="slurm", source="cluster", mode="", status=JobStatus.FAILED,
        native_status="FAILED", exit="1:0", ended_at=NOW,
    )  # fmt: skip


async def test_incidents_read_the_steps_of_a_job_as_explain_does() -> None:
    job = failed_in_slurm(1)
    steps = (("step 1.0", "OUT_OF_MEMORY"),)
    job_reader = StillJobReader(JobDetail(job=job, runs=(), history=(), native={}, facts=steps))
    gatherer = Gatherer(in_store("slurm", job), job_reader, NOW)
    verdict = explain(await gatherer.whole(job.id))
    assert verdict.code is Code.OUT_OF_MEMORY
    check_incidents_say_the_same(verdict, await gatherer.sample(job))


async def survey(
    store: Store, job_reader: StillJobReader | None = None, reads: ReadCache | None = None
) -> Incidents:
    gatherer = Gatherer(store, job_reader or StillJobReader(), NOW, reads=reads)
    return await gatherer.survey(Nanos(0), NOW)


async def test_the_survey_asks_servers_for_few_records() -> None:
    jobs = [failed_in_slurm(number) for number in range(MOST_ASKED + 5)]
    job_reader, store, reads = StillJobReader(), in_store("slurm", *jobs), ReadCache()
    for asked, confidence in ((MOST_ASKED, 0.75), (MOST_ASKED + 5, 0.9), (MOST_ASKED + 5, 0.9)):
        (group,) = (await survey(store, job_reader, reads)).groups
        assert (len(group.jobs), group.doubtful, job_reader.asked) == (len(jobs), 0, asked)
        assert group.confidence == confidence  # an exit code tells much also where the record is not read
    jobs = [a_job(n, source="cluster", status=JobStatus.FAILED, ended_at=NOW) for n in range(MOST_ASKED + 5)]
    await survey(in_store("sirepo_db", *jobs), job_reader := StillJobReader())
    assert job_reader.asked == len(jobs)


async def test_a_good_run_to_compare_with_is_offered_unless_all_jobs_were_read_and_there_is_none() -> None:
    bad = a_job(1, source="cluster", status=JobStatus.FAILED, ended_at=NOW)
    good = a_job(2, source="cluster", status=JobStatus.COMPLETED, ended_at=NOW)
    for jobs, is_offered in (((bad, good), True), ((bad,), False)):
        evidence = await Gatherer(in_store("sirepo_db", *jobs), StillJobReader(), NOW).whole(bad.id)
        assert any("compare" in step.command.words for step in explain(evidence).next) is is_offered


async def test_a_contradicted_job_or_a_source_that_is_down_does_not_count_as_good() -> None:
    job = a_job(status=JobStatus.COMPLETED, source="cluster", ended_at=NOW)
    other = a_job(status=JobStatus.FAILED, source="/elsewhere", ended_at=NOW)
    found = await survey(in_store("sirepo_db", msgspec.structs.replace(job, others=(other,))))
    assert (found.groups, found.alone, found.doubtful, found.is_well) == ((), (), (job.id,), False)
    store = in_store("sirepo_db", job)
    assert (await survey(store)).is_well
    store.fail("cluster", "cluster: no answer")
    found = await survey(store)
    assert not found.is_well
    assert found.blind_spots[0].startswith("cluster cannot be read: no answer")


def in_store(kind: str, *jobs: Job) -> Store:
    store = Store(Correlator(), FixedClock(NOW))
    store.add_source("cluster", kind)
    store.apply("cluster", Batch(jobs=jobs, cursor="1"))
    return store
