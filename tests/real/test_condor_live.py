"""jobtui on a real HTCondor pool: verdicts beside what was planted; and beside HTCondor's own library."""

import asyncio
import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from jobtui.backends.condor.source import CondorFile
from jobtui.formats.job_output import read_date
from jobtui.model.condor import condor_id
from jobtui.model.condor_life import EVENTS
from jobtui.model.health import SourceState
from jobtui.store.store import Store
from tests.commands.running import Runner
from tests.condor import CONDOR, executing, facts_in, facts_of, submitted
from tests.real.condor_pool import FORMS, JOBS, OF_DAG, SLEEP, CondorPool, plant, plant_dag
from tests.real.live import Due, Told, Watched, compare

pytestmark = pytest.mark.real

PYTHON = os.environ.get("REAL_HTCONDOR_PYTHON", "")
READER = Path(__file__).with_name("condor_reading.py")
COMPARED = (
    "SubmitHost", "ExecuteHost", "SlotName", "HoldReason", "HoldReasonCode", "HoldReasonSubCode", "Reason",
    "ReturnValue", "TerminatedBySignal", "JobsubJobId", "StartdName", "DisconnectReason",
)  # fmt: skip
"""Attributes that mean the same in both, where both have them."""

needs_library = pytest.mark.skipif(not PYTHON, reason="HTCondor's library is not there")


def read_by_library(*paths: Path) -> list[dict[str, object]]:
    """The events of files, with the attributes of each."""
    command = [PYTHON, str(READER), *map(str, paths)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"TZ": "UTC"})
    return [json.loads(line) for line in ran.stdout.splitlines()]


@needs_library
def test_every_event_is_read_as_by_htcondor_itself() -> None:
    for path in sorted(CONDOR.glob("*.log")):
        told, facts = read_by_library(path), facts_in(path)
        assert len(told) == len(facts) > 0
        for theirs, ours in zip(told, facts, strict=True):
            number = condor_id(ours.job)
            assert number is not None
            assert (theirs["Cluster"], theirs["Proc"]) == (number.cluster, number.proc)
            kind = EVENTS.get(int(str(theirs["EventTypeNumber"])))
            assert kind is not None
            assert kind.name == ours.what
            moment = read_date(str(theirs["EventTime"]))
            assert moment is not None
            assert moment[0] == ours.at
            both = [name for name in COMPARED if name in theirs and name in ours.values]
            assert {name: str(theirs[name]) for name in both} == {name: ours.values[name] for name in both}


@needs_library
def test_a_damaged_event_costs_that_event_and_not_all_that_follow(tmp_path: Path) -> None:
    path = tmp_path / "damaged.log"
    path.write_text(submitted() + "000 (8.0.0) 2026-11-20 10:0\0\n...\n" + executing())
    with pytest.raises(subprocess.CalledProcessError):
        read_by_library(path)  # why it is not what reads logs here
    assert [fact.what for fact in facts_in(path)] == ["submit", "execute"]


class Scene(NamedTuple):
    """A pool with its jobs in their states. `followed` is what a dashboard knows that read all the while."""

    pool: CondorPool
    form: str
    numbers: Mapping[str, str]
    ads: tuple[Path, Path]
    followed: Store


class Following(threading.Thread):
    """Follows the pool's own event log as a dashboard does."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.watched = Watched(CondorFile(path))
        self._ends = threading.Event()

    def run(self) -> None:
        asyncio.run(self._follow())

    async def _follow(self) -> None:
        while not self._ends.is_set():
            await asyncio.sleep(0.5)
            await self.watched.poll()
        await self.watched.poll()
        await self.watched.source.aclose()

    def end(self) -> Store:
        self._ends.set()
        self.join(60)
        return self.watched.store


@pytest.fixture(scope="module", params=FORMS)
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    form = str(request.param)
    more = "EVENT_LOG = $(LOG)/EventLog\nEVENT_LOG_MAX_SIZE = 20000\nEVENT_LOG_MAX_ROTATIONS = 30\n"
    if form != "classic":
        more += f"EVENT_LOG_FORMAT_OPTIONS = {form}\n"
    with CondorPool(more) as pool:
        following = Following(pool.root / "log" / "EventLog")
        following.start()
        numbers = {**plant_dag(pool, form), **plant(pool, form)}
        option = {"classic": "-long", "XML": "-xml", "JSON": "-json"}[form]
        ads = (pool.root / "queue.ads", pool.root / "history.ads")
        ads[0].write_text(pool.run("condor_q", "-allusers", option))
        ads[1].write_text(pool.run("condor_history", option))
        yield Scene(pool, form, numbers, ads, following.end())


def event_log_of(scene: Scene, name: str) -> Path:
    log = OF_DAG[name][0] if name in OF_DAG else f"{list(JOBS).index(name)}.log"
    return scene.pool.work / log


def test_every_verdict_is_what_was_planted(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    run, told = Runner(capsys), list[Told]()
    schedd_log = scene.pool.root / "log" / "EventLog"
    assert len(list(schedd_log.parent.glob("EventLog*"))) > 2
    for name, number in scene.numbers.items():
        own = event_log_of(scene, name)
        ways = {"log": (own,), "schedd's log": (schedd_log,), "ads": scene.ads, "all": (own, *scene.ads)}
        for way, paths in ways.items():
            flags = [word for path in paths for word in ("--condor-log", path)]
            said = run(*flags, "explain", number, "--json")
            document = said.json if said.out else {"verdict": said.err, "sentence": ""}
            told.append((f"{name}, {way}", right_of(name, way), document))
    compare(scene.form, told, capsys)
    assert len(told) == 4 * (len(JOBS) + len(OF_DAG))


def right_of(name: str, way: str) -> Due:
    """What must be said of a job by what is read."""
    if name in OF_DAG:
        _, verdict, says = OF_DAG[name]
        return Due(verdict, (says,))
    planted = JOBS[name]
    if planted.by_log is not None and way in ("log", "schedd's log"):
        return Due(planted.by_log)
    return Due(planted.verdict, (planted.says,))


def test_what_was_followed_over_rotations_is_what_became_of_the_jobs(scene: Scene) -> None:
    by_number = {job_id.partition("@")[0]: job for job_id, job in scene.followed.jobs.items()}
    for name, planted in JOBS.items():
        job = by_number[scene.numbers[name]]
        expected = {"held at submit": "pending", "good with 3": "failed"}.get(name, planted.status)
        assert (name, job.status.value) == (name, expected)
        assert job.alert != "a part of its log is missing"
        if planted.runs is not None:
            detail = scene.followed.detail(job.id)
            assert detail is not None
            assert (name, [run.status.value for run in detail.runs]) == (name, planted.runs)
    (health,) = scene.followed.sources()
    assert (health.skipped, health.state) == (0, SourceState.OK)


UNMET = (
    "request_memory = 64000", 'requirements = HasFileTransfer && OpSys == "WINDOWS"', "request_gpus = 1",
    'request_memory = 15900\nrequirements = (TARGET.Cpus > 2 && SlotType =!= "x") && TARGET.Nothing > 3',
)  # fmt: skip
_STEP = re.compile(r"^\[\d+\] +(\d+)(?: +\d+)?  (\S.*)$", re.MULTILINE)


def test_as_many_slots_meet_a_condition_as_htcondor_says(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, run, compared = scene.pool, Runner(capsys), 0
    numbers = [f"{pool.submit(f'{SLEEP}{asks}{chr(10)}queue{chr(10)}')}.0" for asks in UNMET]
    files = (pool.root / "machines.json", pool.root / "queue.json")
    for path, command in zip(files, (("condor_status",), ("condor_q", "-allusers")), strict=True):
        path.write_text(pool.run(*command, "-json"))
    for number in numbers:
        theirs = {
            text: count for count, text in _STEP.findall(pool.run("condor_q", "-better-analyze", number))
        }
        said = run("--condor-log", files[0], "--condor-log", files[1], "explain", number, "--json").json
        needs = {one["what"].partition(" (= ")[0]: one["how"].split()[0] for one in said["pending"]["needs"]}
        both = {text for text in theirs.keys() & needs.keys() if needs[text] != "not"}
        assert {text: needs[text] for text in both} == {text: theirs[text] for text in both}
        assert "which none of the 1 slot in" in said["sentence"]
        compared += len(both)
    assert compared >= len(UNMET)


def test_no_event_of_the_pool_is_lost_or_makes_no_sense(scene: Scene) -> None:
    for path in (*scene.pool.work.glob("*.log"), *scene.pool.root.glob("log/EventLog*")):
        text = path.read_text()
        mark = "EventTypeNumber" if text[:1] in ("<", "{") else "\n...\n"
        facts = facts_of(text.encode(), str(path))
        assert (path.name, len(facts)) == (path.name, text.count(mark))
