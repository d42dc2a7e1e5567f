"""Finding in text and near it."""

import random
import re
import string
from collections.abc import Mapping

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.find import MAX_CANDIDATES, SURE, Candidate, find, is_ambiguous
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import ContainerName, JobId, OpPrefix, split_jid
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.spelling import near
from tests.builders import a_job, a_step, an_agent, an_op, some
from tests.offenders import each
from tests.rows import table

OP_ID = "pb5uBCrpfCnFYD1h0DppNggyzUpVfKsQ"
AGENT_ID = "WUt4nXc2Jt0qYbLr5Vh8sDfEoPz3mKa7"


def job_of(jid: str, name: str, queued: int) -> Job:
    parts = some(split_jid(jid))
    is_quasi, at = "_1_st" in jid, Nanos(queued * SECOND)
    return a_job(
        id=JobId(jid), owner=parts.uid, name=name, model=parts.model, queued_at=at, is_quasi=is_quasi,
        status=JobStatus.COMPLETED,
    )  # fmt: skip


HEIGHTS, FEL, SURVEY, TRACKING, QUASI = (
    "EPRSqtUW-IVh7w74d-heightWeightReport",
    "EPRSqtUW-IVh7w74d-animation",
    "vn9m3eZW-a1B2c3D4-animation",
    "hj3Ze0Qq-Zz9Yy8Xx-beamlineReport",
    "vn9m3eZW-_1_stlss-statelessCompute",
)
ON_SLURM = a_job(id=JobId("slurm/51"), system="slurm", owner="jdoe", name="trackring.sh")
JOBS: Mapping[JobId, Job] = {
    JobId(jid): job_of(jid, name, 10 * number)
    for number, (jid, name) in enumerate(
        ((HEIGHTS, "heights"), (FEL, "fel scan 12"), (SURVEY, "Beamline 7 survey"), (TRACKING, "tracking A"),
         (QUASI, "")), 1)
} | {ON_SLURM.id: ON_SLURM}  # fmt: skip
OPS = tuple(
    an_op(key=key, op=OpPrefix(prefix), jid=jid, op_id=op_id, agent=None,
          steps=[a_step(text=f"_Process(pid={30_000 + key} cmd=_Cmd(a=k2Wc jid={jid}")])
    for key, (prefix, jid, op_id) in enumerate(
        (("pb5u", HEIGHTS, OP_ID), ("k2Wc", FEL, None), ("k2Wc", SURVEY, None), ("9QxZ", None, None),
         ("WUt4", SURVEY, None)), 1)
)  # fmt: skip
AGENTS = (
    an_agent(driver="LocalDriver", kind="sequential", uid="EPRS", container=None),
    an_agent("t7K7", uid="vn9m", container=ContainerName("srj-p-vn9m3eZW")),
)


def found(thing: str) -> tuple[Candidate, ...]:
    return find(thing, JOBS, OPS, AGENTS)


PASTED = table("pasted")


@each(*PASTED)
def test_the_first_candidate(thing: str) -> None:
    kind, id_ = PASTED[thing]
    candidates = found(thing)
    assert candidates
    assert candidates[0].kind == kind
    assert not id_ or candidates[0].id == id_
    assert not is_ambiguous(candidates) or not id_


@each(
    ("k2Wc", {("op", "k2Wc", FEL), ("op", "k2Wc", SURVEY)}),
    ("WUt4", {("op", "WUt4", SURVEY), ("agent", "WUt4", None)}),
    ("IVh7w74d", {("job", HEIGHTS, HEIGHTS), ("job", FEL, FEL)}),
    ("EPRSqtUW-IVh7w74d", {("job", HEIGHTS, HEIGHTS), ("job", FEL, FEL)}),
)
def test_an_ambiguous_word_lists_its_candidates(thing: str, ids: set[tuple[str, str, str | None]]) -> None:
    candidates = found(thing)
    assert is_ambiguous(candidates)
    assert {(candidate.kind, candidate.id, candidate.job) for candidate in candidates[: len(ids)]} == ids


def test_a_log_line_gives_every_id_in_it_with_a_reason() -> None:
    line = (
        "Nov 20 20:34:30 30699     0 job_driver/__init__.py:337:_log LocalDriver(a=WUt4 k=sequential u=EPRS "
        f"[_Op(run, pb5u)]) runDir=/srv/db/user/EPRSqtUW/myapp/IVh7w74d/animation jid={TRACKING}"
    )
    candidates = found(line)
    kinds = {(candidate.kind, candidate.id) for candidate in candidates}
    assert {("job", TRACKING), ("job", FEL), ("op", "pb5u"), ("agent", "WUt4"), ("user", "EPRSqtUW")} <= kinds
    assert candidates[0].id == TRACKING
    assert all(candidate.why for candidate in candidates)


@each("", "   ", "4", "81430001", "123456789012", "qqqqqqqq", "zzzz", "???", "\x00\x1b")
def test_an_unknown_word_has_no_candidates(thing: str) -> None:
    assert found(thing) == ()
    assert [one.id for one in found("slurm/876543")] == ["slurm/51"]  # is spelled almost like it


@each("7.0@schedd02.example.org", "1234.1@schedd02.example.org", "1234.0@schedd03.example.org")
def test_an_id_of_condor_that_looks_alike_is_offered_and_not_taken(thing: str) -> None:
    known = JobId("1234.0@schedd02.example.org")
    jobs = {known: a_job(id=known)}
    assert all(candidate.score < SURE for candidate in find(thing, jobs))
    assert find(known, jobs)[0].score >= SURE


@each("disk quota exceeded", "OSError: [Errno 122] Disk quota exceeded: '/x'")
def test_an_error_leads_to_the_jobs_that_have_it(thing: str) -> None:
    failed = msgspec.structs.replace(job_of(FEL, "fel", 10), error="Disk quota exceeded")
    found = find(thing, {job.id: job for job in (failed, job_of(HEIGHTS, "heights", 20))}, (), ())
    assert [(one.kind, one.id) for one in found] == [("job", FEL)]


def test_candidates_are_bounded_and_the_newest_come_first() -> None:
    jobs = {job.id: job for job in (job_of(f"EPRSqtUW-{n:08d}-animation", "same", n) for n in range(200))}
    candidates = find("same", jobs)
    assert len(candidates) == MAX_CANDIDATES
    assert "as 200 jobs do" in candidates[0].why


PIECES = (
    HEIGHTS, "k2Wc", "o=", "a=", "_Op(run, ", ")", "/user/", "srj-p-", " ", "-", AGENT_ID, "IVh7w74d",
)  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_anything_may_be_pasted(thing: str) -> None:
    candidates = found(thing)
    assert [one.score for one in candidates] == sorted((one.score for one in candidates), reverse=True)
    assert all(0 < candidate.score <= 1 for candidate in candidates)
    assert not re.search(AGENT_ID, repr(candidates))


MODELS = ("heightWeightReport", "animation", "multiElectronAnimation")


def some_ids(count: int) -> list[str]:
    choose = random.Random(7)

    def part() -> str:
        return "".join(choose.choices(string.ascii_letters + string.digits, k=8))

    return [f"{part()}-{part()}-{choose.choice(MODELS)}" for _ in range(count)]


IDS = some_ids(20_000)
MEANT = IDS[1234]

TYPED = (
    MEANT, MEANT.upper(), f"  {MEANT}\n", MEANT[:2] + "x" + MEANT[3:], MEANT[:2] + MEANT[3:],
    MEANT[:5] + "yy" + MEANT[5:], MEANT[1:3] + MEANT[0] + MEANT[3:], MEANT[:17], MEANT[:12], MEANT[9:17],
    MEANT[2:14], MEANT[:8], MEANT[:3] + "_" + MEANT[4:8], MEANT.replace("-", "_", 1),
    MEANT.rsplit("-", 1)[0] + "-otherModel",
)  # fmt: skip


@each(*TYPED)
def test_the_id_that_was_meant_is_near(typed: str) -> None:
    assert MEANT in dict(near(typed, IDS))
