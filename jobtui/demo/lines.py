"""The texts of log lines, as data: call site and message of every line that is written, by era.

Today's are those of Sirepo 20261015, checked against what it really wrote; those of 2020 follow the hand-made
examples of that time. Placeholders are filled in order.
"""

from collections.abc import Mapping
from typing import NamedTuple

from jobtui.demo.settings import Era, Settings

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

Entry = tuple[str, int, str, str]
"""File, line number, function and message."""

TODAY: Mapping[str, Entry | None] = {
    # supervisor
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
    "serial_differs": (
        SUPERVISOR,
        871,
        "_process_run_status_update",
        "{} db.computeJobSerial={} does not match msg.computeJobSerial={}, ignoring",
    ),
    "already_exited": (
        SUPERVISOR,
        880,
        "_process_run_status_update",
        "ignoring state={} already in exit state={} msg={}",
    ),
    "inactive_job": (SUPERVISOR, 459, "agent_receive", "inactive job jid={} msg={}"),
    "cancel": (SUPERVISOR, 664, "_eval_args_and_destroy_op", "{} cancel args={}"),
    "cancel_failed": (SUPERVISOR, 673, "_cancel_op_or_job", "{} prepare_send failed op={}"),
    "cancel_exception": (SUPERVISOR, 682, "_cancel_op_or_job", "exception={} stack={}"),
    "cancel_ignored": (
        SUPERVISOR,
        942,
        "_receive_api_runCancel",
        "{} ignoring cancel, not running req_is_invalid",
    ),
    "max_run_secs": (SUPERVISOR, 1365, "_timeout", "{} max_run_secs={}"),
    "reload": (SUPERVISOR, 694, "_create", "canceling after reload jid={} {}"),
    "run_exception": (SUPERVISOR, 1020, "_receive_api_runSimulation", "{} exception={}"),
    "run_fault": (
        SUPERVISOR,
        1025,
        "_receive_api_runSimulation",
        "{} db updated during send with exception={}",
    ),
    "incoming_fault": (COMMAND, 178, "_incoming", "exception={} handler={} content={}"),
    "incoming_stack": (COMMAND, 179, "_incoming", "{}"),
    "run_op_changed": (
        SUPERVISOR,
        1040,
        "_receive_api_runSimulation",
        "{} _run_status_op changed during call to agent, ignoring state",
    ),
    "status_change": (SUPERVISOR, 1162, "_update_db", "{} status change reply={}"),
    "sbatch_unknown": (SUPERVISOR, 1171, "_update_db", "{} normal sbatch case reply={}"),
    "status_op_changed": (
        SUPERVISOR,
        1202,
        "_start_run_status_op",
        "{} run_status_op changed during request, ignoring reply={}",
    ),
    "status_db_updated": (
        SUPERVISOR,
        1212,
        "_start_run_status_op",
        "{} db updated during run_status, ignoring reply={}",
    ),
    "socket_open": (COMMAND, 99, "open", "uri=/job-agent-websocket remote_ip=127.0.0.1 "),
    "access": (WEB, 2591, "log_request", "{}:tornado.access:{} {} (127.0.0.1) {:.2f}ms"),
    # drivers
    "driver": (DRIVER, 97, "__init__", "{}"),
    "start_agent": (DRIVER, 401, "_agent_start", "{} {} await=_do_agent_start"),
    "start_agent_error": (DRIVER, 412, "_agent_start", "{} error={} stack={}"),
    "exec_dir": (LOCAL, 118, "_do_agent_start", "{} agent_exec_dir={}"),
    "await_agent": (DRIVER, 297, "_agent_ready", "{} {} await _websocket_ready"),
    "agent_there": (DRIVER, 299, "_agent_ready", "{} {} websocket alive"),
    "destroyed_waiting": (DRIVER, 301, "_agent_ready", "after websocket_ready op={} destroyed"),
    "destroyed_starting": (DRIVER, 295, "_agent_ready", "after agent_start op={} destroyed"),
    "slots_destroyed": (DRIVER, 459, "_alloc_check", "op={} is destroyed"),
    "send": (DRIVER, 185, "send", "{} {} runDir={}"),
    "send_error": (DRIVER, 192, "send", "error={} op={} stack={}"),
    "message": (DRIVER, 337, "_log", "{} opName={} o={}"),
    "message_error": (DRIVER, 335, "_log", "{} error msg={}"),
    "message_stderr": (DRIVER, 391, "_agent_receive_job_cmd_stderr", "{} stderr from job_cmd msg={}"),
    "not_prepared": (
        DRIVER,
        347,
        "_reply",
        "{} op not in prepared_sends opName={} o={} content={}",
    ),
    "unknown_agent": (DRIVER, 176, "receive", "unknown agent, sending kill; msg={}"),
    "socket_closed": (DRIVER, 213, "websocket_on_close", "{}"),
    "free": (DRIVER, 483, "_start_free_resources", "{} caller={}"),
    "not_ready": (DRIVER, 230, "_websocket_ready_timeout_handler", "{} timeout={}"),
    "idle": (DRIVER, 491, "_kill_if_idle", "{}"),
    "kill_local": (LOCAL, 86, "kill", "{} pid={}"),
    "agent_exited": (LOCAL, 111, "_agent_on_exit", "{} returncode={}"),
    "exec_dir_docker": (DOCKER, 247, "_do_agent_start", "{} agent_exec_dir={}"),
    "run_docker": None,
    "enter_op": None,
    "enter_run_dir": None,
    "enter_cpu": None,
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
    # API server
    "server_listening": ("sirepo/pkcli/service.py", 196, "tornado", "ip=127.0.0.1 port={}"),
    "route_start": (ROUTER, 348, "_log", "start ip={} uri={} proto={} HTTP/1.1 ref= ua={}"),
    "route_end": (ROUTER, 348, "_log", "end ip={} uri={} uid={} status={} ms={:.2f}"),
    "api": (SERVER, 301, "_args", "api={} runDir={}"),
    # agents
    "agent": (AGENT, 109, "start", "{}"),
    "arrived": (AGENT, 487, "_op", "opName={} o={} runDir={}"),
    "program": (AGENT, 848, "start", "cmd={} stdin={}"),
    "program_exited": (AGENT, 868, "_on_exit", "{} returncode={}"),
    "program_killed": (AGENT, 830, "kill", "{}"),
    "program_stderr": (AGENT, 909, "_read_stream", "cmd={} stderr={}"),
    "program_waited": (AGENT, 759, "_await_exit", "{} exit={} stderr={}"),
    "run_status": (AGENT, 566, "_op_run_status", "reply={} computeJid={}"),
    "serial_unexpected": (AGENT, 537, "_reply", "expected computeJobSerial={} in msg={}"),
    "scancel": (AGENT, 1149, "_scancel", "sbatch_id={}"),
    "fastcgi_closed": (
        AGENT,
        467,
        "_fastcgi_loop",
        "msg={} stream closed unexpectedly exception=Stream is closed real_error=None",
    ),
    "socket_lost": (AGENT, 267, "_connect_and_loop", "websocket closed in response to len={} send={}"),
    "gave_up": (AGENT, 304, "loop", "terminating after connection attempts={}"),
    "template": ("sirepo/template/{app}.py", 123, "write_parameters", "{}"),
    "job_cmd_failed": (
        "sirepo/pkcli/job_cmd.py",
        67,
        "default_command",
        "exception={} jobCmd=compute simType={} stack={}",
    ),
}

Y2020: Mapping[str, Entry | None] = {
    "api": (SERVER, 201, "_request", "api={} runDir={}"),
    "request": (SUPERVISOR, 190, "receive", "{}"),
    "analysis": None,
    "op": (SUPERVISOR, 640, "__init__", "{} runDir={}"),
    "assigned": None,
    "await_reply": (SUPERVISOR, 668, "reply_get", "{} await _reply_q.get()"),
    "no_reply": None,
    "enter": None,
    "exit": None,
    "new_status": None,
    "same_status": None,
    "enter_op": (DRIVER, 265, "_slots_ready", "{} {} await op_q.get()"),
    "enter_run_dir": (SUPERVISOR, 512, "_send_with_single_reply", "{} await self.run_dir_mutex"),
    "enter_cpu": (DRIVER, 271, "_slots_ready", "{} await cpu_slot_q.get()"),
    "cancel": (SUPERVISOR, 441, "_receive_api_runCancel", "{} cancel=[{}]"),
    "cancel_ignored": None,
    "max_run_secs": (SUPERVISOR, 690, "_timeout", "{} maxRunSecs={}"),
    "reload": None,
    "socket_open": (COMMAND, 85, "open", "uri=/job-agent-websocket remote_ip=127.0.0.1 "),
    "driver": (DRIVER, 83, "__init__", "{}"),
    "start_agent": (DRIVER, 320, "_agent_start", "{} {} await _do_agent_start"),
    "exec_dir": (LOCAL, 110, "_do_agent_start", "{} agent_exec_dir={}"),
    "await_agent": (DRIVER, 205, "prepare_send", "{} {} await _websocket_ready"),
    "agent_there": None,
    "send": (DRIVER, 231, "send", "{} {} runDir={}"),
    "message": (DRIVER, 378, "_receive", "{} opName={} o={}"),
    "message_error": (DRIVER, 374, "_receive", "{} error msg={}"),
    "run_docker": (DOCKER, 180, "_cmd", "{} running: {}"),
    "exec_dir_docker": None,
    "container": (DOCKER, 170, "_do_agent_start", "{} cname={} cid={}"),
    "agent": (AGENT, 66, "start", "{}"),
    "arrived": (AGENT, 190, "_op", "opName={} o={} runDir={}"),
    "program": (AGENT, 588, "start", "cmd={} stdin={}"),
    "program_exited": (AGENT, 612, "_on_exit", "{} returncode={}"),
    "program_killed": (AGENT, 574, "kill", "{}"),
    "program_stdout": (AGENT, 640, "_read_stream", "cmd={} stdout={}"),
}


class Line(NamedTuple):
    """A line ready to be filled: the call site as it is written, and the message."""

    site: str
    text: str


Catalog = Mapping[str, Line | None]
"""Lines by name; None for those that this era does not write."""


def catalog(settings: Settings, *, agent: bool = False) -> Catalog:
    """The lines as a supervisor or server (or an agent) of this site writes them."""
    entries = dict(TODAY)
    prefix = settings.agent_site_packages if agent else settings.site_packages
    if settings.era is Era.Y2020:
        entries.update(Y2020)
        prefix = ""
    return {
        name: entry and Line(f"{prefix}{entry[0]}:{entry[1]}:{entry[2]} ", entry[3])
        for name, entry in entries.items()
    }
