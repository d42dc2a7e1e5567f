"""Worlds of one job each, with the truth about it, what befalls their sources, and the verdicts given then.

A world is drawn from its number: what happens to the job, and when; at a site also users, paths, clock.

Logs are damaged: a site is explained whole once, then `DAMAGES` times with sources left out, logs cut,
lines lost, bytes spoilt, clocks shifted. Sources are disturbed: they are polled by the real poller into the
real store while time goes on, and from some moment on are away, late or at odds; at some times the job is
explained as every view does it. A verdict is wrong that is not what is so at that time in the world. A wrong
one that is not sure is a guess, unless nothing befell its sources.
"""

import asyncio
import itertools
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from jobtui.analysis.correlation.correlator import Correlator
from jobtui.analysis.explain.verdict import explain
from jobtui.analysis.incidents import Sample
from jobtui.backends.balsam.records import STATUSES as BALSAM_STATUSES
from jobtui.backends.base import Batch
from jobtui.backends.job_reader import JobReader
from jobtui.backends.sirepo.records import read_detail
from jobtui.backends.slurm.records import ClusterJobs
from jobtui.demo.incidents import INCIDENTS, play
from jobtui.demo.site import SERVER_LOG, SUPERVISOR_LOG
from jobtui.formats.parser import LogParser
from jobtui.formats.slurm import SACCT, SQUEUE
from jobtui.model.changes import Allocation, Site, StateChange
from jobtui.model.clock import SECOND, FixedClock, Nanos, to_rfc3339
from jobtui.model.health import QUIET_S, SourceUnreachable
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail, JobStatus
from jobtui.model.logs import RawLine
from jobtui.model.ops import Step
from jobtui.model.slurm import STATUSES as SLURM_STATUSES
from jobtui.model.verdicts import Code, Verdict
from jobtui.session.evidence import Gatherer
from jobtui.store.poller import Poller
from jobtui.store.store import Store
from tests.analysis.explain.cases import detail_of, evidence_of, reach_back, without
from tests.condor import JOB as CONDOR_JOB
from tests.condor import event, executing, facts_of, submitted
from tests.demo.sites import DriverName, Settings
from tests.demo.sites import World as SirepoSite
from tests.demo.workload import WatchedWorld, Workload
from tests.rows import ROWS
from tests.slurm_stand_in import ACCOUNTED as IN_ACCOUNTS
from tests.slurm_stand_in import QUEUED as IN_QUEUE
from tests.slurm_stand_in import answer

EVERY_S = 10
"""How often sources are polled."""
OTHERS_S = 40
BEGIN = Nanos(1_795_172_400 * SECOND)
ENOUGH_SLOTS = 30
"""The incident's job does not wait for others then, which would be another verdict."""
PLAYED_S = (90, 130, 200, 420)


class Turn(NamedTuple):
    at: Nanos
    state: str
    right: Code


class Turns:
    """What happens to a job, one thing after the other. All times are those of its own clock."""

    settles = False
    """Whether only its end is known for sure."""

    def __init__(self, draw: random.Random, ways: Sequence[Sequence[Sequence[str]]]) -> None:
        self.begin = BEGIN
        self.turns: list[Turn] = []
        at = BEGIN
        for state, right in draw.choice(ways):
            self.turns.append(Turn(at, state, Code[right.upper()]))
            at = Nanos(at + draw.choice((20, 60, 200, 600)) * SECOND)
        self.length_s = (at - BEGIN) // SECOND + 300

    def truth(self, at: Nanos, lag_s: float) -> set[str]:
        """The verdicts that are right at a time, and those that were right some seconds before."""
        since = at - lag_s * SECOND
        old = [turn for turn in self.turns if turn.at <= since][-1:] or self.turns[:1]
        return {turn.right.value for turn in (*old, *self.turns) if turn in old or since <= turn.at <= at}

    def between(self, since: Nanos | None, until: Nanos) -> Iterator[Turn]:
        return (turn for turn in self.turns if (since is None or turn.at > since) and turn.at <= until)


def _ticks(begin: Nanos, since: Nanos | None, until: Nanos) -> Iterator[Nanos]:
    """When others do something: a system has more jobs than one."""
    first = 0 if since is None else (since - begin) // (OTHERS_S * SECOND) + 1
    last = (until - begin) // (OTHERS_S * SECOND)
    return (Nanos(begin + number * OTHERS_S * SECOND) for number in range(max(0, first), last + 1))


IN_QUEUE_S = 60
"""How long slurmctld knows a job that has ended."""


class SlurmWorld(Turns):
    """A job in Slurm's queue and accounting, as squeue and sacct print them."""

    job_id = JobId("slurm/17")
    sources = {"ssh://cori": "slurm"}
    WAYS = ROWS["what happens to a job of slurm"]

    def __init__(self, draw: random.Random) -> None:
        super().__init__(draw, self.WAYS)
        self._odd = ""

    def contradict(self, draw: random.Random) -> None:
        """Accounting tells an end that is none or another, the queue none, or accounting never tells it."""
        ends = not SLURM_STATUSES.get(self.turns[-1].state, JobStatus.PENDING).is_live
        self._odd = draw.choice(("early", "other", "stays", "lost") if ends else ("early",))

    def told(self, source: str, since: Nanos | None, until: Nanos) -> Batch:
        """What is new in what both commands print, as the source itself puts it together."""
        if since is None:
            self._known = ClusterJobs(source, "slurm")
        news = (
            self._known.take_queue(answer(SQUEUE, self._queue(until)), until),
            self._known.take_accounts(answer(SACCT, self._accounts(until)), until),
        )
        other = Job(JobId("slurm/9"), "slurm", JobStatus.PENDING, "PENDING", source)
        ticks = [*_ticks(self.begin, since, until)][-1:]
        jobs = {job.id: job for one in news for job in one.jobs}
        return Batch(jobs=(*jobs.values(), *(msgspec.structs.replace(other, updated_at=at) for at in ticks)))

    def _times(self, turn: Turn) -> tuple[Nanos, Nanos | None]:
        """When the run that a turn is of was submitted, as requeuing does again, and when it was started."""
        before = self.turns[: self.turns.index(turn) + 1]
        starts = [one.at for one in before if one.state == "RUNNING"]
        again = [
            one.at
            for last, one in itertools.pairwise(before)
            if last.state == "RUNNING" and one.state == "PENDING"
        ]
        submitted = again[-1] if again else self.begin
        return submitted, starts[-1] if starts and starts[-1] >= submitted else None

    def _queue(self, until: Nanos) -> Iterator[dict[str, str]]:
        turn = next(reversed([*self.between(None, until)]), None)
        if turn is None:
            return
        if self._odd == "stays" and turn.state not in ("PENDING", "HELD"):
            turn = next(one for one in self.turns if one.state == "RUNNING")
        is_over = not SLURM_STATUSES.get(turn.state, JobStatus.PENDING).is_live
        if self._odd != "other" and is_over and until - turn.at > IN_QUEUE_S * SECOND:
            return
        submitted, started = self._times(turn)
        yield {
            **IN_QUEUE, "%i": "17", "%A": "17", "%F": "17", "%V": _iso(submitted), "%S": _iso(started),
            "%e": _iso(turn.at if is_over else None), "%T": "PENDING" if turn.state == "HELD" else turn.state,
            "%r": {"HELD": "JobHeldUser", "PENDING": "Priority"}.get(turn.state, "None"),
        }  # fmt: skip

    def _accounts(self, until: Nanos) -> Iterator[dict[str, str]]:
        turn = next(reversed([*self.between(None, until)]), None)
        if turn is None:
            return
        state, at = turn.state, turn.at
        if self._odd == "early" and state == "RUNNING":
            state = "COMPLETED"
        elif self._odd == "lost" and state not in ("PENDING", "HELD"):
            state = "RUNNING"
        elif self._odd == "other" and turn is self.turns[-1]:
            state = "COMPLETED" if state != "COMPLETED" else "FAILED"
        submitted, started = self._times(turn)
        is_over = not SLURM_STATUSES.get(state, JobStatus.PENDING).is_live
        yield {
            **IN_ACCOUNTS, "JobID": "17", "JobIDRaw": "17", "Submit": _iso(submitted), "Start": _iso(started),
            "End": _iso(at if is_over else None), "State": "PENDING" if state == "HELD" else state,
            "ExitCode": "3:0" if state == "FAILED" else "0:0",
        }  # fmt: skip


def _iso(at: Nanos | None) -> str:
    return "Unknown" if at is None else to_rfc3339(at)[:19]


EVENTS = {state: told for state, *told in ROWS["events of a job of condor"]}


class CondorWorld(Turns):
    """A job of HTCondor that writes an event log, and what its wrapper printed."""

    job_id = JobId(CONDOR_JOB)
    sources = {"/log/events": "condor_log", "/log/out": "condor_log"}
    WAYS = ROWS["what happens to a job of condor"]

    def __init__(self, draw: random.Random) -> None:
        super().__init__(draw, self.WAYS)
        self._other_end: int | None = None

    def told(self, source: str, since: Nanos | None, until: Nanos) -> Batch:
        """The events, or the lines of the output."""
        texts = {
            at: "".join(map(self._event if source == "/log/events" else self._line, self.between(None, at)))
            for at in (since, until)
            if at is not None
        }
        if source == "/log/events":
            texts = {at: self._among_others(at) for at in texts}
        old, new = (facts_of(texts[at].encode() if at is not None else b"", source) for at in (since, until))
        return Batch(condor=tuple(new[len(old) :]))

    def contradict(self, draw: random.Random) -> None:
        """The output tells another end than the events."""
        self._other_end = {"failed": 0, "done": 5}.get(self.turns[-1].state)

    def _among_others(self, until: Nanos) -> str:
        """The events of the job, between those of another job of the same schedd."""
        other = "008.000.000"
        events = [(turn.at, self._event(turn)) for turn in self.between(None, until)]
        events += [
            (at, event(6, to_rfc3339(at).replace("T", " "), "Image size of job updated: 1", job=other))
            for at in _ticks(self.begin, None, until)
        ]
        return "".join(text for _, text in sorted(events, key=lambda one: one[0]))

    def _event(self, turn: Turn) -> str:
        at = to_rfc3339(turn.at).replace("T", " ")
        if turn.state in ("submitted", "executing"):
            return submitted(at) if turn.state == "submitted" else executing(at)
        number, *lines = EVENTS[turn.state]
        return event(number, at, *lines)

    def _line(self, turn: Turn) -> str:
        if self._other_end is None or turn is not self.turns[-1]:
            return ""
        return f"Fri Nov 20 11:30:00 UTC 2026 {CONDOR_JOB} BEGIN EXECUTION a.sh\n" + (
            f"Fri Nov 20 11:31:00 UTC 2026 a.sh COMPLETED with exit status {self._other_end}\n"
        )


SILENT_S = 300
"""After this silence an agent or a launcher counts as gone."""


class BalsamWorld(Turns):
    """A job of Balsam, its site, and the allocation in which it runs. Either may fall silent."""

    job_id = JobId("balsam/17")
    sources = {"http://api": "balsam"}
    WAYS = ROWS["what happens to a job of balsam"]

    def __init__(self, draw: random.Random) -> None:
        super().__init__(draw, self.WAYS)
        self.length_s += draw.choice((0, 900))
        self._odd_event = ""
        live = self.turns[-1].state in ("RUNNING", "STAGED_IN")
        self._silent_at = Nanos(self.turns[-1].at + 30 * SECOND) if live and draw.random() < 0.5 else None

    def truth(self, at: Nanos, lag_s: float) -> set[str]:
        """What is so; of who fell silent, what may be told at the time when that counts."""
        right = super().truth(at, lag_s)
        if self._silent_at is None or at < self.turns[-1].at:
            return right
        late_s = (at - self._silent_at) / SECOND - SILENT_S
        gone = Code.LAUNCHER_STALE if self.turns[-1].state == "RUNNING" else Code.SITE_AGENT_DOWN
        return right if late_s < -30 - lag_s else {gone.value} if late_s > lag_s else right | {gone.value}

    def contradict(self, draw: random.Random) -> None:
        """The last event tells another end than the record does."""
        said = self.turns[-1].state
        self._odd_event = draw.choice([one for one in ("FAILED", "JOB_FINISHED", "RUN_ERROR") if one != said])

    def told(self, source: str, since: Nanos | None, until: Nanos) -> Batch:
        """The record, its changes, and the last signs of life."""
        turns, all_turns = list(self.between(since, until)), list(self.between(None, until))
        jobs = (self._job(turns[-1], source),) if turns else ()
        numbered = {turn: number for number, turn in enumerate(self.turns)}
        changes = tuple(
            StateChange(
                numbered[turn], self.job_id, turn.at, self.turns[numbered[turn] - 1].state,
                self._odd_event if turn is self.turns[-1] and self._odd_event else turn.state, source, None,
                {"returncode": 3} if turn.state == "RUN_ERROR" else None,
            )
            for turn in turns
            if numbered[turn]
        )  # fmt: skip
        if not all_turns:
            return Batch()
        silent = self._silent_at if self._silent_at is not None and self._silent_at < until else None
        last = Nanos((silent or until) - 15 * SECOND)
        is_job_running, seen_at = self.turns[-1].state == "RUNNING", Nanos(until - 15 * SECOND)
        site = Site(id=1, source=source, name="theta", seen_at=seen_at if is_job_running else last)
        given = next((turn.at for turn in all_turns if turn.state == "PREPROCESSED"), self.begin)
        allocation = Allocation(
            id=5, source=source, site_id=1, state="running", nodes=4, scheduler_id="8812", start_at=given,
            launchers=1, heartbeat_at=last if is_job_running else seen_at,
        )  # fmt: skip
        return Batch(jobs=jobs, changes=changes, allocations=(allocation,), sites=(site,))

    def _job(self, turn: Turn, source: str) -> Job:
        return Job(
            id=self.job_id, system="balsam", status=BALSAM_STATUSES[turn.state], native_status=turn.state,
            source=source, queued_at=self.begin, updated_at=turn.at, host="theta", allocation="5 8812",
            ended_at=turn.at if turn.state in ("JOB_FINISHED", "FAILED") else None,
            error="boom" if turn.state == "FAILED" else None,
        )  # fmt: skip


def _driver(draw: random.Random, incident: str) -> DriverName:
    on_cluster = INCIDENTS[incident].on_cluster
    return draw.choice((DriverName.LOCAL,) if on_cluster else (DriverName.LOCAL, DriverName.DOCKER))


class SirepoWorld:
    """An incident at a simulated site, played step by step; how it ended is known."""

    sources: Mapping[str, str]
    settles = True

    def __init__(self, draw: random.Random) -> None:
        name = draw.choice(list(INCIDENTS))
        self.right = INCIDENTS[name].verdict
        driver = _driver(draw, name)
        slots = 1 if driver is DriverName.DOCKER else 2
        settings = Settings(users=2, sbatch_users=1, driver=driver, slots_parallel=slots)
        site = SirepoSite(draw.randrange(1 << 30), settings)
        site.start()
        scenario = play(site, name)
        self.begin = site.kernel.now
        self.length_s = 420 if name == "time-limit" else draw.choice(PLAYED_S)
        self.logs: dict[str, bytearray] = {SUPERVISOR_LOG: bytearray(), SERVER_LOG: bytearray()}
        self._steps: list[tuple[Nanos, dict[str, int], bytes]] = []
        while site.kernel.now < self.begin + self.length_s * SECOND:
            site.advance(Nanos(site.kernel.now + EVERY_S * SECOND))
            for log, data in self.logs.items():
                data += site.take(log)
            record = site.records().get(scenario.jid or "")
            sizes = {log: len(data) for log, data in self.logs.items()}
            self._steps.append((site.kernel.now, sizes, json.dumps(record).encode() if record else b""))
        self.job_id = JobId(scenario.jid or "")
        self.sources = {"db": "sirepo_db", **dict.fromkeys(self.logs, "logfile")}
        self._parsers: dict[str, LogParser] = {}
        self._lines: Counter[str] = Counter()
        self._swap: dict[str, str] = {}

    def truth(self, at: Nanos, lag_s: float) -> set[str]:
        return {self.right}

    def contradict(self, draw: random.Random) -> None:
        """The record tells another end than the log."""
        record = json.loads(self._steps[-1][2] or b"{}")
        ends = {"completed": "error", "error": "completed"}
        said = str(record.get("status"))
        is_told = f"status={said} ".encode() in self.logs[SUPERVISOR_LOG]
        if said in ends and is_told and self.right != "run_dir_gone":
            self._swap = {said: ends[said]}

    def _at(self, at: Nanos) -> tuple[dict[str, int], bytes]:
        found = [(sizes, record) for when, sizes, record in self._steps if when <= at]
        return found[-1] if found else ({}, b"")

    def told(self, source: str, since: Nanos | None, until: Nanos) -> Batch:
        """The record, or what a log grew by."""
        (before, old), (after, new) = self._at(since or Nanos(0)), self._at(until)
        if source == "db":
            detail = self.detail(until) if new and new != old else None
            return Batch(jobs=(detail.job,) if detail is not None else ())
        if since is None:
            self._parsers[source], self._lines[source] = LogParser(source), 0
        begin, end = before.get(source, 0), after.get(source, 0)
        data = bytes(self.logs[source][begin:end])
        found = self._parsers[source].parse(data, begin, self._lines[source] + 1, Nanos(until + SECOND))
        self._lines[source] += found.lines
        return Batch(records=tuple(found.records))

    def detail(self, until: Nanos) -> JobDetail | None:
        text = self._at(until)[1]
        for one, other in self._swap.items():
            text = text.replace(f'"status": "{one}"'.encode(), f'"status": "{other}"'.encode())
        return read_detail(text, self.job_id, 0, "db", "record") if text else None


World = SlurmWorld | CondorWorld | BalsamWorld | SirepoWorld
SYSTEMS: Mapping[str, Callable[[random.Random], World]] = {
    "sirepo": SirepoWorld,
    "slurm": SlurmWorld,
    "condor": CondorWorld,
    "balsam": BalsamWorld,
}


def _settings(draw: random.Random, incident: str, *, is_busy: bool) -> Settings:
    return Settings(
        users=draw.choice((0, 1, 3, 5)),
        sbatch_users=draw.choice((0, 1)),
        driver=_driver(draw, incident),
        prefixes=draw.choice((None, None, 3, 30)),
        pid_time=draw.random() < 0.85,
        agents_in_supervisor_log=draw.random() < 0.7,
        slots_parallel=ENOUGH_SLOTS if is_busy else draw.choice((1, 2, 3)),
        slots_sequential=ENOUGH_SLOTS if is_busy else 2,
        hosts=tuple(f"gpu-{number}" for number in range(draw.choice((1, 2)))),
        root=draw.choice(("/srv/sirepo/db", "/var/lib/my-app/db", "/home/x/run")),
        dev=draw.random() < 0.5,
        start=Nanos(draw.randint(1_700_000_000, 1_795_000_000) * SECOND),
        site_packages=draw.choice(("", "/opt/py/lib/python3.12/site-packages/")),
    )


def site_of(draw: random.Random, incident: str) -> tuple[SirepoSite, str]:
    """A site, where others may be busy, some time after an incident; and the job of that."""
    is_busy = incident != "waiting-for-slot" and draw.random() < 0.4
    world = WatchedWorld(draw.randrange(1 << 30), _settings(draw, incident, is_busy=is_busy))
    world.start()
    if is_busy:
        Workload(world).start()
        world.advance(Nanos(world.kernel.now + draw.choice((20, 90, 240)) * SECOND))
    scenario = play(world, incident)
    seconds = 430 if incident == "time-limit" else draw.choice(PLAYED_S)
    world.advance(Nanos(world.kernel.now + seconds * SECOND))
    return world, scenario.jid or ""


SURE = 0.5
DAMAGES = 5
LOOKS = 4
"""How often the job of a world is explained."""
LAG_S = 2 * EVERY_S
"""So long after a change what was so before may still be told; where polls hang, until that is noticed."""
_TIME = re.compile(rb"^([A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d)(?= )", re.MULTILINE)
_SHIFTS_S = (-5, 5, -60, 60, 3600, -3600, -5 * 3600, 19_800)


class Told(NamedTuple):
    """A verdict on a world of this number, and what would have been right.

    `sample` is the job as incidents see it, None if no source reported it; `blind_spots` is of sources.
    """

    disturbance: str
    number: int
    right: set[str]
    verdict: Verdict
    after_s: int = 0
    sample: Sample | None = None
    blind_spots: tuple[str, ...] = ()

    @property
    def is_right(self) -> bool:
        return self.verdict.code.value in self.right

    @property
    def is_sure(self) -> bool:
        return self.verdict.confidence >= SURE

    @property
    def is_sure_and_wrong(self) -> bool:
        """Not where a record that tells a wrong end is all that can be read, as the verdict says."""
        is_unread = "no log of the supervisor was read" in self.verdict.blind_spots
        has_witness = not (is_unread and self.disturbance.endswith("+contradicting"))
        return (self.is_sure or self.disturbance == "none") and not self.is_right and has_witness


class Sources(NamedTuple):
    logs: dict[str, bytes]
    detail: JobDetail | None


Damage = Callable[[random.Random, bytes], bytes]


def _middle(draw: random.Random, log: bytes, fill: bytes = b"") -> bytes:
    first, last = sorted(draw.randrange(len(log)) for _ in range(2))
    return log[:first] + fill * (last - first) + log[last:]


def _lines(draw: random.Random, log: bytes) -> bytes:
    lost = draw.choice((0.02, 0.1, 0.5))
    return b"".join(line for line in log.splitlines(keepends=True) if draw.random() > lost)


def _bytes(draw: random.Random, log: bytes) -> bytes:
    spoilt = bytearray(log)
    for _ in range(20):
        spoilt[draw.randrange(len(log))] = draw.randrange(256)
    return bytes(spoilt)


def _later(draw: random.Random, log: bytes) -> bytes:
    by = timedelta(seconds=draw.choice(_SHIFTS_S))

    def shifted(found: re.Match[bytes]) -> bytes:
        try:
            at = datetime.strptime(f"2026 {found[1].decode()}", "%Y %b %d %H:%M:%S").replace(tzinfo=UTC)
        except ValueError:
            return found[0]
        return (at + by).strftime("%b %d %H:%M:%S").encode()

    return _TIME.sub(shifted, log)


TO_LOGS: Mapping[str, Damage] = {
    "head lost": lambda draw, log: log[draw.randrange(len(log)) :],
    "tail lost": lambda draw, log: log[: draw.randrange(len(log))],
    "middle lost": _middle,
    "lines lost": _lines,
    "bytes spoilt": _bytes,
    "hole": lambda draw, log: _middle(draw, log, b"\0"),
    "clock": _later,
}
NO_AGENT = without(r"job_agent\.py")
LEFT_OUT: Mapping[str, Callable[[Sources], Sources]] = {
    "record": lambda left: left._replace(detail=None),
    "supervisor's log": lambda left: _without_logs(left, lambda name: name == SUPERVISOR_LOG),
    "server's log": lambda left: _without_logs(left, lambda name: name == SERVER_LOG),
    "agents' logs": lambda left: _without_logs(left, lambda name: name not in (SUPERVISOR_LOG, SERVER_LOG)),
    "agents' lines": lambda left: left._replace(logs={n: NO_AGENT(log) for n, log in left.logs.items()}),
}


def _without_logs(left: Sources, is_lost: Callable[[str], bool]) -> Sources:
    return left._replace(logs={name: log for name, log in left.logs.items() if not is_lost(name)})


def _damage(draw: random.Random, whole: Sources) -> tuple[Sources, tuple[str, ...]]:
    left, ways = whole, []
    for _ in range(draw.choice((1, 1, 2))):
        way = draw.choice((*LEFT_OUT, *TO_LOGS, *TO_LOGS))
        if way in LEFT_OUT:
            left = LEFT_OUT[way](left)
            ways.append(f"without {way}")
            continue
        full = [name for name, log in left.logs.items() if log]
        if not full:
            continue
        name = SUPERVISOR_LOG if SUPERVISOR_LOG in full and draw.random() < 0.8 else draw.choice(full)
        left = left._replace(logs={**left.logs, name: TO_LOGS[way](draw, left.logs[name])})
        ways.append(f"{way} in {name}")
    return left, tuple(ways)


def damaged(number: int) -> Iterator[Told]:
    """The verdicts on a site: on all that it wrote, then on what is left of that."""
    draw = random.Random(f"damaged/{number}")
    incident = draw.choice(list(INCIDENTS))
    site, jid = site_of(draw, incident)
    right = {INCIDENTS[incident].verdict}
    whole = Sources({name: site.log(name) for name in site.logs()}, detail_of(site.records().get(jid), jid))
    yield Told("none", number, right, explain(evidence_of(jid, *whole, site.kernel.now)))
    for _ in range(DAMAGES):
        left, ways = _damage(draw, whole)
        verdict = explain(evidence_of(jid, *left, site.kernel.now))
        yield Told(", ".join(ways) or "none", number, right, verdict)


class Feed:
    """One source of a world, as it is polled. What disturbs it is set from outside."""

    def __init__(self, world: World, name: str, clock: FixedClock) -> None:
        self.name, self.kind = name, world.sources[name]
        self.is_gone = self.is_quiet = False
        self.late_s = self.ahead_s = 0
        self._world, self._clock = world, clock

    @property
    def until(self) -> Nanos:
        return Nanos(self._clock.now() - self.late_s * SECOND)

    async def poll(self, cursor: str | None) -> Batch:
        if self.is_gone:
            raise SourceUnreachable(f"{self.name}: no answer")
        batch = self._world.told(self.name, None if cursor is None else Nanos(int(cursor)), self.until)
        measured = float(self.ahead_s) if self.kind in MEASURED else 0.0
        return msgspec.structs.replace(
            _shifted(batch, self.ahead_s * SECOND), cursor=str(self.until), count=1, ahead_s=measured
        )

    async def detail(self, job_id: JobId) -> JobDetail | None:
        if self.is_gone:
            raise SourceUnreachable(f"{self.name}: no answer")
        if self.kind != "sirepo_db" or not isinstance(self._world, SirepoWorld):
            return None
        found = self._world.detail(self.until)
        by = self.ahead_s * SECOND
        return None if found is None else msgspec.structs.replace(found, job=_moved(found.job, by))

    async def changed(self, timeout_s: float) -> None: ...

    async def aclose(self) -> None: ...


MEASURED = frozenset({"balsam"})
"""Kinds of sources that tell what their clock shows."""
TIMES = ("at", "queued_at", "started_at", "updated_at", "ended_at", "written_at", "start_at", "end_at",
         "heartbeat_at", "seen_at", "submitted_at")  # fmt: skip


def _moved(one: Any, by: int) -> Any:
    """A record with all its times later."""
    times = {name: at + by for name in TIMES if (at := getattr(one, name, None)) is not None}
    if others := getattr(one, "others", ()):
        times["others"] = tuple(_moved(other, by) for other in others)
    return msgspec.structs.replace(one, **times) if by and times else one


def _shifted(batch: Batch, by: int) -> Batch:
    fields = ("jobs", "records", "changes", "allocations", "sites", "condor")
    return msgspec.structs.replace(
        batch, **{name: tuple(_moved(one, by) for one in getattr(batch, name)) for name in fields}
    )


class StillJobReader(JobReader):
    """Reads lines behind steps out of the logs of a world."""

    def __init__(self, world: World, feeds: Sequence[Feed]) -> None:
        super().__init__(lambda: feeds, reach_back)
        self._logs = world.logs if isinstance(world, SirepoWorld) else {}

    async def lines_behind(self, step: Step, most: int) -> tuple[RawLine, ...]:
        text = bytes(self._logs[step.source][step.offset : step.offset + 6_000]).decode("utf-8", "replace")
        return tuple(RawLine(None, 0, line) for line in text.split("\n")[:most])


DISTURBANCES = ("none", "taken away", "stale", "late", "clock", "contradicting")
PAIRS = tuple("+".join(pair) for pair in itertools.combinations(DISTURBANCES[1:], 2))[1:]
"""Two at once; what does not answer at all, the first, is either away or stale."""


def _disturb(disturbance: str, draw: random.Random, world: World, feeds: Sequence[Feed]) -> None:
    ahead_s = draw.choice((-3_600, -330, -90, 90, 330, 3_600)) if disturbance == "clock" else 0
    some = draw.sample(feeds, draw.randint(1, len(feeds))) if disturbance in OF_SOME else feeds
    for feed in some:
        feed.is_gone |= disturbance == "taken away"
        feed.is_quiet |= disturbance == "stale"
        feed.late_s += draw.choice((90, 300, 1_200)) if disturbance == "late" else 0
        feed.ahead_s += ahead_s
    if disturbance == "contradicting":
        world.contradict(draw)


def _hidden_s(feeds: Sequence[Feed]) -> int:
    """What is late by as much as its clock is ahead looks new, and nothing shows that it is not."""
    hidden = (one.late_s for one in feeds if one.late_s == one.ahead_s and one.kind not in MEASURED)
    return max(hidden, default=0)


OF_SOME = frozenset({"taken away", "stale", "late"})
MEASURED_IN_TIME = frozenset({"late", "clock"})
"""What shows in news that come while jobtui runs, so it is not started again: it could not know then."""
FROM_THE_START = MEASURED_IN_TIME | {"contradicting"}


def disturbed(system: str, disturbance: str, number: int) -> list[Told]:
    """The verdicts on one world; jobtui is started again in the middle of every other one."""
    return asyncio.run(_disturbed(system, disturbance, number))


async def _disturbed(system: str, disturbance: str, number: int) -> list[Told]:
    draw = random.Random(f"{system}/{disturbance}/{number}")
    world = SYSTEMS[system](draw)
    clock = FixedClock(world.begin)
    feeds = [Feed(world, name, clock) for name in world.sources]
    steps = world.length_s // EVERY_S
    kinds = {*disturbance.split("+")}
    begins = 0 if kinds & FROM_THE_START else draw.randrange(steps)
    restarts = draw.randrange(steps) if draw.random() < 0.5 and not kinds & MEASURED_IN_TIME else -1
    looks = {steps - 1} if world.settles else {draw.randrange(begins, steps) for _ in range(LOOKS)}
    lag_s = QUIET_S + EVERY_S if "stale" in kinds else LAG_S
    store, pollers = _begin(feeds, clock)
    found = []
    for step in range(steps):
        clock.advance(EVERY_S)
        if step == begins:
            for kind in disturbance.split("+"):
                _disturb(kind, draw, world, feeds)
        if step == restarts:
            store, pollers = _begin(feeds, clock)
        for poller, feed in zip(pollers, feeds, strict=True):
            if not feed.is_quiet:
                await poller.poll_once()
        if step in looks:
            now, job_reader = clock.now(), StillJobReader(world, feeds)
            verdict = explain(await Gatherer(store, job_reader, now).whole(world.job_id))
            job, gatherer = store.job(world.job_id), Gatherer(store, job_reader, now)
            sample = await gatherer.sample(job) if job is not None else None
            right, spots = world.truth(now, lag_s + _hidden_s(feeds)), gatherer.blind_spots()
            found.append(Told(disturbance, number, right, verdict, step * EVERY_S, sample, spots))
    return found


def _begin(feeds: Sequence[Feed], clock: FixedClock) -> tuple[Store, list[Poller]]:
    store = Store(Correlator(), clock)
    return store, [Poller(feed, store) for feed in feeds]


def of_any_system(number: int) -> list[Told]:
    """The verdicts on a world of this number, whose system and disturbance it draws."""
    kinds = [*itertools.product(SYSTEMS, (*DISTURBANCES, *PAIRS))]
    return disturbed(*kinds[number % len(kinds)], number)
