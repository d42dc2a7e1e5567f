"""The palette, what is said behind `:`, pasted or typed fast; views, columns, what is copied, the mouse."""

import asyncio
import gc
import os
import re
import stat
import sys
import warnings
from pathlib import Path

import pytest
from textual import events
from textual.keys import _character_to_key
from textual.widgets import Input

from jobtui.screens import export
from jobtui.screens.command_table import COMMANDS, CommandError, complete_command, parse_command
from jobtui.screens.incidents import SeenScreen
from jobtui.screens.jobs import JobsScreen
from jobtui.screens.palette import Palette
from jobtui.views import View, Views, ViewsError
from jobtui.widgets.filter_bar import MOST, CommandBar, History
from jobtui.widgets.job_table import JobTable
from tests.builders import a_job
from tests.fakes import batch
from tests.rows import ROWS
from tests.screens.scene import FAILED, Scene, on_jobs, opened, ready, say, words
from tests.waiting import wait_until
from tests.widgets.widget_app import press, text


def test_every_command_is_understood_in_full_or_abbreviated() -> None:
    for command in COMMANDS:
        said = f"{command.name} x" if command.needs_argument else command.name
        assert parse_command(said).command is command
    assert parse_command("  sort -age ").rest == "-age"
    assert parse_command("qui").command.name == "quit"


@pytest.mark.parametrize(("said", "wrong", "hint"), ROWS["wrong commands"])
def test_a_wrong_command_is_shown_at_its_place(said: str, wrong: str, hint: str) -> None:
    with pytest.raises(CommandError, match=re.escape(hint)) as caught:
        parse_command(said)
    assert said[caught.value.start : caught.value.end] == wrong


@pytest.mark.parametrize(("head", "choices", "start"), ROWS["commands completed"])
def test_commands_are_completed(head: str, choices: list[str], start: int) -> None:
    known = {"app": ["myapp", "srw"], "view": ["mine", "other"], "id": [str(FAILED)]}
    found = complete_command(head, len(head), lambda field, begun: known.get(field, ()))
    assert list(found.choices) == choices
    assert found.start == start


def test_the_history_goes_back_and_forth_and_is_bounded() -> None:
    history = History()
    for number in range(MOST + 5):
        history.add(str(number))
    history.add(str(MOST))
    assert len(history.lines) == MOST
    steps = ((-1, "draft"), (-1, ""), (1, ""), (1, ""))
    assert [history.step(*step) for step in steps] == [str(MOST), str(MOST + 4), str(MOST), "draft"]
    assert [History().step(by, "x") for by in (-1, 1)] == ["x", "x"]


async def test_a_view_is_kept_only_when_asked_and_shown_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "views.json"
    scene = Scene()
    scene.app._shared.views = Views(path, "prod")
    async with scene.app.run_test(size=(120, 40)) as pilot:
        table = await ready(scene, pilot)
        await say(pilot, "filter status:failed")
        await say(pilot, "sort -age")
        await wait_until(lambda: (table.sorted_by, table.reverse) == ("age", True), pilot)
        assert not path.parent.exists()
        await say(pilot, "save bad ones")
        await wait_until(path.exists, pilot)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        await say(pilot, "filter")
        await say(pilot, "sort")
        await wait_until(lambda: (table.count, table.sorted_by, table.reverse) == (9, None, False), pilot)
        await say(pilot, "view bad ones")
        await wait_until(lambda: (table.count, table.sorted_by, table.reverse) == (1, "age", True), pilot)
        await say(pilot, "view bad one")
        await wait_until(lambda: "did you mean bad ones?" in text(scene.app), pilot)
    assert Views(path, "prod").names() == ["bad ones"]
    assert Views(path, "test").names() == []


def test_a_damaged_file_of_views_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "views.json"
    for content in (b"\xff", b"[", b"[]", b"[" * 100_000):
        path.write_bytes(content)
        with pytest.raises(ViewsError, match=str(path)):
            Views(path).names()
    path.write_text('{"": {"a": {"filter": 3, "sort": [], "columns": ["age", 7]}, "b": 1}}')
    assert Views(path).get("a") == View(columns=("age",))
    assert Views(path).get("b") is None
    assert Views(path).forget("a")
    assert not Views(path).forget("a")


async def test_other_colours_are_found_and_used_at_once() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        table, first = scene.app.screen.query_one(JobTable), scene.app.theme
        seen = [table.look("status.failed")]
        found = await opened(scene, pilot, "theme")
        await wait_until(lambda: words(found)[:1] and words(found)[0].startswith("ctrl+t"), pilot)
        await press(pilot, "enter", until=lambda: table.look("status.failed") != seen[0])
        while scene.app.theme != first:
            seen.append(table.look("status.failed"))
            theme = scene.app.theme
            await press(pilot, "ctrl+t", until=lambda theme=theme: scene.app.theme != theme)  # type: ignore[misc]
        assert len(set(map(str, seen))) > 3


async def test_enter_takes_what_is_found_for_all_that_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    find, goes_on = Palette._find, asyncio.Event()

    async def slow(palette: Palette, query: str) -> None:
        if query == "recurring":
            await goes_on.wait()
        await find(palette, query)

    monkeypatch.setattr(Palette, "_find", slow)
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        found = await opened(scene, pilot, "re")
        await wait_until(lambda: words(found), pilot)
        assert not words(found)[0].startswith(":seen")
        type_at_once(scene, "curring\r")
        await wait_until(lambda: field(scene) == "recurring", pilot)
        goes_on.set()
        await wait_until(lambda: isinstance(scene.app.screen, SeenScreen), pilot)


async def test_a_longer_text_is_not_looked_for_among_old_hits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.screens.palette.KNOWN_S", 0.0)
    async with on_jobs() as (scene, pilot, _):
        found = await opened(scene, pilot, "qz")
        await wait_until(lambda: found.empty and not words(found), pilot)
        scene.store.apply("/srv/db", batch(a_job(id=FAILED, name="qzx")))
        type_at_once(scene, "x")
        await wait_until(lambda: words(found) == [f"{FAILED} qzx"], pilot)


KEYS = {"\r": "enter", "\x1b": "escape", "\x10": "ctrl+p"}


def type_at_once(scene: Scene, text: str) -> None:
    for char in text:
        character = None if char in KEYS else char
        scene.app.post_message(events.Key(KEYS.get(char) or _character_to_key(char), character))


def field(scene: Scene) -> str | None:
    fields = scene.app.screen.query(Input)
    return fields.first().value if fields else None


@pytest.mark.parametrize(("typed", "held", "screen"), ROWS["typed faster than lines open"])
async def test_a_key_that_opens_a_line_hands_it_the_next_keys(typed: str, held: str, screen: str) -> None:
    async with on_jobs(size=(100, 24)) as (scene, pilot, _):
        type_at_once(scene, typed)
        await wait_until(lambda: field(scene) == held, pilot)
        assert type(scene.app.screen).__name__ == screen


async def test_a_paste_on_any_screen_opens_a_line_with_the_text() -> None:
    async with on_jobs(size=(100, 24)) as (scene, pilot, _):
        for screen in "123467?":
            type_at_once(scene, screen)
            scene.app.post_message(events.Paste("q\x1b[31m\nq1 "))
            type_at_once(scene, "q")
            await wait_until(lambda: field(scene) == "q␛[31m q1q", pilot)
            assert scene.app.screen.query(CommandBar)
            await press(pilot, "escape", until=lambda: field(scene) is None)


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
