"""Files beside a simulated site that grow and fault: traces, an archive, copies of agents' logs."""

import json
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.sides import LASTS_S, Fault, Side, Wait

SPANS_OF_TRACE = 20
SCRIPTS = 20
"""Kept in the archive, the newest."""
LOOKED_FOR_S = 12.0
"""How long a fault lasts of what is looked at every ten seconds."""
COPIED_LINES = 200
"""Lines of one copy, as the supervisor keeps them."""
COPIED_EVERY = 10
COPIES = 20
"""Kept, the newest."""
OWNER, HOST = "sbatchOF", "cori"
RECORD = {
    "computeJid": f"{OWNER}-Mtk0hZyj-multiElectronAnimation", "computeJobHash": "0", "computeJobSerial": 1,
    "driverDetails": {"type": "SbatchDriver", "host": HOST, "username": "jdoe"}, "error": None,
    "history": [], "isParallel": True, "jobRunMode": "sbatch", "simName": "Scan", "simulationId": "Mtk0hZyj",
    "simulationType": "srw", "status": "completed", "uid": OWNER, "computeModel": "multiElectronAnimation",
}  # fmt: skip
"""A job that ran on a cluster: only for such users copies are looked for."""


class TraceFileSide(Side):
    """A file of spans, one document a line, as the collector's file exporter writes it."""

    name = "trace file"

    def __init__(self, directory: Path) -> None:
        super().__init__()
        directory.mkdir()
        self._path = directory / "spans.jsonl"
        self.source = str(self._path)
        self.flags = ("--trace-file", self.source)
        self.tick()

    def tick(self) -> None:
        """One more span."""
        with self._path.open("a") as file:
            file.write(self._line())

    @property
    def faults(self) -> Mapping[str, Fault]:
        """What befalls a file."""
        return {"half a line": self._half, "rotated": self._rotated, "away and back": self._away}

    def _line(self) -> str:
        self.written += 1
        number, at = self.written, time.time_ns()
        span = {
            "traceId": f"{number // SPANS_OF_TRACE + 1:032x}", "spanId": f"{number:016x}", "name": "event",
            "kind": 1, "startTimeUnixNano": str(at), "endTimeUnixNano": str(at + 1_000_000),
        }  # fmt: skip
        service = {"key": "service.name", "value": {"stringValue": "worker"}}
        resource = {"resource": {"attributes": [service]}, "scopeSpans": [{"spans": [span]}]}
        return json.dumps({"resourceSpans": [resource]}) + "\n"

    def _half(self, wait: Wait) -> None:
        line = self._line()
        for part in (line[: len(line) // 2], line[len(line) // 2 :]):
            with self._path.open("a") as file:
                file.write(part)
            wait(LASTS_S)

    def _rotated(self, wait: Wait) -> None:
        """Moved away when all of it has been read, as nothing says where the rest is."""
        wait(LASTS_S)
        self._path.replace(self._path.with_suffix(".1"))
        self.tick()

    def _away(self, wait: Wait) -> None:
        away = self._path.with_suffix(".away")
        self._path.rename(away)
        wait(LASTS_S)
        away.rename(self._path)


class ArchiveSide(Side):
    """Scripts as SArchive keeps them. They are read when somebody asks: nothing is counted of them."""

    name = "archive"

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._path = directory
        self.source = str(directory)
        self.flags = ("--archive", self.source)
        directory.mkdir()
        self._kept = 0
        self.tick()

    def tick(self) -> None:
        """One more script, and one less."""
        self._kept += 1
        (self._path / f"job.{self._kept}_script").write_text("#!/bin/sh\nsleep 1\n")
        (self._path / f"job.{self._kept - SCRIPTS}_script").unlink(missing_ok=True)

    @property
    def faults(self) -> Mapping[str, Fault]:
        """What befalls a directory."""
        return {"gone and back": lambda wait: away_and_back(self._path, wait)}


class AgentCopiesSide(Side):
    """Copies of the log of an agent on a cluster below a database root."""

    name = "agent copies"

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.source = str(root / "user" / "*" / "agent-sbatch")
        self._user = root / "user" / OWNER
        self._directory = self._user / "agent-sbatch" / HOST
        self._directory.mkdir(parents=True)
        self._begun, self._ticks = time.time(), 0
        self._lines: list[str] = []
        self._copies: list[Path] = []
        record = json.dumps({**RECORD, "lastUpdateTime": int(self._begun)})
        (root / "supervisor-job" / f"{RECORD['computeJid']}.json").write_text(record)

    def tick(self) -> None:
        """One more line; now and then a copy of the newest."""
        self._ticks += 1
        stamp = time.strftime("%b %d %H:%M:%S")
        self._lines.append(f"{stamp}  9015     0 sirepo/job_agent.py:512:_beat {self._ticks}")
        if self._ticks % COPIED_EVERY == 0:
            path, text = self._next_copy()
            path.write_text(text)

    @property
    def faults(self) -> Mapping[str, Fault]:
        """What befalls copies."""
        return {"half a copy": self._half, "gone and back": lambda wait: away_and_back(self._user, wait)}

    def _next_copy(self) -> tuple[Path, str]:
        """Where the next copy is to be, and what in it; the oldest is removed."""
        self.written += COPIED_EVERY
        self._lines = self._lines[-COPIED_LINES:]
        at = time.localtime(self._begun + self._ticks)
        path = self._directory / f"{time.strftime('%Y%m%d%H%M%S', at)}-remote-after-start.log"
        self._copies.append(path)
        for old in self._copies[:-COPIES]:
            old.unlink()
        self._copies = self._copies[-COPIES:]
        log = "\n".join(self._lines) + "\n"
        return path, json.dumps({"filename": path.name, "stderr": "", "stdout": log})

    def _half(self, wait: Wait) -> None:
        while (self._ticks + 1) % COPIED_EVERY:
            self.tick()
        self._ticks += 1
        self._lines.append("last")
        path, text = self._next_copy()
        path.write_text(text[: len(text) // 2])
        wait(LOOKED_FOR_S)
        path.write_text(text)


def away_and_back(path: Path, wait: Wait) -> None:
    """A directory that is not there for a while, as when a mount is lost."""
    away = path.with_name(f"{path.name}.away")
    path.rename(away)
    wait(LOOKED_FOR_S)
    away.rename(path)
