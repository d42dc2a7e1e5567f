"""The programs users run: how a run proceeds and ends, its files, and the cluster's scheduler."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import msgspec

from jobtui.demo.kernel import Kernel
from jobtui.demo.messages import TABLES, ApiRequest, Identity, OpRequest
from jobtui.formats.sarchive import slurm_names, write_environment
from jobtui.model.clock import SECOND, Nanos, to_seconds

ARCHIVE = "archive"


class Model(NamedTuple):
    """A computation that a code offers. Parallel ones report progress and frames."""

    app: str
    name: str
    parallel: bool
    typical_s: float


MODELS = tuple(Model(*model) for model in TABLES["models"])
RAISED: tuple[tuple[str, str], ...] = tuple(map(tuple, TABLES["raised"]))
OTHER_ERROR = "non-zero exit code"
KILLED = "Terminated Process. Possibly ran out of memory"
PREPARE_ERROR = "no such breed"


def model(app: str, name: str) -> Model:
    """The model of this name. Raises StopIteration if there is none."""
    return next(one for one in MODELS if (one.app, one.name) == (app, name))


def log_lines(app: str, count: int) -> tuple[str, ...]:
    shapes: list[str] = TABLES["log_lines"].get(app, ["started", "step {n} done"])
    return tuple(shapes[min(n, 1 + n % (len(shapes) - 1))].format(n=n) for n in range(count))


class ProgramEnd(StrEnum):
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
    """The plan of one run.

    `duration_s` counts from its start, `queued_s` is its wait on a cluster. `whole_s` is how long a run that
    ends early would take in all (0: the same).
    """

    ending: ProgramEnd = ProgramEnd.COMPLETED
    duration_s: float = 2.0
    error: str | None = None
    frames: int = 10
    whole_s: float = 0.0
    queued_s: float = 10.0
    log: tuple[str, ...] = ()

    def progress(self) -> Iterator[Progress]:
        """The progress that it reports: at most every two seconds, and only if there is news."""
        reported = 0
        for second in range(2, int(self.duration_s // 2) * 2 + 1, 2):
            progress = self.after(second)
            if progress.frames > reported or second == 2:
                reported = progress.frames
                yield progress

    def after(self, seconds: float) -> Progress:
        share = min(seconds / (self.whole_s or self.duration_s), 1.0)
        return Progress(seconds, round(100 * share, 4), int(self.frames * share))


def parallel_status(percent: float, frames: int, model: str, second: int) -> dict[str, object]:
    reports = [{"modelName": model, "frameCount": frames}] if frames else []
    return {"frameCount": frames, "percentComplete": percent, "lastUpdateTime": second, "reports": reports}


class Disk:
    """Files by absolute path, kept in memory with the times at which they were written last."""

    def __init__(self, kernel: Kernel | None = None) -> None:
        self.times: dict[str, Nanos] = {}
        self._files: dict[str, bytes] = {}
        self._kernel = kernel

    def write(self, path: str, data: bytes) -> None:
        self._files[path] = data
        if self._kernel is not None:
            self.times[path] = self._kernel.now

    def append(self, path: str, data: bytes) -> None:
        self.write(path, self._files.get(path, b"") + data)

    def read(self, path: str) -> bytes | None:
        return self._files.get(path)

    def remove_tree(self, path: str) -> None:
        for name in [name for name in self._files if name.startswith(f"{path}/")]:
            del self._files[name]

    def move_to(self, disk: Disk) -> None:
        for path, data in self._files.items():
            disk.write(path, data)
            os.utime(path, (to_seconds(self.times[path]),) * 2)


class RealDisk(Disk):
    """Files under a real directory; a path outside of it is an error."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory.resolve()
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
        shutil.rmtree(self._inside(path), ignore_errors=True)

    def _inside(self, path: str) -> Path:
        target = Path(path)
        if not target.is_relative_to(self._directory):
            raise ValueError(f"{path} is not inside {self._directory}")
        target.parent.mkdir(parents=True, exist_ok=True)
        return target


class SimRunDirs:
    """The run directories of a site. Unless they are `kept`, only the removed ones are known."""

    def __init__(self, disk: Disk, *, kept: bool) -> None:
        self.disk = disk
        self.gone: set[str] = set()
        self._kept = kept

    def remove(self, run_dir: str) -> None:
        self.gone.add(run_dir)
        if self._kept:
            self.disk.remove_tree(run_dir)

    def prepare(self, run_dir: str, request: ApiRequest) -> None:
        self.gone.discard(run_dir)
        if not self._kept:
            return
        document = {
            "models": {
                "simulation": {"name": request.name, "simulationId": request.simulation},
                request.model: {},
            },
            "report": request.model,
            "simulationId": request.simulation,
            "simulationType": request.app,
        }
        program = TABLES["parameters"].format(name=request.name, model=request.model, app=request.app)
        self.disk.remove_tree(run_dir)
        self.write(f"{run_dir}/in.json", json.dumps(document, indent=4))
        self.write(f"{run_dir}/parameters.py", program)
        self.write(f"{run_dir}/run.log", "")

    def log(self, run_dir: str, plan: Plan, written: int, percent: float) -> int:
        """Extend the program's log to `percent`. Returns its number of lines."""
        due = int(len(plan.log) * percent / 100)
        if due > written:
            self._append(run_dir, "".join(f"{text}\n" for text in plan.log[written:due]))
        return max(due, written)

    def result(self, run_dir: str, request: ApiRequest, plan: Plan) -> None:
        if plan.ending is ProgramEnd.RAISES:
            self._append(run_dir, TABLES["traceback"].format(app=request.app, error=plan.error))
        elif plan.ending is ProgramEnd.COMPLETED and not request.is_parallel:
            self.write(f"{run_dir}/out.json", '{"title": "","x_range": [0, 1, 2]}')

    def write(self, path: str, text: str) -> None:
        if self._kept:
            self.disk.write(path, text.encode("utf-8", "surrogateescape"))

    def _append(self, run_dir: str, text: str) -> None:
        if self._kept and run_dir not in self.gone:
            self.disk.append(f"{run_dir}/run.log", text.encode("utf-8", "surrogateescape"))


class BatchJob:
    """A run that was given to the cluster, and its files there.

    Submitted at `at`, it starts when its plan's wait is over. Its directory has script, log and notes.
    """

    def __init__(self, dirs: SimRunDirs, number: int, order: OpRequest, plan: Plan, at: Nanos) -> None:
        self.number = number
        self.serial = order.serial
        self.plan = plan
        self.canceled = False
        self._dirs = dirs
        self._run_dir = order.run_dir or ""
        self._printed = self._seen = 0
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
        if self.plan.ending is ProgramEnd.COMPLETED:
            return "completed", 100.0, self.plan.frames
        return "error", 0.0, 0

    def has_news(self, frames: int) -> bool:
        more, self._seen = frames > self._seen, max(frames, self._seen)
        return more

    def submitted(self, agent: Identity, at: Nanos, archive: str) -> None:
        """Write the script, and a copy with its environment into SArchive's archive, by day."""
        login = login_of(agent.uid)
        known = {**msgspec.structs.asdict(agent), "cores": 4, "login": login, "run_dir": self._run_dir}
        script = TABLES["script"].format(**known)
        self._dirs.write(f"{self._run_dir}/in.sbatch", script)
        entries = (entry.split("=", 1) for entry in TABLES["environment"].format(**known).splitlines())
        copies = (script, write_environment(dict(entries)).decode("utf-8", "surrogateescape"))
        day = datetime.fromtimestamp(to_seconds(at), UTC).strftime("%Y%m%d")
        for name, text in zip(slurm_names(str(self.number)), copies, strict=True):
            self._dirs.write(f"{archive}/{day}/{name}", text)

    def printed(self, percent: float, error: str | None) -> None:
        self._printed = max(self._printed, int(len(self.plan.log) * percent / 100))
        raised = (f"RuntimeError: {error}",) if error else ()
        text = "".join(f"{line}\n" for line in (*self.plan.log[: self._printed], *raised))
        self._dirs.write(f"{self._run_dir}/run.log", text)

    def noted(self, state: str, start: int | None) -> None:
        document = {
            "computeJobSerial": self.serial,
            "computeJobStart": start,
            "job_cmd_state": state,
            "parallelStatus": None,
            "sbatch_id": str(self.number),
        }
        self._dirs.write(f"{self._run_dir}/sbatch_status.json", json.dumps(document, indent=4))


def login_of(uid: str) -> str:
    return f"u{uid[:5].lower()}"
