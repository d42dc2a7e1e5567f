"""Verdicts on jobs of a real Slurm, of this Debian's release and of a newer one, against what was planted."""

import asyncio
import os
import re
import time
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from jobtui.analysis.explain.case import LIKELY
from tests.commands.running import Runner
from tests.real.live import Due, Told, Watched, compare
from tests.real.slurm_system import SlurmSystem, a_cluster, local_slurm, newer_release
from tests.waiting import wait_for, wait_until

pytestmark = pytest.mark.real

SETTLES_S = 600.0
AWAY_S = 9.0
BACK_S = 60.0
"""Within this time the source is to be read again when slurmctld is back."""


class Plant(NamedTuple):
    """One job: what it runs, how it is submitted, what is done to it when it runs, and the verdict due.

    `act` is a command in which `{}` is its number; root gives those that begin with `root` or scontrol.
    `output` is a line of its own output. `begins` says whether it runs before that is done to it.
    """

    name: str
    script: str
    verdict: str
    options: tuple[str, ...] = ()
    words: str = ""
    act: str = ""
    output: str = ""
    part: str = ""
    begins: bool = True


TOLD = tomllib.loads(Path(__file__).with_name("slurm_plants.toml").read_text())
PARTITIONS, MORE = TOLD.pop("slurm.conf").values()
PLANTS, AFTER = (
    [Plant(**one | {"options": tuple(one.get("options", ()))}) for one in plants] for plants in TOLD.values()
)
LIVE = frozenset({"running", "requeued", "held", "slurm_queued", "never_starts", "waiting_parents"})


class Planted(NamedTuple):
    """The cluster with all of it, and the id of each."""

    system: SlurmSystem
    ids: dict[str, str]


@pytest.fixture(scope="module", params=["this release", "newer release"])
def planted(request: pytest.FixtureRequest) -> Iterator[Planted]:
    inside = newer_release() if request.param == "newer release" else None
    for system in a_cluster(nodes=4, partitions=PARTITIONS, more=MORE, inside=inside):
        yield _planted(system)


def _planted(system: SlurmSystem) -> Planted:
    """Submit all, do to each what is to be done, and wait until what is to end has ended."""
    ids = {plant.name: _submit(system, plant) for plant in PLANTS}
    _act(system, ids)
    for plant in AFTER:
        options = tuple(option.format_map(ids) for option in plant.options)
        ids[plant.name] = _submit(system, plant._replace(options=options))
    wait_for(lambda: _is_settled(system, ids), timeout_s=SETTLES_S, step_s=1.0)
    return Planted(system, ids)


def _submit(system: SlurmSystem, plant: Plant) -> str:
    script = system.work / f"script{len(list(system.work.iterdir()))}.sh"
    script.write_text(f"#!/bin/bash\nexport PATH=/usr/local/bin:/usr/bin:/bin\n{plant.script}\n")
    first = plant.options[: plant.options.index(":")] if ":" in plant.options else plant.options
    where = () if {"-w", "-p"} & set(first) else ("-w", "n1")
    return system.submit_words([f"--job-name={plant.name}", *where, *plant.options, str(script)])


def _act(system: SlurmSystem, ids: dict[str, str]) -> None:
    """Do to each what is to be done, when all of them run, or wait where they are not to run."""
    run = {ids[one.name] for one in PLANTS if one.act and one.begins}
    run |= {ids[name] for name in ("runs", "lost", "lost-again", "licensed")}
    wait_for(lambda: run <= _in_state(system, "RUNNING"), timeout_s=SETTLES_S, step_s=0.5)
    for plant in PLANTS:
        if plant.act:
            words = plant.act.removeprefix("root ").format(ids[plant.name]).split()
            by_root = words[0] == "scontrol" or plant.act.startswith("root ")
            system.run(*words) if by_root else system.run_as_user(*words)
    system.kill_node("n2")
    again = {ids["requeued"]: "now+1hour", ids["lost-again"]: "now+1hour", ids["requeued-fails"]: "now"}
    wait_for(lambda: {*again} <= _in_state(system, "PENDING"), timeout_s=SETTLES_S, step_s=0.5)
    for number, when in again.items():
        system.run("scontrol", "update", f"JobId={number}", f"StartTime={when}")


def _in_state(system: SlurmSystem, state: str) -> set[str]:
    lines = system.run("squeue", "-h", "-r", "-o", "%i %T").splitlines()
    return {line.split()[0].split("+")[0] for line in lines if line.split()[1] == state}


def _is_settled(system: SlurmSystem, ids: dict[str, str]) -> bool:
    """Whether all that is to end has ended, and accounting knows it."""
    live = {ids[plant.name] for plant in (*PLANTS, *AFTER) if plant.verdict in LIVE}
    started = {ids[plant.name] for plant in PLANTS if plant.verdict == "running" and not plant.act}
    if not started <= _in_state(system, "RUNNING"):
        return False
    queued = set[str]().union(*(_in_state(system, one) for one in ("RUNNING", "PENDING", "COMPLETING")))
    told = system.run("sacct", "-a", "-n", "-X", "-P", "-o", "JobID,State").splitlines()
    untold = {line.partition("|")[0] for line in told if line.endswith(("|RUNNING", "|PENDING"))}
    return {re.split(r"[_+]", job_id)[0] for job_id in queued | untold} & {*ids.values()} <= live


@pytest.fixture
def run(planted: Planted, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    monkeypatch.setenv("SLURM_CONF", str(planted.system.conf))
    monkeypatch.setenv("PATH", planted.system.search_path)
    return Runner(capsys)


def _told(planted: Planted, run: Runner, plants: Iterable[Plant]) -> list[Told]:
    """What is said of each of them."""
    told: list[Told] = []
    for plant in plants:
        job_id = f"slurm/{planted.ids[plant.name]}{plant.part}"
        due = Due(plant.verdict, (plant.words,))
        told.append((plant.name, due, run("--slurm", "local", "explain", job_id, "--json").json))
    return told


def test_verdicts_match_the_planted_faults(
    planted: Planted, run: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    release = planted.system.run("squeue", "--version").strip()
    compare(release, _told(planted, run, (*PLANTS, *AFTER)), capsys)


def test_no_verdict_on_a_live_job_is_sure_while_the_controller_is_down(planted: Planted, run: Runner) -> None:
    planted.system.stop_daemon("slurmctld")
    try:
        live = [plant for plant in PLANTS if plant.verdict in LIVE]
        told = _told(planted, run, live)
    finally:
        planted.system.start("slurmctld")
    sure = [(name, said) for name, _, said in told if said.get("confidence", 0.0) >= LIKELY]
    assert not sure


def test_each_job_is_there_once(planted: Planted, run: Runner) -> None:
    rows = run("--slurm", "local", "jobs", "--json").json["jobs"]
    numbers = [row["id"].removeprefix("slurm/") for row in rows]
    for plant in PLANTS:
        number = planted.ids[plant.name]
        mine = [one for one in numbers if re.split(r"[_+]", one)[0] == number]
        due = 3 if "--array=1-3%2" in plant.options else 2 if {":", "--array=1-2%1"} & {*plant.options} else 1
        assert len(mine) == due, (plant.name, mine)
    assert len(set(numbers)) == len(numbers)


def test_logs_are_the_jobs_own(planted: Planted, run: Runner) -> None:
    for plant in PLANTS:
        ran = run("--slurm", "local", "logs", f"slurm/{planted.ids[plant.name]}{plant.part}", "--json")
        texts = [line["text"] for line in ran.json["lines"]]
        assert bool(plant.output) == any(plant.output in text for text in texts if plant.output), plant.name
        others = {other.output for other in PLANTS if other.output and other.output != plant.output}
        assert not others & set(texts), plant.name


def test_runs_that_were_requeued_have_their_times(planted: Planted, run: Runner) -> None:
    for name in ("requeued", "requeued-held", "special", "lost-again"):
        first = run("--slurm", "local", "show", f"slurm/{planted.ids[name]}", "--json").json["history"][0]
        assert first["started_at"], name
        assert first["ended_at"], name
        assert first["status"] != "pending", name


def test_exit_codes_are_causes_of_their_own(planted: Planted, run: Runner) -> None:
    found = run("--slurm", "local", "incidents", "--json", "--since", "1h").json
    groups = [set(one["jobs"]) for one in (*found["incidents"], *found["alone"])]
    ids = [f"slurm/{planted.ids[name]}" for name in ("fails", "not-found", "exit-53", "segv", "term")]
    assert all(sum(job_id in group for job_id in ids) <= 1 for group in groups)


def test_a_controller_that_was_away_is_read_again_soon(planted: Planted, run: Runner) -> None:
    async def watch() -> float:
        watched = Watched(local_slurm())
        await watched.poll()
        polling = asyncio.create_task(watched.poller.run())
        planted.system.stop_daemon("slurmctld")
        await asyncio.sleep(AWAY_S)
        await asyncio.to_thread(planted.system.start, "slurmctld")
        back = time.monotonic()
        number = await asyncio.to_thread(planted.system.submit, "true", "--hold")
        await wait_until(lambda: f"slurm/{number}" in watched.store.jobs, timeout_s=SETTLES_S)
        polling.cancel()
        await watched.source.aclose()
        return time.monotonic() - back

    seconds = asyncio.run(watch())
    print(f"{seconds:.0f} s after it was back")  # noqa: T201
    assert seconds < BACK_S


def test_a_job_that_only_accounting_knows_is_not_surely_wrong(
    planted: Planted, run: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last of them: slurmctld forgets all jobs."""
    planted.system.stop_daemon("slurmctld")
    for state in (planted.system.root / "ctld").glob("job_state*"):
        os.unlink(state)
    planted.system.start("slurmctld")

    told = _told(planted, run, [plant for plant in PLANTS if plant.verdict not in LIVE])
    wrong = [
        (name, said)
        for name, due, said in told
        if said["verdict"] != due.code and said.get("confidence", 0.0) > LIKELY
    ]
    with capsys.disabled():
        print(f"\nonly accounting: {len(told)} verdicts, {len(wrong)} sure and wrong")  # noqa: T201
    assert not wrong, "\n".join(map(str, wrong))
