"""The data of a Sirepo site: requests, ops, messages, job records, and the texts of its log lines.

The lines are those of Sirepo 20261015, compared with its real output.
"""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from jobtui.model.ids import PREFIX_LENGTH
from jobtui.model.tables import tables_of

TABLES: dict[str, Any] = tables_of("jobtui.demo", "tables")
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
LIVE = frozenset({"pending", "running"})
SHORT_ID, LONG_ID = 8, 32
"""The lengths of ids of users and simulations, and of agents and ops."""


class Ids:
    """Draws ids in Sirepo's form, never one twice. Few first characters can be set, to make them clash."""

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


class ApiRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to the supervisor.

    `jid`, `run_dir` and what names a simulation are None or empty for requests about none. `force` asks for a
    run even if there is a result. `password_ok` is the result of an sbatch login (None: no login).
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
    force: bool = False
    password_ok: bool | None = None

    def __str__(self) -> str:
        return f"ServerReq({self.api}, {self.jid})"


class RequestFault(Exception):
    """A fault in the supervisor that ends a request."""


class LoginNeeded(Exception):
    """The user has to log in to the cluster first. `reason` is Sirepo's word for why."""

    def __init__(self, reason: str, request: ApiRequest) -> None:
        params = {
            "isModal": True,
            "isSbatchLogin": True,
            "reason": reason,
            "computeModel": request.model,
            "simulationId": request.simulation,
        }
        super().__init__(f"SRException(params={params},routeName=sbatchLogin)")


class AgentAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a browser. `ok` says whether the request was served."""

    state: str | None = None
    serial: int = 0
    next_s: float = 1.0
    login_needed: bool = False
    ok: bool = True

    @property
    def live(self) -> bool:
        return self.state in LIVE


@dataclass(eq=False)
class OpRequest:
    op_id: str | None
    name: str
    request: ApiRequest
    job_cmd: str | None = None
    run_dir: str | None = None
    serial: int = 0
    cancel_jid: str | None = None
    cancel_op: str | None = None

    @property
    def prefix(self) -> str | None:
        return self.op_id[:PREFIX_LENGTH] if self.op_id else None


KILL = OpRequest(None, "kill", ApiRequest(api="None", uid=""))


class DemoMessage(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename={
        "agent_id": "agentId", "jid": "computeJid", "serial": "computeJobSerial", "start": "computeJobStart",
        "op_id": "opId", "name": "opName", "parallel": "parallelStatus",
    },
):  # fmt: skip
    """A message of an agent. `reply` is set if it answers an op."""

    agent_id: str
    jid: str | None = None
    serial: int = 0
    start: int | None = None
    error: str | None = None
    op_id: str | None = None
    name: str
    parallel: Mapping[str, object] | None = None
    reply: Mapping[str, object] | None = None
    state: str | None = None
    stderr: str | None = None

    def __str__(self) -> str:
        return str(msgspec.to_builtins(self)).replace("\\n", "\n")


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of an agent at its start. `token` and `agent_id` are secrets that are in its lines."""

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


Record = dict[str, Any]
"""A job record as the JSON it becomes."""

NEW_RECORD: Record = json.loads(TABLES["record"])
FIELDS: Mapping[str, list[str]] = TABLES["record_fields"]


def new_record(request: ApiRequest, previous: Record | None, hash_text: str | None) -> Record:
    mode = request.mode if request.mode or previous is None else previous["jobRunMode"]
    record = NEW_RECORD | {
        "activePlan": request.plan,
        "computeJid": request.jid,
        "computeJobHash": hash_text,
        "computeModel": request.model,
        "driverDetails": {},
        "history": [],
        "isParallel": request.is_parallel,
        "simulationId": request.simulation,
        "simulationType": request.app,
        "uid": request.uid,
        "jobRunMode": mode,
        "nextRequestSeconds": {"parallel": 2, "sbatch": 15, "sequential": 1}[mode],
    }
    if previous is not None:
        kept = {key: value for key, value in previous.items() if key not in FIELDS["not_in_history"]}
        record["history"] = [*previous["history"], kept]
    if request.is_parallel:
        record["parallelStatus"] = dict.fromkeys(FIELDS["parallel_status"], 0)
    return record


def read_record(data: bytes) -> Record:
    record: Record = json.loads(data)
    for entry in (record, *record["history"]):
        for key in FIELDS["null_when_read_back"]:
            entry.setdefault(key, None)
    return record


@cache
def lines_of(site_packages: str) -> Mapping[str, tuple[str, str]]:
    """Templates of lines by name: the call site as it is written, and the text."""
    return {
        name: (f"{site_packages}{file}:{number}:{function} ", text)
        for name, (file, number, function, text) in TABLES["lines"].items()
    }
