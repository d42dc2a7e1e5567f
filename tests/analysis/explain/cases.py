"""Cases for tests: out of captures and simulated incidents, with or without some of their sources."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from jobtui.analysis.correlate import Correlator
from jobtui.analysis.explain.case import Case
from jobtui.analysis.explain.gather import coverage_of, gather, lines_wanted
from jobtui.backends.sirepo_record import read_detail
from jobtui.demo.incidents import INCIDENTS, play
from jobtui.demo.settings import DriverName, Settings
from jobtui.demo.world import SERVER_LOG, SUPERVISOR_LOG, World
from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import SourceHealth, SourceState
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobDetail

RECORD_CHARACTERS = 6_000
"""How much behind a line is taken for its record."""


def case_of(jid: str, logs: Mapping[str, bytes], detail: JobDetail | None, now: Nanos) -> Case:
    """The case of a job out of these logs and its record."""
    job_id = JobId(jid)
    correlator = Correlator()
    for name, data in logs.items():
        correlator.feed(LogParser(name).parse(data, 0, 1, Nanos(now + SECOND)).records)
    ops = correlator.ops_of(job_id)
    database = SourceHealth(name="db", kind="sirepo_db", state=SourceState.OK)
    return gather(
        job_id,
        now,
        coverage_of(correlator.heard, [database] if detail is not None else []),
        job=detail.job if detail is not None else None,
        runs=detail.runs if detail is not None else None,
        ops=ops,
        agents=correlator.agents(),
        behind={
            (step.source, step.line): _text_at(logs[step.source], step.offset) for step in lines_wanted(ops)
        },
        restarted_ops=correlator.restarted_ops(job_id),
    )


def _text_at(data: bytes, offset: int) -> str:
    return data[offset : offset + RECORD_CHARACTERS].decode("utf-8", "replace")


def record_in(folder: Path, jid: str) -> JobDetail | None:
    """The record of a job in a database."""
    path = folder / "supervisor-job" / f"{jid}.json"
    if not path.exists():
        return None
    return read_detail(path.read_bytes(), JobId(jid), 0, "db", str(path))


def written_at(detail: JobDetail | None) -> Nanos:
    """When a record was written."""
    return Nanos((detail.job.written_at if detail is not None else None) or 0)


class Played:
    """A simulated incident when it has been played: its logs, its record, and the time."""

    def __init__(self, name: str, seed: int, driver: DriverName, played_s: int) -> None:
        docker = driver is DriverName.DOCKER
        settings = Settings(users=2, sbatch_users=1, driver=driver)
        if docker:
            settings = msgspec.structs.replace(settings, slots_parallel=1)
        world = World(seed, settings)
        world.start()
        stage = play(world, name)
        world.advance(Nanos(world.kernel.now + played_s * SECOND))
        self.jid = stage.jid or ""
        self.now = world.kernel.now
        self.logs = {log: world.log(log) for log in (SUPERVISOR_LOG, SERVER_LOG)}
        self.records = {jid: json.dumps(one).encode() for jid, one in world.records().items()}
        record = world.records().get(self.jid)
        self.detail = (
            None
            if record is None
            else read_detail(json.dumps(record).encode(), JobId(self.jid), 0, "db", "record")
        )
        self.expected = INCIDENTS[name].verdict

    def case(self, without: str = "") -> Case:
        """Its case, without one of its sources, or with a log that is cut."""
        logs, detail = dict(self.logs), self.detail
        log = logs[SUPERVISOR_LOG]
        match without:
            case "record":
                detail = None
            case "all logs":
                logs = {}
            case "supervisor's log":
                del logs[SUPERVISOR_LOG]
            case "server's log":
                del logs[SERVER_LOG]
            case "agents' lines":
                lines = log.splitlines(keepends=True)
                logs[SUPERVISOR_LOG] = b"".join(line for line in lines if b"job_agent.py" not in line)
            case "second half":
                logs[SUPERVISOR_LOG] = log[: _line_end(log, len(log) // 2)]
            case "first half":
                logs[SUPERVISOR_LOG] = log[_line_end(log, len(log) // 2) :]
            case "middle":
                logs[SUPERVISOR_LOG] = (
                    log[: _line_end(log, len(log) // 3)] + log[_line_end(log, 2 * len(log) // 3) :]
                )
        return case_of(self.jid, logs, detail, self.now)

    def write(self, place: Path) -> list[str]:
        """Leave it as a site would have it; the flags that name it."""
        records = place / "supervisor-job"
        records.mkdir(parents=True)
        for jid, record in self.records.items():
            (records / f"{jid}.json").write_bytes(record)
        flags = ["--srdb", str(place)]
        for role, log in (("supervisor", SUPERVISOR_LOG), ("server", SERVER_LOG)):
            (place / log).write_bytes(self.logs[log])
            flags += ["--log", f"{role}={place / log}"]
        return flags

    def case_with(self, logs: Mapping[str, bytes]) -> Case:
        """Its case with other logs."""
        return case_of(self.jid, logs, self.detail, self.now)


def _line_end(log: bytes, near: int) -> int:
    return log.rfind(b"\n", 0, near) + 1


@cache
def played(name: str, seed: int, driver: DriverName, played_s: int) -> Played:
    """An incident, played once."""
    return Played(name, seed, driver, played_s)
