"""The tables of `tests/fixtures/correlation.toml`: what their lines stand for, and what comes of them."""

import re
import shlex
import tomllib

from jobtui.analysis.correlation.correlator import Correlator
from jobtui.model.ids import JobId
from tests.analysis import lines as wording
from tests.analysis.lines import AGENT, FULL, JID, RUN_DIR, Log, arrived, cmd
from tests.excerpts import FIXTURES

TABLES = tomllib.loads((FIXTURES / "correlation.toml").read_text())
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
