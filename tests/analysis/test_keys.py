"""A job of Sirepo and the Slurm job that it runs as: which they are, and where they disagree."""

from itertools import product
from typing import Any

from jobtui.analysis.explain.case import Evidence
from jobtui.analysis.explain.verdict import explain
from jobtui.analysis.keys import POLLED_S, Key, Space, keys_of, sirepo_of, slurm_of, slurm_words
from jobtui.model.ids import JobId
from jobtui.model.job_reader import SbatchStatus
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.verdicts import Code
from jobtui.render.facts import cluster_words
from tests.builders import a_job, ago, job_id
from tests.conftest import NOW
from tests.offenders import each
from tests.rows import ROWS

OLD_S = POLLED_S + 600


def of_sirepo(status: JobStatus = JobStatus.PENDING, **fields: Any) -> Job:
    values = {"mode": "sbatch", "queued_at": ago(OLD_S), "updated_at": ago(OLD_S), "written_at": ago(OLD_S)}
    return a_job(1, status=status, **({**values, "host": "cori"} | fields))


def in_slurm(status: JobStatus = JobStatus.PENDING, number: int = 4711, **fields: Any) -> Job:
    values: dict[str, Any] = {
        "id": JobId(f"slurm/{number}"), "system": "slurm", "source": "ssh://cori", "mode": "",
        "tags": f"sirepo:{job_id(1)}", "allocation": str(number), "native_status": status.value.upper(),
        "queued_at": ago(OLD_S - 1), "updated_at": ago(OLD_S - 1),
    }  # fmt: skip
    return a_job(number, status=status, **(values | fields))


def evidence_of(job: Job, slurm: Job | None) -> Evidence:
    return Evidence(job_id=job.id, now=NOW, job=job, slurm=slurm)


OTHER = in_slurm(number=5, tags=f"sirepo:{job_id(2)}")
AGAIN = in_slurm(number=4800, queued_at=ago(10))
HERE = in_slurm(tags="")
THERE = in_slurm(tags="", id=JobId("slurm@theta/4711"), source="ssh://theta")


@each(
    # Its directory tells which it is
    (of_sirepo(), [OTHER, in_slurm(), of_sirepo()], "", in_slurm()),
    (of_sirepo(), [OTHER], "", None),
    # A number that was noted counts for more
    (of_sirepo(), [in_slurm(), AGAIN], "", AGAIN),
    (of_sirepo(), [in_slurm(), AGAIN], "4711", in_slurm()),
    (of_sirepo(), [HERE], "4711", HERE),
    (of_sirepo(), [in_slurm()], "9", None),
    # Of two clusters the one of its host is meant
    (of_sirepo(), [HERE, THERE], "4711", HERE),
    (of_sirepo(host=None), [HERE, THERE], "4711", None),
    # A job of an earlier run is not the one of the last; jobs that run elsewhere have none
    (of_sirepo(queued_at=ago(30)), [in_slurm()], "", None),
    (of_sirepo(mode="parallel"), [in_slurm()], "", None),
    (None, [in_slurm()], "", None),
)
def test_slurm_of_finds_the_job(job: Job | None, jobs: list[Job], noted: str, found: Job | None) -> None:
    assert slurm_of(job, jobs, *([noted] if noted else [])) == found


def test_a_job_of_slurm_has_its_words_and_in_its_tags_whose_it_is() -> None:
    assert slurm_words(in_slurm(message="free nodes")) == "Slurm 4711 PENDING: waits for free nodes"
    failed = in_slurm(JobStatus.FAILED, error="out of memory")
    assert slurm_words(failed) == "Slurm 4711 FAILED: out of memory"
    noted = SbatchStatus("pending", "4711")
    assert cluster_words(noted, in_slurm(JobStatus.RUNNING)) == "Slurm 4711 RUNNING (its agent noted pending)"
    assert cluster_words(noted, in_slurm()) == "Slurm 4711 PENDING"
    assert cluster_words(noted) == "Slurm 4711 pending"
    assert cluster_words(None) == ""
    assert (sirepo_of(in_slurm()), sirepo_of(HERE)) == (job_id(1), None)


LIVE = (JobStatus.PENDING, JobStatus.RUNNING)
DONE = (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELED)
AGREE = {
    (JobStatus.PENDING, JobStatus.PENDING), (JobStatus.RUNNING, JobStatus.RUNNING),
    (JobStatus.RUNNING, JobStatus.PENDING), (JobStatus.COMPLETED, JobStatus.COMPLETED),
    *((one, other) for one in DONE[1:] for other in DONE[1:]),
}  # fmt: skip
"""What a record and Slurm may say at once; Slurm may have put a job back that ran."""


@each(*product([*LIVE, *DONE], [*LIVE, *DONE]))
def test_sirepo_and_slurm_disagree_where_both_cannot_be(record: JobStatus, slurm: JobStatus) -> None:
    found = explain(evidence_of(of_sirepo(record), in_slurm(slurm))).contradictions
    assert bool(found) == ((record, slurm) not in AGREE)
    for one in found:
        assert (one.one.source, one.other.source) == ("/srv/db", "ssh://cori")


def test_a_fresh_record_contradicts_nothing() -> None:
    fresh = in_slurm(JobStatus.COMPLETED, updated_at=ago(POLLED_S - 1))
    assert explain(evidence_of(of_sirepo(), fresh)).contradictions == ()
    assert explain(evidence_of(of_sirepo(), None)).contradictions == ()


def test_a_job_that_waits_in_slurm_gives_the_reason_of_slurm() -> None:
    verdict = explain(evidence_of(of_sirepo(), in_slurm(message="free nodes")))
    assert verdict.code is Code.SBATCH_QUEUED
    assert all(words in verdict.sentence for words in ("slurm/4711", "free nodes"))
    assert [one.what for one in verdict.evidence] == ["record", "slurm"]
    assert any("jobtui show slurm/4711" in step.command for step in verdict.next)
    assert explain(evidence_of(of_sirepo(), None)).confidence < verdict.confidence
    failed = of_sirepo(JobStatus.FAILED, error="exit(1)", started_at=ago(400))
    verdict = explain(evidence_of(failed, in_slurm(JobStatus.FAILED, error="one of its nodes failed")))
    assert "one of its nodes failed" in verdict.sentence


@each(("PartitionConfig", Code.NEVER_STARTS), ("JobHeldAdmin", Code.HELD))
def test_a_job_that_slurm_never_starts_says_what_it_lacks(reason: str, code: Code) -> None:
    stuck = in_slurm(message="x", alert="a license that is gone", reason=reason)
    verdict = explain(evidence_of(of_sirepo(), stuck))
    assert verdict.code is code
    assert "by itself: it waits for a license that" in verdict.sentence


@each(*LIVE)
def test_a_job_that_has_ended_in_slurm_is_not_said_to_wait(record: JobStatus) -> None:
    ended = in_slurm(JobStatus.FAILED, error="out of memory")
    verdict = explain(evidence_of(of_sirepo(record), ended))
    assert verdict.code is Code.REPLY_LOST
    assert "out of memory" in verdict.sentence


def test_records_that_share_a_key_are_of_one_job() -> None:
    slurm = Job(
        id=JobId("slurm/7"), system="slurm", status=JobStatus.RUNNING, native_status="RUNNING", source="s",
        tags="sirepo:u-s-m other", allocation="7 9", trace="ab",
    )  # fmt: skip
    found = set(keys_of(slurm))
    assert found == {
        Key(Space.JOB, "slurm/7"), Key(Space.SUBMITTED_BY, "u-s-m"), Key(Space.SCHEDULER, "7"),
        Key(Space.SCHEDULER, "9"), Key(Space.TRACE, "ab"),
    }  # fmt: skip


@each(*ROWS["what Slurm says of a canceled job"])
def test_a_job_that_slurm_canceled_is_not_blamed_on_its_user(
    status: str, ended: dict[str, Any], code: str, words: str
) -> None:
    canceled = of_sirepo(JobStatus.CANCELED, started_at=ago(400))
    verdict = explain(evidence_of(canceled, in_slurm(JobStatus(status), **ended)))
    assert (verdict.code.value, words in verdict.sentence) == (code, True), verdict.sentence
