"""Records for tests, each valid as it is: a test names only what it is about."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import count
from typing import Any, TypeVar

from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import AgentPrefix, JobId
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.ops import Agent, AgentState, Certainty, Component, Op, OpStatus, Step
from jobtui.model.slurm import Cluster, Controller, Node, Partition
from jobtui.render.spans import Line
from tests.conftest import NOW
from tests.hostile.texts import TEXTS
from tests.rows import table

HOSTILE = tuple(text for name, text in TEXTS.items() if name not in ("empty", "blank", "secret"))
"""Text that wants to be markup, drive the terminal or break the columns."""

_keys = count(1)
T = TypeVar("T")


def job_id(number: int = 0, *, model: str = "heightWeightReport", uid: str = "EPRSqtUW") -> JobId:
    return JobId(f"{uid}-{number:08d}-{model}")


def ago(seconds: float) -> Nanos:
    return Nanos(NOW - round(seconds * SECOND))


def fields_of(table: Mapping[str, Any], words: Mapping[str, type[StrEnum]]) -> dict[str, Any]:
    """The fields of a record as a table of `fixtures/*.toml` has them: how long ago times are, in seconds."""
    return {
        key: ago(value) if key.endswith("_at") or key == "since" else words.get(key, type(value))(value)
        for key, value in table.items()
    }


USUAL = table("builders")
JOB = fields_of(USUAL["job"], {"status": JobStatus})
STEP = fields_of(USUAL["step"], {"component": Component, "certainty": Certainty})
OP = fields_of(USUAL["op"], {"status": OpStatus})
AGENT = fields_of(USUAL["agent"], {"state": AgentState})


def a_job(number: int = 0, /, **fields: Any) -> Job:
    """A job that runs since a minute; its id is made of `number`."""
    values = {**JOB, "id": job_id(number), "name": f"heights {number}", **fields}
    values.setdefault("native_status", str(values["status"]))
    return Job(**values)


def a_step(step: str = "create", after_s: float = 0.0, /, **fields: Any) -> Step:
    """A step in the supervisor's log, `after_s` seconds after a minute ago."""
    at, line = Nanos(ago(60) + round(after_s * SECOND)), 100 + round(after_s)
    return Step(step=step, **{**STEP, "at": at, "text": f"_Op(run, pb5u) {step}", "line": line, **fields})


def an_op(name: str = "run", /, steps: Sequence[Step] = (), **fields: Any) -> Op:
    return Op(name=name, **{**OP, "key": next(_keys), "jid": job_id(), "steps": tuple(steps), **fields})


def an_agent(prefix: str = "WUt4", /, **fields: Any) -> Agent:
    return Agent(agent=AgentPrefix(prefix), **{**AGENT, **fields})


def a_cluster(source: str = "/srv/db") -> Cluster:
    """Four nodes: one drained, one down, one with the job that runs on it, one without."""
    broken = {"reason": "disk: replace sda", "by": "root", "since": ago(5_400)}
    nodes = (
        Node(name="v1", states="IDLE DRAIN", partitions="debug", cpus=32, memory_mb=8_000, **broken),  # type: ignore[arg-type]
        Node(name="v2", states="DOWN NOT_RESPONDING", partitions="debug", cpus=32, since=ago(60)),
        Node(name="v3", states="IDLE", partitions="debug,gpu", cpus=32, gres="gpu:2", features="fast"),
        Node(name="v4", states="MIXED", partitions="gpu", cpus=32, cpus_used=8, memory_mb=64_000,
             memory_used_mb=2_048, gres="gpu:2", gres_used="gpu:1"),
    )  # fmt: skip
    partitions = (
        Partition(name="debug", state="UP", nodes=3, cpus=96, limit_s=3_600.0),
        Partition(name="gpu", state="DOWN", nodes=2, cpus=64, most_nodes=1),
    )
    controller = Controller(dbd_backlog=7, cycle_ms=0.2, backfill_ms=4.2, backfill_at=ago(9), queued=20)
    return Cluster(source=source, at=ago(12), nodes=nodes, partitions=partitions, controller=controller)


def text_of(line: Line) -> str:
    return "".join(span.text for span in line)


def some(value: T | None) -> T:
    """It, which a test knows to be there."""
    assert value is not None
    return value
