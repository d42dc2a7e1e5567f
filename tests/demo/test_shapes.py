"""The simulated supervisor writes, for each kind of job, the lines that the captured one wrote, in order."""

import json
import re
from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from jobtui.demo.incidents import DemoIncident, Scenario
from jobtui.demo.programs import Model, Plan
from jobtui.model.clock import SECOND, Nanos
from tests.demo.sites import DriverName, Settings
from tests.demo.workload import WatchedWorld
from tests.rows import FIXTURES, table

LINE = re.compile(
    r"^(?:(?P<mon>[A-Z][a-z]{2}) (?P<day>\d\d) (?P<hms>\d\d:\d\d:\d\d) (?P<pid> *\d+) (?P<thr> *\d+) )?"
    r"(?P<file>\S+?):(?P<line>\d+):(?P<func>[\w<>]+) (?P<msg>.*)$"
)
DRIVER = re.compile(r"(\w+Driver)\(a=\w{4} k=(sequential|parallel) u=\w{4} \[.*?\]\)(?=[ ]|$)")
JOB = re.compile(r"_ComputeJob\(\S+ u=\w+ (\w+) \[.*?\]\)(?=[ ]|$)")
OP = re.compile(r"_Op\((DESTROYED, )?(\w+), (\w{4})(?:, internal_error=[^)]*)?\)")
_REPLACED = (
    (re.compile(r"'?\w{8}-(?:\w{8}|_1_st\w+)-\w+'?"), "JID"),
    (re.compile(r"(runDir=)/\S+"), r"\1DIR"),
    (re.compile(r"(max_run_secs=)\S+"), r"\1N"),
    (re.compile(r"('opId': )'\w+'"), r"\1ID"),
    (re.compile(r"(method=)\w+"), r"\1M"),
    (re.compile(r"(error msg=\{).*"), r"\1"),
    (re.compile(r"(\bo=)\w{4}"), r"\1OP"),
    (re.compile(r"('computeModel': |'simulationId': )'\w+'"), r"\1X"),
)
AGENT_START = ("await=_do_agent_start", "await _do_agent_start", "await _websocket_ready", "websocket alive")
"""What a line about an op ends in when its agent is not there yet."""


def shape(message: str) -> str:
    message = JOB.sub(r"JOB(\1)", message)
    message = DRIVER.sub(r"\1(\2)", message)
    message = OP.sub(r"OP(\1\2)", message)
    for pattern, replacement in _REPLACED:
        message = pattern.sub(replacement, message)
    return message


def of_job(log: str, jid: str, ops: Iterable[str]) -> list[str]:
    """The shapes of the supervisor's lines about a job or one of its ops, repeats of progress once."""
    prefixes = "|".join(ops) or "----"
    about_op = re.compile(
        rf"(?:_Op\((?:DESTROYED, )?\w+, (?:{prefixes})\b|\bo=(?:{prefixes})$|'opId': '(?:{prefixes}))"
    )
    found: list[str] = []
    update = ""
    for match in filter(None, map(LINE.match, log.splitlines())):
        message = match["msg"]
        if not _from_supervisor(match["file"], match["func"], message):
            continue
        if message.endswith("opName=run_status_update o=None"):
            update = shape(message)
            continue
        if message.startswith(("new status=", "same status=")) and jid in message:
            found.append(update)
        bare = DRIVER.sub(r"\1(\2)", JOB.sub("", message))
        if (jid in message or about_op.search(bare)) and not message.endswith(AGENT_START):
            found.append(shape(message))
    return _once(found)


def _from_supervisor(file: str, function: str, message: str) -> bool:
    ours = file.endswith(("job_supervisor.py", "__init__.py"))
    return ours and not message.startswith("class=") and function not in {"_write", "_incoming"}


def _once(shapes: list[str]) -> list[str]:
    """Progress (an update and `same status=running`) that comes several times in a row, once."""
    kept: list[str] = []
    for index, text in enumerate(shapes):
        if text.startswith("same status=running") and kept[-3:-1] == [text, shapes[index - 1]]:
            kept.pop()
            continue
        kept.append(text)
    return kept


ACTS = table("demo_acts")
MODELS = {"report": ("myapp", "heightWeightReport"), "animation": ("elegant", "animation")}
IDLE = Settings(users=0, slots_parallel=1, slots_sequential=1)
SITES = {
    "local": replace(IDLE, max_secs_sequential=20),
    "docker": replace(IDLE, driver=DriverName.DOCKER, hosts=("v1.sirepo.example",), pid_time=False),
    "sbatch": replace(IDLE, sbatch_users=1),
}


class Acted(Scenario):
    """A scenario with what only the client of the captures did."""

    def plan(self, model: Model, seconds: float, ending: str) -> Plan:
        return replace(super().plan(model, seconds, ending), frames=1 if seconds > 100 else 10)

    async def another(self) -> None:
        self._simulation = None

    async def login(self, password: str) -> None:
        await self.browser.login(await self.own(), good=password == "good")

    async def stop_others(self) -> None:
        """Let those who hold slots stop a while later."""
        for browser, other in self.others:
            self.world.kernel.later(12, partial(self.world.play, partial(browser.cancel, other)))

    async def compute(self) -> None:
        await self.browser.compute("myapp", "global_resources")
        self.jid = f"{self.user.uid}-_1_stlss-global_resources"


def play(job: dict[str, Any], settings: Settings) -> tuple[WatchedWorld, str]:
    """Act out what was asked for, on an otherwise idle site; the site afterwards, and the jid."""
    act = " ".join(job["asked"])
    kind = "animation" if job["isParallel"] or act not in ACTS["report"] else "report"
    steps = ("open", "wait 3", *ACTS[kind][act])
    queued_s = 3.0 if "start 500" in steps else 0.5
    model, error = MODELS[kind], "a big ugly error"
    incident = DemoIncident(model=model, name="test", steps=steps, error=error, queued_s=queued_s)
    world = WatchedWorld(1, settings)
    world.start()
    scenario = Acted(world, world.add_user(on_cluster=act.startswith("sbatch")))
    finished = []

    async def script() -> None:
        await scenario.play(incident)
        finished.append(True)

    world.play(script)
    world.advance(Nanos(world.kernel.now + 1_000 * SECOND))
    assert finished, act
    assert scenario.jid is not None
    return world, scenario.jid


def _jobs(capture: str) -> dict[str, Any]:
    expected = FIXTURES / "sirepo" / capture / "expected.json"
    jobs: dict[str, Any] = json.loads(expected.read_text())["jobs"]
    return jobs


@pytest.mark.parametrize(("capture", "jid"), [(site, jid) for site in SITES for jid in _jobs(site)])
def test_lines_truth_and_record_of_a_job_are_as_captured(capture: str, jid: str) -> None:
    job = _jobs(capture)[jid]
    log = (FIXTURES / "sirepo" / capture / "supervisor.log").read_text(errors="replace")
    captured = of_job(log, jid, [op["op"] for op in job["ops"]])

    world, simulated_jid = play(job, SITES[capture])

    ops = world.witness.of_job(simulated_jid)
    assert of_job(world.log("supervisor.log").decode(), simulated_jid, [op.op for op in ops]) == captured
    assert [(op.name, op.api, op.job_cmd, op.sends, op.replies) for op in ops] == [
        (o["opName"], o["api"], o["jobCmd"], o["sent"], o["replies"]) for o in job["ops"]
    ]
    record = world.records()[simulated_jid]
    assert record["status"] == job["finalStatus"]
    assert [entry["status"] for entry in record["history"]] == job["historyStatuses"]
    assert record["canceledAfterSecs"] == job["canceledAfterSecs"]
    assert (record["jobRunMode"], record["isParallel"]) == (job["jobRunMode"], job["isParallel"])
