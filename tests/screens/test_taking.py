"""What is taken along: blocks, commands, files in the pager; the mouse; a window of a few lines."""

import os
import sys
from base64 import b64decode
from pathlib import Path

import pytest
from textual.pilot import Pilot

from jobtui.model.jobs import JobDetail
from jobtui.screens import outside
from jobtui.screens.help import HelpScreen
from jobtui.screens.job import JobScreen
from jobtui.screens.jobs import JobsScreen
from jobtui.widgets.job_table import JobTable
from tests.builders import job_id
from tests.screens.scene import FAILED, Scene, jobs
from tests.waiting import wait_until
from tests.widgets.stage import screen_text

JOBTUI = "jobtui --srdb /srv/db --log /var/log/supervisor.log --log /srv/none/agent.log"


async def ready(scene: Scene, pilot: Pilot[None]) -> JobTable:
    screen = scene.app.screen_stack[0]
    table = screen.query_one(JobTable)
    await wait_until(lambda: scene.is_read() and table.total == len(jobs()), pilot)
    return table


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    monkeypatch.setattr(JobsScreen, "copy", lambda self, text: texts.append(text))
    return texts


def only_file(directory: Path) -> Path:
    (path,) = directory.iterdir()
    return path


def said(scene: Scene) -> list[str]:
    return [toast.message for toast in scene.app._notifications]


async def test_a_block_and_the_command_that_shows_the_same(copied: list[str]) -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await ready(scene, pilot)
        await pilot.press("Y", "ctrl+y")
        await wait_until(lambda: len(copied) == 2, pilot)
    assert "name      Beamline 7 survey" in copied[0]
    assert f"id        {job_id(1)}" in copied[0]
    assert copied[1] == f"{JOBTUI} jobs"


async def test_where_there_is_nothing_it_is_said_so() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40), notifications=True) as pilot:
        await ready(scene, pilot)
        await pilot.press("question_mark")
        await wait_until(lambda: isinstance(scene.app.screen, HelpScreen), pilot)
        await pilot.press("P", "ctrl+y")
        await wait_until(lambda: len(said(scene)) == 2, pilot)
        assert said(scene) == ["there is no file behind this", "copied jobtui --help"]


async def test_what_no_clipboard_takes_is_written_to_a_file_that_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    scene = Scene()
    async with scene.app.run_test(size=(120, 40), notifications=True) as pilot:
        await ready(scene, pilot)
        screen = scene.app.screen
        assert isinstance(screen, JobsScreen)
        screen.copy("long " * 50_000)
        path = only_file(tmp_path)
        await wait_until(lambda: any(str(path) in words for words in said(scene)), pilot)
        assert path.read_text() == "long " * 50_000
        assert path.stat().st_mode & 0o777 == 0o600


def test_the_pager_is_one_that_sends_nothing_raw() -> None:
    assert outside.pager_call({"PAGER": "less -S -r"}, "/a b", 7).words == (
        "less", "-S", "-r", "-+r", "-+R", "+7", "/a b",
    )  # fmt: skip
    for pager in ("", "cat", "sh -c 'rm x'", "unbalanced '"):
        assert outside.pager_call({"PAGER": pager}, "/a").words == ("less", "-+r", "-+R", "/a")


def test_the_editor_only_reads() -> None:
    assert outside.editor_call({"EDITOR": "/usr/bin/vim -n"}, "/a", 3).words == (
        "/usr/bin/vim", "-n", "-R", "+3", "/a",
    )  # fmt: skip
    assert outside.editor_call({"EDITOR": "vim", "VISUAL": "nano"}, "/a").words == ("nano", "-v", "/a")
    with pytest.raises(outside.NotStarted, match="ed is not known"):
        outside.editor_call({"EDITOR": "ed"}, "/a")


def test_only_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "none"):
        with pytest.raises(outside.NotStarted, match="no such file"):
            outside.check(str(path))


def test_a_program_gets_its_words_as_they_are_and_guards(tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = "import os, sys; open(sys.argv[1], 'w').write(sys.argv[2] + os.environ['LESSSECURE'])"
    outside.run(outside.Call((sys.executable, "-c", script, str(told), "$(id);")), os.environ)
    assert told.read_text() == "$(id);1"
    with pytest.raises(outside.NotStarted, match="/nowhere/less: No such file"):
        outside.run(outside.Call(("/nowhere/less",)), os.environ)


async def test_a_record_is_opened_at_its_path(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text("{}")
    scene = Scene()
    job = jobs()[0]
    detail = JobDetail(job=job, runs=(), history=(), native={}, path=str(path))
    scene.db._details = {job.id: detail}
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await ready(scene, pilot)
        screen = scene.app.screen
        assert isinstance(screen, JobsScreen)
        taken = await screen.taken()
        assert taken is not None
        assert taken.path == str(path)


@pytest.mark.parametrize("size", [(80, 1), (40, 1), (40, 3)], ids=lambda size: "x".join(map(str, size)))
async def test_a_few_lines_say_how_many_and_what_is_worst(size: tuple[int, int]) -> None:
    scene = Scene()
    async with scene.app.run_test(size=size) as pilot:
        await ready(scene, pilot)
        await wait_until(lambda: "●3 ○2 !" in screen_text(scene.app)[0], pilot)
        assert "! ○ pending" in screen_text(scene.app)[0]
        await pilot.press("p")
        await wait_until(lambda: "paused" in screen_text(scene.app)[0], pilot)
        await pilot.press("slash")
        await wait_until(lambda: screen_text(scene.app)[-1].startswith(" /"), pilot)
        await pilot.press("escape", "p")
        await pilot.resize_terminal(80, 24)
        await wait_until(lambda: "21:00:00Z" in screen_text(scene.app)[0], pilot)


async def test_fifty_sizes_in_a_row() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await ready(scene, pilot)
        for number in range(50):
            await pilot.resize_terminal(1 + number * 37 % 200, 1 + number * 11 % 60)
        await pilot.resize_terminal(120, 40)
        await wait_until(lambda: any("Beamline 7 survey" in line for line in screen_text(scene.app)), pilot)
        assert all(len(line) <= 120 for line in screen_text(scene.app))


async def test_copied_bytes_are_those_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await ready(scene, pilot)
        written: list[str] = []
        assert scene.app._driver is not None
        monkeypatch.setattr(scene.app._driver, "write", written.append)
        await pilot.press("Y")
        await wait_until(lambda: any("]52;c;" in text for text in written), pilot)
        (sequence,) = (text for text in written if "]52;c;" in text)
        assert "Beamline 7 survey" in b64decode(sequence[7:-1]).decode()


async def test_a_step_is_taken_as_its_line_its_command_and_its_log() -> None:
    scene = Scene(open_at=FAILED)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await wait_until(lambda: isinstance(scene.app.screen, JobScreen) and scene.is_read(), pilot)
        screen = scene.app.screen
        assert isinstance(screen, JobScreen)
        whole = await screen.taken()
        assert whole is not None
        assert whole.command == f"{JOBTUI} timeline {FAILED}"
        await wait_until(lambda: "status error" in "\n".join(screen_text(scene.app)), pilot)
        await pilot.press("tab", "G")
        await pilot.press(*["k"] * 12)
        commands = set()
        for _ in range(12):
            taken = await screen.taken()
            assert taken is not None
            commands.add(taken.command)
            await pilot.press("j")
        assert any("less +88214 " in command for command in commands), commands
