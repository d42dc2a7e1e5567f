"""A Slurm beside a simulated site: commands on PATH that print what a queue holds, fail, hang, or babble."""

import json
import os
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.sides import Fault, Side, Wait
from benchmarks.slurm import ENDED, QUEUED

JOBS = 10
"""Jobs that are stopped and go on, one each second."""
BEGINS_EVERY, ENDS_AFTER = 30, 15
FIRST = 1_000
LASTS_S = 12.0
"""Longer than the queue is left alone between two questions."""
PROGRAM = """\
#!{python} -IS
import json, os, re, sys, time
here = {here!r}
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
def given(file):
    with open(os.path.join(here, file), encoding="utf-8") as opened:
        return opened.read()
def option(key):
    return next((word.partition("=")[2] for word in words if word.startswith(key + "=")), "")
while (mood := given("mood")) == "hangs":
    hung = time.sleep(0.2)
if mood == "fails" or "hung" in globals() or name not in ("squeue", "sacct"):
    sys.exit("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
if mood == "babbles":
    sys.stdout.buffer.write(os.urandom(4096))
    sys.exit()
marks = option("--delimiter") or option("--format")[2:].partition("%")[0]
fields = option("--format").split("," if name == "sacct" else marks)
for row in json.loads(given("rows"))[name]:
    print("".join(row.get(field, "") + marks for field in fields if field))
"""


class SlurmSide(Side):
    """A cluster with some jobs that are stopped and go on, and now and then one that begins and ends."""

    name = "slurm"
    source = "local"
    flags = ("--slurm", "local")

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._here = directory
        (programs := directory / "bin").mkdir(parents=True)
        for name in ("squeue", "sacct", "scontrol"):
            (programs / name).write_text(PROGRAM.format(python=sys.executable, here=str(directory)))
            (programs / name).chmod(0o755)
        self.environ = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        self._ticks, self._begun = 0, FIRST
        self._queue = {str(number): self._job("RUNNING") for number in range(1, JOBS + 1)}
        self._ended: dict[str, dict[str, str]] = {}
        self._be("well")
        self._print()

    def tick(self) -> None:
        """A job is stopped or goes on; some begin and end."""
        self._ticks += 1
        changed = self._queue[str(self._ticks % JOBS + 1)]
        changed["state"] = "RUNNING" if changed["state"] == "SUSPENDED" else "SUSPENDED"
        if self._ticks % BEGINS_EVERY == 0:
            self._begun += 1
            self._queue[str(self._begun)] = self._job("RUNNING")
        elif self._ticks % BEGINS_EVERY == ENDS_AFTER and str(self._begun) in self._queue:
            ended = self._queue.pop(str(self._begun))
            self._ended[str(self._begun)] = {**ended, "state": "COMPLETED", "end": _now()}
        self._print()

    @property
    def faults(self) -> Mapping[str, Fault]:
        """What befalls its commands."""
        return {f"squeue {mood}": partial(self._in_mood, mood) for mood in ("fails", "hangs", "babbles")}

    def wrong(self, told: Mapping[str, Any]) -> list[str]:
        """The jobs that are known otherwise than they are."""
        known = {job: state for job, state in told["jobs"].items() if job.startswith("slurm/")}
        true = {f"slurm/{job}": row["state"] for job, row in {**self._ended, **self._queue}.items()}
        return [
            f"{self.name}: {job} is {true.get(job)}, known as {known.get(job)}"
            for job in sorted(true.keys() | known.keys())
            if true.get(job) != known.get(job)
        ]

    @staticmethod
    def _job(state: str) -> dict[str, str]:
        return {"state": state, "begin": _now()}

    def _print(self) -> None:
        """Have the commands answer with what is so now."""
        queue = [
            {**QUEUED, "%i": job, "%A": job, "%F": job, "%T": row["state"], "%V": row["begin"],
             "%S": row["begin"], "%e": "N/A"}
            for job, row in self._queue.items()
        ]  # fmt: skip
        ended = [
            {**ENDED, "JobID": job, "JobIDRaw": job, "State": row["state"], "ExitCode": "0:0",
             "Submit": row["begin"], "Eligible": row["begin"], "Start": row["begin"], "End": row["end"]}
            for job, row in self._ended.items()
        ]  # fmt: skip
        self._write("rows", json.dumps({"squeue": queue, "sacct": ended}))

    def _be(self, mood: str) -> None:
        self._write("mood", mood)

    def _in_mood(self, mood: str, wait: Wait) -> None:
        self._be(mood)
        wait(LASTS_S)
        self._be("well")

    def _write(self, name: str, text: str) -> None:
        draft = self._here / f"{name}.new"
        draft.write_text(text)
        draft.replace(self._here / name)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
