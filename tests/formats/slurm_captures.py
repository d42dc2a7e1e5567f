"""The captured answers of Slurm's commands, as jobs and as rows."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobtui.formats.slurm import accounted_job, queued_job, rows_of, shown_jobs
from jobtui.model.slurm import SlurmJob

CAPTURES = Path(__file__).parents[1] / "fixtures" / "slurm"
DIRECTORY = re.findall(r"WorkDir=(\S+)", (CAPTURES / "scontrol-show-job-oneline.txt").read_text())[0]
SQUEUE_FIELDS = ("%i", "%j", "%u", "%T", "%r", "%M", "%l", "%D", "%R")
LINES = "|\n"


def psv_rows(name: str) -> list[dict[str, str]]:
    """The rows of a table with a heading; no field of these holds a newline or the separator."""
    heading, _, body = (CAPTURES / name).read_text().partition("\n")
    return rows_of(body.replace("\n", LINES).encode(), "|", heading.split("|"))


def captured_jobs() -> Mapping[str, dict[str, SlurmJob]]:
    squeue = (CAPTURES / "squeue.txt").read_text().replace("\n", LINES).encode()
    found: dict[str, list[SlurmJob | None]] = {
        "squeue.txt": [queued_job(row) for row in rows_of(squeue, "|", SQUEUE_FIELDS)],
        **{name: list(map(accounted_job, psv_rows(name))) for name in ("sacct.psv", "sacct-all.psv")},
        **{
            name: [job for job, _ in shown_jobs((CAPTURES / name).read_text())]
            for name in ("scontrol-show-job.txt", "scontrol-show-job-oneline.txt")
        },
    }
    return {name: {job.id: job for job in jobs if job is not None} for name, jobs in found.items()}


def accounted_rows() -> list[dict[str, str]]:
    return psv_rows("sacct-all.psv")


def queued_rows() -> list[dict[str, str]]:
    """What squeue would have printed in the format that it is asked for, out of what it printed as JSON."""
    jobs = json.loads((CAPTURES / "squeue.json").read_text())["jobs"]
    return [_queued_row(job) for job in jobs]


def _queued_row(job: Mapping[str, Any]) -> dict[str, str]:
    array, task = job["array_job_id"], job["array_task_id"]
    return {
        "%i": f"{array}_{task}" if array else str(job["job_id"]),
        "%A": str(job["job_id"]),
        "%F": str(array or job["job_id"]),
        "%K": str(task) if array else "N/A",
        "%j": job["name"],
        "%u": job["user_name"],
        "%T": job["job_state"],
        "%r": job["state_reason"],
        "%V": _time(job["submit_time"]),
        "%S": _time(job["start_time"]),
        "%e": _time(job["end_time"]),
        "%l": f"{job['time_limit']}:00",
        "%N": job["nodes"],
        "%Z": job["current_working_directory"],
    }


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") if seconds else "N/A"
