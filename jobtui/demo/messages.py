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

_STDIN = """b"source $HOME/.bashrc
set -e
mkdir -p '.'
cd '.'
{slurm}export SIREPO_GLOBAL_RESOURCES_SERVER_TOKEN=''
export SIREPO_GLOBAL_RESOURCES_SERVER_URI='http://127.0.0.1:{port}/global-resources'
export SIREPO_MPI_CORES='{cores}'
export SIREPO_SIM_DB_FILE_SERVER_TOKEN='{token}'
export SIREPO_SIM_DB_FILE_SERVER_URI='http://127.0.0.1:{port}/sim-db-file/{uid}/'
export PYKERN_PKCONFIG_CHANNEL='prod'
export PYKERN_PKDEBUG_REDIRECT_LOGGING='1'
export PYKERN_PKDEBUG_WANT_PID_TIME='1'
export PYTHONUNBUFFERED='1'
export SIREPO_AUTH_LOGGED_IN_USER='{uid}'
export SIREPO_JOB_MAX_MESSAGE_BYTES='200000000'
export SIREPO_JOB_PING_INTERVAL_SECS='120'
export SIREPO_JOB_PING_TIMEOUT_SECS='15'
export SIREPO_JOB_VERIFY_TLS='False'
export SIREPO_SIMULATION_DB_LOGGED_IN_USER='{uid}'
export SIREPO_SRDB_ROOT='{root}'
export PYTHONPATH=''
export PYTHONSTARTUP=''
exec 'sirepo' 'job_cmd' '{run_dir}/in-{key}.json'
\""""


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


SUPERVISOR = "sirepo/job_supervisor.py"
COMMAND = "sirepo/pkcli/job_supervisor.py"
DRIVER = "sirepo/job_driver/__init__.py"
LOCAL = "sirepo/job_driver/local.py"
DOCKER = "sirepo/job_driver/docker.py"
SBATCH = "sirepo/job_driver/sbatch.py"
AGENT = "sirepo/pkcli/job_agent.py"
SERVER = "sirepo/job_api.py"
ROUTER = "sirepo/uri_router.py"
WEB = "tornado/web.py"
SSH = "asyncssh/logging.py"

LINES: Mapping[str, tuple[str, int, str, str]] = {
    "modules": (DRIVER, 526, "init_module", "modules={}"),
    "listening": (COMMAND, 78, "default_command", "ip=127.0.0.1 port={}"),
    "request": (SUPERVISOR, 254, "receive", "{}"),
    "request_error": (SUPERVISOR, 263, "receive", "{} error={}"),
    "analysis": (SUPERVISOR, 1096, "_send_op_analysis", "{} api={} method={}"),
    "op": (SUPERVISOR, 1276, "__init__", "{} runDir={}"),
    "assigned": (SUPERVISOR, 1332, "prepare_send", "assigned driver={} to op={}"),
    "await_reply": (SUPERVISOR, 1346, "reply_get", "{} await _reply_q.get()"),
    "no_reply": (SUPERVISOR, 1352, "reply_get", "{} no reply"),
    "enter": (SUPERVISOR, 144, "alloc", "{} enter={} {}"),
    "exit": (SUPERVISOR, 147, "alloc", "{} exit={} {}"),
    "new_status": (SUPERVISOR, 892, "_process_run_status_update", "new status={} {}"),
    "same_status": (SUPERVISOR, 894, "_process_run_status_update", "same status={} {}"),
    "serial_differs": (SUPERVISOR, 871, "_process_run_status_update",
        "{} db.computeJobSerial={} does not match msg.computeJobSerial={}, ignoring"),
    "already_exited": (SUPERVISOR, 880, "_process_run_status_update",
        "ignoring state={} already in exit state={} msg={}"),
    "inactive_job": (SUPERVISOR, 459, "agent_receive", "inactive job jid={} msg={}"),
    "cancel": (SUPERVISOR, 664, "_eval_args_and_destroy_op", "{} cancel args={}"),
    "cancel_failed": (SUPERVISOR, 673, "_cancel_op_or_job", "{} prepare_send failed op={}"),
    "cancel_exception": (SUPERVISOR, 682, "_cancel_op_or_job", "exception={} stack={}"),
    "cancel_ignored": (SUPERVISOR, 942, "_receive_api_runCancel",
        "{} ignoring cancel, not running req_is_invalid"),
    "max_run_secs": (SUPERVISOR, 1365, "_timeout", "{} max_run_secs={}"),
    "reload": (SUPERVISOR, 694, "_create", "canceling after reload jid={} {}"),
    "run_exception": (SUPERVISOR, 1020, "_receive_api_runSimulation", "{} exception={}"),
    "run_fault": (SUPERVISOR, 1025, "_receive_api_runSimulation",
        "{} db updated during send with exception={}"),
    "incoming_fault": (COMMAND, 178, "_incoming", "exception={} handler={} content={}"),
    "incoming_stack": (COMMAND, 179, "_incoming", "{}"),
    "run_op_changed": (SUPERVISOR, 1040, "_receive_api_runSimulation",
        "{} _run_status_op changed during call to agent, ignoring state"),
    "status_change": (SUPERVISOR, 1162, "_update_db", "{} status change reply={}"),
    "sbatch_unknown": (SUPERVISOR, 1171, "_update_db", "{} normal sbatch case reply={}"),
    "status_op_changed": (SUPERVISOR, 1202, "_start_run_status_op",
        "{} run_status_op changed during request, ignoring reply={}"),
    "status_db_updated": (SUPERVISOR, 1212, "_start_run_status_op",
        "{} db updated during run_status, ignoring reply={}"),
    "socket_open": (COMMAND, 99, "open", "uri=/job-agent-websocket remote_ip=127.0.0.1 "),
    "access": (WEB, 2591, "log_request", "{}:tornado.access:{} {} (127.0.0.1) {:.2f}ms"),
    "driver": (DRIVER, 97, "__init__", "{}"),
    "start_agent": (DRIVER, 401, "_agent_start", "{} {} await=_do_agent_start"),
    "start_agent_error": (DRIVER, 412, "_agent_start", "{} error={} stack={}"),
    "exec_dir": (LOCAL, 118, "_do_agent_start", "{} agent_exec_dir={}"),
    "await_agent": (DRIVER, 297, "_agent_ready", "{} {} await _websocket_ready"),
    "agent_there": (DRIVER, 299, "_agent_ready", "{} {} websocket alive"),
    "destroyed_waiting": (DRIVER, 301, "_agent_ready", "after websocket_ready op={} destroyed"),
    "destroyed_starting": (DRIVER, 295, "_agent_ready", "after agent_start op={} destroyed"),
    "send": (DRIVER, 185, "send", "{} {} runDir={}"),
    "send_error": (DRIVER, 192, "send", "error={} op={} stack={}"),
    "message": (DRIVER, 337, "_log", "{} opName={} o={}"),
    "message_error": (DRIVER, 335, "_log", "{} error msg={}"),
    "message_stderr": (DRIVER, 391, "_agent_receive_job_cmd_stderr", "{} stderr from job_cmd msg={}"),
    "not_prepared": (DRIVER, 347, "_reply", "{} op not in prepared_sends opName={} o={} content={}"),
    "unknown_agent": (DRIVER, 176, "receive", "unknown agent, sending kill; msg={}"),
    "socket_closed": (DRIVER, 213, "websocket_on_close", "{}"),
    "free": (DRIVER, 483, "_start_free_resources", "{} caller={}"),
    "not_ready": (DRIVER, 230, "_websocket_ready_timeout_handler", "{} timeout={}"),
    "idle": (DRIVER, 491, "_kill_if_idle", "{}"),
    "kill_local": (LOCAL, 86, "kill", "{} pid={}"),
    "agent_exited": (LOCAL, 111, "_agent_on_exit", "{} returncode={}"),
    "exec_dir_docker": (DOCKER, 247, "_do_agent_start", "{} agent_exec_dir={}"),
    "container": (DOCKER, 264, "_do_agent_start", "{} cname={} cid={}"),
    "kill_docker": (DOCKER, 213, "kill", "{} cid={}"),
    "forwarded": (DOCKER, 483, "_write", "{} {}"),
    "forwarded_rest": (DOCKER, 495, "_log_output", "cmd=start cname={} {}"),
    "docker_ended": (DOCKER, 460, "start", "cmd={} cname={} error={} cmd={}"),
    "docker_failed": (DOCKER, 468, "start", "cmd={} cname={} error={} cmd={} stderr={}"),
    "agent_log": (SBATCH, 233, "_do_agent_start", "agent_log={}/job_agent.log"),
    "echo": (SBATCH, 226, "_write_to_log", "{}"),
    "ssh": (SSH, 102, "log", "INFO:asyncssh:{}"),
    "ssh_failed": (SBATCH, 256, "_do_agent_start", "error={} stack={}"),
    "server_listening": ("sirepo/pkcli/service.py", 196, "tornado", "ip=127.0.0.1 port={}"),
    "route_start": (ROUTER, 348, "_log", "start ip={} uri={} proto={} HTTP/1.1 ref= ua={}"),
    "route_end": (ROUTER, 348, "_log", "end ip={} uri={} uid={} status={} ms={:.2f}"),
    "api": (SERVER, 301, "_args", "api={} runDir={}"),
    "agent": (AGENT, 109, "start", "{}"),
    "arrived": (AGENT, 487, "_op", "opName={} o={} runDir={}"),
    "program": (AGENT, 848, "start", "cmd={} stdin={}"),
    "program_exited": (AGENT, 868, "_on_exit", "{} returncode={}"),
    "program_killed": (AGENT, 830, "kill", "{}"),
    "program_stderr": (AGENT, 909, "_read_stream", "cmd={} stderr={}"),
    "program_waited": (AGENT, 759, "_await_exit", "{} exit={} stderr={}"),
    "run_status": (AGENT, 566, "_op_run_status", "reply={} computeJid={}"),
    "scancel": (AGENT, 1149, "_scancel", "sbatch_id={}"),
    "fastcgi_closed": (AGENT, 467, "_fastcgi_loop",
        "msg={} stream closed unexpectedly exception=Stream is closed real_error=None"),
    "socket_lost": (AGENT, 267, "_connect_and_loop", "websocket closed in response to len={} send={}"),
    "gave_up": (AGENT, 304, "loop", "terminating after connection attempts={}"),
    "job_cmd_failed": ("sirepo/pkcli/job_cmd.py", 67, "default_command",
        "exception={} jobCmd=compute simType={} stack={}"),
}  # fmt: skip
"""File, line number, function and text of each line; placeholders are filled in order."""


class Line(NamedTuple):
    """A line ready to be filled: the call site as it is written, and the text."""

    site: str
    text: str


def lines_of(site_packages: str) -> Mapping[str, Line]:
    return {
        name: Line(f"{site_packages}{file}:{number}:{function} ", text)
        for name, (file, number, function, text) in LINES.items()
    }
