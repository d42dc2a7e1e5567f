"""The verdict on top of a job's screen, kept current, and what it rests on in a tab of its own."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from jobtui.model.jobs import JobStatus
from jobtui.model.ops import Component, OpStatus
from jobtui.screens.job import JobScreen
from jobtui.screens.text import ReadingScreen
from tests.builders import a_job, a_step, ago, an_op, job_id
from tests.fakes import batch
from tests.screens.captured import opened
from tests.screens.scene import FAILED, THREE, Scene, see, with_runs
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text

JOB = job_id(1)
COMPARED = "DJouDZ9T-4F4EUZjI-heightWeightReport"
GOOD = "W75u0t3i-ahPf2peS-heightWeightReport"
PENDING = {"status": JobStatus.PENDING, "started_at": None}


def waiting(queued_s: float) -> Scene:
    steps = [
        a_step("op created", 60 - queued_s),
        a_step("agent start", 60 - queued_s, component=Component.DRIVER, text="await=_agent_ready"),
    ]
    job = a_job(1, queued_at=ago(queued_s), **PENDING)
    scene = Scene([batch(job)], open_at=JOB)
    op = an_op(
        jid=JOB, steps=steps, status=OpStatus.CREATED, sends=0, replies=0, agent=None, sent_at=None,
        created_at=ago(queued_s),
    )  # fmt: skip
    scene.correlation.put(JOB, op)
    return scene


async def first(scene: Scene, pilot: Pilot[None], words: str) -> str:
    """The second line of the screen when it says this."""
    await wait_until(lambda: words in screen_text(scene.app)[1], pilot)
    return screen_text(scene.app)[1]


async def test_the_verdict_is_on_top_and_changes_with_the_record() -> None:
    scene = waiting(3)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        line = await first(scene, pilot, "90 %")  # less before its record is read
        assert "Its agent is being started for 3s" in line
        scene.db.add(batch(a_job(1, status=JobStatus.COMPLETED, ended_at=ago(1), started_at=ago(2))))
        assert "It completed" in await first(scene, pilot, "completed")


async def test_time_alone_makes_a_verdict_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.screens.job_verdict.LIVE_S", 0.0)
    scene = waiting(3)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await first(scene, pilot, "is being started")
        scene.clock.advance(60)
        await first(scene, pilot, "no answer of it was read")


async def test_in_a_small_pane_there_is_the_sentence_alone_and_why_begins_with_all_of_it() -> None:
    scene = waiting(60)
    async with scene.app.run_test(size=(40, 10)) as pilot:
        assert "%" not in await first(scene, pilot, "Its agent was started")
        lines = await press(pilot, "w", until="agent_never_started")
        assert "no answer of it was read" in " ".join(" ".join(lines).split())


async def test_evidence_opens_and_commands_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = with_runs(Scene(open_at=FAILED), *THREE)
    copied: list[str] = []
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await see(scene.app, pilot, "run 3 of 3")
        monkeypatch.setattr(JobScreen, "copy", lambda self, text: copied.append(text))
        lines = await press(pilot, "w", until="program_failed")
        assert any("status error  …/supervisor.log:88214" in line for line in lines)
        await press(pilot, "enter", until=ReadingScreen)
        await see(scene.app, pilot, "error: no such element: crystal3")
        await pilot.press("escape", "G", "y")
        assert copied == [
            f"jobtui --srdb /srv/db --log /var/log/supervisor.log --log /srv/none/agent.log logs {FAILED}"
        ]


async def test_a_failed_run_beside_a_good_one() -> None:
    async with opened() as (app, pilot):
        await press(pilot, "d", until=ReadingScreen)
        text = "\n".join(await see(app, pilot, "beside the last good run"))
        assert f"beside {GOOD} run 1: the last good run of heightWeightReport" in text
        assert "first difference" in text
        screen = app.screen
        assert isinstance(screen, ReadingScreen)
        taken = await screen.taken()
        assert taken is not None
        assert taken.command == f"jobtui compare {COMPARED} {GOOD}"


async def test_what_cannot_be_read_is_named() -> None:
    scene = waiting(60)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await first(scene, pilot, "Its agent was started")
        await press(pilot, "w", until="/srv/none/agent.log cannot be read")


async def test_files_that_are_not_here_are_not_offered(tmp_path: Path) -> None:
    """As its record says where the job ran, on another machine."""
    job = a_job(1, status=JobStatus.FAILED, error="e", ended_at=ago(9))
    run_dir = tmp_path / "run"
    for is_here in (False, True):
        scene = Scene([batch(job)], open_at=JOB)
        scene.correlation.put(JOB, an_op(jid=JOB, run_dir=str(run_dir)))
        async with scene.app.run_test(size=(120, 40)) as pilot:
            await first(scene, pilot, "Its program failed")
            lines = await press(pilot, "w", until="read all lines about it")
            assert any(f"{run_dir}/in.json" in line for line in lines) is is_here
        run_dir.mkdir(exist_ok=True)
        (run_dir / "in.json").touch()
