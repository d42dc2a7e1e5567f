"""What the contract of a source is tested with: for each backend a system that does what a test wants.

Record files are as the supervisor writes them: made up, or out of the captures.
"""

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from jobtui.backends.agent_copies import AgentCopies
from jobtui.backends.balsam import records as balsam_records
from jobtui.backends.balsam.client import BalsamClient
from jobtui.backends.balsam.source import Balsam
from jobtui.backends.base import Batch, Source
from jobtui.backends.condor.source import LIMITS, CondorFile
from jobtui.backends.log_start import FromStart
from jobtui.backends.sirepo import source as sirepo_files
from jobtui.backends.sirepo.source import SirepoDb
from jobtui.backends.slurm.client import Commands, slurm_faults
from jobtui.backends.slurm.source import Slurm
from jobtui.backends.traces.files import TraceFile
from jobtui.formats import condor_events, spans
from jobtui.formats import slurm as slurm_format
from jobtui.formats.parser import LogParser
from jobtui.model.clock import FixedClock
from jobtui.model.condor import LOG_GAP
from jobtui.model.ids import JobId
from jobtui.transport.blocks import Limits
from jobtui.transport.ssh import LocalShell
from tests.backends.log_fakes import append, log_file
from tests.balsam_server import TOKEN, Record, RecordedBalsam
from tests.builders import job_id as jid
from tests.condor import SCHEDD, submitted
from tests.conftest import NOW
from tests.loopback import Answers, carried, timed
from tests.rows import CAPTURES
from tests.slurm_stand_in import StandIn

UID = "3pMDuIiL"
KEY = re.compile(r"api_run\d+|o=ab\d+")
LINE = "Nov 20 20:{:02}:00  9015     0 job_agent.py:487:_op opName=run o=ab{:02} runDir=/scratch/x"


class Rig:
    """The system behind one kind of source, which can be gone as a whole and be there again as it was."""

    makes: tuple[object, str] = (LogParser, "_read")
    """What makes one record of bytes from outside: the module or class that has it, and its name."""
    tells = False
    """Whether the system reports changes by itself, so that nobody has to ask."""
    reconnects = False
    """Whether the source keeps a connection, which is made again some time after the system is back."""
    _is_away = False

    def __init__(self, folder: Path) -> None:
        self._written = 0

    def source(self) -> Source:
        raise NotImplementedError

    def add(self) -> str:
        """Let the system write one more record; its key."""
        raise NotImplementedError

    def tear(self) -> None:
        """Let there be one record that is not understood."""

    def mend(self) -> str:
        """Let that record make sense; its key."""
        return pytest.skip("what there is stays as it is")

    def go_away(self) -> None:
        self._is_away = True

    def come_back(self) -> None:
        self._is_away = False

    def keys(self, batch: Batch) -> list[str]:
        """The keys of the records in a batch."""
        return [found[0] for record in batch.records if (found := KEY.search(record.text))]


class HttpRig(Rig):
    """A server whose answers are asked for over HTTP, and which cannot be connected to while it is away."""

    server: Answers

    async def answer(self, request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0)  # as a connection would, so that others have their turn
        if self._is_away:
            raise httpx.ConnectError("connection refused")
        return self.server.answer(request)


class PathRig(Rig):
    """A system that is all below one path, and gone when that is."""

    tells = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._path = folder / "there"
        self._away = folder / "away"

    def go_away(self) -> None:
        self._path.rename(self._away)

    def come_back(self) -> None:
        self._away.rename(self._path)


class AgentCopiesRig(PathRig):
    """A database root below which the supervisor keeps copies of one agent's log. Each record is a line."""

    tells = False

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._copies = self._path / "user" / UID / "agent-sbatch" / "cori"
        self._copies.mkdir(parents=True)
        self._lines: list[str] = []

    def source(self) -> Source:
        return AgentCopies(self._path, lambda: [UID], every_s=0)

    def _line(self) -> str:
        number = len(self._lines) + 1
        self._lines.append(LINE.format(number, number))
        return f"o=ab{number:02}"

    def _copy(self, size: int | None = None) -> None:
        name = f"2026112020{self._written:02}00-remote-after-start.log"
        text = json.dumps({"filename": name, "stderr": "", "stdout": "\n".join(self._lines) + "\n"})
        (self._copies / name).write_text(text[:size])

    def add(self) -> str:
        key = self._line()
        self._written += 1
        self._copy()
        return key

    def tear(self) -> None:
        self._written += 1
        self._torn = self._line()
        self._copy(20)

    def mend(self) -> str:
        self._copy()
        return self._torn


class SirepoDbRig(PathRig):
    makes = (sirepo_files, "read_job")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._db = Db(self._path)
        self._torn = jid(999)

    def source(self) -> Source:
        source = SirepoDb(self._db.root)
        source.batch_files = 2
        return source

    def add(self) -> str:
        self._written += 1
        return self._db.put(jid(self._written))

    def tear(self) -> None:
        self._db.put_bytes(self._torn, b'{"status": "runn')

    def mend(self) -> str:
        return self._db.put(self._torn)

    def keys(self, batch: Batch) -> list[str]:
        return [job.id for job in batch.jobs]


class BalsamRig(HttpRig):
    makes = (balsam_records, "change_of")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._server = self.server = RecordedBalsam()
        self._server.events, self._server.jobs, self._server.batch_jobs = [], [], []
        self._torn: Record = {}

    def source(self) -> Source:
        client = carried(BalsamClient("http://balsam.test", lambda: TOKEN), self.answer)
        return timed(Balsam(client), FixedClock(NOW))

    def add(self) -> str:
        number = len(self._server.jobs) + 1
        at = f"2026-11-20T20:30:{number:02d}"
        self._server.jobs.append({**JOB, "id": number, "last_update": f"{at}+00:00"})
        self._server.events.append({**EVENT, "id": number, "job_id": number, "timestamp": at})
        return str(number)

    def tear(self) -> None:
        self.add()
        self._torn = self._server.events[-1]
        self._torn["to_state"] = None

    def mend(self) -> str:
        self._torn["to_state"] = EVENT["to_state"]
        self._server.jobs[-1]["last_update"] = "2026-11-20T20:31:00+00:00"
        return str(self._torn["id"])

    def keys(self, batch: Batch) -> list[str]:
        return [str(change.id) for change in batch.changes]


class GrowingFileRig(PathRig):
    """A file to which records are appended, each of which may be torn."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._path.write_text("")
        self._torn = ("", "")

    def _record(self, number: int) -> tuple[str, str]:
        raise NotImplementedError

    def add(self) -> str:
        self._written += 1
        key, text = self._record(self._written)
        append(self._path, text)
        return key

    def tear(self) -> None:
        self._written += 1
        self._torn = self._record(self._written)
        append(self._path, self._torn[1][:20])

    def mend(self) -> str:
        append(self._path, self._torn[1][20:])
        return self._torn[0]


class TraceFileRig(GrowingFileRig):
    """A file of traces that grows. Its records are spans, each larger than the one before."""

    makes = (spans, "_span")

    def source(self) -> Source:
        return TraceFile(self._path, piece_bytes=300)

    def _record(self, number: int) -> tuple[str, str]:
        key = f"{number:016x}"
        span = {"traceId": "a" * 32, "spanId": key, "name": "x" * number}
        return key, json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}) + "\n"

    def keys(self, batch: Batch) -> list[str]:
        return [span.span_id for span in batch.spans]


class LogFileRig(GrowingFileRig):
    """A log of Sirepo's supervisor. Each record is a line."""

    def source(self) -> Source:
        return log_file(self._path, limits=Limits(gone_s=0.0), start=FromStart())

    def _record(self, number: int) -> tuple[str, str]:
        return f"o=ab{number:02}", LINE.format(number, number) + "\n"

    def tear(self) -> None:
        append(self._path, "\0" * 1_000 + "\n")

    def mend(self) -> str:
        return Rig.mend(self)


class SlurmRig(Rig):
    makes = (slurm_format, "settled")

    def __init__(self, folder: Path) -> None:
        self._cluster = StandIn(folder)
        self._rows: list[dict[str, str]] = []

    def source(self) -> Source:
        shell = LocalShell("local", slurm_faults(), {"PATH": self._cluster.search_path})
        source = Slurm(Commands("local", shell))
        source.every_s, source.batch_jobs = 0.0, 2
        source._queue_pace.share = source._accounts_pace.share = 1e9
        return source

    def _put(self, row: dict[str, str]) -> str:
        self._rows.append(row)
        self._cluster.queue(*self._rows)
        return f"slurm/{row['%i']}"

    def add(self) -> str:
        number = str(len(self._rows) + 1)
        return self._put({"%i": number, "%A": number})

    def tear(self) -> None:
        self._put({"%i": "no number"})

    def mend(self) -> str:
        self._rows.pop()
        return self._put({"%i": "999", "%A": "999"})

    def go_away(self) -> None:
        self._cluster.fault("squeue", "slurm_load_jobs error: Unable to contact slurm controller")

    def come_back(self) -> None:
        self._cluster.fault("squeue", None)

    def keys(self, batch: Batch) -> list[str]:
        return [job.id for job in batch.jobs]


class CondorRig(GrowingFileRig):
    """An event log of HTCondor. Each record is the submission of one job."""

    makes = (condor_events, "_event")

    def source(self) -> Source:
        return CondorFile(self._path, msgspec.structs.replace(LIMITS, block=400, batch=400))

    def _record(self, number: int) -> tuple[str, str]:
        return f"{number}.0@{SCHEDD}", submitted(job=f"{number:03}.000.000")

    def keys(self, batch: Batch) -> list[str]:
        return [fact.job for fact in batch.condor if fact.what != LOG_GAP]


JOB: Record = {"state": "RUNNING", "app_id": 1, "workdir": "a/b", "tags": {}, "batch_job_id": None}
EVENT: Record = {"from_state": "PREPROCESSED", "to_state": "RUNNING", "data": {"num_nodes": 1.0}}

RIGS: tuple[type[Rig], ...] = (
    SirepoDbRig, BalsamRig, TraceFileRig, SlurmRig, CondorRig, LogFileRig,
    AgentCopiesRig,
)  # fmt: skip


DIRECTORY = "supervisor-job"

Fields = dict[str, Any]


def captured() -> list[Path]:
    return sorted([*CAPTURES.glob(f"*/{DIRECTORY}/*.json"), *CAPTURES.glob("*/snapshots/*/*.json")])


def a_record(job_id: str, **fields: Any) -> Fields:
    """The record of a completed sequential job; a field that is `...` is left out."""
    uid, simulation, model = job_id.split("-")
    record: Fields = {
        "activePlan": "premium", "alert": None, "queueState": "queued", "canceledAfterSecs": None,
        "computeJid": job_id, "computeJobHash": "HashIsUnused", "computeJobQueued": 1795206871,
        "computeJobSerial": 1795206871, "computeJobStart": 1795206873, "computeModel": model,
        "dbUpdateTime": 1795206880.25, "driverDetails": {}, "error": None, "history": [], "isParallel": False,
        "jobStatusMessage": None, "lastUpdateTime": 1795206879, "simName": "Scooby Doo",
        "simulationId": simulation, "simulationType": "myapp", "status": "completed", "uid": uid,
        "jobRunMode": "sequential", "nextRequestSeconds": 1,
    } | fields  # fmt: skip
    return {name: value for name, value in record.items() if value is not ...}


def to_bytes(record: Fields) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode("ascii")


class Db:
    def __init__(self, root: Path, *, make: bool = True) -> None:
        self.root = root
        self.directory = root / DIRECTORY
        if make:
            self.directory.mkdir(parents=True)

    def path(self, job_id: str) -> Path:
        return self.directory / f"{job_id}.json"

    def put(self, job_id: str, **fields: Any) -> JobId:
        return self.put_bytes(job_id, to_bytes(a_record(job_id, **fields)))

    def put_bytes(self, job_id: str, data: bytes, mtime_s: float | None = None) -> JobId:
        """Write any bytes where a record should be, by renaming."""
        path = self.path(job_id)
        beside = path.with_name(f"{path.name}.pkio-tmp-Xy7")
        beside.write_bytes(data)
        if mtime_s is not None:
            os.utime(beside, (mtime_s, mtime_s))
        beside.rename(path)
        return JobId(job_id)

    def remove(self, job_id: str) -> None:
        self.path(job_id).unlink()
