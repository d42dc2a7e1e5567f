"""What a Sirepo site says and writes: requests, ops, messages, job records, and the texts of its log lines.

The lines are those of Sirepo 20261015, checked against what it really wrote.
"""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from jobtui.model.ids import PREFIX_LENGTH
from jobtui.model.tables import tables_of

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
SHORT_ID, LONG_ID = 8, 32
"""Lengths of the ids of users and simulations, and of those of agents and ops."""


class Ids:
    """Draws ids as Sirepo makes them, never one twice. Their first characters can be made few, to clash."""

    def __init__(self, rng: random.Random, prefixes: int | None) -> None:
        self._rng = rng
        self._used: set[str] = set()
        self._prefixes = None if prefixes is None else [self.draw(PREFIX_LENGTH) for _ in range(prefixes)]

    def key(self) -> str:
        if self._prefixes is None:
            return self.draw(LONG_ID)
        return self._rng.choice(self._prefixes) + self.draw(LONG_ID - PREFIX_LENGTH)

    def hex(self, length: int) -> str:
        return f"{self._rng.getrandbits(length * 4):0{length}x}"

    def draw(self, length: int = LONG_ID) -> str:
        while True:
            text = "".join(self._rng.choices(ALPHABET, k=length))
            if text not in self._used:
                self._used.add(text)
                return text


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request to the supervisor.

    `jid`, `run_dir` and what names a simulation are None or empty for requests about none. `serial` is the
    run that the browser means (0: any), `force` asks for a run even when the result is there. `password_ok`
    is what an sbatch login brings (None: no login).
    """

    api: str
    uid: str
    plan: str = "basic"
    jid: str | None = None
    app: str = ""
    simulation: str = ""
    model: str = ""
    name: str | None = None
    run_dir: str | None = None
    is_parallel: bool = False
    mode: str = ""
    method: str | None = None
    serial: int = 0
    force: bool = False
    password_ok: bool | None = None

    def __str__(self) -> str:
        return f"ServerReq({self.api}, {self.jid})"


class AgentAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a browser gets back. `ok` says whether the request was served."""

    state: str | None = None
    serial: int = 0
    next_s: float = 1.0
    login_needed: bool = False
    ok: bool = True

    @property
    def live(self) -> bool:
        return self.state in {"pending", "running"}


@dataclass(eq=False)
class Order:
    """An op as it goes to an agent."""

    op_id: str | None
    name: str
    request: Request
    job_cmd: str | None = None
    run_dir: str | None = None
    serial: int = 0
    cancel_jid: str | None = None
    cancel_op: str | None = None

    @property
    def prefix(self) -> str | None:
        return self.op_id[:PREFIX_LENGTH] if self.op_id else None


KILL = Order(None, "kill", Request(api="None", uid=""))
"""What ends an agent."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message of an agent. `reply` is set on those that answer an op."""

    agent_id: str
    name: str
    op_id: str | None = None
    reply: Mapping[str, object] | None = None
    jid: str | None = None
    serial: int = 0
    state: str | None = None
    start: int | None = None
    error: str | None = None
    parallel: Mapping[str, object] | None = None
    stderr: str | None = None

    @property
    def is_error(self) -> bool:
        return self.name == "error" or (self.reply is not None and self.reply.get("state") == "error")

    def __str__(self) -> str:
        fields = {
            "agentId": self.agent_id,
            "computeJid": self.jid,
            "computeJobSerial": self.serial or None,
            "computeJobStart": self.start,
            "error": self.error,
            "opId": self.op_id,
            "opName": self.name,
            "parallelStatus": self.parallel,
            "reply": self.reply,
            "state": self.state,
            "stderr": self.stderr,
        }
        text = str({key: value for key, value in fields.items() if value is not None})
        return text.replace("\\n", "\n")


SHELL = "('/bin/bash', '-l')"

_STDIN: str = tables_of("jobtui.demo", "tables")["stdin"].rstrip("\n")


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent was started with. `token` and `agent_id` are secrets that show in its lines."""

    agent_id: str
    uid: str
    kind: str
    token: str
    port: int
    root: str
    exec_dir: str

    @property
    def prefix(self) -> str:
        return self.agent_id[:PREFIX_LENGTH]

    def start_text(self) -> str:
        uri = f"http://127.0.0.1:{self.port}"
        return (
            f"{{'agent_id': '{self.agent_id}', 'dev_source_dirs': False, 'fastcgi_sock_dir': /tmp, "
            f"'global_resources_server_token': None, "
            f"'global_resources_server_uri': '{uri}/global-resources', "
            f"'mpich_shm_clean_up': False, 'no_hdf5_do_mpi_file_sync': False, "
            f"'sim_db_file_server_token': '{self.token}', "
            f"'sim_db_file_server_uri': '{uri}/sim-db-file/{self.uid}/', 'start_delay': 0, "
            f"'supervisor_uri': 'ws://127.0.0.1:{self.port}/job-agent-websocket'}}"
        )

    def stdin_text(self, run_dir: str, key: str, *, slurm: bool = False) -> str:
        return _STDIN.format(
            slurm="export SIREPO_MPI_IN_SLURM='1'\n" if slurm else "",
            port=self.port,
            cores=4 if self.kind == "parallel" else 1,
            token=self.token,
            uid=self.uid,
            root=self.root,
            run_dir=run_dir,
            key=key,
        )


Record = dict[str, Any]
"""A job record as the JSON it becomes."""

NOT_IN_HISTORY = frozenset(
    {
        "computeJid", "computeJobHash", "dbUpdateTime", "history", "nextRequestSeconds", "parallelStatus",
        "queueState", "queuedState", "simName", "simulationId", "simulationType", "uid",
    }
)  # fmt: skip
PARALLEL_STATUS_FIELDS = (
    "percentComplete", "computeJobStart", "computeJobHash", "lastUpdateTime", "frameCount", "elapsedTime",
    "queueState",
)  # fmt: skip
NEXT_REQUEST_SECONDS: Mapping[str, int] = {"parallel": 2, "sbatch": 15, "sequential": 1}
"""How often the browser asks, by run mode."""
NULL_WHEN_READ_BACK = ("alert", "activePlan", "canceledAfterSecs", "jobStatusMessage", "internalError")
"""Fields that a record gets (as null) when it is read back from disk."""


def new_record(request: Request, previous: Record | None, hash_text: str | None) -> Record:
    record: Record = {
        "activePlan": request.plan,
        "alert": None,
        "queueState": "queued",
        "canceledAfterSecs": None,
        "computeJid": request.jid,
        "computeJobHash": hash_text,
        "computeJobQueued": 0,
        "computeJobSerial": 0,
        "computeJobStart": 0,
        "computeModel": request.model,
        "dbUpdateTime": 0.0,
        "driverDetails": {},
        "error": None,
        "history": [],
        "isParallel": request.is_parallel,
        "jobStatusMessage": None,
        "lastUpdateTime": 0,
        "simName": None,
        "simulationId": request.simulation,
        "simulationType": request.app,
        "status": "missing",
        "uid": request.uid,
        "jobRunMode": request.mode if request.mode or previous is None else previous["jobRunMode"],
    }
    if previous is not None:
        kept = {key: value for key, value in previous.items() if key not in NOT_IN_HISTORY}
        record["history"] = [*previous["history"], kept]
    record["nextRequestSeconds"] = NEXT_REQUEST_SECONDS[record["jobRunMode"]]
    if request.is_parallel:
        record["parallelStatus"] = dict.fromkeys(PARALLEL_STATUS_FIELDS, 0)
    return record


def read_record(data: bytes) -> Record:
    record: Record = json.loads(data)
    for entry in (record, *record["history"]):
        for key in NULL_WHEN_READ_BACK:
            entry.setdefault(key, None)
    return record


def record_bytes(record: Record) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode("ascii")


class Line(NamedTuple):
    """A line ready to be filled: the call site as it is written, and the text."""

    site: str
    text: str


def lines_of(site_packages: str) -> Mapping[str, Line]:
    return {
        name: Line(f"{site_packages}{file}:{number}:{function} ", text)
        for name, (file, number, function, text) in tables_of("jobtui.demo", "tables")["lines"].items()
    }
