"""Lines of a supervisor, its drivers, agents and API server: by hand, and tables of them as TOML."""

import re
import shlex
from collections.abc import Iterable, Mapping

from jobtui.analysis.correlation.correlator import Correlator
from jobtui.analysis.explain.verdict import Disputes
from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job
from jobtui.model.ops import Correlation, Op
from tests.analysis import lines as wording
from tests.analysis.explain.cases import gatherer_of
from tests.rows import table

START = Nanos(1_795_206_870 * SECOND)
"""Nov 20 20:34:30 of 2026, the time of the first line."""
JID = JobId("VUlhaMOD-HrCJ26rQ-activityAnimation")
RUN_DIR = "/srv/sirepo/db/user/VUlhaMOD/myapp/HrCJ26rQ/activityAnimation"
AGENT = "DockerDriver(a=t7K7 k=parallel u=VUlh [])"
FULL = "abcdGVQWSyiQwwSkEwoSbQmEXoUSP7Tx"
"""A full op id."""


class Log:
    """One log file as it grows. `seconds` is how long after START its first line is written."""

    def __init__(self, name: str = "supervisor.log", seconds: int = 0, pid: int = 30_699) -> None:
        self.name = name
        self._parser = LogParser(name)
        self.pid = pid
        self._at = seconds
        self._offset = 0
        self._line = 1

    def feed(self, correlator: Correlator, messages: Iterable[str]) -> set[JobId]:
        """Let these messages be written and read. `func> message` says which function wrote it."""
        block = "".join(self._written(message) for message in messages).encode()
        parsed = self._parser.parse(block, self._offset, self._line, Nanos(START + 86_400 * SECOND))
        self._offset += len(block)
        self._line += parsed.lines
        return correlator.feed(parsed.records)

    def _written(self, message: str) -> str:
        func, _, text = message.rpartition("> ")
        minute, second = divmod(34 * 60 + 30 + self._at, 60)
        self._at += 1
        time = f"Nov 20 {20 + minute // 60:02}:{minute % 60:02}:{second:02}"
        return f"{time} {self.pid:5}     0 sirepo/job_supervisor.py:1:{func or 'f'} {text}\n"


def correlated(*messages: str) -> Correlator:
    """What is known after a supervisor wrote these."""
    correlator = Correlator()
    Log().feed(correlator, messages)
    return correlator


def created(name: str, op: str, run_dir: str = RUN_DIR) -> str:
    return f"_Op({name}, {op}) runDir={run_dir}"


def assigned(name: str, op: str, agent: str = AGENT) -> str:
    return f"assigned driver={agent} to op=_Op({name}, {op})"


def sent(name: str, op: str, agent: str = AGENT, run_dir: str = RUN_DIR) -> str:
    return f"{agent} _Op({name}, {op}) runDir={run_dir}"


def message(op_name: str, op: str = "None", agent: str = AGENT) -> str:
    return f"{agent} opName={op_name} o={op}"


def job(status: str = "running", ops: str = "", jid: str = JID) -> str:
    return f"_ComputeJob({jid} u={jid[:8]} {status} [{ops}])"


def begun(name: str = "run", op: str = "abcd", run_dir: str = RUN_DIR) -> list[str]:
    """An op up to where its agent has it."""
    return [created(name, op, run_dir), assigned(name, op), sent(name, op, run_dir=run_dir)]


def update(status: str, which: str = "new") -> list[str]:
    """An agent's news of a run, and what the supervisor makes of it."""
    return [message("run_status_update"), f"{which} status={status} {job('pending')}"]


def arrived(name: str = "run", op: str = "abcd", run_dir: str = RUN_DIR) -> str:
    return f"opName={name} o={op} runDir={run_dir}"


def cmd(op: str = "abcd", jid: str = JID, kind: str = "_Cmd", agent: str = "t7K7") -> str:
    return f"{kind}(a={agent} jid={jid} o={op} job_cmd=compute run_dir=/srv/x)"


def steps_of(op: Op) -> list[str]:
    return [step.step for step in op.steps]


def the_op(correlator: Correlator, name: str = "run") -> Op:
    (found,) = [op for op in correlator.ops() if op.name == name]
    return found


def looked_at(
    disputes: Disputes, knows: Correlation, jobs: Mapping[JobId, Job], at: Nanos, budget_s: float = 10.0
) -> set[JobId]:
    """What is found when it is looked at this time in a store that knows these jobs."""
    return disputes.look(jobs, at, gatherer_of(knows, jobs.values(), at).is_disputed, budget_s)


TABLES = table("correlation")
AGENTS_LOGS = {"agent.log", "container.log", "copy.log"}
LOG = "/var/log/supervisor.log"
OTHER_DIR = RUN_DIR.replace("HrCJ26rQ", "4u2Pj0fB")
STARTED = "start> cmd=('/bin/bash', '-l') stdin=b\"source $HOME/.bashrc"
NAMES = {
    "JID": JID, "AGENT": AGENT, "FULL": FULL, "DIR": RUN_DIR, "NEXT_DIR": OTHER_DIR, "LOG": LOG,
    "NEXT": JID.replace("HrCJ26rQ", "4u2Pj0fB"), "STARTED": STARTED,
    "RESTART": "default_command> ip=127.0.0.1 port=8001",
    "STARTS": f"{AGENT} _Op(begin_session, sess) await=_do_agent_start",
    "WITH_RUN": AGENT.replace("[]", "[_Op(run, abcd)]"), "GONE": f"websocket_on_close> {AGENT}",
    "EXEC_DIR": "agent_exec_dir=/srv/db/user/VUlhaMOD/agent-docker/v4.example.org/srj-p-VUlhaMOD",
    "SLOT": "Waiting for CPU resources await=cpu_slot",
}  # fmt: skip


def filled(text: str) -> str:
    """A text with what its names stand for."""
    text = re.sub(r"\{cmd ?([^}]*)\}", lambda m: cmd(**dict(w.split("=") for w in m[1].split())), text)
    text = re.sub(r"\{job (\w+) ?([^}]*)\}", lambda m: wording.job(m[1], m[2]), text)
    return re.sub(r"\{([A-Z_]+)\}", lambda match: NAMES[match[1]], text)


def written(line: str) -> list[str]:
    """The lines that a line of the tables stands for."""
    if not line.startswith("!"):
        return [filled(line)]
    what, *given = shlex.split(line[1:])
    words = [filled(word) for word in given]
    match what:
        case "begun" | "update":
            return list(getattr(wording, what)(*words))
        case "idle":
            return ["f> x"] * int(words[0])
        case "arrived":
            return [f"_op> {arrived(*words)}"]
        case "agent":
            starts = "start> {'agent_id': 't7K7Gov6a5UmCGYNsiZFC9Eir3jSge4x', 'dev_source_dirs': False}"
            ends = f"_on_exit> _Process(pid=31 cmd={cmd()}) returncode=0"
            return [starts, f"_op> {arrived()}", STARTED, ends]
    return [getattr(wording, what)(*words)]


def read(texts: list[str]) -> tuple[Correlator, set[JobId]]:
    """What is known after these lines, and the jobs of which those after the last `@` or `|` were news."""
    correlator, changed = Correlator(), set[JobId]()
    log, said = Log(), list[str]()
    logs = {log.name: log}
    for text in [*texts, "|"]:
        if text[0] not in "@|":
            said += written(text)
            continue
        changed = log.feed(correlator, said) if said else changed
        said = []
        name, _, seconds = filled(text[1:]).partition(" ")
        if name and (seconds or name not in logs):
            logs[name] = Log(name, int(seconds or 0), 77 if name in AGENTS_LOGS else 30_699)
        log = logs.get(name, log)
    return correlator, changed
