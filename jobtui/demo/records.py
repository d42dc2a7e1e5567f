"""Job records as the supervisor keeps them: the document of one job, with today's fields in today's order."""

import json
from collections.abc import Mapping
from typing import Any

from jobtui.demo.messages import Request

Record = dict[str, Any]
"""A record as the JSON it becomes."""

HISTORY_FIELDS = frozenset(
    (
        "activePlan",
        "alert",
        "canceledAfterSecs",
        "computeJobQueued",
        "computeJobSerial",
        "computeJobStart",
        "computeModel",
        "driverDetails",
        "error",
        "internalError",
        "isParallel",
        "jobRunMode",
        "jobStatusMessage",
        "lastUpdateTime",
        "status",
    )
)
PARALLEL_STATUS_FIELDS = (
    "percentComplete",
    "computeJobStart",
    "computeJobHash",
    "lastUpdateTime",
    "frameCount",
    "elapsedTime",
    "queueState",
)
NEXT_REQUEST_SECONDS: Mapping[str, int] = {"parallel": 2, "sbatch": 15, "sequential": 1}
"""How often the browser asks, by run mode."""
NULL_WHEN_READ_BACK = ("alert", "activePlan", "canceledAfterSecs", "jobStatusMessage", "internalError")
"""Fields that a record gets (as null) when it is read back from disk."""


def new_record(request: Request, previous: Record | None, hash_text: str | None) -> Record:
    """The record of a job that has not run; what was before goes to the history."""
    record: Record = {
        "activePlan": request.plan,
        "alert": None,
        "queueState": "queued",
        "canceledAfterSecs": None,
        "computeJid": request.jid,
        "computeJobHash": hash_text,
        "computeJobQueued": 0,
        "computeJobSerial": 0,
        "computeJobStart": 0,
        "computeModel": request.model,
        "dbUpdateTime": 0.0,
        "driverDetails": {},
        "error": None,
        "history": [] if previous is None else [*previous["history"], history_entry(previous)],
        "isParallel": request.is_parallel,
        "jobStatusMessage": None,
        "lastUpdateTime": 0,
        "simName": None,
        "simulationId": request.simulation,
        "simulationType": request.app,
        "status": "missing",
        "uid": request.uid,
        "jobRunMode": request.mode if request.mode or previous is None else previous["jobRunMode"],
    }
    record["nextRequestSeconds"] = NEXT_REQUEST_SECONDS[record["jobRunMode"]]
    if request.is_parallel:
        record["parallelStatus"] = dict.fromkeys(PARALLEL_STATUS_FIELDS, 0)
    return record


def history_entry(record: Record) -> Record:
    """What the history keeps of a record."""
    return {key: value for key, value in record.items() if key in HISTORY_FIELDS}


def read_back(data: bytes) -> Record:
    """A record out of its file, completed as the supervisor does it."""
    record: Record = json.loads(data)
    for entry in (record, *record["history"]):
        for key in NULL_WHEN_READ_BACK:
            entry.setdefault(key, None)
    return record


def to_bytes(record: Record) -> bytes:
    """The record as its file holds it: one line, no newline."""
    return json.dumps(record, separators=(",", ":")).encode("ascii")
