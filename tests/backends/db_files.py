"""Record files as the supervisor writes them, for tests: made up, or out of the captures."""

import json
import os
from pathlib import Path
from typing import Any

from jobtui.model.ids import JobId
from tests.rows import CAPTURES

DIRECTORY = "supervisor-job"

Record = dict[str, Any]


def captured() -> list[Path]:
    return sorted([*CAPTURES.glob(f"*/{DIRECTORY}/*.json"), *CAPTURES.glob("*/snapshots/*/*.json")])


def a_record(job_id: str, **fields: Any) -> Record:
    """The record of a completed sequential job; a field that is `...` is left out."""
    uid, simulation, model = job_id.split("-")
    record: Record = {
        "activePlan": "premium", "alert": None, "queueState": "queued", "canceledAfterSecs": None,
        "computeJid": job_id, "computeJobHash": "HashIsUnused", "computeJobQueued": 1795206871,
        "computeJobSerial": 1795206871, "computeJobStart": 1795206873, "computeModel": model,
        "dbUpdateTime": 1795206880.25, "driverDetails": {}, "error": None, "history": [], "isParallel": False,
        "jobStatusMessage": None, "lastUpdateTime": 1795206879, "simName": "Scooby Doo",
        "simulationId": simulation, "simulationType": "myapp", "status": "completed", "uid": uid,
        "jobRunMode": "sequential", "nextRequestSeconds": 1,
    } | fields  # fmt: skip
    return {name: value for name, value in record.items() if value is not ...}


def to_bytes(record: Record) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode("ascii")


class Db:
    def __init__(self, root: Path, *, make: bool = True) -> None:
        self.root = root
        self.directory = root / DIRECTORY
        if make:
            self.directory.mkdir(parents=True)

    def path(self, job_id: str) -> Path:
        return self.directory / f"{job_id}.json"

    def put(self, job_id: str, **fields: Any) -> JobId:
        return self.put_bytes(job_id, to_bytes(a_record(job_id, **fields)))

    def put_bytes(self, job_id: str, data: bytes, mtime_s: float | None = None) -> JobId:
        """Write any bytes where a record should be, by renaming."""
        path = self.path(job_id)
        beside = path.with_name(f"{path.name}.pkio-tmp-Xy7")
        beside.write_bytes(data)
        if mtime_s is not None:
            os.utime(beside, (mtime_s, mtime_s))
        beside.rename(path)
        return JobId(job_id)

    def remove(self, job_id: str) -> None:
        self.path(job_id).unlink()
