"""A record's bytes to a Job, its runs and what is wrong with it."""

import json
from pathlib import Path

import pytest

from jobtui.model.clock import SECOND
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from tests.backends.db_files import FIXTURES, a_record, captured, name_of, to_bytes
from tests.backends.record_reading import JID, MTIME, at, detail_of, job_of, read, run

WORDS = {"error": JobStatus.FAILED, "job_run_purged": JobStatus.PURGED}


@pytest.mark.parametrize("path", captured(), ids=name_of)
def test_every_captured_record_is_read_without_fault(path: Path) -> None:
    document = json.loads(path.read_bytes())
    job, fault = read(path.read_bytes(), JobId(path.stem))
    uid, simulation, model = path.stem.split("-")
    assert fault is None
    assert (job.id, job.owner, job.model, job.app) == (path.stem, uid, model, document["simulationType"])
    assert job.native_status == document["status"]
    assert job.status == WORDS.get(document["status"], document["status"])
    assert job.is_quasi == (simulation == "_1_stlss")
    assert (job.queued_at or 0) == document["computeJobQueued"] * SECOND
    assert (job.started_at or 0) == document["computeJobStart"] * SECOND
    assert job.written_at == (at(document["dbUpdateTime"]) if "dbUpdateTime" in document else MTIME)
    assert (job.percent is None) == ("parallelStatus" not in document)
    serials = [entry["computeJobSerial"] for entry in [*document["history"], document]]
    assert job.runs == len(serials) - serials.count(0)


@pytest.mark.parametrize("path", captured(), ids=name_of)
def test_every_captured_record_is_told_in_full(path: Path) -> None:
    document = json.loads(path.read_bytes())
    detail = detail_of(path.read_bytes(), JobId(path.stem))
    assert detail.job == read(path.read_bytes(), JobId(path.stem))[0]
    assert detail.native == document
    assert [entry.native_status for entry in detail.history] == [h["status"] for h in document["history"]]
    assert [r.number for r in detail.runs] == list(range(1, detail.job.runs + 1))
    queued = [r.queued_at for r in detail.runs]
    assert all(queued)
    assert queued == sorted(queued, key=lambda time: time or 0)


@pytest.mark.parametrize("capture", ["local", "docker", "sbatch", "local-debug", "docker-debug"])
def test_the_jobs_are_those_that_the_supervisor_had(capture: str) -> None:
    truth = json.loads((FIXTURES / capture / "expected.json").read_bytes())["jobs"]
    paths = list((FIXTURES / capture / "supervisor-job").glob("*.json"))
    assert {path.stem for path in paths} == set(truth)
    for path in paths:
        expected, detail = truth[path.stem], detail_of(path.read_bytes(), JobId(path.stem))
        job = detail.job
        assert job.native_status == expected["finalStatus"]
        assert (job.error, job.limit_s) == (expected["error"], expected["canceledAfterSecs"])
        assert (job.name, job.mode) == (expected["simName"], expected["jobRunMode"])
        assert [entry.native_status for entry in detail.history] == expected["historyStatuses"]


def captured_job(name: str) -> Job:
    path = FIXTURES / name
    return read(path.read_bytes(), JobId(path.stem))[0]


LOCAL = "local/supervisor-job/"
OLD = "legacy-2020/supervisor-job/"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            LOCAL + "hZk95g40-KwrjHk9u-heightWeightReport.json",
            {"status": "canceled", "limit_s": 20.0, "ended_at": at(1795206931.8216805), "plan": "premium"},
        ),
        (
            LOCAL + "DJouDZ9T-5K0DYGG3-heightWeightReport.json",
            {"status": "failed", "native_status": "error", "error": "error exit(-9)", "runs": 1},
        ),
        (
            LOCAL + "W75u0t3i-8tss89dE-heightWeightReport.json",
            {"status": "completed", "runs": 3, "name": "Again", "percent": None, "frames": None},
        ),
        (
            LOCAL + "W75u0t3i-W4sWH1zK-activityAnimation.json",
            {"status": "missing", "runs": 1, "queued_at": None, "updated_at": None, "ended_at": None},
        ),
        (
            LOCAL + "hZk95g40-_1_stlss-global_resources.json",
            {"status": "missing", "is_quasi": True, "runs": 0, "name": None, "model": "global_resources"},
        ),
        (
            LOCAL + "DJouDZ9T-3mJbMh8p-activityAnimation.json",
            {"mode": "parallel", "percent": 0.0, "frames": 1, "driver": None, "host": None},
        ),
        (
            "docker-agents-never-start/supervisor-job/V1sGQgrM-UXDr4BHx-heightWeightReport.json",
            {"status": "pending", "started_at": None, "ended_at": None, "message": None, "runs": 1},
        ),
        (
            OLD + "EPRSqtUW-ZaU3VvUy-multiElectronAnimation.json",
            {
                "status": "running",
                "driver": "DockerDriver",
                "host": "localhost.localdomain",
                "percent": 37.5,
                "frames": 4,
                "plan": "basic",
                "written_at": MTIME,
                "ended_at": None,
            },
        ),
        (
            OLD + "LoIEQ6fa-Qa8sKd2n-multiElectronAnimation.json",
            {"status": "canceled", "limit_s": 3600.0, "plan": "premium", "ended_at": at(1582570009)},
        ),
        (
            OLD + "EPRSqtUW-IVh7w74d-heightWeightReport.json",
            {"status": "completed", "plan": None, "limit_s": None, "driver": "LocalDriver", "host": None},
        ),
    ],
)
def test_records_of_both_eras(name: str, expected: dict[str, object]) -> None:
    job = captured_job(name)
    assert {field: getattr(job, field) for field in expected} == expected


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("missing", JobStatus.MISSING),
        ("pending", JobStatus.PENDING),
        ("running", JobStatus.RUNNING),
        ("completed", JobStatus.COMPLETED),
        ("canceled", JobStatus.CANCELED),
        ("error", JobStatus.FAILED),
        ("job_run_purged", JobStatus.PURGED),
        ("unknown", JobStatus.UNKNOWN),
        ("Completed", JobStatus.UNKNOWN),
        ("", JobStatus.UNKNOWN),
    ],
)
def test_status_words(word: str, status: JobStatus) -> None:
    job = job_of(status=word)
    assert (job.status, job.native_status) == (status, word)


@pytest.mark.parametrize("word", ["completed", "error", "canceled"])
def test_a_run_ended_with_the_last_write(word: str) -> None:
    assert job_of(status=word).ended_at == at(1795206880.25)
    assert job_of(status=word, dbUpdateTime=...).ended_at == at(1795206879)
    assert job_of(status=word, dbUpdateTime=..., lastUpdateTime=0).ended_at == MTIME


@pytest.mark.parametrize("word", ["missing", "job_run_purged"])
def test_a_reset_record_was_written_after_its_run_had_ended(word: str) -> None:
    assert job_of(status=word).ended_at == at(1795206879)
    assert job_of(status=word, lastUpdateTime=0).ended_at is None


@pytest.mark.parametrize("word", ["pending", "running", "unknown"])
def test_what_is_not_final_has_no_end(word: str) -> None:
    assert job_of(status=word).ended_at is None


def test_what_never_ran_has_no_end() -> None:
    zeros = {"computeJobSerial": 0, "computeJobQueued": 0, "computeJobStart": 0, "lastUpdateTime": 0}
    job = job_of(status="canceled", **zeros)
    assert (job.ended_at, job.queued_at, job.started_at, job.updated_at, job.runs) == (None,) * 4 + (0,)


def test_model_and_owner_come_from_the_id_where_they_are_missing() -> None:
    job = job_of(computeModel=..., uid=...)
    assert (job.model, job.owner) == ("heightWeightReport", "EPRSqtUW")


def test_a_float_is_as_good_as_a_whole_time() -> None:
    assert job_of(computeJobStart=1795206873.75).started_at == at(1795206873)


def test_null_is_no_fault() -> None:
    record = dict.fromkeys(a_record(JID)) | {"status": "completed", "parallelStatus": None}
    job, fault = read(to_bytes(record))
    assert fault is None
    assert (job.started_at, job.name, job.owner) == (None, None, "EPRSqtUW")


def test_the_runs_of_a_job_are_told_apart_from_its_history() -> None:
    record = a_record(
        JID,
        history=[
            run("missing", 0),
            run("completed", 1795200000, alert="look"),
            run("canceled", 1795201000, canceledAfterSecs=20),
            run("job_run_purged", 0),
            run("error", 1795202000, error="bad", driverDetails={"type": "DockerDriver", "host": "v1"}),
        ],
    )
    detail = detail_of(to_bytes(record))
    assert [r.number for r in detail.runs] == [1, 2, 3, 4]
    assert [entry.number for entry in detail.history] == [0, 1, 2, 0, 3]
    completed, canceled, failed, present = detail.runs
    assert (completed.ended_at, completed.alert) == (at(1795200005), "look")
    assert (canceled.ended_at, canceled.limit_s) == (None, 20.0)
    assert (failed.error, failed.driver, failed.host) == ("bad", "DockerDriver", "v1")
    assert (present.status, present.ended_at) == (JobStatus.COMPLETED, detail.job.ended_at)
    assert detail.job.runs == 4


def test_unknown_fields_stay_in_the_record() -> None:
    data = to_bytes(a_record(JID, yetAnother={"deep": [1, None]}, queuedState=None))
    native = detail_of(data).native
    assert native["yetAnother"] == {"deep": [1, None]}
    assert "queuedState" in native
