"""Stand-ins for Slurm's commands: programs that answer as squeue, sacct and scontrol do, out of a directory.

What they print is made of the rows that a test has put there, in the format that they are asked for. Each
call is noted. `fault` lets one fail with a text, `hang` never answer; a file `squeue.cut` says after how many
characters its answer ends, `squeue.banner` what comes before it.
"""

import json
import os
import re
import stat
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.formats.slurm_captures import CAPTURES, accounted_rows, queued_rows

FIXTURES = Path(__file__).parent / "fixtures"
PROGRAM = (FIXTURES / "programs" / "slurm").read_text().replace("@PYTHON@", sys.executable)

SSH = """\
#!/bin/sh
[ "$1" = -G ] && exit 0
for line; do :; done
exec sh -c "$line"
"""
"""An ssh that is there at once: it runs the last word, as a login shell would."""


class StandIn:
    """A cluster that is not there. Its commands are found once `path` comes first in PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "slurm"
        self.path = folder / "bin"
        self.folder.mkdir()
        self.path.mkdir()
        for name in ("squeue", "sacct", "scontrol", "sdiag"):
            self._program(name, PROGRAM.replace("@HERE@", str(self.folder)))
        self._program("ssh", SSH)

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
        self.accounts(*accounted_rows())
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


ROWS = tomllib.loads((FIXTURES / "programs/slurm.toml").read_text())
QUEUED, ACCOUNTED = ROWS["squeue"], ROWS["sacct"]
