"""Reading records in tests: bytes to jobs, with what a file's surroundings add."""

from typing import Any

from jobtui.backends.sirepo_record import read_detail, read_job
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail
from tests.backends.db_files import a_record, jid, to_bytes

SOURCE = "/srv/sirepo/db"
MTIME = 1_800_000_000 * SECOND
JID = jid()


def at(seconds: float) -> Nanos:
    """A time of epoch seconds."""
    return Nanos(round(seconds * 1_000_000) * 1_000)


def read(data: bytes, job_id: JobId = JID) -> tuple[Job, str | None]:
    """The job that must be in `data`, and what is wrong with it."""
    job, fault = read_job(data, job_id, MTIME, SOURCE)
    assert job is not None, fault
    return job, fault


def job_of(**fields: Any) -> Job:
    """The job of a record that is fine."""
    job, fault = read(to_bytes(a_record(JID, **fields)))
    assert fault is None
    return job


def detail_of(data: bytes, job_id: JobId = JID) -> JobDetail:
    """Everything in `data`."""
    return read_detail(data, job_id, MTIME, SOURCE, f"{SOURCE}/x.json")


def run(status: str, serial: int, **fields: Any) -> dict[str, Any]:
    """An entry of a history."""
    return {
        "computeJobQueued": serial,
        "computeJobSerial": serial,
        "computeJobStart": serial and serial + 1,
        "lastUpdateTime": serial and serial + 5,
        "status": status,
        "jobRunMode": "sequential",
    } | fields
