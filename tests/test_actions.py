"""The table of keys, and the colours that fit a terminal."""

from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style

from jobtui.actions import ACTIONS, ScreenName, actions_at
from jobtui.model.ids import JobId, TraceId
from jobtui.screens.base import LiveScreen
from jobtui.screens.command_table import COMMAND_BY_NAME
from jobtui.screens.jobs import JobsScreen
from jobtui.screens.shared import SCREENS, screen_at
from jobtui.theme import DARK, LIGHT, THEMES, VARIABLE, colors_for, theme_for, with_colors
from jobtui.views import View
from tests.offenders import each
from tests.rows import ROWS
from tests.screens.scene import Scene


def test_no_key_means_two_things_on_a_screen() -> None:
    for screen in ScreenName:
        keys = [key for action in actions_at(screen) for key in action.keys]
        assert len(keys) == len(set(keys)), screen


ABOUT: dict[ScreenName, tuple[object, ...]] = {
    ScreenName.JOB: (JobId("EPRSqtUW-IVh7w74d-myReport"),), ScreenName.TRACE: (TraceId("4" * 32),),
    ScreenName.TRACE_CHANGES: (TraceId("4" * 32),), ScreenName.COLUMNS: (View(), print),
    ScreenName.LOG_SET: ({"a": "a"}, ("a",), print), ScreenName.FACETS: ((), "1 line", print),
}  # fmt: skip
"""What a screen is about that cannot be opened without."""


def test_only_a_screen_can_be_shown_without_a_key() -> None:
    for action in ACTIONS:
        shown = action._replace(keys=()).shown_keys
        assert bool(shown) == action.call.startswith("app.go("), action
        assert not shown or (shown[0] == ":" and shown[1:] in COMMAND_BY_NAME), action


async def test_every_screen_takes_the_actions_and_binds_the_keys_of_the_table() -> None:
    app = Scene().app
    screens: list[LiveScreen] = [JobsScreen(app._shared)]
    screens += [screen_at(screen, app._shared, *ABOUT.get(ScreenName(screen), ())) for screen in SCREENS]
    assert {screen.NAME for screen in screens} == set(ScreenName) - {ScreenName.READING, ScreenName.CHOOSING}
    for screen in screens:
        for action in actions_at(screen.NAME):
            name = action.call.partition("(")[0]
            owner = app if name.startswith("app.") else screen
            assert callable(getattr(owner, f"action_{name.removeprefix('app.')}", None)), action
        keys = {key for action in actions_at(screen.NAME) for key in action.keys}
        assert set(screen._bindings.key_to_bindings) == keys


@each(*ROWS["terminals"])
def test_many_colours_are_used_only_where_they_are_sent(environ: dict[str, str]) -> None:
    """Whoever gets our own colours is sent them: textual would send 16 to others, which look like nothing."""
    console = Console(_environ={"FORCE_COLOR": "1", **environ}, legacy_windows=False)
    has_many = console._color_system in (ColorSystem.EIGHT_BIT, ColorSystem.TRUECOLOR)
    assert (theme_for("auto", environ) == DARK.name) is has_many


def test_the_cursor_is_grey_and_not_teal_in_256_colours() -> None:
    assert colors_for({"COLORTERM": "truecolor"}) == {}
    for style in colors_for({"TERM": "xterm-256color"}).values():
        color = Style.parse(style).bgcolor
        assert color is not None
        red, green, blue = color.downgrade(ColorSystem.EIGHT_BIT).get_truecolor()
        assert red == green == blue


def test_a_user_may_have_other_colours() -> None:
    mine, name = with_colors(DARK, {"status.failed": "bold red"}), f"{VARIABLE}status-failed"
    assert mine.variables == {**DARK.variables, name: "bold red"}
    assert with_colors(LIGHT, {}) is LIGHT


def test_all_themes_have_all_styles_that_are_colours() -> None:
    assert DARK.variables.keys() == LIGHT.variables.keys()
    assert len({theme.name for theme in THEMES}) == len(THEMES)
