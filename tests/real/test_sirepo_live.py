"""jobtui on a real Sirepo, live: every state as it happens, in the end exactly what the supervisor did.

Session, dashboard and one-shot commands go on throughout. What each saw and when is compared with the truth.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks.pty_meter import percentile
from jobtui.analysis.explain.case import LIKELY
from jobtui.backends import registry
from jobtui.model.health import SourceHealth, SourceState
from jobtui.model.jobs import JobStatus
from jobtui.model.ops import Op
from jobtui.model.specs import LogRole, SourceSpec
from jobtui.render.styles import WORDS
from jobtui.session import Session
from jobtui.store.store import Changes, Store
from tests.demo.workload import TrueOp, Witness
from tests.real.sirepo_cluster import Cluster, ClusterJobs
from tests.real.sirepo_jobs import Asked, Jobs
from tests.real.sirepo_system import Driver, Setup, SirepoSystem
from tests.real.slurm_system import a_cluster
from tests.terminals import Tmux
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


def noted(store: Store) -> dict[str, list[Status]]:
    """Every status of every job that the store tells its listeners of from now on."""
    seen: dict[str, list[Status]] = {}

    def note(changes: Changes) -> None:
        for job_id in changes.jobs:
            job = store.job(job_id)
            states = seen.setdefault(str(job_id), [])
            if job is not None and (not states or states[-1].state != job.native_status):
                states.append(Status(time.time(), job.native_status))

    store.subscribe(note)
    return seen


@contextmanager
def framed(window: Tmux) -> Iterator[list[Frame]]:
    """What a window shows, read again and again in a thread of its own."""
    frames: list[Frame] = []
    stopped = threading.Event()

    def look() -> None:
        while not stopped.wait(FRAME_PERIOD_S):
            text = window.text()
            if not frames or frames[-1].text != text:
                frames.append(Frame(time.time(), text))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield frames
    finally:
        stopped.set()
        thread.join()


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
        seen = noted(session.store)
        running = asyncio.create_task(session.run())
        listings: list[Listing] = []
        with (
            Tmux(jobtui_command(system), COLUMNS, ROWS, jobtui_environ(system)) as window,
            framed(window) as frames,
        ):
            kind = Jobs if system.cluster is None else ClusterJobs
            jobs = await asyncio.to_thread(kind, system, seed, lambda jid: explain(system, jid))
            await asyncio.to_thread(jobs.run, jobs.kinds, lambda: listings.append(list_jobs(system)))
            await _catch_up(session, system)
            await asyncio.sleep(SEEN_WITHIN_S)  # the dashboard is granted this time for the last news too
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
            seen=seen,
            frames=frames,
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


pytestmark = pytest.mark.real

SEEN_AT_ONCE_S = 0.6
"""The budget for following, 95 of 100 times."""

SETUPS: Mapping[str, Setup] = {
    "local": Setup(driver=Driver.LOCAL, prefixed=True),
    "docker": Setup(driver=Driver.DOCKER, prefixed=False),
    "sbatch": Setup(driver=Driver.SBATCH, prefixed=True),
}


class Right(NamedTuple):
    """What is right of a job of a kind when its user was last answered.

    `states` are those its record may be in. `verdicts` are right then, in the same order, and have `words`.
    """

    states: list[str]
    verdicts: list[str]
    words: str = ""


RIGHT: Mapping[str, Right] = {
    kind: Right(*told)
    for kind, told in tomllib.loads(Path(__file__).with_name("sirepo_jobs.toml").read_text()).items()
}


@pytest.fixture(scope="module", params=SETUPS)
def watched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    venv = os.environ.get("REAL_SIREPO_VENV")
    assert venv, "REAL_SIREPO_VENV must name a virtual environment with Sirepo; scripts/real makes one"
    root = tmp_path_factory.mktemp("sirepo")
    setup = SETUPS[request.param]
    with ExitStack() as stack:
        cluster = None
        if setup.driver is Driver.SBATCH:
            slurm = stack.enter_context(contextmanager(a_cluster)())
            cluster = stack.enter_context(Cluster(Path(venv), root / "cluster", slurm))
        system = stack.enter_context(SirepoSystem(Path(venv), root / "root", setup, cluster))
        yield asyncio.run(watch(system, int(os.environ.get("REAL_SEED", "1"))))


def test_the_system_did_what_was_asked(watched: Watched) -> None:
    for job in watched.asked:
        assert job.told["job"]["native_status"] in RIGHT[job.kind].states, job


def test_verdicts_match_the_planted_faults(watched: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = [(job.jid, job.kind, why) for job in watched.asked if (why := is_wrong(job, RIGHT[job.kind]))]
    with capsys.disabled():
        print(f"\nSirepo: {len(watched.asked)} verdicts, {len(wrong)} wrong")  # noqa: T201
    assert not wrong, "\n".join(map(str, wrong))
    others = [
        (one, RIGHT[two.kind])
        for one in watched.asked
        for two in watched.asked
        if not {*RIGHT[one.kind].verdicts} & {*RIGHT[two.kind].verdicts}
    ]
    assert all(is_wrong(one, right) for one, right in others), "a wrong truth is not noticed"


def is_wrong(job: Asked, right: Right) -> str | None:
    """What is wrong with what was said of a job; None when nothing is."""
    told, state = job.told, job.told["job"]["native_status"]
    is_right = (state, told["verdict"]) in zip(right.states, right.verdicts, strict=True)
    if is_right and right.words in told["sentence"] and told["confidence"] >= LIKELY:
        return None
    return f"{state}: {told['verdict']} {told['confidence']}: {told['sentence']}"


def test_every_op_is_exact(watched: Watched) -> None:
    wanted = sorted(map(true_key, watched.truth.ops))
    told = sorted(
        (op.op, op.name, str(op.jid), str(op.agent), op.sends, op.replies, op.updates) for op in watched.ops
    )
    assert told == wanted
    full_ids = {op.op_id for op in watched.truth.ops}
    assert {op.op_id for op in watched.ops if op.op_id} <= full_ids


def true_key(op: TrueOp) -> tuple[str, str, str, str, int, int, int]:
    return (op.op_id[:4], op.name, str(op.jid), str(op.agent), op.sends, op.replies, op.updates)


def test_the_timeline_command_tells_the_same(watched: Watched) -> None:
    for jid, printed in watched.timelines.items():
        told = sorted(
            (op["op"], op["name"], str(op["agent"]), op["sends"], op["replies"], op["updates"])
            for op in printed["ops"]
        )
        goal = sorted((key[0], key[1], *key[3:]) for key in map(true_key, watched.truth.ops) if key[2] == jid)
        assert told == goal, jid
        assert printed["job"]["native_status"] == watched.truth.statuses[jid][-1].state


def test_the_session_saw_every_state_as_it_happened(watched: Watched) -> None:
    for jid, states in watched.truth.statuses.items():
        seen = watched.seen[jid]
        assert seen[-1].state == states[-1].state, jid
        assert is_part_of([found.state for found in seen], [status.state for status in states]), jid
        for status in lasting(states):
            assert any(
                found.state == status.state and 0 <= found.at - status.at <= SEEN_WITHIN_S for found in seen
            ), f"{jid} was {status.state} at {status.at}, seen: {seen}"


def test_most_states_were_seen_at_once(watched: Watched) -> None:
    lags = [
        min(
            found.at - status.at for status in states if status.state == found.state and status.at <= found.at
        )
        for jid, states in watched.truth.statuses.items()
        for found in watched.seen[jid]
    ]
    assert percentile(lags, 0.95) <= SEEN_AT_ONCE_S


def lasting(states: Sequence[Status]) -> list[Status]:
    """The states that were there long enough to be seen, the last one always."""
    ends = [*(status.at for status in states[1:]), float("inf")]
    return [status for status, end in zip(states, ends, strict=True) if end - status.at > SEEN_WITHIN_S]


def is_part_of(part: list[str], whole: list[str]) -> bool:
    """Whether one list is the other with some left out."""
    rest = iter(whole)
    return all(any(item == found for found in rest) for item in part)


def test_the_dashboard_showed_every_state_as_it_happened(watched: Watched) -> None:
    jobs = {jid: states for jid, states in watched.truth.statuses.items() if "-_1_st" not in jid}
    first = watched.frames[0].at
    for jid, states in jobs.items():
        uid, _, model = jid.split("-")
        for status in lasting(states):
            shown = [
                frame
                for frame in frames_between(watched.frames, status.at, status.at + SEEN_WITHIN_S)
                if shows(frame, uid, model, WORDS[JobStatus(status.state.replace("error", "failed"))])
            ]
            assert status.at < first or shown, (
                f"{jid} was {status.state} at {status.at} and not on the screen:\n"
                + frames_between(watched.frames, status.at, status.at + SEEN_WITHIN_S)[-1].text
            )


def frames_between(frames: Sequence[Frame], start: float, end: float) -> list[Frame]:
    """What was on the screen at some moment of this time, at least one frame."""
    until = [frame for frame in frames if frame.at <= end] or list(frames[:1])
    return [frame for frame in until if frame.at >= start] or until[-1:]


def shows(frame: Frame, uid: str, model: str, word: str) -> bool:
    """Whether some line is about this user and model, and says this word."""
    return any(uid in line and model[:6] in line and word in line for line in frame.text.splitlines())


def test_one_shot_commands_agree_with_the_records(watched: Watched) -> None:
    quiet = [listing for listing in watched.listings if listing.before == listing.after]
    assert len(quiet) >= len(watched.listings) // 2
    for listing in quiet:
        assert listing.printed == listing.before


def test_every_source_stayed_readable(watched: Watched) -> None:
    assert {health.name: health.state for health in watched.health} == {
        health.name: SourceState.OK for health in watched.health
    }
