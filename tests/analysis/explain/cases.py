"""Evidence for tests, of captures, simulated incidents and jobs of Balsam; also without some sources."""

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec

from jobtui.analysis.explain.case import Evidence, Flaps, lines_wanted
from jobtui.analysis.incidents import Grouping, Incidents, Sample
from jobtui.backends.balsam.records import STATUSES
from jobtui.backends.base import Batch
from jobtui.backends.job_reader import JobReader
from jobtui.backends.sirepo.records import read_detail
from jobtui.demo.incidents import INCIDENTS, play
from jobtui.demo.site import SERVER_LOG, SUPERVISOR_LOG
from jobtui.model.changes import Allocation, Site, StateChange
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.health import SourceHealth, SourceState
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail, ReasonSeen
from jobtui.model.logs import Reached
from jobtui.model.ops import Correlation
from jobtui.model.verdicts import Code, Verdict
from jobtui.session.evidence import Gatherer
from jobtui.store.store import Store
from tests.analysis.captured import correlate
from tests.builders import ago
from tests.conftest import NOW
from tests.demo.sites import DriverName, Settings, World
from tests.rows import table

RECORD_CHARACTERS = 6_000
"""How much behind a line is taken for its record."""


def evidence_of(jid: str, logs: Mapping[str, bytes], detail: JobDetail | None, now: Nanos) -> Evidence:
    job_id = JobId(jid)
    correlator = correlate(logs, Nanos(now + SECOND))
    ops = correlator.ops_of(job_id)
    database = SourceHealth(name="db", kind="sirepo_db", state=SourceState.OK)
    behind = {(step.source, step.line): logs[step.source][step.offset :] for step in lines_wanted(ops)}
    return Evidence(
        job_id=job_id,
        now=now,
        job=detail.job if detail is not None else None,
        detail=detail,
        sources=(database,) if detail is not None else (),
        writers_read=correlator.writers_read,
        ops=ops,
        agents={agent.agent: agent for agent in correlator.agents()},
        flaps=Flaps(correlator.agents()),
        texts={at: data[:RECORD_CHARACTERS].decode("utf-8", "replace") for at, data in behind.items()},
        restarted_ops=correlator.restarted_ops(job_id),
    )


def detail_of(record: Mapping[str, object] | None, jid: str) -> JobDetail | None:
    """What a simulated site has in its record of a job."""
    return read_detail(json.dumps(record).encode(), JobId(jid), 0, "db", "record") if record else None


def jobs_of(world: World) -> list[Job]:
    found = (detail_of(record, jid) for jid, record in world.records().items())
    return [detail.job for detail in found if detail is not None]


def gatherer_of(correlator: Correlation, jobs: Iterable[Job], now: Nanos) -> Gatherer:
    """What gathers evidence out of these logs and records; no line is read again."""
    store = Store(correlator, FixedClock(now))
    for source, told in groupby(sorted(jobs, key=lambda job: job.source), lambda job: job.source):
        store.add_source(source, "sirepo_db")
        store.apply(source, Batch(jobs=tuple(told)))
    return Gatherer(store, JobReader(lambda: (), reach_back), now)


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
    if sample is not None and said is not None and said.code is Code.SUPERVISOR_RESTARTED:
        assert sample.restart
    if sample is not None and said is not None and sample.is_grouped:
        told = attrgetter("code", "confidence", "sentence")
        assert told(said) == told(verdict)
        return
    assert sample is None or not verdict.is_reliably_bad, verdict
    assert not verdict.doubts or blind_spots or (said is not None and said.doubts), verdict


def incidents(samples: Iterable[Sample]) -> Incidents:
    grouping = Grouping()
    for sample in samples:
        grouping.add(sample)
    return grouping.found()


async def reach_back(at: Nanos, progress: Callable[[Reached], None]) -> bool:
    """There is nothing before what was read."""
    return False


def record_in(folder: Path, jid: str) -> JobDetail | None:
    path = folder / "supervisor-job" / f"{jid}.json"
    if not path.exists():
        return None
    return read_detail(path.read_bytes(), JobId(jid), 0, "db", str(path))


def written_at(detail: JobDetail | None) -> Nanos:
    return Nanos((detail.job.written_at if detail is not None else None) or 0)


class Played:
    def __init__(self, name: str, seed: int, driver: DriverName, played_s: int) -> None:
        settings = Settings(users=2, sbatch_users=1, driver=driver)
        if driver is DriverName.DOCKER:
            settings = msgspec.structs.replace(settings, slots_parallel=1)
        world = World(seed, settings)
        world.start()
        scenario = play(world, name)
        world.advance(Nanos(world.kernel.now + played_s * SECOND))
        self.jid = scenario.jid or ""
        self.now = world.kernel.now
        self.logs = {log: world.log(log) for log in (SUPERVISOR_LOG, SERVER_LOG)}
        self._records = world.records()
        self.detail = detail_of(self._records.get(self.jid), self.jid)
        self.expected = INCIDENTS[name].verdict

    def evidence(self, *spoils: "Spoil", detail: JobDetail | None = None) -> Evidence:
        """What is known of it, when the supervisor's log is spoilt so, or the record is another."""
        logs = dict(self.logs)
        for spoil in spoils:
            logs[SUPERVISOR_LOG] = spoil(logs[SUPERVISOR_LOG])
        return evidence_of(self.jid, logs, detail or self.detail, self.now)

    def record_with(self, **changes: Any) -> JobDetail:
        """Its record, the job of which is otherwise."""
        assert self.detail is not None
        return msgspec.structs.replace(self.detail, job=msgspec.structs.replace(self.detail.job, **changes))

    def write(self, place: Path) -> list[str]:
        """Leave it as a site would have it; the flags that name it."""
        records = place / "supervisor-job"
        records.mkdir(parents=True)
        for jid, record in self._records.items():
            (records / f"{jid}.json").write_text(json.dumps(record))
        flags = ["--srdb", str(place)]
        for role, log in (("supervisor", SUPERVISOR_LOG), ("server", SERVER_LOG)):
            (place / log).write_bytes(self.logs[log])
            flags += ["--log", f"{role}={place / log}"]
        return flags


@lru_cache(64)  # each is half a megabyte
def played(name: str, seed: int, driver: DriverName, played_s: int) -> Played:
    return Played(name, seed, driver, played_s)


ASKED = {name: Code[code.upper()] for name, code in table("sirepo/asked").items()}
"""What each thing that a capture's client meant to provoke leaves."""
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


ID = JobId("balsam/17")
RAN = ("PREPROCESSED", "RUNNING")
SITE = Site(id=1, source="api", name="theta", path="/home/me/site", seen_at=ago(10))


def a_job(state: str, **fields: Any) -> Job:
    values: dict[str, Any] = {
        "queued_at": ago(900),
        "updated_at": ago(60),
        "host": "theta",
        "allocation": "5 8812",
    } | fields
    return Job(id=ID, system="balsam", status=STATUSES[state], native_status=state, source="api", **values)


def changes(*states: str, **detail: object) -> list[StateChange]:
    """From state to state, a minute apart, the last one a minute ago; `detail` is what the last says."""
    ways = list(pairwise(states))
    return [
        StateChange(
            number, ID, ago(60 * (len(ways) - number + 1)), before, after, "api", None,
            detail if number == len(ways) else None,
        )
        for number, (before, after) in enumerate(ways, 1)
    ]  # fmt: skip


def allocation(state: str, **fields: Any) -> Allocation:
    values: dict[str, Any] = {"id": 5, "scheduler_id": "8812", "start_at": ago(600), "launchers": 1}
    values |= {"heartbeat_at": ago(20)}
    return Allocation(source="api", site_id=1, state=state, nodes=4, **(values | fields))


LIVING = allocation("running")


def on_balsam(
    job: Job, went: Iterable[StateChange] = (), allocations: Iterable[Allocation] = (),
    site: Site | None = SITE, *sources: SourceHealth, **more: Any,
) -> Evidence:  # fmt: skip
    """What is known of a job, and how its server is."""
    sites = (site,) if site is not None else ()
    told: dict[str, Any] = {"changes": tuple(went), "allocations": tuple(allocations), "sites": sites, **more}
    return Evidence(job_id=job.id, now=NOW, job=job, sources=sources, **told)


def evidence_on(row: Mapping[str, Any]) -> Evidence:
    """What a row of `tests/fixtures/balsam/verdicts.toml` stands for."""
    went = changes(*row.get("states", ()), **row.get("last", {}))
    errors = (number for number, change in enumerate(went) if change.after == "RUN_ERROR")
    for number, (code, text) in zip(errors, row.get("errors", ()), strict=False):
        went[number] = msgspec.structs.replace(went[number], detail={"returncode": code, "error": text})
    fields = row.get("job", {}) | _times(row) | {"needs": tuple(map(tuple, row.get("needs", ())))}
    here = (
        allocation(**(one["is"] | _times(one) | dict.fromkeys(one.get("no", ()))))
        for one in row.get("allocations", ())
    )
    site = msgspec.structs.replace(SITE, seen_at=ago(row.get("seen_s", 10)))
    reasons = tuple(ReasonSeen(ID, ago(at), why) for at, why in row.get("reasons", ()))
    went = [change for change in went if change.id not in row.get("lost", ())]
    health = SourceHealth(name="api", kind="balsam", state=SourceState.OK, read_at=NOW)
    read = [health] if row.get("read") else []
    return on_balsam(a_job(row["state"], **fields), went, here, site, *read, reasons=reasons)


def _times(row: Mapping[str, Any]) -> dict[str, Nanos]:
    return {name: ago(seconds) for name, seconds in row.get("ago", {}).items()}
