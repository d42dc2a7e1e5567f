"""Evidence for tests: out of captures and simulated incidents, with or without some of their sources."""

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from jobtui.analysis.correlation.correlator import Correlator
from jobtui.analysis.explain.case import Evidence, Flaps, lines_wanted
from jobtui.analysis.incidents import Grouping, Incidents, Sample
from jobtui.backends.base import Batch
from jobtui.backends.job_reader import SessionJobReader
from jobtui.backends.sirepo.records import read_detail
from jobtui.demo.incidents import INCIDENTS, play
from jobtui.demo.site import SERVER_LOG, SUPERVISOR_LOG, DriverName, Settings
from jobtui.demo.world import World
from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.health import SourceHealth, SourceState
from jobtui.model.ids import JobId
from jobtui.model.job_reader import Reached
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.verdicts import Code, Verdict
from jobtui.session.evidence import Gatherer
from jobtui.store.store import Store

RECORD_CHARACTERS = 6_000
"""How much behind a line is taken for its record."""


def evidence_of(jid: str, logs: Mapping[str, bytes], detail: JobDetail | None, now: Nanos) -> Evidence:
    job_id = JobId(jid)
    correlator = Correlator()
    for name, data in logs.items():
        correlator.feed(LogParser(name).parse(data, 0, 1, Nanos(now + SECOND)).records)
    ops = correlator.ops_of(job_id)
    database = SourceHealth(name="db", kind="sirepo_db", state=SourceState.OK)
    return Evidence(
        job_id=job_id,
        now=now,
        job=detail.job if detail is not None else None,
        detail=detail,
        sources=(database,) if detail is not None else (),
        heard=correlator.heard,
        ops=ops,
        agents={agent.agent: agent for agent in correlator.agents()},
        flaps=Flaps(correlator.agents()),
        texts={
            (step.source, step.line): _text_at(logs[step.source], step.offset) for step in lines_wanted(ops)
        },
        restarted_ops=correlator.restarted_ops(job_id),
    )


def gatherer_of(correlator: Correlator, jobs: Iterable[Job], now: Nanos) -> Gatherer:
    """What gathers evidence out of these logs and records; no line is read again."""
    store = Store(correlator, FixedClock(now))
    store.add_source("db", "sirepo_db")
    store.apply("db", Batch(cursor="", jobs=tuple(jobs)))
    return Gatherer(store, SessionJobReader(lambda: (), _reach_back), now)


def samples_of(gatherer: Gatherer, jobs: Iterable[Job]) -> list[Sample]:
    """These jobs as incidents look at them."""

    async def all_samples() -> list[Sample]:
        return [await gatherer.sample(job) for job in jobs]

    return asyncio.run(all_samples())


def check_incidents_say_the_same(
    verdict: Verdict, sample: Sample | None, blind_spots: tuple[str, ...] = ()
) -> None:
    """What incidents tell of a job is the verdict; what they do not tell is no sure failure.

    What is doubted about it they doubt too, or the source that it rests on.
    """
    said = sample.verdict if sample is not None else None
    if sample is not None and said is not None and sample.is_told:
        assert (said.code, said.confidence, said.sentence) == (
            verdict.code, verdict.confidence, verdict.sentence,
        )  # fmt: skip
        return
    assert sample is None or not verdict.is_reliably_bad, verdict
    assert not verdict.doubts or blind_spots or (said is not None and said.doubts), verdict


def incidents(samples: Iterable[Sample]) -> Incidents:
    grouping = Grouping()
    for sample in samples:
        grouping.add(sample)
    return grouping.found()


async def _reach_back(at: Nanos, progress: Callable[[Reached], None]) -> bool:
    return False


def _text_at(data: bytes, offset: int) -> str:
    return data[offset : offset + RECORD_CHARACTERS].decode("utf-8", "replace")


def record_in(folder: Path, jid: str) -> JobDetail | None:
    path = folder / "supervisor-job" / f"{jid}.json"
    if not path.exists():
        return None
    return read_detail(path.read_bytes(), JobId(jid), 0, "db", str(path))


def written_at(detail: JobDetail | None) -> Nanos:
    return Nanos((detail.job.written_at if detail is not None else None) or 0)


class Played:
    def __init__(self, name: str, seed: int, driver: DriverName, played_s: int) -> None:
        docker = driver is DriverName.DOCKER
        settings = Settings(users=2, sbatch_users=1, driver=driver)
        if docker:
            settings = msgspec.structs.replace(settings, slots_parallel=1)
        world = World(seed, settings)
        world.start()
        scenario = play(world, name)
        world.advance(Nanos(world.kernel.now + played_s * SECOND))
        self.jid = scenario.jid or ""
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

    def evidence(self, without: str = "") -> Evidence:
        """What is known of it, without one of its sources, or with a log that is cut."""
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
        return evidence_of(self.jid, logs, detail, self.now)

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

    def evidence_with(self, logs: Mapping[str, bytes]) -> Evidence:
        return evidence_of(self.jid, logs, self.detail, self.now)


def _line_end(log: bytes, near: int) -> int:
    return log.rfind(b"\n", 0, near) + 1


@lru_cache(64)  # each is half a megabyte
def played(name: str, seed: int, driver: DriverName, played_s: int) -> Played:
    return Played(name, seed, driver, played_s)


ASKED = {
    "ok": Code.COMPLETED,
    "anim": Code.COMPLETED,
    "error": Code.PROGRAM_FAILED,
    "cancel": Code.CANCELED_BY_USER,
    "rerun": Code.COMPLETED,
    "queue": Code.COMPLETED,
    "queue-head": Code.CANCELED_BY_USER,
    "stateless": Code.NEVER_RUN,
    "missing": Code.NEVER_RUN,
    "oom": Code.KILLED_BY_SIGNAL,
    "timeout": Code.TIMED_OUT,
    "download": Code.COMPLETED,
    "rundir-gone": Code.RUN_DIR_GONE,
    "nomodel": Code.PREPARE_FAILED,
    "agentdeath": Code.AGENT_LOST,
    "restart": Code.SUPERVISOR_RESTARTED,
    "sbatch-nologin": Code.SBATCH_LOGIN_NEEDED,
    "sbatch-ok": Code.COMPLETED,
    "sbatch-error": Code.SBATCH_FAILED,
    "sbatch-cancel": Code.CANCELED_BY_USER,
    "sbatch-after-restart": Code.SUPERVISOR_RESTARTED,
    # Found again on the cluster after the restart, and then canceled by whoever made the capture
    "sbatch-reattach": Code.CANCELED_BY_USER,
}
"""What each thing that a capture's client meant to provoke leaves; of several the last one counts."""
CONFIDENT = 0.8
Spoil = Callable[[bytes], bytes]


def without(*words: str) -> Spoil:
    pattern = re.compile("|".join(words).encode())
    return lambda log: b"".join(line for line in log.splitlines(keepends=True) if not pattern.search(line))


def up_to(words: str) -> Spoil:
    """A log that ends after the first line that holds this."""
    pattern = re.compile(rb"\A.*?" + words.encode() + rb"[^\n]*\n", re.DOTALL)

    def cut(log: bytes) -> bytes:
        found = pattern.match(log)
        assert found is not None
        return found[0]

    return cut
