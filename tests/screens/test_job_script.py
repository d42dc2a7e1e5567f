"""The script of a job in a tab of its screen."""

import os
from pathlib import Path

import pytest

from jobtui.backends.archive.source import ArchiveDirectory
from jobtui.model.jobs import JobStatus
from jobtui.screens.text import ReadingScreen
from jobtui.widgets.text_pane import SpanPane
from tests.backends.archive.captured import DAY, SUBMITTED, archive_in
from tests.builders import a_job, ago
from tests.fakes import batch
from tests.screens.scene import Scene, see
from tests.widgets.widget_app import press


def scene_of(place: Path, native: str, **fields: object) -> Scene:
    usual = {"queued_at": SUBMITTED, "started_at": SUBMITTED, "status": JobStatus.FAILED, "mode": ""}
    job = a_job(id=f"slurm/{native}", system="slurm", **(usual | fields))
    scene = Scene([batch(job)], open_at=job.id)
    scene.session.add(ArchiveDirectory(str(place), "huppel"))
    return scene


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 10)])
async def test_script_environment_and_where_they_were(tmp_path: Path, size: tuple[int, int]) -> None:
    scene = scene_of(archive_in(tmp_path, DAY), "2")
    async with scene.app.run_test(size=size) as pilot:
        lines = await press(pilot, "s", until="#SBATCH --job-name=lattice-fit")
        if size[0] == 120:
            shown = "\n".join(lines)
            for words in ("lattice-2.out", "lattice-2.err", "found", "SIM_OPTS=a=b c=d", "MULTI=line1␊line2"):
                assert words in shown
            assert f"{DAY}/job.2_script" in scene.app.screen.query_one(".about", SpanPane).text


async def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    scene = scene_of(archive_in(tmp_path, DAY), "77", queued_at=ago(86_400 * 400))
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "s", until="no script was found")
        await see(scene.app, pilot, "archive began later")


async def test_its_output_is_read_by_enter(tmp_path: Path) -> None:
    place = archive_in(tmp_path / "archive", DAY)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "beam-1.out").write_text("step 3/3\n[bold]done\x1b[31m\n")
    script = place / DAY / "job.1_script"
    script.write_text(f"#!/bin/sh\n#SBATCH -D {tmp_path / 'work'}\n#SBATCH -o beam-%j.out\n")
    os.utime(script, ns=(SUBMITTED, SUBMITTED))
    scene = scene_of(place, "1")
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "s", until="environment")
        await press(pilot, "enter", until=ReadingScreen)
        await see(scene.app, pilot, "[bold]done␛[31m")


async def test_a_large_script_is_cut_and_scrolled(tmp_path: Path) -> None:
    directory = archive_in(tmp_path, DAY) / DAY
    (directory / "job.1_script").write_text("".join(f"echo {n}\n" for n in range(200_000)))
    scene = scene_of(tmp_path, "1")
    async with scene.app.run_test(size=(100, 30)) as pilot:
        await press(pilot, "s", until="echo 3")
        await press(pilot, "G", until="jobtui script shows all")
        await press(pilot, "tab", "G", until="USER=jobuser")
        assert scene.app.screen.query_one(".about", SpanPane).is_active
