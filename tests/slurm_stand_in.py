"""Stand-ins for Slurm's commands: programs that answer as squeue, sacct and scontrol do, out of a directory.

They print the rows that a test has put there, and note each call. `fault` lets one fail with a text, `hang`
never answer; `squeue.cut` says after how many characters it ends, `squeue.banner` what comes before it.
"""

import json
import os
import re
import shlex
import stat
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobtui.backends.slurm.client import CommandAnswer
from jobtui.formats.slurm import accounted_job, queued_job, rows_of, shown_jobs
from jobtui.model.slurm import SlurmJob
from tests.rows import FIXTURES, program, table

CAPTURES = FIXTURES / "slurm"
DIRECTORY = re.findall(r"WorkDir=(\S+)", (CAPTURES / "scontrol-show-job-oneline.txt").read_text())[0]
SQUEUE_FIELDS = ("%i", "%j", "%u", "%T", "%r", "%M", "%l", "%D", "%R")
LINES = "|\n"
SEPARATOR = "~5e9a7a70~"


def psv_rows(name: str) -> list[dict[str, str]]:
    """The rows of a table with a heading; no field of these holds a newline or the separator."""
    heading, _, body = (CAPTURES / name).read_text().partition("\n")
    return rows_of(body.replace("\n", LINES).encode(), "|", heading.split("|"))


def answer(fields: Iterable[str], rows: Iterable[Mapping[str, str]]) -> CommandAnswer:
    """What a command prints when it is asked for these fields of the rows."""
    lines = ("".join(row[field] + SEPARATOR for field in fields) + "\n" for row in rows)
    return CommandAnswer("".join(lines).encode(), SEPARATOR)


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


COMMAND = program("slurm_command")
"""A shell starts in a tenth of the time of Python, which is only needed for what is not a file as it is."""


class StandIn:
    """A cluster that is not there. Its commands are found once `path` comes first in PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "slurm"
        self.path = folder / "bin"
        self.folder.mkdir()
        self.path.mkdir()
        known = {"@HERE@": self.folder, "@PYTHON@": sys.executable, "@PROGRAM@": FIXTURES / "programs/slurm"}
        command = re.sub("@[A-Z]+@", lambda found: shlex.quote(str(known[found[0]])), COMMAND)
        for name in ("squeue", "sacct", "scontrol", "sdiag"):
            self._program(name, command)
        self._program("ssh", program("ssh"))

    def _program(self, name: str, text: str) -> None:
        file = self.path / name
        file.write_text(text)
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    @property
    def search_path(self) -> str:
        return f"{self.path}{os.pathsep}{os.environ['PATH']}"

    def queue(self, *rows: Mapping[str, str]) -> None:
        (self.folder / "squeue.rows").write_text(json.dumps([{**QUEUED, **row} for row in rows]))

    def accounts(self, *rows: Mapping[str, str]) -> None:
        (self.folder / "sacct.rows").write_text(json.dumps([{**ACCOUNTED, **row} for row in rows]))

    def show(self, job_id: str, text: str) -> None:
        (self.folder / f"scontrol.{job_id}").write_text(text)

    def account_json(self, text: str) -> None:
        """What `sacct --json` answers, which it does not know until then."""
        (self.folder / "sacct.json").write_text(text)

    def fault(self, command: str, text: str | None) -> None:
        """Let a command fail with this text, None for no more."""
        file = self.folder / f"{command}.fault"
        file.unlink(missing_ok=True) if text is None else file.write_text(text)

    def hang(self, command: str) -> None:
        (self.folder / f"{command}.hang").touch()

    def calls(self, command: str) -> list[list[str]]:
        file = self.folder / "calls"
        calls = file.read_text().split("\x1e")[:-1] if file.exists() else []
        return [call[1:] for call in (call.split("\x1f") for call in calls) if call[0] == command]

    def captured(self) -> "StandIn":
        self.queue(*queued_rows())
        self.accounts(*psv_rows("sacct-all.psv"))
        text = (CAPTURES / "scontrol-show-job.txt").read_text()
        for shown in re.split(r"(?m)^(?=JobId=)", text)[1:]:
            words = dict(word.split("=", 1) for word in shown.split() if "=" in word)
            self.show(words["JobId"], shown)
            if "ArrayTaskId" in words:
                self.show(f"{words['ArrayJobId']}_{words['ArrayTaskId']}", shown)
        return self

    def waiting(self) -> dict[str, Any]:
        """Let it be the cluster in which some thirty jobs wait; what Slurm's own commands said of each."""
        told: dict[str, Any] = json.loads((CAPTURES / "waiting.json").read_text())
        self.queue(*told["squeue"])
        self.accounts(*told["sacct"])
        for name, text in told["scontrol"].items():
            self.show(name, text)
        (self.folder / "sdiag").write_text(told["sdiag"])
        truths: dict[str, Any] = told["truth"]
        return truths


ROWS = table("programs/slurm")
QUEUED, ACCOUNTED = ROWS["squeue"], ROWS["sacct"]
