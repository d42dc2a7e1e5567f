"""The contract's rig for the copies of cluster agents' logs."""

import json
from pathlib import Path

from jobtui.backends.agent_copies import AgentCopies
from jobtui.backends.base import Batch, Source
from jobtui.formats.parser import LogParser

UID = "3pMDuIiL"
LINE = "Nov 20 20:{:02}:00  9015     0 job_agent.py:487:_op opName=run o=ab{:02} runDir=/scratch/x"


class AgentCopiesRig:
    """A database root below which the supervisor keeps copies of one agent's log. Each record is a line."""

    makes = (LogParser, "_read")
    tells = False
    reconnects = False

    def __init__(self, folder: Path) -> None:
        self._root = folder / "db"
        self._copies = self._root / "user" / UID / "agent-sbatch" / "cori"
        self._copies.mkdir(parents=True)
        self._away = folder / "away"
        self._lines: list[str] = []
        self._copied = 0

    def source(self) -> Source:
        return AgentCopies(self._root, lambda: [UID], every_s=0)

    def _line(self) -> str:
        number = len(self._lines) + 1
        self._lines.append(LINE.format(number, number))
        return f"ab{number:02}"

    def _copy(self, size: int | None = None) -> None:
        name = f"2026112020{self._copied:02}00-remote-after-start.log"
        text = json.dumps({"filename": name, "stderr": "", "stdout": "\n".join(self._lines) + "\n"})
        (self._copies / name).write_text(text[:size])

    def add(self) -> str:
        key = self._line()
        self._copied += 1
        self._copy()
        return key

    def tear(self) -> None:
        self._copied += 1
        self._torn = self._line()
        self._copy(20)

    def mend(self) -> str:
        self._copy()
        return self._torn

    def go_away(self) -> None:
        self._root.rename(self._away)

    def come_back(self) -> None:
        self._away.rename(self._root)

    def keys(self, batch: Batch) -> list[str]:
        return [record.fields["o"] or "" for record in batch.records]
