"""Every screen at every size, and the way between them."""

from base64 import b64decode

import pytest

from jobtui.actions import ACTIONS, Topic
from jobtui.screens.job import JobScreen
from jobtui.screens.jobs import JobsScreen
from jobtui.screens.sources import SourcesScreen
from jobtui.screens.text import HelpScreen, ReadingScreen
from jobtui.theme import ANSI, ANSI_LIGHT, LIGHT, PLAIN
from jobtui.widgets.record_list import RecordTable
from jobtui.widgets.text_pane import TextPane
from tests.screens.captured import on
from tests.screens.scene import FAILED, Scene, read
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text, text_of

SIZES = [(200, 60), (120, 40), (80, 24), (69, 20), (40, 10), (20, 5), (10, 3), (3, 1)]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
async def test_all_screens_at_any_size_and_q_always_quits(size: tuple[int, int]) -> None:
    async with read(size=size) as (scene, pilot):
        await press(pilot, "j", "G", "enter", until=JobScreen)
        await press(pilot, "tab", "j", "k", "6", until=SourcesScreen)
        await press(pilot, "j", "enter", until=ReadingScreen)
        await press(pilot, "question_mark", until=HelpScreen)
        assert all(len(line) <= size[0] for line in screen_text(scene.app))
        await pilot.press("q")
        await wait_until(lambda: not scene.app.is_running, None)
    assert scene.app.return_code == 0


async def test_one_key_from_anywhere() -> None:
    scene = Scene(open_at=FAILED)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await on(scene.app, pilot, JobScreen)
        await press(pilot, "6", until=SourcesScreen)
        await press(pilot, "6", until=SourcesScreen)
        assert len(scene.app.screen_stack) == 3
        await press(pilot, "question_mark", "question_mark", until=HelpScreen)
        await press(pilot, "1", until=JobsScreen)
        assert len(scene.app.screen_stack) == 1


async def test_sources_with_what_went_wrong_and_what_was_left_out() -> None:
    async with read() as (scene, pilot):
        await press(pilot, "6", until=SourcesScreen)
        listed, about = scene.app.screen.query_one(RecordTable), scene.app.screen.query_one(TextPane)
        await wait_until(lambda: len(text_of(listed)) > 3, pilot)
        _, first, second, third, *_ = text_of(listed)
        assert "db" in first
        assert "88,214" in second
        assert "down" in third
        await press(pilot, "j", until=lambda: "line 7: cut off" in "\n".join(text_of(about)))
        await press(pilot, "j", until=lambda: "no such file" in "\n".join(text_of(about)))
        await press(pilot, "t", until=lambda: "read 21:00:00Z" in "\n".join(text_of(listed)))


async def test_help_names_every_key() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(119, 200)) as pilot:
        await press(pilot, "question_mark", until=HelpScreen)
        text = "\n".join(screen_text(scene.app))
        for action in (one for one in ACTIONS if one.topic is not Topic.REPLAY):
            assert action.help in text
            assert action.shown_keys in text


async def test_help_begins_with_the_keys_of_the_screen() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(80, 60)) as pilot:
        await press(pilot, "2", "question_mark", until=HelpScreen)
        lines = [line.strip() for line in screen_text(scene.app)]
        assert "On this screen (logs)" in lines[3:5]
        assert any(line.endswith("Search a text; ~ before it: a regular expression") for line in lines[4:10])
        assert "Go to" in lines
        await pilot.resize_terminal(120, 40)
        await wait_until(lambda: "needs a person" in "\n".join(screen_text(scene.app)), pilot)
        legend = "\n".join(screen_text(scene.app))
        assert "On this screen (logs)" in legend
        assert "what wants care" in legend


async def test_what_cannot_be_seen_does_not_work() -> None:
    async with read() as (scene, pilot):
        jobs = scene.app.screen
        assert jobs.is_current
        await press(pilot, "ctrl+p", until=lambda: scene.app.screen is not jobs)
        assert jobs.is_current, "it shines through the palette"
        await press(pilot, "escape", "6", until=SourcesScreen)
        assert scene.app.screen.is_current
        assert not jobs.is_current
        await press(pilot, "escape", until=JobsScreen)
        assert jobs.is_current


async def test_copying_writes_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    scene = Scene(open_at=FAILED)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await on(scene.app, pilot, JobScreen)
        assert scene.app._driver is not None
        monkeypatch.setattr(scene.app._driver, "write", written.append)
        await pilot.press("y")
        sequence = next(text for text in written if text.startswith("\x1b]52;c;"))
        assert b64decode(sequence[7:-1]).decode() == FAILED
        monkeypatch.setenv("TMUX", "/nowhere/default,1,0")
        written.clear()
        await press(pilot, "y", until=lambda: any(text.startswith("\x1bPtmux;") for text in written))


@pytest.mark.parametrize("theme", [PLAIN.name, ANSI.name, ANSI_LIGHT.name, LIGHT.name])
async def test_every_theme_paints_every_screen(theme: str) -> None:
    async with read(Scene(theme=theme)) as (scene, pilot):
        for key in ("enter", "6", "question_mark"):
            await pilot.press(key)
            await pilot.pause()
        styles = [
            seg.style for strip in scene.app.screen._compositor.render_strips() for seg in strip if seg.style
        ]
        coloured = {style.color for style in styles if style.color and not style.color.is_default}
        assert bool(coloured) is (theme != PLAIN.name)
