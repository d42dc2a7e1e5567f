"""jobtui beside a real job system while jobs run in it: one session, one dashboard, one-shot commands.

None of them is restarted. What each has seen is kept with its time, to be compared with the truth.
"""

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from jobtui.backends import registry
from jobtui.model.health import SourceHealth
from jobtui.model.ops import Op
from jobtui.model.specs import LogRole, SourceSpec
from jobtui.session import Session
from jobtui.store.store import Changes, Store
from tests.demo.workload import TrueOp, Witness
from tests.real.sirepo_cluster import ClusterJobs
from tests.real.sirepo_jobs import Asked, Jobs
from tests.real.sirepo_system import SirepoSystem
from tests.tmux import Tmux
from tests.waiting import wait_until


class Status(NamedTuple):
    """One status a job record was written with, and when (epoch seconds)."""

    at: float
    state: str


class Truth(NamedTuple):
    """All ops in the order they were made; of each job the statuses its record went through."""

    ops: tuple[TrueOp, ...]
    statuses: Mapping[str, Sequence[Status]]


def read_truth(path: Path) -> Truth:
    """The truth out of a witness's file, also while it is still written to."""
    text = path.read_text() if path.exists() else ""
    witness, statuses = Witness(), defaultdict[str, list[Status]](list)
    for note in map(json.loads, text[: text.rfind("\n") + 1].splitlines()):
        match note["what"]:
            case "made":
                witness.created(TrueOp(note["op_id"], note["name"], note.get("jid")))
            case "sent":
                witness.sent(note["op_id"], note["agent"])
            case "received":
                witness.received(note.get("op_id"), note["name"], note.get("jid"))
            case "written":
                before = statuses[note["jid"]]
                if not before or before[-1].state != note["state"]:
                    before.append(Status(note["at"], note["state"]))
    return Truth(witness.ops, dict(statuses))


COLUMNS, ROWS = 170, 50
FRAME_PERIOD_S = 0.1
SETTLE_S = 60.0
COMMAND_S = 240.0
SEEN_WITHIN_S = 2.5
"""A state that lasts this long must be seen, and no later than this after it was written."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What the dashboard showed from a time on."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The statuses by job that a one-shot command printed, and those in the files before and after it ran."""

    before: Mapping[str, str]
    printed: Mapping[str, str]
    after: Mapping[str, str]


@dataclass(slots=True, kw_only=True)
class Watched:
    """Everything that was seen, and the truth to compare it with."""

    asked: tuple[Asked, ...]
    truth: Truth
    ops: tuple[Op, ...]
    seen: Mapping[str, Sequence[Status]]
    frames: Sequence[Frame]
    listings: Sequence[Listing]
    timelines: Mapping[str, Mapping[str, Any]]
    health: Sequence[SourceHealth]


@dataclass(slots=True)
class StoreWatch:
    """Notes every status of every job that a store tells its listeners of."""

    store: Store
    seen: dict[str, list[Status]] = field(default_factory=dict)

    def __call__(self, changes: Changes) -> None:
        for job_id in changes.jobs:
            job = self.store.job(job_id)
            states = self.seen.setdefault(str(job_id), [])
            if job is not None and (not states or states[-1].state != job.native_status):
                states.append(Status(time.time(), job.native_status))


class DashboardWatch:
    """Reads the window of a dashboard again and again, in a thread of its own, until it is stopped."""

    def __init__(self, window: Tmux) -> None:
        self.frames: list[Frame] = []
        self._window = window
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(FRAME_PERIOD_S):
            text = self._window.text()
            if not self.frames or self.frames[-1].text != text:
                self.frames.append(Frame(time.time(), text))


def source_flags(system: SirepoSystem) -> list[str]:
    logs = system.logs
    return [
        *("--srdb", str(system.srdb)),
        *("--log", f"supervisor={logs / 'supervisor.log'}"),
        *("--log", f"server={logs / 'server.log'}"),
        *(("--slurm", "local") if system.cluster else ()),
    ]


def session_of(system: SirepoSystem) -> Session:
    specs = [
        SourceSpec("srdb", str(system.srdb)),
        SourceSpec("log", str(system.logs / "supervisor.log"), LogRole.SUPERVISOR),
        SourceSpec("log", str(system.logs / "server.log"), LogRole.SERVER),
    ]
    return Session([registry.build(spec) for spec in specs])


def jobtui_command(system: SirepoSystem, *words: str) -> list[str]:
    return [sys.executable, "-m", "jobtui", *source_flags(system), *words]


def jobtui_environ(system: SirepoSystem) -> dict[str, str]:
    home = str(system.root / "home")
    slurm = {"SLURM_CONF": str(system.cluster.slurm.conf)} if system.cluster else {}
    path = system.cluster.slurm.search_path if system.cluster else "/usr/bin:/bin"
    return {"HOME": home, "XDG_CONFIG_HOME": f"{home}/.config", "LANG": "C.UTF-8", "PATH": path, **slurm}


def printed_json(system: SirepoSystem, *words: str) -> Any:
    ran = subprocess.run(
        jobtui_command(system, *words, "--json"),
        env=jobtui_environ(system),
        capture_output=True,
        text=True,
        check=False,
        timeout=COMMAND_S,
    )
    assert ran.stdout, f"{words} printed nothing, exit code {ran.returncode}: {ran.stderr}"
    return json.loads(ran.stdout)


def explain(system: SirepoSystem, jid: str) -> dict[str, Any]:
    told: dict[str, Any] = printed_json(system, "explain", jid)
    return told


def statuses_in_files(srdb: Path) -> dict[str, str]:
    return {
        path.stem: str(json.loads(path.read_text())["status"])
        for path in sorted((srdb / "supervisor-job").glob("*.json"))
    }


def list_jobs(system: SirepoSystem) -> Listing:
    """What `jobtui jobs` says now, of calls that are no simulations too."""
    before = statuses_in_files(system.srdb)
    printed = printed_json(system, "jobs", "quasi:no or quasi:yes")["jobs"]
    of_sirepo = {job["id"]: job["native_status"] for job in printed if not job["id"].startswith("slurm/")}
    return Listing(before, of_sirepo, statuses_in_files(system.srdb))


async def watch(system: SirepoSystem, seed: int) -> Watched:
    """Run jobs of every kind in a system, with jobtui beside it all the time."""
    async with session_of(system) as session:
        noted = StoreWatch(session.store)
        session.store.subscribe(noted)
        running = asyncio.create_task(session.run())
        with Tmux(jobtui_command(system), COLUMNS, ROWS, jobtui_environ(system)) as window:
            dashboard = DashboardWatch(window)
            listings: list[Listing] = []
            try:
                kind = Jobs if system.cluster is None else ClusterJobs
                jobs = await asyncio.to_thread(kind, system, seed, lambda jid: explain(system, jid))
                await asyncio.to_thread(jobs.run, jobs.kinds, lambda: listings.append(list_jobs(system)))
                await _catch_up(session, system)
                await asyncio.sleep(SEEN_WITHIN_S)  # the dashboard is granted this time for the last news too
            finally:
                await asyncio.to_thread(dashboard.stop)
        assert not running.done(), running
        running.cancel()
        truth = read_truth(system.witness)
        timelines = await asyncio.to_thread(
            lambda: {jid: printed_json(system, "timeline", jid) for jid in truth.statuses}
        )
        return Watched(
            asked=tuple(jobs.asked),
            truth=truth,
            ops=tuple(session.store.correlation.ops()),
            seen=noted.seen,
            frames=dashboard.frames,
            listings=listings,
            timelines=timelines,
            health=session.store.sources(),
        )


async def _catch_up(session: Session, system: SirepoSystem) -> None:
    """Wait until all that the witness noted has reached the session, or so long that it never will."""

    def has_all() -> bool:
        truth = read_truth(system.witness)
        wanted = [(op.op_id[:4], op.sends, op.replies, op.updates) for op in truth.ops]
        got = [(str(op.op), op.sends, op.replies, op.updates) for op in session.store.correlation.ops()]
        final = {jid: states[-1].state for jid, states in truth.statuses.items()}
        known = {str(job.id): job.native_status for job in session.store.jobs.values()}
        return sorted(wanted) == sorted(got) and final == known

    try:
        await wait_until(has_all, timeout_s=SETTLE_S, step_s=0.2)
    except AssertionError:
        return  # the tests compare in detail and show the difference
