"""The programs users run: how a run proceeds and ends, its files, and the cluster's scheduler."""

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from jobtui.demo.messages import Identity, Request
from jobtui.formats.sarchive import slurm_names, write_environment
from jobtui.model.clock import SECOND, Nanos, to_seconds
from jobtui.model.tables import tables_of


class Model(NamedTuple):
    """A computation that a code offers. Parallel ones report progress and frames."""

    app: str
    name: str
    parallel: bool
    typical_s: float


_TABLES = tables_of("jobtui.demo", "tables")
MODELS = tuple(Model(*model) for model in _TABLES["models"])
RAISED: tuple[tuple[str, str], ...] = tuple(map(tuple, _TABLES["raised"]))
OTHER_ERROR = "non-zero exit code"
KILLED = "Terminated Process. Possibly ran out of memory"
PREPARE_ERROR = "no such breed"
LOG_LINES: dict[str, list[str]] = _TABLES["log_lines"]
DEFAULT_LOG_LINES = ["started", "step {n} done"]


def model(app: str, name: str) -> Model:
    """The model of this name. Raises StopIteration when there is none."""
    return next(one for one in MODELS if (one.app, one.name) == (app, name))


def log_lines(app: str, count: int) -> tuple[str, ...]:
    return _many_log_lines(app, 1 << count.bit_length())[:count]


@cache
def _many_log_lines(app: str, count: int) -> tuple[str, ...]:
    shapes = LOG_LINES.get(app, DEFAULT_LOG_LINES)
    return tuple(shapes[min(n, 1 + n % (len(shapes) - 1))].format(n=n) for n in range(count))


class Ending(StrEnum):
    """How a program ends when nobody interferes."""

    COMPLETED = "completed"
    RAISES = "raises"
    KILLED = "killed"
    PREPARE_FAILS = "prepare_fails"


class Progress(NamedTuple):
    """A sign of life: seconds since the start, percent done, frames written."""

    at_s: float
    percent: float
    frames: int


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What one run will do.

    `duration_s` counts from its start, `queued_s` is its wait on a cluster. `whole_s` is how long it would
    take to its end, for one that ends before (0: as long as it takes).
    """

    ending: Ending = Ending.COMPLETED
    duration_s: float = 2.0
    error: str | None = None
    frames: int = 10
    whole_s: float = 0.0
    queued_s: float = 10.0
    log: tuple[str, ...] = ()

    def progress(self, every_s: float = 2.0) -> Iterator[Progress]:
        """What it reports on the way: at most every `every_s`, and only when there is something new."""
        reported = 0
        steps = int(self.duration_s // every_s)
        for step in range(1, steps + 1):
            progress = self.after(step * every_s)
            if progress.frames > reported or step == 1:
                reported = progress.frames
                yield progress

    def after(self, seconds: float) -> Progress:
        share = min(seconds / (self.whole_s or self.duration_s), 1.0)
        return Progress(seconds, round(100 * share, 4), int(self.frames * share))


def parallel_status(percent: float, frames: int, model: str, second: int) -> dict[str, object]:
    reports = [{"modelName": model, "frameCount": frames}] if frames else []
    return {"frameCount": frames, "percentComplete": percent, "lastUpdateTime": second, "reports": reports}


class Disk:
    """Files by absolute path, kept in memory."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def write(self, path: str, data: bytes) -> None:
        self.files[path] = data

    def append(self, path: str, data: bytes) -> None:
        self.write(path, self.files.get(path, b"") + data)

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    def remove_tree(self, path: str) -> None:
        for name in [name for name in self.files if name.startswith(f"{path}/")]:
            del self.files[name]


class RealDisk(Disk):
    """Files under a real directory; a path outside of it is an error."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory.resolve()
        self._made: set[Path] = set()
        self._written = 0

    def write(self, path: str, data: bytes) -> None:
        """Write `<path>.pkio-tmp-<n>` and rename it over the file, as Sirepo does. Raises OSError."""
        target = self._inside(path)
        self._written += 1
        beside = target.with_name(f"{target.name}.pkio-tmp-{self._written:08d}")
        beside.write_bytes(data)
        beside.replace(target)

    def append(self, path: str, data: bytes) -> None:
        with self._inside(path).open("ab") as file:
            file.write(data)

    def read(self, path: str) -> bytes | None:
        target = self._inside(path)
        return target.read_bytes() if target.exists() else None

    def remove_tree(self, path: str) -> None:
        target = self._inside(path)
        shutil.rmtree(target, ignore_errors=True)
        self._made = {made for made in self._made if not made.is_relative_to(target)}

    def _inside(self, path: str) -> Path:
        target = Path(path)
        if not target.is_relative_to(self._directory):
            raise ValueError(f"{path} is not inside {self._directory}")
        if target.parent not in self._made:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._made.add(target.parent)
        return target


_PARAMETERS = """import subprocess
params = '''---
name: {name!r}
model: {model}
'''

with open('{app}.yml', 'w') as f:
    f.write(params)

subprocess.check_call(['{app}', '{app}.yml'])
"""
_TRACEBACK = """Traceback (most recent call last):
  File "parameters.py", line 10, in <module>
    subprocess.check_call(['{app}', '{app}.yml'])
RuntimeError: {error}
"""


class RunDirs:
    """The run directories of a site. Without a disk only which of them are gone is known."""

    def __init__(self, disk: Disk | None) -> None:
        self.disk = disk
        self.gone: set[str] = set()

    def remove(self, run_dir: str) -> None:
        self.gone.add(run_dir)
        if self.disk:
            self.disk.remove_tree(run_dir)

    def prepare(self, run_dir: str, request: Request, *, on_cluster: bool = False) -> None:
        self.gone.discard(run_dir)
        if self.disk is None or on_cluster:
            return
        models = {"simulation": {"name": request.name, "simulationId": request.simulation}, request.model: {}}
        document = {
            "models": models,
            "report": request.model,
            "simulationId": request.simulation,
            "simulationType": request.app,
        }
        parameters = _PARAMETERS.format(name=request.name, model=request.model, app=request.app)
        self.disk.remove_tree(run_dir)
        self.keep(f"{run_dir}/in.json", json.dumps(document, indent=4))
        self.keep(f"{run_dir}/parameters.py", parameters)
        self.keep(f"{run_dir}/run.log", "")

    def log(self, run_dir: str, plan: Plan, written: int, percent: float) -> int:
        """Let the program's log grow to what belongs to `percent`; how many lines it has then."""
        due = int(len(plan.log) * percent / 100)
        if due > written:
            self._append(run_dir, plan.log[written:due])
        return max(due, written)

    def result(self, run_dir: str, request: Request, plan: Plan) -> None:
        if plan.ending is Ending.RAISES:
            text = _TRACEBACK.format(app=request.app, error=plan.error)
            self._append(run_dir, text.splitlines())
        elif plan.ending is Ending.COMPLETED and not request.is_parallel:
            self.keep(f"{run_dir}/out.json", '{"title": "","x_range": [0, 1, 2]}')

    def keep(self, path: str, text: str) -> None:
        if self.disk:
            self.disk.write(path, text.encode("utf-8", "surrogateescape"))

    def _append(self, run_dir: str, lines: Iterable[str]) -> None:
        if self.disk and run_dir not in self.gone:
            text = "".join(f"{line}\n" for line in lines)
            self.disk.append(f"{run_dir}/run.log", text.encode("utf-8", "surrogateescape"))


ARCHIVE = "archive"
_SCRIPT: str = _TABLES["script"]


class BatchFiles:
    """What one run on the cluster leaves there: its script, what the agent notes of it, SArchive's copies."""

    def __init__(self, dirs: RunDirs, site: str, number: int, run_dir: str, serial: int) -> None:
        self._dirs = dirs
        self._site = site
        self._number = number
        self._run_dir = run_dir
        self._serial = serial
        self._lines = 0

    def submitted(self, request: Request, agent: Identity, at: Nanos) -> None:
        """Leave the script, `in.sbatch`, and an archived copy of it with its environment, by the day."""
        root, token, port = agent.root, agent.token, agent.port
        script = _SCRIPT.format(cores=4, token=token, port=port, uid=request.uid, root=root)
        self._dirs.keep(f"{self._run_dir}/in.sbatch", script)
        day = datetime.fromtimestamp(to_seconds(at), UTC).strftime("%Y%m%d")
        login = f"u{request.uid[:5].lower()}"
        environment = {
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
        copies = (script, write_environment(environment).decode("utf-8", "surrogateescape"))
        for name, text in zip(slurm_names(str(self._number)), copies, strict=True):
            self._dirs.keep(f"{self._site}/{ARCHIVE}/{day}/{name}", text)

    def printed(self, log: Sequence[str], percent: float, error: str | None) -> None:
        self._lines = max(self._lines, int(len(log) * percent / 100))
        raised = (f"RuntimeError: {error}",) if error else ()
        self._dirs.keep(
            f"{self._run_dir}/run.log", "".join(f"{line}\n" for line in (*log[: self._lines], *raised))
        )

    def noted(self, state: str, start: int | None) -> None:
        document = {
            "computeJobSerial": self._serial,
            "computeJobStart": start,
            "job_cmd_state": state,
            "parallelStatus": None,
            "sbatch_id": str(self._number),
        }
        text = json.dumps(document, indent=4, sort_keys=True)
        self._dirs.keep(f"{self._run_dir}/sbatch_status.json", text)


class SlurmJob:
    """A run that was given to the cluster. Submitted at `at`, it starts when its plan's wait is over."""

    def __init__(self, number: int, serial: int, at: Nanos, plan: Plan) -> None:
        self.number = number
        self.serial = serial
        self.plan = plan
        self.canceled = False
        self._seen = 0
        self._starts = at + round(plan.queued_s * SECOND)

    def state(self, now: Nanos) -> tuple[str, float, int]:
        if self.canceled:
            return "canceled", 0.0, 0
        if now < self._starts:
            return "pending", 0.0, 0
        seconds = (now - self._starts) / SECOND
        if seconds < self.plan.duration_s:
            progress = self.plan.after(seconds)
            return "running", progress.percent, progress.frames
        if self.plan.ending is Ending.COMPLETED:
            return "completed", 100.0, self.plan.frames
        return "error", 0.0, 0

    def has_news(self, frames: int) -> bool:
        more, self._seen = frames > self._seen, max(frames, self._seen)
        return more


class Slurm:
    """The cluster's scheduler: the latest run of each job."""

    def __init__(self) -> None:
        self.jobs: dict[str, SlurmJob] = {}
        self._number = 4000

    def submit(self, jid: str, serial: int, at: Nanos, plan: Plan) -> int:
        self._number += 1
        self.jobs[jid] = SlurmJob(self._number, serial, at, plan)
        return self._number

    def state(self, jid: str, now: Nanos) -> tuple[str, float, int]:
        """State, percent done and frames of a run; of one it does not know, that it was canceled."""
        return self.jobs[jid].state(now) if jid in self.jobs else ("canceled", 0.0, 0)
