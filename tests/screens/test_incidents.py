"""Recent failures, what was seen before, nodes; a new failure rings and runs a command, once."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from jobtui.analysis import alerts
from jobtui.analysis.correlation.correlator import Correlator
from jobtui.app import JobtuiApp
from jobtui.backends.registry import Gives, kinds_that_give
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.health import FailingPart, Faults, SourceHealth, SourceState
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.memory import Deviation, MemoryOverview
from jobtui.model.settings import Alarms
from jobtui.recording.database import RecordingError
from jobtui.screens import alarm
from jobtui.screens.alarm import AlarmCommand
from jobtui.screens.choices import ChoosingScreen
from jobtui.screens.incidents import SeenScreen
from jobtui.screens.job import JobScreen, LogBackReader
from jobtui.screens.nodes import NODES_EVERY_S, NodesScreen
from jobtui.session.evidence import Gatherer
from jobtui.store.store import Store
from tests.builders import a_job, ago, job_id, some
from tests.conftest import NOW
from tests.fakes import ScriptedSource, batch, fail, fail_later
from tests.screens.captured import app_on, shown
from tests.screens.scene import Scene, read, see
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text, text


async def test_an_empty_list_of_incidents_says_why() -> None:
    def asked(now: Nanos) -> MemoryOverview:
        raise RecordingError("memory.jobtui: damaged")

    scene = Scene()
    scene.app._shared.overview = asked
    async with read(scene) as (_, pilot):
        await press(pilot, "colon", *"seen", "enter", until=SeenScreen)
        await see(scene.app, pilot, "memory.jobtui: damaged")


async def test_a_fault_in_asking_is_counted_and_the_screen_stays(expected_faults: Faults) -> None:
    def asked(now: Nanos) -> MemoryOverview:
        raise LookupError("hunter2")

    scene = Scene()
    scene.app._shared.overview = asked
    async with read(scene) as (_, pilot):
        await press(pilot, "colon", *"seen", "enter", until=SeenScreen)
        await wait_until(lambda: len(expected_faults) > 1, pilot)  # of the screen and of the alarm
        assert {fault.stage for fault in expected_faults.all()} == {"asking the memory"}
        await see(scene.app, pilot, "Nothing is remembered")


async def test_sites_that_deviate_are_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.screens.alarm.LOOK_S", 0.02)
    monkeypatch.setattr("jobtui.screens.alarm.SITES_S", 0.0)
    asked = 0

    def overview(now: Nanos) -> MemoryOverview:
        nonlocal asked
        asked += 1
        all = [Deviation("host", host, "failures", Nanos(NOW - SECOND), 0.31, 0.04) for host in ("v7", "v8")]
        return MemoryOverview(sites=tuple(all[: 1 + asked % 2]))

    scene = Scene()
    scene.app._shared.overview = overview
    told: list[str] = []
    monkeypatch.setattr(scene.app, "notify", lambda words, **how: told.append(words))
    async with read(scene) as (_, pilot):
        await wait_until(lambda: asked > 5, pilot)
    (words,) = told
    assert "v7" in words
    assert "usually 4 %" in words


def failed(number: int, ago_s: float, error: str = "no such element: crystal3", **fields: object) -> Job:
    return a_job(number, status=JobStatus.FAILED, error=error, ended_at=ago(ago_s), **fields)


JOBS = (
    *(failed(number, 600 - number, host="v2", owner=f"user{number:04d}") for number in range(1, 6)),
    failed(7, 30, error="out of coffee", host="v4"),
    failed(8, 2 * 86_400, error="long ago"),
    *(a_job(number, status=JobStatus.COMPLETED, ended_at=ago(60), host="v1") for number in range(10, 30)),
)


async def test_groups_with_what_they_share_open_at_their_first_job_or_list_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jobtui.screens.incidents.RENEW_S", 0.0)
    scene = Scene([batch(*JOBS)])
    async with read(scene) as (_, pilot):
        await pilot.press("7")
        lines = await see(scene.app, pilot, "jobs of the last")
        text = "\n".join(lines)
        assert "1 group, 1 single failure · 26 jobs of the last 24 h" in text
        (group,) = (line for line in lines if line.strip().startswith("5 "))
        assert "program_failed" in group
        assert "host v2" in group
        assert "long ago" not in text
        await see(scene.app, pilot, f"jobs     {job_id(1)}")
        await press(pilot, "o", until=ChoosingScreen)
        assert sum("no such element" in line for line in screen_text(scene.app)) == 5
        await press(pilot, "j", "enter", until=JobScreen)
        assert str(job_id(2)) in screen_text(scene.app)[0]
        await press(pilot, "escape", "enter", until=str(job_id(1)))
        await press(pilot, "escape", "w", until="27 jobs of the last 7 days")
        scene.db.add(batch(failed(40, 5, error="disk full")))
        await see(scene.app, pilot, "28 jobs of the last 7 days")


async def test_while_sources_are_read_it_says_so_and_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.screens.incidents.EARLY_S", 0.0)
    scene = Scene([batch(*JOBS, more=True), batch(failed(40, 10, error="late one"))])
    scene.db.hold()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "7", until="still reading")
        scene.db.go_on()
        await see(scene.app, pilot, "late one")
        await wait_until(lambda: "still reading" not in "\n".join(screen_text(scene.app)), pilot)


async def test_the_window_that_is_looked_at_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    survey, turns = Gatherer.survey, asyncio.Semaphore(1)

    async def in_turn(*asked: Any) -> object:
        await turns.acquire()
        return await survey(*asked)

    monkeypatch.setattr(Gatherer, "survey", in_turn)
    monkeypatch.setattr("jobtui.screens.incidents.RENEW_S", 0.0)
    found = "1 single failure in 7 days; no failures in the last 24 h"
    async with read(Scene([batch(JOBS[6])])) as (scene, pilot):
        await press(pilot, "7", until="no failures in the last 24 h; looking at the last 7 days")
        turns.release()
        await see(scene.app, pilot, found)
        turns.release()
        scene.db.add(batch(JOBS[-1]))
        await wait_until(turns.locked, pilot)
        assert found in text(scene.app)
        await press(pilot, "w", until="looking at the last 7 days")
        turns.release()
        await see(scene.app, pilot, "1 single failure · 2 jobs of the last 7 days")


NAMED = ("colon", *"nodes", "enter")


async def test_clusters_are_asked_while_it_is_open_only() -> None:
    asked: list[float | None] = []
    async with read(Scene()) as (scene, pilot):
        scene.app._shared.ask_for_nodes = asked.append
        await press(pilot, *NAMED, until=NodesScreen)
        await wait_until(lambda: asked[-1:] == [NODES_EVERY_S], pilot)
        scene.db.add(batch(failing=(FailingPart("nodes", "sinfo: denied"),)))
        await see(scene.app, pilot, "nodes cannot be read: sinfo: denied")
        await pilot.press("escape")
        await wait_until(lambda: asked[-1:] == [None], pilot)


FACTS = ("TROUBLE_JOB", "TROUBLE_VERDICT", "TROUBLE_JOBS")


def ended_badly(number: int, ended_at: Nanos) -> Job:
    return a_job(number, status=JobStatus.FAILED, ended_at=ended_at, error="no", started_at=ago(400))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alarm, "LOOK_S", 0.02)


@pytest.fixture
def rung(quick: None, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    rings: list[bool] = []
    monkeypatch.setattr(JobtuiApp, "bell", lambda self: rings.append(True))
    return rings


@asynccontextmanager
async def alarmed(*jobs: Job, **alarms: Any) -> AsyncIterator[tuple[JobtuiApp, Pilot[None], ScriptedSource]]:
    """The dashboard with such alarms, when it knows these jobs; by default one that failed before."""
    source = ScriptedSource([batch(*(jobs or (ended_badly(1, ago(300)),)))])
    async with shown(app_on(source, alarms=Alarms(**alarms)), (140, 30)) as (app, pilot):
        await wait_until(lambda: app._session.store.jobs, pilot)
        yield app, pilot, source


def command_writing(path: Path) -> tuple[str, ...]:
    code = f"import os; open({str(path)!r}, 'a').write(' '.join(os.environ[n] for n in {FACTS!r}) + '\\n')"
    return sys.executable, "-c", code


async def test_new_failures_are_reported_together_then_it_rests(tmp_path: Path, rung: list[bool]) -> None:
    out = tmp_path / "out"
    command = command_writing(out)
    async with alarmed(bell=True, command=command, rest_s=3_600) as (app, pilot, source):
        session = app._session
        source.add(batch(ended_badly(2, NOW), ended_badly(3, NOW)))
        await wait_until(out.exists, pilot)
        source.add(batch(ended_badly(4, NOW)))
        await wait_until(lambda: len(session.store.jobs) == 4, pilot)
        await wait_until(lambda: out.read_text().endswith("\n"), pilot)
        assert all(source.state is SourceState.OK for source in session.store.sources())
        assert rung == [True]
        (line,) = out.read_text().splitlines()
        job, verdict, count = line.split()
        assert job in session.store.jobs
        assert verdict == "program_failed"
        assert int(count) in (1, 2)  # it looks for a few milliseconds at a time


async def test_the_bell_rings_for_a_job_stuck_by_the_clock_of_its_source(rung: list[bool]) -> None:
    waits = a_job(1, status=JobStatus.PENDING, queued_at=Nanos(NOW + SECOND))
    async with alarmed(ended_badly(2, ago(300)), bell=True) as (_, pilot, source):
        source.add(replace(batch(waits), ahead_s=3_600.0))
        await wait_until(lambda: rung, pilot)


async def test_a_fault_costs_the_alarm_of_no_other_job_and_nothing_rings_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rung: list[bool], expected_faults: Faults
) -> None:
    out, bad, is_new = tmp_path / "out", ended_badly(3, NOW), alerts.AlertFinder._is_new
    monkeypatch.setattr(
        alerts.AlertFinder, "_is_new",
        lambda self, job, now: fail() if job.id == bad.id else is_new(self, job, now),
    )  # fmt: skip
    monkeypatch.setattr(Gatherer, "whole", fail_later)
    async with alarmed(command=command_writing(out)) as (app, pilot, source):
        source.add(batch(ended_badly(2, NOW), bad))
        await wait_until(lambda: out.exists() and out.read_text().endswith("\n"), pilot)
        await wait_until(lambda: all(worker.group != "alarm" for worker in app.workers), pilot)
    assert (out.read_text().split(), rung) == ([ended_badly(2, NOW).id, "unknown", "1"], [])
    assert {fault.stage for fault in expected_faults.all()} == {"judging a job", "explaining"}


@pytest.mark.usefixtures("quick")
async def test_the_end_of_a_job_is_told_if_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, written = tmp_path / "out", list[str]()
    monkeypatch.setattr(alarm, "write_sequence", lambda app, sequence: written.append(sequence))
    running = a_job(1, status=JobStatus.RUNNING)
    async with alarmed(running, command=command_writing(out)) as (app, pilot, source):
        await pilot.press("n", "n", "n")
        assert app._shared.awaited == {running.id}
        source.add(batch(replace(running, status=JobStatus.COMPLETED)))
        await wait_until(lambda: written, pilot)
        assert f"{running.id} completed" in written[0]
        await wait_until(lambda: out.exists() and out.read_text().endswith("\n"), pilot)
        assert out.read_text().split() == [running.id, "completed", "1"]
        await pilot.press("n")
        assert f"already ended: {running.id}" in [one.message for one in app._notifications]
        assert alarm.toggle_awaited(app._shared, [running.id] * 2) == "already ended: 2 jobs"


def a_store() -> Store:
    return Store(Correlator(), FixedClock(NOW))


async def ran(*command: str, timeout_s: float = 30.0, **facts: str) -> SourceHealth:
    store = a_store()
    await AlarmCommand(command, store, timeout_s).run(facts)
    (health,) = store.sources()
    return health


async def test_facts_are_variables_and_no_shell_reads_anything(tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = f"import os, sys; open({str(out)!r}, 'w').write(os.environ['TROUBLE_JOB'] + ' ' + sys.argv[1])"
    store, command = a_store(), (sys.executable, "-c", code, "$(touch x); `id`")
    await AlarmCommand(command, store).run({"TROUBLE_JOB": "a; $(touch y) 'b"})
    assert store.sources() == ()
    assert out.read_text() == "a; $(touch y) 'b $(touch x); `id`"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("/no/such/program",), "No such file"),
        ((sys.executable, "-c", "raise SystemExit(3)"), "exit code 3"),
        ((sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"), "signal 9"),
    ],
)
async def test_a_command_that_fails_is_a_line_among_the_sources(command: tuple[str, ...], words: str) -> None:
    health = await ran(*command)
    assert health.state is SourceState.DOWN
    assert words in some(health.error)
    assert "[alarm]" in some(health.error)


async def test_an_alarm_command_that_works_again_is_ok(tmp_path: Path) -> None:
    store, flag = a_store(), tmp_path / "flag"
    alarm = AlarmCommand((sys.executable, "-c", f"open({str(flag)!r})"), store)
    await alarm.run({})
    assert [source.state for source in store.sources()] == [SourceState.DOWN]
    flag.touch()
    await alarm.run({})
    assert [source.state for source in store.sources()] == [SourceState.OK]


async def test_a_command_that_hangs_is_ended() -> None:
    health = await ran(sys.executable, "-c", "import time; time.sleep(600)", timeout_s=0.2)
    assert "was stopped after 0.2 s" in some(health.error)


@pytest.mark.parametrize("kind", sorted(kinds_that_give(Gives.LOGS)))
def test_logs_of_any_kind_are_logs_that_are_read(kind: str) -> None:
    (store := a_store()).add_source("it", kind)
    said = LogBackReader(cast(Any, SimpleNamespace(store=store)), print).silence(a_job().id, None)
    assert said[1:] == ("it: not read yet",)
