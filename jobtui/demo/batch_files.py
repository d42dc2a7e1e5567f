"""What a run on the cluster leaves there: its script, what the agent notes of it, and SArchive's copies.

The script is the one that Sirepo's agent writes, `in.sbatch`; the archive is by the day, as of SArchive.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from jobtui.demo.messages import Request
from jobtui.demo.rundirs import RunDirs
from jobtui.formats.job_environment import write_environment
from jobtui.formats.scheduler_ids import slurm_names
from jobtui.model.clock import Nanos, to_seconds

ARCHIVE = "archive"
STATUS_FILE = "sbatch_status.json"

_SCRIPT = """#!/bin/bash
#SBATCH --error=run.log
#SBATCH --output=run.log
#SBATCH --time=0:30:00
#SBATCH --nodes=1
#SBATCH --cpus-per-task={cores}

export SIREPO_MPI_IN_SLURM='1'
export SIREPO_MPI_CORES='{cores}'
export SIREPO_SIM_DB_FILE_SERVER_TOKEN='{token}'
export SIREPO_SIM_DB_FILE_SERVER_URI='http://127.0.0.1:{port}/sim-db-file/{uid}/'
export PYKERN_PKDEBUG_WANT_PID_TIME='1'
export PYTHONUNBUFFERED='1'
export SIREPO_AUTH_LOGGED_IN_USER='{uid}'
export SIREPO_SRDB_ROOT='{root}'
source $HOME/.bashrc
# POSIT: same as sim_run_dir_prepare() return value
exec srun python parameters.py
"""


class BatchJob:
    """One run on the cluster: its number there, where it runs, and since when."""

    def __init__(self, dirs: RunDirs, site: str, number: int, run_dir: str, serial: int) -> None:
        self._dirs = dirs
        self._site = site
        self._number = number
        self._run_dir = run_dir
        self._serial = serial
        self._lines = 0

    def submitted(self, request: Request, *, root: str, token: str, port: int, at: Nanos) -> None:
        """Leave the script, and an archived copy of it with its environment."""
        script = _SCRIPT.format(cores=4, token=token, port=port, uid=request.uid, root=root).encode()
        self._dirs.keep(f"{self._run_dir}/in.sbatch", script)
        day = datetime.fromtimestamp(to_seconds(at), UTC).strftime("%Y%m%d")
        names = slurm_names(str(self._number))
        environment = write_environment(self._environment(request, root, token))
        for name, data in zip(names, (script, environment), strict=True):
            self._dirs.keep(f"{self._site}/{ARCHIVE}/{day}/{name}", data)

    def _environment(self, request: Request, root: str, token: str) -> dict[str, str]:
        """What sbatch was called with."""
        login = f"u{request.uid[:5].lower()}"
        return {
            "HOME": f"/home/{login}",
            "USER": login,
            "LOGNAME": login,
            "PATH": "/opt/slurm/bin:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "SIREPO_SRDB_ROOT": root,
            "SIREPO_SIM_DB_FILE_SERVER_TOKEN": token,
            "SLURM_JOB_NAME": "in.sbatch",
            "SLURM_PRIO_PROCESS": "0",
            "SLURM_SUBMIT_DIR": self._run_dir,
            "SLURM_SUBMIT_HOST": "login1",
            "SLURM_UMASK": "0022",
        }

    def printed(self, log: Sequence[str], percent: float, error: str | None) -> None:
        """Leave what the program has printed by then, and its error when that ended it."""
        self._lines = max(self._lines, int(len(log) * percent / 100))
        raised = (f"RuntimeError: {error}",) if error else ()
        text = "".join(f"{line}\n" for line in (*log[: self._lines], *raised))
        self._dirs.keep(f"{self._run_dir}/run.log", text.encode("utf-8", "surrogateescape"))

    def noted(self, state: str, start: int | None) -> None:
        """Leave what the agent notes of it."""
        document = {
            "computeJobSerial": self._serial,
            "computeJobStart": start,
            "job_cmd_state": state,
            "parallelStatus": None,
            "sbatch_id": str(self._number),
        }
        text = json.dumps(document, indent=4, sort_keys=True)
        self._dirs.keep(f"{self._run_dir}/{STATUS_FILE}", text.encode())
