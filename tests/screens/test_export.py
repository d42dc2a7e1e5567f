"""What is taken along: blocks, commands, files in the pager; the mouse; a window of a few lines."""

import asyncio
import gc
import os
import sys
import warnings
from pathlib import Path

import pytest

from jobtui.screens import export
from jobtui.screens.jobs import JobsScreen
from tests.screens.scene import on_jobs
from tests.waiting import wait_until


def only_file(directory: Path) -> Path:
    (path,) = directory.iterdir()
    return path


async def test_a_text_too_long_for_the_clipboard_goes_to_a_named_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with on_jobs(notifications=True) as (scene, pilot, _):
        screen = scene.app.screen
        assert isinstance(screen, JobsScreen)
        screen.copy("long " * 50_000)
        path = only_file(tmp_path)
        await wait_until(lambda: any(str(path) in one.message for one in scene.app._notifications), pilot)
        assert path.read_text() == "long " * 50_000
        assert path.stat().st_mode & 0o777 == 0o600


def test_only_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "none"):
        with pytest.raises(export.NotStarted, match="no such file"):
            export.check_file(str(path))
    with pytest.raises(export.NotStarted, match="ed is not known"):  # the editor only reads
        export.editor_call({"EDITOR": "ed"}, "/a")


def test_a_program_gets_its_words_as_they_are_and_guards(tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = "import os, sys; open(sys.argv[1], 'w').write(sys.argv[2] + os.environ['LESSSECURE'])"
    export.run_program((sys.executable, "-c", script, str(told), "$(id);"), os.environ)
    assert told.read_text() == "$(id);1"
    with pytest.raises(export.NotStarted, match="/nowhere/less: No such file"):
        export.run_program(("/nowhere/less",), os.environ)


def test_a_command_does_not_outlive_the_program(tmp_path: Path) -> None:
    noted = tmp_path / "pid"

    async def program() -> None:
        command = ("sh", "-c", f"read typed; echo $$ > {noted}; exec sleep 600")
        running = asyncio.create_task(export.run_quietly(command, {}, 600, b"\n"))
        await wait_until(lambda: noted.exists() and noted.read_text().endswith("\n"))
        running.cancel()
        await asyncio.sleep(0)  # the end of the loop cancels it a second time

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        asyncio.run(program())
        gc.collect()
    assert not warned
    with pytest.raises(ProcessLookupError):
        os.kill(int(noted.read_text()), 0)
