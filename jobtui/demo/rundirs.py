"""Run directories: what a run finds and leaves there."""

import json
from collections.abc import Iterable

from jobtui.demo.catalog import DEFAULT_LOG_LINES, LOG_LINES
from jobtui.demo.disk import Disk
from jobtui.demo.messages import Request
from jobtui.demo.programs import Ending, Plan

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


def log_lines(app: str, count: int) -> tuple[str, ...]:
    """What a code prints while it runs."""
    shapes = LOG_LINES.get(app, DEFAULT_LOG_LINES)
    return tuple(shapes[min(n, 1 + n % (len(shapes) - 1))].format(n=n) for n in range(count))


class RunDirs:
    """The run directories of a site. Without a disk only which of them are gone is known."""

    def __init__(self, disk: Disk | None) -> None:
        self._disk = disk
        self._gone: set[str] = set()

    def use_disk(self, disk: Disk) -> None:
        """Keep them there from now on."""
        if self._disk is not None:
            self._disk = disk

    def is_gone(self, run_dir: str) -> bool:
        """Whether somebody removed it."""
        return run_dir in self._gone

    def remove(self, run_dir: str) -> None:
        """Remove it."""
        self._gone.add(run_dir)
        if self._disk:
            self._disk.remove_tree(run_dir)

    def prepare(self, run_dir: str, request: Request, *, on_cluster: bool = False) -> None:
        """Make it anew for a run."""
        self._gone.discard(run_dir)
        if self._disk is None or on_cluster:
            return
        models = {"simulation": {"name": request.name, "simulationId": request.simulation}, request.model: {}}
        document = {
            "models": models,
            "report": request.model,
            "simulationId": request.simulation,
            "simulationType": request.app,
        }
        parameters = _PARAMETERS.format(name=request.name, model=request.model, app=request.app)
        self._disk.remove_tree(run_dir)
        self._write(run_dir, "in.json", json.dumps(document, indent=4))
        self._write(run_dir, "parameters.py", parameters)
        self._write(run_dir, "run.log", "")

    def log(self, run_dir: str, plan: Plan, written: int, percent: float) -> int:
        """Let the program's log grow to what belongs to `percent`; how many lines it has then."""
        due = int(len(plan.log) * percent / 100)
        if due > written:
            self._append(run_dir, "run.log", plan.log[written:due])
        return max(due, written)

    def result(self, run_dir: str, request: Request, plan: Plan) -> None:
        """Leave what the end of a program leaves."""
        if plan.ending is Ending.RAISES:
            text = _TRACEBACK.format(app=request.app, error=plan.error)
            self._append(run_dir, "run.log", text.splitlines())
        elif plan.ending is Ending.COMPLETED and not request.is_parallel:
            self._write(run_dir, "out.json", '{"title": "","x_range": [0, 1, 2]}')

    def keep(self, path: str, data: bytes) -> None:
        """Keep a file anywhere on the site."""
        if self._disk:
            self._disk.write(path, data)

    def _write(self, run_dir: str, name: str, text: str) -> None:
        if self._disk:
            self._disk.write(f"{run_dir}/{name}", text.encode("utf-8", "surrogateescape"))

    def _append(self, run_dir: str, name: str, lines: Iterable[str]) -> None:
        if self._disk and run_dir not in self._gone:
            text = "".join(f"{line}\n" for line in lines)
            self._disk.append(f"{run_dir}/{name}", text.encode("utf-8", "surrogateescape"))
