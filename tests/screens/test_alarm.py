"""The dashboard rings and runs the user's command on new trouble, once, and not too often."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from jobtui.analysis import alerts
from jobtui.analysis.correlation.correlator import Correlator
from jobtui.app import JobtuiApp
from jobtui.backends.registry import Gives, kinds_that_give
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.health import Faults, SourceHealth, SourceState
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.settings import Alarms
from jobtui.screens import alarm
from jobtui.screens.alarm import AlarmCommand
from jobtui.screens.job import Reaching
from jobtui.session import Session
from jobtui.session.evidence import Gatherer
from jobtui.store.store import Store
from tests.builders import a_job, ago
from tests.conftest import NOW
from tests.fakes import ScriptedSource, batch, fail, fail_later
from tests.screens.scene import see
from tests.waiting import wait_until
from tests.widgets.widget_app import press

FACTS = ("TROUBLE_JOB", "TROUBLE_VERDICT", "TROUBLE_JOBS")


def failed(number: int, ended_at: Nanos) -> Job:
    return a_job(number, status=JobStatus.FAILED, ended_at=ended_at, error="no", started_at=ago(400))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alarm, "LOOK_S", 0.02)


@pytest.fixture
def rung(quick: None, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    rings: list[bool] = []
    monkeypatch.setattr(JobtuiApp, "bell", lambda self: rings.append(True))
    return rings


def command_writing(path: Path) -> tuple[str, ...]:
    code = f"import os; open({str(path)!r}, 'a').write(' '.join(os.environ[n] for n in {FACTS!r}) + '\\n')"
    return sys.executable, "-c", code


async def test_new_failures_are_told_together_and_then_it_rests(tmp_path: Path, rung: list[bool]) -> None:
    out = tmp_path / "out"
    source = ScriptedSource([batch(failed(1, ago(300)))])
    session = Session([source], FixedClock(NOW))
    session.alarms = Alarms(bell=True, command=command_writing(out), rest_s=3_600)
    app = JobtuiApp(session)
    async with session, app.run_test() as pilot:
        await wait_until(lambda: session.store.jobs, pilot)
        source.add(batch(failed(2, NOW), failed(3, NOW)))
        await wait_until(out.exists, pilot)
        source.add(batch(failed(4, NOW)))
        await wait_until(lambda: len(session.store.jobs) == 4, pilot)
        await wait_until(lambda: out.read_text().endswith("\n"), pilot)
        assert all(source.state is SourceState.OK for source in session.store.sources())
        assert rung == [True]
        (line,) = out.read_text().splitlines()
        job, verdict, count = line.split()
        assert job in session.store.jobs
        assert verdict == "program_failed"
        assert int(count) in (1, 2)  # it looks for a few milliseconds at a time


async def test_what_is_stuck_by_the_clock_of_its_source_rings(rung: list[bool]) -> None:
    waits = a_job(1, status=JobStatus.PENDING, queued_at=Nanos(NOW + SECOND))
    session = Session([source := ScriptedSource([batch(failed(2, ago(300)))])], FixedClock(NOW))
    session.alarms = Alarms(bell=True)
    async with session, JobtuiApp(session).run_test() as pilot:
        await wait_until(lambda: session.store.jobs, pilot)
        source.add(replace(batch(waits), ahead_s=3_600.0))
        await wait_until(lambda: rung, pilot)


@pytest.mark.usefixtures("quick")
async def test_a_fault_costs_the_alarm_of_no_other_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected_faults: Faults
) -> None:
    out, bad, is_new = tmp_path / "out", failed(3, NOW), alerts.Trouble._is_new
    monkeypatch.setattr(
        alerts.Trouble, "_is_new",
        lambda self, job, now: fail() if job.id == bad.id else is_new(self, job, now),
    )  # fmt: skip
    monkeypatch.setattr(Gatherer, "whole", fail_later)
    source = ScriptedSource([batch(failed(1, ago(300)))])
    session = Session([source], FixedClock(NOW))
    session.alarms = Alarms(command=command_writing(out))
    app = JobtuiApp(session)
    async with session, app.run_test() as pilot:
        await wait_until(lambda: session.store.jobs, pilot)
        source.add(batch(failed(2, NOW), bad))
        await wait_until(lambda: out.exists() and out.read_text().endswith("\n"), pilot)
        await wait_until(lambda: all(worker.group != "alarm" for worker in app.workers), pilot)
    assert out.read_text().split() == [failed(2, NOW).id, "unknown", "1"]
    assert {fault.stage for fault in expected_faults.all()} == {"judging a job", "explaining"}


async def test_failures_are_counted_until_a_key_is_pressed_and_nothing_rings_unasked(
    rung: list[bool],
) -> None:
    source = ScriptedSource([batch(failed(1, ago(300)))])
    session = Session([source], FixedClock(NOW))
    app = JobtuiApp(session)
    async with session, app.run_test(size=(140, 30)) as pilot:
        await wait_until(lambda: session.store.jobs, pilot)
        source.add(batch(failed(2, NOW), failed(3, NOW)))
        await see(app, pilot, "3 failed 1h, 2 new")
        await press(pilot, "j", until="3 failed 1h  ")
    assert not rung


@pytest.mark.usefixtures("quick")
async def test_the_end_of_a_job_is_told_to_who_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(alarm, "write_sequence", lambda app, sequence: written.append(sequence))
    running = a_job(1, status=JobStatus.RUNNING)
    source = ScriptedSource([batch(running)])
    session = Session([source], FixedClock(NOW))
    app = JobtuiApp(session)
    async with session, app.run_test(size=(140, 30)) as pilot:
        await wait_until(lambda: session.store.jobs, pilot)
        await pilot.press("n", "n", "n")
        assert app._shared.awaited == {running.id}
        source.add(batch(replace(running, status=JobStatus.COMPLETED)))
        await wait_until(lambda: written, pilot)
        assert f"{running.id} completed" in written[0]
        await pilot.press("n")
        assert not app._shared.awaited
        assert "it has ended" in [one.message for one in app._notifications]


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
    assert health.error is not None
    assert words in health.error
    assert "[alarm]" in health.error


async def test_one_that_failed_once_and_is_well_again_is_no_trouble(tmp_path: Path) -> None:
    store, flag = a_store(), tmp_path / "flag"
    alarm = AlarmCommand((sys.executable, "-c", f"open({str(flag)!r})"), store)
    await alarm.run({})
    assert [source.state for source in store.sources()] == [SourceState.DOWN]
    flag.touch()
    await alarm.run({})
    assert [source.state for source in store.sources()] == [SourceState.OK]


async def test_a_command_that_hangs_is_ended() -> None:
    health = await ran(sys.executable, "-c", "import time; time.sleep(600)", timeout_s=0.2)
    assert health.error is not None
    assert "was ended after 0.2 s" in health.error


@pytest.mark.parametrize("kind", sorted(kinds_that_give(Gives.LOGS)))
def test_logs_of_any_kind_are_logs_that_are_read(kind: str) -> None:
    (store := a_store()).add_source("it", kind)
    said = Reaching(cast(Any, SimpleNamespace(store=store)), print).silence(a_job().id, None)
    assert said[1:] == ("it: read as a whole",)
