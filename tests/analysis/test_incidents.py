"""Failures grouped by how they went and what they share."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.explain.flow import Mark
from jobtui.analysis.incidents import Sample, fold, incidents, shape_of
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId, OpPrefix
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.ops import Certainty, Component, Op, OpStatus, Step
from jobtui.model.verdicts import Code, Verdict


def sample(
    number: int, code: Code, error: str = "", host: str = "v1", user: str = "", steps: tuple[str, ...] = ()
) -> Sample:
    job_id = JobId(f"{user or f'user{number:04d}'}-{number:08d}-animation")
    status = JobStatus.COMPLETED if code is Code.COMPLETED else JobStatus.FAILED
    job = Job(
        id=job_id, system="sirepo", status=status, native_status="x", source="db", app="srw",
        owner=user or f"user{number:04d}", model="animation", error=error or None,
        ended_at=Nanos(number * SECOND), host=host,
    )  # fmt: skip
    verdict = Verdict(job_id=job_id, code=code, sentence="s", confidence=0.9)
    run = Op(
        key=number, op=OpPrefix("abcd"), name="run", status=OpStatus.ENDED,
        steps=tuple(Step(one, None, Component.DRIVER, "", "log", 1, 0, Certainty.JID) for one in steps),
    )  # fmt: skip
    return Sample(job, verdict, run if steps else None)


def test_alike_failures_are_one_and_name_the_host_they_share() -> None:
    well = [sample(number, Code.COMPLETED, host=f"v{number % 3}") for number in range(60)]
    bad = [sample(number, Code.AGENT_NEVER_STARTED, host="v2") for number in range(100, 131)]
    odd = sample(200, Code.PROGRAM_FAILED, "no such element: crystal3")
    found = incidents([*well, *bad, odd])
    (group,) = found.groups
    assert (group.code, len(group.jobs), group.first) == (Code.AGENT_NEVER_STARTED, 31, bad[0].job.id)
    assert ("host", "v2", 31) in group.shared
    assert not {name for name, _, _ in group.shared} & {"app", "model"}
    assert (group.first_at, group.last_at) == (100 * SECOND, 130 * SECOND)
    assert [one.first for one in found.alone] == [odd.job.id]
    assert found.looked_at == 92


def test_what_one_user_did_is_said_of_that_user() -> None:
    others = [sample(number, Code.COMPLETED) for number in range(20)]
    bad = [
        sample(number, Code.PROGRAM_FAILED, f"crystal {number} has no size", user="vn9m3eZW")
        for number in range(30, 35)
    ]
    (group,) = incidents([*others, *bad]).groups
    assert group.error == "crystal N has no size"
    assert ("user", "vn9m3eZW", 5) in group.shared


SENT = ("op created", "sent")
ANSWERED = (*SENT, "reply ok")


def sizes(*samples: Sample) -> list[int]:
    """How many jobs each group has, and each that stands alone."""
    found = incidents(samples)
    return [len(one.jobs) for one in (*found.groups, *found.alone)]


def test_other_ways_to_the_same_verdict_are_other_groups() -> None:
    some = [sample(number, Code.REPLY_LOST, steps=SENT) for number in range(3)]
    more = [sample(number, Code.REPLY_LOST, steps=ANSWERED) for number in range(10, 12)]
    assert sizes(*some, *more) == [3, 2]


def test_what_a_run_had_to_wait_for_before_it_was_sent_does_not_tell_failures_apart() -> None:
    waits = ("waits for the agent", "agent alive", "waits for a slot", "got the slot")
    slow = sample(1, Code.PROGRAM_FAILED, steps=("op created", *waits, "sent"))
    never = sample(2, Code.REPLY_LOST, steps=("op created", *waits[:1]))
    assert sizes(slow, sample(3, Code.PROGRAM_FAILED, steps=SENT)) == [2]
    assert sizes(never, sample(4, Code.REPLY_LOST, steps=("op created", *waits))) == [1, 1]


def test_agents_lost_on_one_host_are_one_incident_at_whichever_step_their_runs_were() -> None:
    here = [
        sample(number, Code.AGENT_LOST, steps=steps)._replace(host="v1")
        for number, steps in enumerate((SENT, ANSWERED, ANSWERED))
    ]
    there = sample(9, Code.AGENT_LOST, steps=SENT)._replace(host="v2")
    assert sizes(*here, there) == [3, 1]


def test_a_restart_is_one_incident_whatever_is_said_of_its_jobs() -> None:
    codes = (Code.SUPERVISOR_RESTARTED, Code.STALE_RECORD, Code.SUPERVISOR_RESTARTED)
    ended = [
        sample(number, code, error=f"error {'x' * number}")._replace(restart="at noon")
        for number, code in enumerate(codes)
    ]
    (group,) = incidents([*ended, *(sample(number, Code.COMPLETED) for number in range(9, 90))]).groups
    assert group.codes == ((Code.SUPERVISOR_RESTARTED, 2), (Code.STALE_RECORD, 1))
    assert group.shared[0] == ("restart", "at noon", 3)
    assert sizes(ended[0], ended[1]._replace(restart="at one")) == [1, 1]


def test_a_shape_leaves_out_repeats_and_what_only_agents_tell() -> None:
    steps = ("op created", "sent", "arrived", "reply ok", "status running", "status running", "status error")
    assert shape_of(sample(1, Code.PROGRAM_FAILED, steps=steps).run) == (
        Mark.CREATED, Mark.SENT, Mark.REPLIED, Mark.UPDATED, Mark.FINAL,
    )  # fmt: skip
    assert shape_of(None) == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("error exit(-9)", "error exit(-15)"),
        ("no file /srv/u1/a.dat", "no file /srv/u2/a.dat"),
        ("op x7Kq2mN4 lost", "op b8Rr2mN4 lost"),
        ("at 0x7f00 in f", "at 0x7f19 in f"),
        ("took 3.5 s", "took 12 s"),
    ],
)
def test_numbers_ids_and_directories_do_not_tell_failures_apart(one: str, other: str) -> None:
    assert fold(one) == fold(other)


def test_words_do() -> None:
    assert fold("no such element: crystal") != fold("no such element: mirror")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(list(Code)), st.text(max_size=20)), max_size=30))
def test_every_bad_job_is_in_one_group(jobs: list[tuple[Code, str]]) -> None:
    samples = [sample(number, code, error) for number, (code, error) in enumerate(jobs)]
    found = incidents(samples)
    grouped = [job for group in (*found.groups, *found.alone) for job in group.jobs]
    bad = [one.job.id for one in samples if one.verdict.concern in ("failed", "stuck")]
    assert sorted(grouped) == sorted(bad)
